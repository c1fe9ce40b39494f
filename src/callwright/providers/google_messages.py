"""Messages as Gemini's contents."""

from base64 import b64encode
from typing import Any

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import File, Part, Text
from callwright.core.message import AssistantMessage, Message, ToolMessage
from callwright.providers.edge import Edge
from callwright.providers.encoding import base64_text, file_text, kept_by, to_bytes, wire_id

Wire = dict[str, Any]

PROVIDER = "google"
_SHOWN = ("application/pdf", "image/", "audio/", "video/")
_UNSIGNED = b64encode(b"skip_thought_signature_validator").decode()
"""What Google asks for in place of a signature on calls that no Gemini model made."""


def encode(message: Message, edge: Edge) -> bytes:
    """Encode one message."""
    if isinstance(message, ToolMessage):
        return _written("user", [part for outcome in message.outcomes for part in _outcome(outcome, edge)])
    if isinstance(message, AssistantMessage):
        return _written("model", _assistant(message, edge))
    content = (Text(message.content),) if isinstance(message.content, str) else message.content
    return _written("user", [_part(part) for part in content])


def _written(role: str, parts: list[Wire]) -> bytes:
    return to_bytes({"role": role, "parts": parts or [{"text": "(nothing)"}]})


def _part(part: Part) -> Wire:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, File) and not part.media_type.startswith(_SHOWN):
        return {"text": file_text(part)}
    return {"inlineData": {"mimeType": part.media_type, "data": base64_text(part)}}


def _outcome(outcome: Completed | Failed, edge: Edge) -> list[Wire]:
    said = {"error" if isinstance(outcome, Failed) else "output": outcome.text}
    named = {"id": wire_id(outcome.call.id), "name": edge.outward_name(outcome.call)}
    shown = outcome.output.parts if isinstance(outcome, Completed) else ()
    pictures = [_part(part) for part in shown if not isinstance(part, Text)]
    return [{"functionResponse": {**named, "response": said}}, *pictures]


def _assistant(message: AssistantMessage, edge: Edge) -> list[Wire]:
    parts: list[Wire] = []
    signature: str | None = None
    foreign = not message.model.startswith("gemini")
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(_signed({"text": part.text}, signature))
        elif isinstance(part, ToolCall):
            parts.append(_signed({"functionCall": _call(part, edge)}, signature or (_UNSIGNED if foreign else None)))
            foreign = False  # the first of several calls speaks for them all
        else:
            value: Any = kept_by(PROVIDER, part)
            signature = None if value is None else value.get("signature")
            if value is None or not value.get("thought"):
                continue  # it signs what comes next
            parts.append(_signed({"text": part.text, "thought": True}, signature))
        signature = None
    return parts


def _signed(part: Wire, signature: str | None) -> Wire:
    return {**part, "thoughtSignature": signature} if signature else part


def _call(call: ToolCall, edge: Edge) -> Wire:
    return {"id": wire_id(call.id), "name": edge.outward_name(call), "args": edge.outward(call)}
