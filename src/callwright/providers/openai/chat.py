"""The Chat Completions API, as served by OpenAI, llama.cpp, vLLM, Ollama and many gateways.

Encoding of messages, reading of the chunk stream, the provider.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import compact
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage, Usage
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.encoding import (
    IdentityCache,
    Pieces,
    data_url,
    encode_history,
    file_text,
    get_object,
    list_pieces,
    to_bytes,
    unwrap_opaque,
    wire_id,
    wrap_opaque,
)
from callwright.providers.errors import broken_stream
from callwright.providers.openai.client import answer_format, open_stream, openai_clients, openai_usage
from callwright.providers.streaming import read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    ToolPayload,
    stop_for,
    to_openai_chat,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Wire = dict[str, Any]

PROVIDER = "openai_chat"


def encode(message: Message, tools: EncodedTools) -> bytes:
    """Encode one message, which may become several on the wire."""
    if isinstance(message, ToolMessage):
        return b",".join([to_bytes(each) for each in _outcomes(message)])
    if isinstance(message, AssistantMessage):
        return to_bytes(_assistant(message, tools))
    return to_bytes({"role": "user", "content": user_content(message.content)})


def user_content(content: str | tuple[Part, ...]) -> str | list[Wire]:
    """Return the content of a user message: text unchanged, parts as a list."""
    return content if isinstance(content, str) else [_part(part) for part in content]


def outcome_text(outcome: Completed | Failed) -> str:
    """Return a tool's output as text; the API has no flag for failures, so they start with `error:`."""
    if isinstance(outcome, Failed):
        return f"error: {outcome.text}"
    return "\n".join([text for part in outcome.output.parts if (text := _textual(part)) is not None])


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
        if pictures:  # a tool message holds text only, so images follow in a user message
            shown += [{"type": "text", "text": f"from {wire_id(outcome.call.id)}:"}, *pictures]
    return [*answers, {"role": "user", "content": shown}] if shown else answers


def _assistant(message: AssistantMessage, tools: EncodedTools) -> Wire:
    calls = [_call(call, tools) for call in message.calls]
    wire: Wire = {"role": "assistant", "content": message.text or (None if calls else "")}
    if calls:
        wire["tool_calls"] = calls
        wire |= _reasoning(message)
    return wire


def _reasoning(message: AssistantMessage) -> Wire:
    """Return the reasoning that led to calls, under the server's own field name; servers reject other reasoning."""
    thoughts: Wire = {}
    for part in message.parts:
        field = unwrap_opaque(PROVIDER, part) if isinstance(part, Thinking) else None
        if isinstance(part, Thinking) and isinstance(field, str):
            thoughts[field] = thoughts.get(field, "") + part.text
    return thoughts


def _call(call: ToolCall, tools: EncodedTools) -> Wire:
    # servers that fill a chat template parse this text, so it must be JSON
    function = {"name": tools.wire_name_of(call), "arguments": compact(tools.wire_arguments(call))}
    return {"id": wire_id(call.id), "type": "function", "function": function}


