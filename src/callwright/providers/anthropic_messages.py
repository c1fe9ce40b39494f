"""Messages as Anthropic's Messages API takes them."""

from typing import Any

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import thaw
from callwright.core.message import AssistantMessage, AssistantPart, Message, ToolMessage
from callwright.core.reveal import revealed_by
from callwright.providers.edge import Edge
from callwright.providers.encoding import base64_text, file_text, kept_by, to_bytes, wire_id

Block = dict[str, Any]

PROVIDER = "anthropic"
_MARK = b',"cache_control":{"type":"ephemeral"}}]}'
_END = b"}]}"


def encode(message: Message, edge: Edge) -> bytes:
    """Encode one message; its content is always a list of blocks and always its last key."""
    if isinstance(message, ToolMessage):
        # what a search says beside its references comes after the results: the API takes them unmixed
        results = [_outcome(outcome, edge) for outcome in message.outcomes]
        return _written(
            "user", [*results, *(_text(outcome.text) for outcome in message.outcomes if _references(outcome, edge))]
        )
    if isinstance(message, AssistantMessage):
        return _written("assistant", _assistant(message.parts, edge))
    content = message.content
    return _written("user", [_text(content)] if isinstance(content, str) else _content(content))


def marked(fragment: bytes) -> bytes:
    """Mark an encoded user message as the end of something to cache, without encoding it again."""
    return fragment[: -len(_END)] + _MARK


def _written(role: str, blocks: list[Block]) -> bytes:
    said = [block for block in blocks if block.get("type") != "text" or block["text"].strip()]
    # the API takes neither blank text nor a message of nothing
    return to_bytes({"role": role, "content": said or [_text("(nothing)")]})


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _content(parts: tuple[Part, ...]) -> list[Block]:
    return [_part(part) for part in parts]


def _part(part: Part) -> Block:
    if isinstance(part, Text):
        return _text(part.text)
    source = {"type": "base64", "media_type": part.media_type, "data": base64_text(part)}
    if isinstance(part, Image):
        return {"type": "image", "source": source}
    return _document(part, source)


def _document(part: File, source: Block) -> Block:
    if part.media_type != "application/pdf":
        return _text(file_text(part))
    named = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source, **named}


def _references(outcome: Completed | Failed, edge: Edge) -> list[Block]:
    found = [edge.wire[name] for name in revealed_by(outcome) if name in edge.late]
    return [{"type": "tool_reference", "tool_name": name} for name in found]


def _outcome(outcome: Completed | Failed, edge: Edge) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": wire_id(outcome.call.id)}
    if isinstance(outcome, Failed):
        return {**block, "content": outcome.text or "failed", "is_error": True}
    references = _references(outcome, edge)
    if references:
        return {**block, "content": references}
    content = outcome.output.content
    if isinstance(content, str):
        return {**block, "content": content}
    blocks = _content(content)
    return {**block, "content": [each for each in blocks if each.get("type") != "text" or each["text"].strip()]}


def _assistant(parts: tuple[AssistantPart, ...], edge: Edge) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append(_text(part.text))
        elif isinstance(part, ToolCall):
            named = {"id": wire_id(part.id), "name": edge.outward_name(part)}
            blocks.append({"type": "tool_use", **named, "input": edge.outward(part)})
        else:
            value = kept_by(PROVIDER, part)
            if value is not None:  # thoughts of other models carry no signature this API would accept
                blocks.append(_thought(part.text, thaw(value)))
    return blocks


def _thought(text: str, block: Block) -> Block:
    if block.get("type") == "thinking":
        return {"type": "thinking", "thinking": text, "signature": block.get("signature", "")}
    return block
