"""Messages as the Chat Completions API takes them: OpenAI's own, and everybody's who speaks it too."""

from typing import Any

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import compact
from callwright.core.message import AssistantMessage, Message, Thinking, ToolMessage
from callwright.providers.edge import Edge
from callwright.providers.encoding import data_url, file_text, kept_by, to_bytes, wire_id

Wire = dict[str, Any]

PROVIDER = "openai_chat"


def encode(message: Message, edge: Edge) -> bytes:
    """Encode one message, which may become several on the wire."""
    if isinstance(message, ToolMessage):
        return b",".join([to_bytes(each) for each in _outcomes(message)])
    if isinstance(message, AssistantMessage):
        return to_bytes(_assistant(message, edge))
    return to_bytes({"role": "user", "content": user_content(message.content)})


def user_content(content: str | tuple[Part, ...]) -> str | list[Wire]:
    """Give what a user said: text as it is, parts as a list."""
    return content if isinstance(content, str) else [_part(part) for part in content]


def outcome_text(outcome: Completed | Failed) -> str:
    """Give what a tool said to an API that has no flag for failures."""
    if isinstance(outcome, Failed):
        return f"error: {outcome.text}"
    return "\n".join([said for part in outcome.output.parts if (said := _textual(part)) is not None])


def _textual(part: Part) -> str | None:
    if isinstance(part, Text):
        return part.text
    return file_text(part) if isinstance(part, File) and part.media_type != "application/pdf" else None


def _part(part: Part) -> Wire:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    if isinstance(part, File) and part.media_type == "application/pdf":
        return {"type": "file", "file": {"filename": part.name or "file.pdf", "file_data": data_url(part)}}
    return {"type": "text", "text": part.text if isinstance(part, Text) else file_text(part)}


def _outcomes(message: ToolMessage) -> list[Wire]:
    answers: list[Wire] = []
    shown: list[Wire] = []
    for outcome in message.outcomes:
        answers.append({"role": "tool", "tool_call_id": wire_id(outcome.call.id), "content": outcome_text(outcome)})
        parts = outcome.output.parts if isinstance(outcome, Completed) else ()
        pictures = [_part(part) for part in parts if _textual(part) is None]
        if pictures:  # a tool message holds text only, so a person's message shows what the tool did
            shown += [{"type": "text", "text": f"from {wire_id(outcome.call.id)}:"}, *pictures]
    return [*answers, {"role": "user", "content": shown}] if shown else answers


def _assistant(message: AssistantMessage, edge: Edge) -> Wire:
    calls = [_call(call, edge) for call in message.calls]
    wire: Wire = {"role": "assistant", "content": message.text or (None if calls else "")}
    if calls:
        wire["tool_calls"] = calls
        wire |= _reasoning(message)
    return wire


def _reasoning(message: AssistantMessage) -> Wire:
    """Give back the thoughts that led to calls, under the name the server gave them; other thoughts are not wanted."""
    thoughts: Wire = {}
    for part in message.parts:
        field = kept_by(PROVIDER, part) if isinstance(part, Thinking) else None
        if isinstance(part, Thinking) and isinstance(field, str):
            thoughts[field] = thoughts.get(field, "") + part.text
    return thoughts


def _call(call: ToolCall, edge: Edge) -> Wire:
    # servers that fill a template parse this text, so it is always JSON
    function = {"name": edge.outward_name(call), "arguments": compact(edge.outward(call))}
    return {"id": wire_id(call.id), "type": "function", "function": function}
