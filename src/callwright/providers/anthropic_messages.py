"""Claude's messages: encoding of a conversation as content blocks, reading of the event stream."""

import json
from secrets import token_hex
from typing import Any

from callwright.core.calls import Completed, Failed, ToolCall, find_revealed
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage, Usage
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.encoding import (
    base64_text,
    fit_media,
    parse_object,
    read_count,
    to_bytes,
    unwrap_opaque,
    wire_id,
    wrap_opaque,
)
from callwright.providers.errors import broken_stream, context_is_full, status_failure
from callwright.providers.tool_encoding import EncodedTools, finish_message

Block = dict[str, Any]

PROVIDER = "anthropic"
_MARK = b',"cache_control":{"type":"ephemeral"}}]}'
_END = b"}]}"


class UniqueCallIds:
    """The ids of a conversation's calls, in order: the API rejects a repeated one, which other servers send."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def begin(self, call: ToolCall) -> str:
        """Return the id of the next call."""
        self._counts[call.id] = self._counts.get(call.id, 0) + 1
        return self.find(call)

    def find(self, call: ToolCall) -> str:
        """Return the id of the last call with the given one, for its outcome."""
        count = self._counts.get(call.id, 1)
        return wire_id(call.id if count == 1 else f"{call.id} #{count}")


def encode(
    message: Message, tools: EncodedTools, ids: UniqueCallIds | None = None, *, signed: bool = False, origin: str = ""
) -> bytes:
    """Encode one message; its content is always a list of blocks and always its last key.

    `ids` are those of the messages before it.

    Thinking of another server than `origin`, which is empty for Anthropic, is left out: its signature is not accepted.
    With `signed`, so is thinking without a signature, which Anthropic rejects.
    """
    ids = ids or UniqueCallIds()
    if isinstance(message, ToolMessage):
        # the API does not accept references and text in one result, so the text of a search follows the results
        results = [_outcome(outcome, tools, ids) for outcome in message.outcomes]
        return _encode_blocks(
            "user", [*results, *(_text(outcome.text) for outcome in message.outcomes if _references(outcome, tools))]
        )
    if isinstance(message, AssistantMessage):
        return _encode_blocks("assistant", _assistant(message.parts, tools, ids, signed=signed, origin=origin))
    content = message.content
    return _encode_blocks("user", [_text(content)] if isinstance(content, str) else _content(content))


def mark_cache_end(fragment: bytes) -> bytes:
    """Mark an encoded user message as the end of a cached prefix, without encoding it again."""
    return fragment[: -len(_END)] + _MARK


_THOUGHTS = ("thinking", "redacted_thinking")


def _encode_blocks(role: str, blocks: list[Block]) -> bytes:
    filled = [block for block in blocks if block.get("type") != "text" or block["text"].strip()]
    # the API accepts neither blank text nor an empty message
    return to_bytes({"role": role, "content": filled or [_text("(nothing)")]})


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _content(parts: tuple[Part, ...]) -> list[Block]:
    return [_part(part) for part in parts]


def _part(part: Part) -> Block:
    part = fit_media(part)
    if isinstance(part, Text):
        return _text(part.text)
    source = {"type": "base64", "media_type": part.media_type, "data": base64_text(part)}
    named = {"title": part.name} if isinstance(part, File) and part.name else {}
    return {"type": "image" if isinstance(part, Image) else "document", "source": source, **named}


def _references(outcome: Completed | Failed, tools: EncodedTools) -> list[Block]:
    found = [tools.wire[name] for name in find_revealed(outcome) if name in tools.late]
    return [{"type": "tool_reference", "tool_name": name} for name in found]


def _outcome(outcome: Completed | Failed, tools: EncodedTools, ids: UniqueCallIds) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": ids.find(outcome.call)}
    if isinstance(outcome, Failed):
        return {**block, "content": outcome.text or "failed", "is_error": True}
    references = _references(outcome, tools)
    if references:
        return {**block, "content": references}
    content = outcome.output.content
    if isinstance(content, str):
        return {**block, "content": content}
    blocks = _content(content)
    filled = [each for each in blocks if each.get("type") != "text" or each["text"].strip()]
    return {**block, "content": filled} if filled else block


def _assistant(
    parts: tuple[AssistantPart, ...], tools: EncodedTools, ids: UniqueCallIds, *, signed: bool, origin: str
) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append(_text(part.text))
        elif isinstance(part, ToolCall):
            named = {"id": ids.begin(part), "name": tools.wire_name_of(part)}
            blocks.append({"type": "tool_use", **named, "input": tools.wire_arguments(part)})
        else:
            value = unwrap_opaque(PROVIDER, part, origin)
            # thinking of other models has no signature that this API accepts
            if value is not None and not (signed and value.get("type") == "thinking" and not value.get("signature")):
                blocks.append(_thinking_block(part.text, thaw(value)))
    while blocks and blocks[-1].get("type") in _THOUGHTS:  # cut off inside its thinking: the API rejects it as the end
        blocks.pop()
    return blocks


def _thinking_block(text: str, block: Block) -> Block:
    if block.get("type") == "thinking":
        return {"type": "thinking", "thinking": text, "signature": block.get("signature") or ""}
    return block


Event = dict[str, Any]

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "refusal": "refusal",
    "pause_turn": "paused",
}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class AnthropicDraft:
    """A message under construction from the Messages API's events; `origin` is the server, if not Anthropic's."""

    def __init__(self, tools: EncodedTools, origin: str = "") -> None:
        self._tools = tools
        self._origin = origin
        self._blocks: dict[int, Event] = {}
        self._model: object = ""
        self._reason: str | None = None
        self._counts: dict[str, int] = {}
        self.ended = False

    def take(self, event: Event) -> list[ModelEvent]:
        """Add one event and return the model events it causes."""
        match event.get("type"):
            case "message_start":
                self._model = event["message"].get("model")
                self._count(event["message"].get("usage"))
            case "content_block_start":
                return self._start_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._extend_block(event["index"], event["delta"])
            case "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._count(event.get("usage"))
            case "message_stop":
                self.ended = True
            case "message":  # a server that does not stream
                return self._take_whole(event)
            case _:  # pings, and kinds added to the API later
                if event.get("error"):  # of a gateway that does not name its kind
                    raise status_failure(200, event, {})
        return []

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        if not self.ended or self._reason is None:
            raise broken_stream("it ended before the message was complete")
        if self._reason == "model_context_window_exceeded":
            raise context_is_full(self._reason)
        parts = [self._part(block) for _, block in sorted(self._blocks.items())]
        counts = [self._counts.get(name, 0) for name in _COUNTS]
        return finish_message(parts, _STOPS.get(self._reason, "other"), Usage(*counts), self._model)

    def _take_whole(self, message: Event) -> list[ModelEvent]:
        self._model, self._reason, self.ended = message.get("model"), message.get("stop_reason"), True
        self._count(message.get("usage"))
        blocks = enumerate(message.get("content") or ())
        return [event for index, block in blocks for event in self._start_block(index, block)]

    def _count(self, usage: Event | None) -> None:
        for name in _COUNTS:  # each report covers the whole request so far
            value = (usage or {}).get(name)
            if value is not None:
                self._counts[name] = read_count(value)

    def _start_block(self, index: int, block: Event) -> list[ModelEvent]:
        if index in self._blocks:
            raise broken_stream(f"it has two blocks with the index {index}")
        kind = block.get("type")
        if not isinstance(kind, str):  # sent back like other unknown blocks, it would be refused for good
            raise broken_stream("a block has no type")
        block = self._blocks[index] = {**block, "_json": ""}
        if kind == "tool_use":
            if not block.get("name"):
                raise broken_stream("a call has no name")
            block["id"] = block.get("id") or f"call_{token_hex(8)}"
            return [CallDelta(block["id"], self._tools.tool_name_of(block["name"]), "")]
        if kind == "text" and block.get("text"):
            return [TextDelta(block["text"])]
        if kind == "thinking" and block.get("thinking"):
            return [ThinkingDelta(block["thinking"])]
        return []

    def _extend_block(self, index: int, delta: Event) -> list[ModelEvent]:
        block, kind = self._blocks[index], delta.get("type", "")
        if kind == "input_json_delta" and delta["partial_json"] is not None:
            block["_json"] += delta["partial_json"]
            if block.get("type") == "tool_use" and delta["partial_json"]:
                return [CallDelta(block["id"], self._tools.tool_name_of(block["name"]), delta["partial_json"])]
        elif kind in _GROWING and delta[_GROWING[kind]] is not None:
            field = _GROWING[kind]
            block[field] = (block.get(field) or "") + delta[field]
            if kind != "signature_delta" and delta[field]:
                return [TextDelta(delta[field]) if kind == "text_delta" else ThinkingDelta(delta[field])]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        return []

    def _part(self, block: Event) -> AssistantPart:
        text: str = block.pop("_json")
        match block.get("type"):
            case "text":
                return Text(block.get("text") or "")
            case "tool_use":
                written = text or (json.dumps(block["input"]) if block.get("input") else "")
                return self._tools.read_call(block["id"], block["name"], written, cut=self._is_cut(block))
            case "thinking":
                value = {"type": "thinking", "signature": block.get("signature") or ""}
                return Thinking(block.get("thinking") or "", wrap_opaque(PROVIDER, value, self._origin))
            case _:  # redacted thinking, and tools the API runs itself: sent back unchanged
                if text:
                    block["input"] = parse_object(text) or {}
                return Thinking("", wrap_opaque(PROVIDER, block, self._origin))

    def _is_cut(self, block: Event) -> bool:
        last = self._blocks[max(self._blocks)]
        return block is last and _STOPS.get(self._reason or "") == "length"
