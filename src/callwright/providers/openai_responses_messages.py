"""Messages as items of OpenAI's Responses API."""

from typing import Any

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import compact, thaw
from callwright.core.message import AssistantMessage, Message, ToolMessage
from callwright.providers.edge import Edge
from callwright.providers.encoding import data_url, file_text, kept_by, listed, to_bytes, wire_id
from callwright.providers.late import joined

Item = dict[str, Any]

PROVIDER = "openai"


def encode(message: Message, edge: Edge) -> bytes:
    """Encode one message, which may become several items."""
    if isinstance(message, ToolMessage):
        items = [_outcome(outcome) for outcome in message.outcomes]
        return b",".join([*(to_bytes(item) for item in items), *_joining(message, edge)])
    if isinstance(message, AssistantMessage):
        items = _assistant(message, edge)
    else:
        items = [{"role": "user", "content": _content(message.content)}]
    return b",".join([to_bytes(item) for item in items])


def _content(content: str | tuple[Part, ...]) -> str | list[Item]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> Item:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": data_url(part)}
    if isinstance(part, File) and part.media_type == "application/pdf":
        return {"type": "input_file", "filename": part.name or "file.pdf", "file_data": data_url(part)}
    return {"type": "input_text", "text": part.text if isinstance(part, Text) else file_text(part)}


def _outcome(outcome: Completed | Failed) -> Item:
    # the API has no flag for failures
    output = f"error: {outcome.text}" if isinstance(outcome, Failed) else _content(outcome.output.content)
    return {"type": "function_call_output", "call_id": wire_id(outcome.call.id), "output": output}


def _joining(message: ToolMessage, edge: Edge) -> list[bytes]:
    """Bring along the tools that were found, after the outcomes: calls and outcomes stay next to each other."""
    found = [edge.late[name] for name in joined(message) if name in edge.late]
    return [b'{"type":"additional_tools","role":"developer","tools":' + listed(found) + b"}"] if found else []


def _assistant(message: AssistantMessage, edge: Edge) -> list[Item]:
    items: list[Item] = []
    phase: Item = {}
    for part in message.parts:
        if isinstance(part, Text):
            items.append({"role": "assistant", "content": part.text, **phase})
        elif isinstance(part, ToolCall):
            items.append(_call(part, edge))
        else:
            value = kept_by(PROVIDER, part)
            phase = {"phase": value["phase"]} if value is not None and "phase" in value else {}
            if value is not None and not phase:
                items.append(thaw(value))
    while items and items[-1].get("type") == "reasoning":  # the API wants no thought without what it led to
        items.pop()
    return items or [{"role": "assistant", "content": "(nothing)"}]


def _call(call: ToolCall, edge: Edge) -> Item:
    named = {"call_id": wire_id(call.id), "name": edge.outward_name(call)}
    if call.name in edge.late:  # the API has such tools in a namespace of their own
        named["namespace"] = named["name"]
    return {"type": "function_call", **named, "arguments": compact(edge.outward(call))}
