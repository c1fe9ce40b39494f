"""Outcomes as an MCP client reads them."""

import base64
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from callwright.core.call import Completed, Failed, Outcome
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import thaw


def payload_of(outcome: Outcome, *, modern: bool) -> dict[str, Any]:
    """Make MCP's result of an outcome; `modern` is 2026-07-28: structured content need not be an object there."""
    payload: dict[str, Any] = {"resultType": "complete"} if modern else {}
    if isinstance(outcome, Completed):
        payload["content"] = [_block(part) for part in outcome.output.parts]
        structured: Any = thaw(outcome.output.structured)
        if isinstance(structured, dict) or (modern and structured is not None):
            payload["structuredContent"] = structured
        return payload
    said = outcome.error.message if isinstance(outcome, Failed) else "a person has to decide, and nobody was asked"
    return payload | {"content": [{"type": "text", "text": said}], "isError": True}


def _block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(data=data, media_type=kind):
            return {"type": "image", "data": _base64(data), "mimeType": kind}
        case File(data=data, media_type=kind) if kind.startswith("audio/"):
            return {"type": "audio", "data": _base64(data), "mimeType": kind}
        case File():
            return {"type": "resource", "resource": _resource(part)}


def _resource(file: File) -> dict[str, Any]:
    uri = file.name if "://" in file.name else f"file:///{quote(file.name or 'output')}"
    about = {"uri": uri, "mimeType": file.media_type}
    if file.media_type.startswith("text/") or file.media_type == "application/json":
        with suppress(UnicodeDecodeError):  # what calls itself text and is none goes as it is
            return {**about, "text": file.data.decode()}
    return {**about, "blob": _base64(file.data)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
