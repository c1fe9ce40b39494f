"""Claude through Anthropic's Messages API: encoding of messages, reading of the event stream, the provider."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from os import environ
from typing import TYPE_CHECKING, Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, compact, thaw
from callwright.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Stop,
    Thinking,
    ToolMessage,
    Usage,
    find_revealed,
)
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.clients import Clients, require
from callwright.providers.encoding import (
    Pieces,
    encode_history,
    list_pieces,
    parse_object,
    to_bytes,
    unwrap_opaque,
    wire_id,
    wrap_opaque,
)
from callwright.providers.errors import broken_stream, context_is_full, status_failure
from callwright.providers.media import base64_text, fit_media
from callwright.providers.options import ModelOptions, limit_effort, set_fields
from callwright.providers.schemas.anthropic_output import anthropic_output_schema
from callwright.providers.streaming import read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    ToolPayload,
    finish_message,
    to_anthropic,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream
    from anthropic.lib.bedrock import AsyncAnthropicBedrock
    from anthropic.lib.vertex import AsyncAnthropicVertex

Block = dict[str, Any]

PROVIDER = "anthropic"
_MARK = b',"cache_control":{"type":"ephemeral"}}]}'
_END = b"}]}"


def encode(message: Message, tools: EncodedTools) -> bytes:
    """Encode one message; its content is always a list of blocks and always its last key."""
    if isinstance(message, ToolMessage):
        # the API does not accept references and text in one result, so the text of a search follows the results
        results = [_outcome(outcome, tools) for outcome in message.outcomes]
        return _encode_blocks(
            "user", [*results, *(_text(outcome.text) for outcome in message.outcomes if _references(outcome, tools))]
        )
    if isinstance(message, AssistantMessage):
        return _encode_blocks("assistant", _assistant(message.parts, tools))
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


def _outcome(outcome: Completed | Failed, tools: EncodedTools) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": wire_id(outcome.call.id)}
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


def _assistant(parts: tuple[AssistantPart, ...], tools: EncodedTools) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append(_text(part.text))
        elif isinstance(part, ToolCall):
            named = {"id": wire_id(part.id), "name": tools.wire_name_of(part)}
            blocks.append({"type": "tool_use", **named, "input": tools.wire_arguments(part)})
        else:
            value = unwrap_opaque(PROVIDER, part)
            if value is not None:  # thinking of other models has no signature that this API accepts
                blocks.append(_thinking_block(part.text, thaw(value)))
    while blocks and blocks[-1].get("type") in _THOUGHTS:  # cut off inside its thinking: the API rejects it as the end
        blocks.pop()
    return blocks


def _thinking_block(text: str, block: Block) -> Block:
    if block.get("type") == "thinking":
        return {"type": "thinking", "thinking": text, "signature": block.get("signature", "")}
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
    """A message under construction from the Messages API's events."""

    def __init__(self, tools: EncodedTools) -> None:
        self._tools = tools
        self._blocks: dict[int, Event] = {}
        self._model = ""
        self._reason: str | None = None
        self._counts: dict[str, int] = {}
        self._finished = False

    def take(self, event: Event) -> list[ModelEvent]:
        """Add one event and return the model events it causes."""
        match event.get("type"):
            case "message_start":
                self._model = event["message"].get("model", "")
                self._count(event["message"].get("usage"))
            case "content_block_start":
                return self._start_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._extend_block(event["index"], event["delta"])
            case "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._count(event.get("usage"))
            case "message_stop":
                self._finished = True
            case "message":  # a server that does not stream
                return self._take_whole(event)
            case _:  # pings, and kinds added to the API later
                pass
        return []

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        if not self._finished or self._reason is None:
            raise broken_stream("it ended before the message was complete")
        if self._reason == "model_context_window_exceeded":
            raise context_is_full(self._reason)
        parts = [self._part(block) for _, block in sorted(self._blocks.items())]
        counts = [self._counts.get(name, 0) for name in _COUNTS]
        return finish_message(parts, _STOPS.get(self._reason, "other"), Usage(*counts), self._model)

    def _take_whole(self, message: Event) -> list[ModelEvent]:
        self._model, self._reason, self._finished = message.get("model", ""), message.get("stop_reason"), True
        self._count(message.get("usage"))
        return [event for index, block in enumerate(message["content"]) for event in self._start_block(index, block)]

    def _count(self, usage: Event | None) -> None:
        for name in _COUNTS:  # each report covers the whole request so far
            value = (usage or {}).get(name)
            if value is not None:
                self._counts[name] = value

    def _start_block(self, index: int, block: Event) -> list[ModelEvent]:
        self._blocks[index] = {**block, "_json": ""}
        if block.get("type") == "tool_use":
            return [CallDelta(block["id"], self._tools.tool_name_of(block["name"]), "")]
        if block.get("type") == "text" and block.get("text"):
            return [TextDelta(block["text"])]
        return []

    def _extend_block(self, index: int, delta: Event) -> list[ModelEvent]:
        block, kind = self._blocks[index], delta.get("type", "")
        if kind == "input_json_delta":
            block["_json"] += delta["partial_json"]
            if block.get("type") == "tool_use" and delta["partial_json"]:
                return [CallDelta(block["id"], self._tools.tool_name_of(block["name"]), delta["partial_json"])]
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
                return self._tools.read_call(block["id"], block["name"], written, cut=self._is_cut(block))
            case "thinking":
                signature = block.get("signature", "")
                return Thinking(
                    block.get("thinking", ""), wrap_opaque(PROVIDER, {"type": "thinking", "signature": signature})
                )
            case _:  # redacted thinking, and tools the API runs itself: sent back unchanged
                if text:
                    block["input"] = parse_object(text) or {}
                return Thinking("", wrap_opaque(PROVIDER, block))

    def _is_cut(self, block: Event) -> bool:
        last = self._blocks[max(self._blocks)]
        return block is last and _STOPS.get(self._reason or "") == "length"


