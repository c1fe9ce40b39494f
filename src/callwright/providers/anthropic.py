"""Claude, through Anthropic's Messages API.

Messages as Anthropic's Messages API takes them.

Anthropic's stream of events as a message that grows.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from os import environ
from typing import TYPE_CHECKING, Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import thaw
from callwright.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Stop,
    Thinking,
    ToolMessage,
    Usage,
    revealed_by,
)
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.clients import Clients, require
from callwright.providers.encoding import (
    Pieces,
    base64_text,
    file_text,
    grown,
    kept,
    kept_by,
    parsed_object,
    pieced,
    to_bytes,
    wire_id,
)
from callwright.providers.errors import broken
from callwright.providers.streaming import answer
from callwright.providers.tool_encoding import Bodies, EncodedTools, Fields, Shape, ToolEncoder, to_anthropic

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

Block = dict[str, Any]

PROVIDER = "anthropic"
_MARK = b',"cache_control":{"type":"ephemeral"}}]}'
_END = b"}]}"


def encode(message: Message, edge: EncodedTools) -> bytes:
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


def _references(outcome: Completed | Failed, edge: EncodedTools) -> list[Block]:
    found = [edge.wire[name] for name in revealed_by(outcome) if name in edge.late]
    return [{"type": "tool_reference", "tool_name": name} for name in found]


def _outcome(outcome: Completed | Failed, edge: EncodedTools) -> Block:
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


def _assistant(parts: tuple[AssistantPart, ...], edge: EncodedTools) -> list[Block]:
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


Event = dict[str, Any]

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "paused",
}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class AnthropicDraft:
    """The message so far."""

    def __init__(self, edge: EncodedTools) -> None:
        self._edge = edge
        self._blocks: dict[int, Event] = {}
        self._model = ""
        self._reason: str | None = None
        self._counts: dict[str, int] = {}
        self._finished = False

    def take(self, event: Event) -> list[ModelEvent]:
        """Take in one event; say what of it is news."""
        match event.get("type"):
            case "message_start":
                self._model = event["message"].get("model", "")
                self._count(event["message"].get("usage"))
            case "content_block_start":
                return self._started(event["index"], event["content_block"])
            case "content_block_delta":
                return self._grown(event["index"], event["delta"])
            case "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._count(event.get("usage"))
            case "message_stop":
                self._finished = True
            case _:  # pings, and kinds that are not there yet
                pass
        return []

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        if not self._finished or self._reason is None:
            raise broken("it ended before the message did")
        parts = tuple(self._part(block) for _, block in sorted(self._blocks.items()))
        counts = [self._counts.get(name, 0) for name in _COUNTS]
        return AssistantMessage(parts, _STOPS.get(self._reason, "other"), Usage(*counts), self._model)

    def _count(self, usage: Event | None) -> None:
        for name in _COUNTS:  # each report is of the whole request so far
            value = (usage or {}).get(name)
            if value is not None:
                self._counts[name] = value

    def _started(self, index: int, block: Event) -> list[ModelEvent]:
        self._blocks[index] = {**block, "_json": ""}
        if block.get("type") == "tool_use":
            return [CallDelta(block["id"], self._edge.inward_name(block["name"]), "")]
        if block.get("type") == "text" and block.get("text"):
            return [TextDelta(block["text"])]
        return []

    def _grown(self, index: int, delta: Event) -> list[ModelEvent]:
        block, kind = self._blocks[index], delta.get("type", "")
        if kind == "input_json_delta":
            block["_json"] += delta["partial_json"]
            if block.get("type") == "tool_use" and delta["partial_json"]:
                return [CallDelta(block["id"], self._edge.inward_name(block["name"]), delta["partial_json"])]
        elif kind in _GROWING:
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
                return Text(block["text"])
            case "tool_use":
                written = text or (json.dumps(block["input"]) if block.get("input") else "")
                return self._edge.inward(block["id"], block["name"], written, cut=self._is_cut(block))
            case "thinking":
                signature = block.get("signature", "")
                return Thinking(block.get("thinking", ""), kept(PROVIDER, {"type": "thinking", "signature": signature}))
            case _:  # redacted thoughts, and tools the API runs itself: handed back as they are
                if text:
                    block["input"] = parsed_object(text) or {}
                return Thinking("", kept(PROVIDER, block))

    def _is_cut(self, block: Event) -> bool:
        last = self._blocks[max(self._blocks)]
        return block is last and _STOPS.get(self._reason or "") == "length"


_JOINED_LATE = re.compile(r"claude-(?:fable|mythos|opus|sonnet|haiku)-(?:4-[5-9]|[5-9])")
"""Models that are told of more tools in the middle of a conversation."""
_LOOSE = 4
"""Among the last so many messages are the two that end what is to be cached."""


class AnthropicMessages:
    """A Claude model. What is stable is marked for the prompt cache; thoughts go back as they came."""

    vendor = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncAnthropic | None" = None,
        cache: bool = True,
        late_tools: bool | None = None,
    ) -> None:
        """`client` is for other doors to the same API (Bedrock, Vertex, a proxy); its own retries should be off.

        `late_tools` has tools that were searched for join where they were found, so that what is cached stays valid;
        by default for models that can, at Anthropic's own address.
        """
        require("anthropic", "anthropic")
        self.model = model
        if late_tools is None:
            own = client is None and not (base_url or environ.get("ANTHROPIC_BASE_URL"))
            late_tools = own and _JOINED_LATE.match(model) is not None
        self.late_tools = late_tools
        self._edges = ToolEncoder(PROVIDER, _shape, late="by reference" if late_tools else "never")
        self._bodies = Bodies(self._fields, "messages")
        self._cache = cache
        self._clients = Clients(lambda: client or _client(api_key, base_url), _close)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        return answer(AnthropicDraft(edge), self._open(request, edge), key="ANTHROPIC_API_KEY")

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    @asynccontextmanager
    async def _open(self, request: ModelRequest, edge: EncodedTools) -> AsyncGenerator[AsyncIterator[Any]]:
        from anthropic import AsyncStream

        client = await self._clients.get()
        # the body is ours, bytes and all: the typed call would walk through every old message on every turn
        posted = client.post(
            "/v1/messages",
            cast_to=object,
            content=self._body(request, edge),
            stream=True,
            stream_cls=AsyncStream[object],
        )
        async with await posted as events:
            yield events

    def _body(self, request: ModelRequest, edge: EncodedTools) -> bytes:
        return self._bodies.of(request, edge, self._messages(request, edge))

    def _fields(self, request: ModelRequest, edge: EncodedTools) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            "max_tokens": to_bytes(request.max_tokens),
            "stream": b"true",
        }
        if edge.tools:
            fields["tools"] = edge.tools
        if request.system:
            ending = {"cache_control": {"type": "ephemeral"}} if self._cache else {}
            fields["system"] = to_bytes([{"type": "text", "text": request.system, **ending}])
        if request.output_schema is not None:
            fields["output_config"] = to_bytes({"format": {"type": "json_schema", "schema": request.output_schema}})
        return fields

    def _messages(self, request: ModelRequest, edge: EncodedTools) -> Pieces:
        loose = _LOOSE if self._cache else 0
        settled, last = grown(request.messages, edge.key, lambda message: encode(message, edge), loose=loose)
        # the API looks back only twenty blocks for what it has cached, so the end of the last request is marked too
        begin = len(request.messages) - len(last)
        users = [place for place in range(len(last)) if _is_user(request, begin + place)]
        for place in users[-2:]:
            last[place] = marked(last[place])
        return pieced(settled, *last)


def _is_user(request: ModelRequest, place: int) -> bool:
    return not isinstance(request.messages[place], AssistantMessage)


def _shape(spec: ToolSpec, name: str, _: bool) -> Shape:
    return to_anthropic(spec, name)


def _client(api_key: str | None, base_url: str | None) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0)


async def _close(client: "AsyncAnthropic") -> None:
    await client.close()
