"""Outcomes as an MCP client reads them."""

import base64
from contextlib import suppress
from urllib.parse import quote

import mcp_types as types

from toolwright.core.call import Completed, Failed, Outcome
from toolwright.core.content import File, Image, Part, Text
from toolwright.core.json import thaw


def result_of(outcome: Outcome, *, any_value: bool) -> types.CallToolResult:
    """Make MCP's result of an outcome; `any_value` says that structured content need not be an object."""
    match outcome:
        case Completed(output=output):
            structured = thaw(output.structured)
            if not isinstance(structured, dict) and not (any_value and structured is not None):
                return types.CallToolResult(content=[block_of(part) for part in output.parts])
            return types.CallToolResult(
                content=[block_of(part) for part in output.parts], structured_content=structured
            )
        case Failed(error=error):
            return types.CallToolResult(content=[types.TextContent(text=error.message)], is_error=True)
        case _:
            said = "a person has to decide, and nobody was asked"
            return types.CallToolResult(content=[types.TextContent(text=said)], is_error=True)


def block_of(part: Part) -> types.ContentBlock:
    """Make MCP's content block of a part."""
    match part:
        case Text(text=text):
            return types.TextContent(text=text)
        case Image(data=data, media_type=kind):
            return types.ImageContent(data=_base64(data), mime_type=kind)
        case File(data=data, media_type=kind) if kind.startswith("audio/"):
            return types.AudioContent(data=_base64(data), mime_type=kind)
        case File():
            return types.EmbeddedResource(resource=_resource(part))


def _resource(file: File) -> types.TextResourceContents | types.BlobResourceContents:
    uri = file.name if "://" in file.name else f"file:///{quote(file.name or 'output')}"
    if file.media_type.startswith("text/") or file.media_type == "application/json":
        with suppress(UnicodeDecodeError):  # what calls itself text and is none goes as it is
            return types.TextResourceContents(uri=uri, mime_type=file.media_type, text=file.data.decode())
    return types.BlobResourceContents(uri=uri, mime_type=file.media_type, blob=_base64(file.data))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