Chunk = dict[str, Any]

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
_REASONING = ("reasoning_content", "reasoning")
"""Field names for reasoning; the standard has none."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    text: str = ""


class ChatDraft:
    """A message under construction from chat completion chunks."""

    def __init__(self, tools: EncodedTools) -> None:
        self._tools = tools
        self._thoughts: dict[str, str] = {}
        self._text = ""
        self._refused = False
        self._calls: dict[object, _Call] = {}
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()

    def take(self, chunk: Chunk) -> list[ModelEvent]:
        """Add one chunk and return the model events it causes."""
        self._model = chunk.get("model") or self._model
        if chunk.get("usage"):
            self._usage = openai_usage(chunk["usage"], "prompt", "completion")
        events: list[ModelEvent] = []
        for choice in (chunk.get("choices") or ())[:1]:
            events = self._add_delta(get_object(choice, "delta"))
            self._reason = choice.get("finish_reason") or self._reason
        return events

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        if self._reason is None:
            raise broken_stream("it ended before the message was complete")
        stop: Stop = "refusal" if self._refused else _STOPS.get(self._reason, "other")
        parts: list[AssistantPart] = [
            Thinking(text, wrap_opaque(PROVIDER, name)) for name, text in self._thoughts.items()
        ]
        if self._text:
            parts.append(Text(self._text))
        calls = list(self._calls.values())
        for call in calls:
            cut = stop == "length" and call is calls[-1]
            parts.append(self._tools.read_call(call.id, call.name, call.text, cut=cut))
        return AssistantMessage(tuple(parts), stop_for(stop, tuple(parts)), self._usage, self._model)

    def _add_delta(self, delta: Chunk) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for name in _REASONING:
            if delta.get(name):
                self._thoughts[name] = self._thoughts.get(name, "") + delta[name]
                events.append(ThinkingDelta(delta[name]))
                break
        self._refused = self._refused or bool(delta.get("refusal"))
        text = delta.get("content") or delta.get("refusal")
        if text:
            self._text += text
            events.append(TextDelta(text))
        events += [self._extend_call(piece) for piece in delta.get("tool_calls") or ()]
        return events

    def _extend_call(self, piece: Chunk) -> ModelEvent:
        function = get_object(piece, "function")
        call = self._open_call(piece, function)
        text = function.get("arguments") or ""
        if not isinstance(text, str):  # some servers send the object itself
            text = json.dumps(text)
        call.text += text
        return CallDelta(call.id, self._tools.tool_name_of(call.name), text)

    def _open_call(self, piece: Chunk, function: Chunk) -> _Call:
        """Find the call a piece belongs to. Some servers number all calls 0, some none; a new id starts a new call."""
        key: object = piece.get("index")
        known = self._calls.get(key) if key is not None else None
        fresh = piece.get("id")
        if known is not None and (not fresh or fresh == known.id):
            return known
        if known is None and not fresh and not function.get("name") and self._calls:
            return list(self._calls.values())[-1]
        if known is not None or key is None:
            key = (key, fresh or token_hex(8))
            if key in self._calls:
                return self._calls[key]
        call = self._calls[key] = _Call(fresh or f"call_{token_hex(8)}", function.get("name") or "")
        return call


class OpenAIChat:
    """A model behind the Chat Completions API.

    Args:
        model: The model's name at the server.
        api_key: Used instead of `OPENAI_API_KEY`.
        base_url: The address of the server; OpenAI's by default.
        client: An SDK client to use; turn off its own retries.
        strict: Whether the server enforces tool schemas, where strict mode loses nothing of them.

    Raises:
        UsageError: The package `openai` is not installed.
    """

    vendor = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
        strict: bool = False,
    ) -> None:
        self.model = model
        self._encoder = ToolEncoder(PROVIDER, _encode_tool, strict=strict)
        self._limit = (
            "max_completion_tokens" if base_url is None else "max_tokens"
        )  # the old name works everywhere else
        self._bodies = RequestBodies(self._fields, "messages")
        self._systems: IdentityCache[bytes] = IdentityCache()
        self._clients = openai_clients(client, api_key, base_url)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        sent = open_stream(self._clients, "/chat/completions", lambda: self._body(request, tools))
        return read_stream(ChatDraft(tools), sent, key="OPENAI_API_KEY")

    async def calls_tools(self) -> bool | None:
        """Ask a llama.cpp server whether its model was trained to call tools; None for other servers."""
        client = await self._clients.get()
        try:
            found = await client.get(str(client.base_url.join("/props")), cast_to=object)
        except Exception:  # noqa: BLE001 - other servers have no such page and answer with anything
            return None
        template = cast("dict[str, Any]", found).get("chat_template") if isinstance(found, dict) else None
        return "tools" in template if isinstance(template, str) else None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _body(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        return self._bodies.build(request, tools, self._messages(request, tools))

    def _fields(self, request: ModelRequest, tools: EncodedTools) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            self._limit: to_bytes(request.max_tokens),
            "stream": b"true",
            "stream_options": b'{"include_usage":true}',
        }
        if tools.payload:
            fields["tools"] = tools.payload
        if request.output_schema is not None:
            shape = {"type": "json_schema", "json_schema": answer_format(request.output_schema)}
            fields["response_format"] = to_bytes(shape)
        return fields

    def _messages(self, request: ModelRequest, tools: EncodedTools) -> Pieces:
        system = self._systems.get(request.system, make=lambda: _encode_system(request.system))
        joined, _ = encode_history(request.messages, tools.key, lambda message: encode(message, tools))
        return list_pieces(system, joined)


def _encode_system(system: str) -> bytes:
    return to_bytes({"role": "system", "content": system}) if system else b""


def _encode_tool(spec: ToolSpec, name: str, strict: bool) -> ToolPayload:
    return to_openai_chat(spec, name, strict=strict)
