"""Messages as Gemini's contents, in the SDK's own types: it takes them as they are, turn after turn."""

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from toolwright.core.call import Completed, Failed, ToolCall
from toolwright.core.content import File, Part, Text
from toolwright.core.message import AssistantMessage, Message, ToolMessage
from toolwright.providers.edge import Edge
from toolwright.providers.encoding import file_text, kept_by, to_bytes, wire_id

if TYPE_CHECKING:
    from google.genai import types

PROVIDER = "google"
_SHOWN = ("application/pdf", "image/", "audio/", "video/")
_UNSIGNED = b"skip_thought_signature_validator"
"""What Google asks for in place of a signature on calls that no Gemini model made."""


def encode(message: Message, edge: Edge) -> "types.Content":
    """Make one message a content."""
    from google.genai import types

    if isinstance(message, ToolMessage):
        parts = [part for outcome in message.outcomes for part in _outcome(outcome, edge)]
        return types.Content(role="user", parts=parts)
    if isinstance(message, AssistantMessage):
        return types.Content(role="model", parts=_assistant(message, edge) or [types.Part(text="(nothing)")])
    content = (Text(message.content),) if isinstance(message.content, str) else message.content
    return types.Content(role="user", parts=[_part(part) for part in content] or [types.Part(text="(nothing)")])


def _part(part: Part) -> "types.Part":
    from google.genai import types

    if isinstance(part, Text):
        return types.Part(text=sayable(part.text))
    if isinstance(part, File) and not part.media_type.startswith(_SHOWN):
        return types.Part(text=file_text(part))
    return types.Part(inline_data=types.Blob(data=part.data, mime_type=part.media_type))


def sayable(text: str) -> str:
    """Give text as the SDK takes it."""
    return text.encode("utf-8", "replace").decode()  # the SDK refuses half a surrogate pair


def _outcome(outcome: Completed | Failed, edge: Edge) -> list["types.Part"]:
    from google.genai import types

    said = {"error": sayable(outcome.text)} if isinstance(outcome, Failed) else {"output": sayable(outcome.text)}
    named = types.FunctionResponse(id=wire_id(outcome.call.id), name=edge.outward_name(outcome.call), response=said)
    shown = outcome.output.parts if isinstance(outcome, Completed) else ()
    return [types.Part(function_response=named), *(_part(part) for part in shown if not isinstance(part, Text))]


def _assistant(message: AssistantMessage, edge: Edge) -> list["types.Part"]:
    from google.genai import types

    parts: list[types.Part] = []
    signature: bytes | None = None
    foreign = not message.model.startswith("gemini")
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(types.Part(text=sayable(part.text), thought_signature=signature))
        elif isinstance(part, ToolCall):
            signature = signature or (_UNSIGNED if foreign else None)
            parts.append(types.Part(function_call=_call(part, edge), thought_signature=signature))
            foreign = False  # the first of several calls speaks for them all
        else:
            value: Any = kept_by(PROVIDER, part)
            signature = b64decode(value["signature"]) if value is not None and value.get("signature") else None
            if value is None or not value.get("thought"):
                continue  # it signs what comes next
            parts.append(types.Part(text=sayable(part.text), thought=True, thought_signature=signature))
        signature = None
    return parts


def _call(call: ToolCall, edge: Edge) -> "types.FunctionCall":
    from google.genai import types

    return types.FunctionCall(
        id=wire_id(call.id), name=edge.outward_name(call), args=json.loads(to_bytes(edge.outward(call)))
    )