_LATE_TOOL_MODELS = re.compile(r"claude-(?:fable|mythos|opus|sonnet|haiku)-(?:4-[5-9]|[5-9])")
"""Models that accept more tools in the middle of a conversation."""
_VERSION = re.compile(r"claude-(?:fable|mythos|opus|sonnet|haiku)-(\d{1,2})(?!\d)(?:-(\d{1,2})(?!\d))?")
_ANSWER_AS = "\n\nWhen you give the final answer, write only JSON that matches this schema, without other text:\n"
"""Asks for a schema that the API cannot enforce."""
_UNJOINED = 4
"""The two messages that end the cached prefix are among the last four."""


class AnthropicMessages:
    """A Claude model. Stable parts are marked for the prompt cache; thinking blocks are sent back unchanged.

    Args:
        model: The model's name at Anthropic.
        api_key: Used instead of `ANTHROPIC_API_KEY`.
        base_url: Another address of the same API.
        client: An SDK client for Bedrock, Vertex, Foundry or a proxy; turn off its own retries.
        cache: Whether to mark what the server may cache.
        late_tools: Whether tools found by a search are added where they were found, which keeps the cached prefix
            valid. By default for models that support it, at Anthropic's own address.

    Raises:
        UsageError: The package `anthropic` is not installed.
    """

    vendor = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex | None" = None,
        cache: bool = True,
        late_tools: bool | None = None,
    ) -> None:
        require("anthropic", "anthropic")
        self.model = model
        if late_tools is None:
            own = client is None and not (base_url or environ.get("ANTHROPIC_BASE_URL"))
            late_tools = own and _LATE_TOOL_MODELS.match(model) is not None
        self.late_tools = late_tools
        self._encoder = ToolEncoder(PROVIDER, _encode_tool, late="by reference" if late_tools else "never")
        self._bodies = RequestBodies(self._fields, "messages", merged=("output_config",))
        self._cache = cache
        self._clients = Clients(lambda: client or _client(api_key, base_url), _close)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        return read_stream(AnthropicDraft(tools), self._open(request, tools), key="ANTHROPIC_API_KEY")

    def wire_options(self, options: ModelOptions) -> JsonObject:
        """Return the fields of a request for these options; raises `UsageError` for one that the API does not have."""
        if options.temperature is not None and _has_no_temperature(self.model):
            raise UsageError(f"{self.model} has no temperature: use effort")
        effort = limit_effort(options, ("low", "medium", "high", "xhigh", "max"), self.model)
        found = set_fields(temperature=options.temperature, stop_sequences=options.stop)
        return {**found, **({"output_config": {"effort": effort}} if effort else {})}

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    @asynccontextmanager
    async def _open(self, request: ModelRequest, tools: EncodedTools) -> AsyncGenerator[AsyncIterator[Any]]:
        from anthropic import AsyncAnthropic, AsyncStream

        client = await self._clients.get()
        body = self._body(request, tools)
        # as bytes: the typed call would convert every old message on every turn; other clients rewrite the object
        sent: dict[str, Any] = {"content": body} if type(client) is AsyncAnthropic else {"body": json.loads(body)}
        posted = client.post("/v1/messages", cast_to=object, **sent, stream=True, stream_cls=AsyncStream[object])
        async with await posted as events:
            yield _read_whole(events) if _is_unstreamed(events) else events

    def _body(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        return self._bodies.build(request, tools, self._messages(request, tools))

    def _fields(self, request: ModelRequest, tools: EncodedTools) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            "max_tokens": to_bytes(request.max_tokens),
            "stream": b"true",
        }
        if tools.payload:
            fields["tools"] = tools.payload
        system = request.system
        if request.output_schema is not None:
            schema = anthropic_output_schema(request.output_schema)
            if schema is None:
                system = f"{system}{_ANSWER_AS}{compact(request.output_schema)}".strip()
            else:
                fields["output_config"] = to_bytes({"format": {"type": "json_schema", "schema": schema}})
        if system:
            ending = {"cache_control": {"type": "ephemeral"}} if self._cache else {}
            fields["system"] = to_bytes([{"type": "text", "text": system, **ending}])
        return fields

    def _messages(self, request: ModelRequest, tools: EncodedTools) -> Pieces:
        unjoined = _UNJOINED if self._cache else 0
        joined, last = encode_history(
            request.messages, tools.key, lambda message: encode(message, tools), unjoined=unjoined
        )
        # the API looks back only twenty blocks for a cached prefix, so the end of the last request is marked too
        begin = len(request.messages) - len(last)
        users = [place for place in range(len(last)) if _is_user(request, begin + place)]
        for place in users[-2:]:
            last[place] = mark_cache_end(last[place])
        return list_pieces(joined, *last)


def _has_no_temperature(model: str) -> bool:
    """Return whether a model is of 4.7 or later, which reject the field; the SDK no longer has it."""
    found = _VERSION.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 7)


def _is_unstreamed(events: "AsyncStream[object]") -> bool:
    return str(events.response.headers.get("content-type", "")).startswith("application/json")


async def _read_whole(events: "AsyncStream[object]") -> AsyncIterator[Any]:
    found = parse_object(await events.response.aread())
    if found is not None and found.get("type") == "error":
        raise status_failure(200, found, {})
    if found is not None:
        yield found


def _is_user(request: ModelRequest, place: int) -> bool:
    return not isinstance(request.messages[place], AssistantMessage)


def _encode_tool(spec: ToolSpec, name: str, _: bool) -> ToolPayload:
    return to_anthropic(spec, name)


def _client(api_key: str | None, base_url: str | None) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0)


async def _close(client: "AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex") -> None:
    await client.close()
