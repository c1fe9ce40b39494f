"""Gemini through Google's GenAI SDK: the client, encoding of messages, reading of the chunk stream, the provider.

The SDK builds every request again from typed contents, which takes seconds for a long conversation, and hides the
HTTP response it reads. So the HTTP client it gets replaces the SDK's body by ours and keeps the response.
"""

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Part, Text
from callwright.core.json import compact
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage, Usage
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.clients import Clients, require
from callwright.providers.encoding import (
    base64_text,
    encode_history,
    file_text,
    list_pieces,
    to_bytes,
    unwrap_opaque,
    wire_id,
    wrap_opaque,
)
from callwright.providers.errors import broken_stream
from callwright.providers.streaming import read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    ToolPayload,
    stop_for,
    to_gemini,
)

if TYPE_CHECKING:
    from google.genai import Client, types
    from httpx2 import AsyncClient

_METHOD = ":streamGenerateContent"


@dataclass(slots=True)
class SentRequest:
    """One encoded request and its response."""

    body: bytes
    response: Any = None
    """The HTTP response, once it has begun."""


current_request: ContextVar[SentRequest | None] = ContextVar("current_request", default=None)
"""The request that the SDK is about to send."""


@dataclass(frozen=True, slots=True)
class GoogleConnection:
    """The SDK's client and the HTTP client it uses."""

    client: "Client"
    http: "AsyncClient"


def connect(options: Mapping[str, Any], base_url: str | None) -> GoogleConnection:
    """Create a client without retries of its own."""
    from google.genai import Client, types
    from httpx2 import AsyncClient

    class BodyReplacingClient(AsyncClient):
        def build_request(self, method: str, url: Any, **fields: Any) -> Any:
            sent = current_request.get()
            if sent is not None and _METHOD in str(url):
                fields["content"] = sent.body
            return super().build_request(method, url, **fields)

    http = BodyReplacingClient(event_hooks={"response": [_note_response]})
    settings = types.HttpOptions(
        base_url=base_url, httpx_async_client=http, retry_options=types.HttpRetryOptions(attempts=1)
    )
    return GoogleConnection(Client(**options, http_options=settings), http)


async def disconnect(connection: GoogleConnection) -> None:
    """Close a client's connections."""
    await connection.client.aio.aclose()
    connection.client.close()
    await connection.http.aclose()


async def _note_response(response: Any) -> None:
    sent = current_request.get()
    if sent is not None:
        sent.response = response


Wire = dict[str, Any]

PROVIDER = "google"
_SHOWN = ("application/pdf", "image/", "audio/", "video/")
_UNSIGNED = b64encode(b"skip_thought_signature_validator").decode()
"""What Google requires instead of a signature on calls that no Gemini model made."""


def encode(message: Message, tools: EncodedTools) -> bytes:
    """Encode one message."""
    if isinstance(message, ToolMessage):
        return _encode_content("user", [part for outcome in message.outcomes for part in _outcome(outcome, tools)])
    if isinstance(message, AssistantMessage):
        return _encode_content("model", _assistant(message, tools))
    content = (Text(message.content),) if isinstance(message.content, str) else message.content
    return _encode_content("user", [_part(part) for part in content])


def _encode_content(role: str, parts: list[Wire]) -> bytes:
    return to_bytes({"role": role, "parts": parts or [{"text": "(nothing)"}]})


def _part(part: Part) -> Wire:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, File) and not part.media_type.startswith(_SHOWN):
        return {"text": file_text(part)}
    return {"inlineData": {"mimeType": part.media_type, "data": base64_text(part)}}


def _outcome(outcome: Completed | Failed, tools: EncodedTools) -> list[Wire]:
    response = {"error" if isinstance(outcome, Failed) else "output": outcome.text}
    named = {"id": wire_id(outcome.call.id), "name": tools.wire_name_of(outcome.call)}
    shown = outcome.output.parts if isinstance(outcome, Completed) else ()
    pictures = [_part(part) for part in shown if not isinstance(part, Text)]
    return [{"functionResponse": {**named, "response": response}}, *pictures]


def _assistant(message: AssistantMessage, tools: EncodedTools) -> list[Wire]:
    parts: list[Wire] = []
    signature: str | None = None
    foreign = not message.model.startswith("gemini")
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(_sign({"text": part.text}, signature))
        elif isinstance(part, ToolCall):
            parts.append(_sign({"functionCall": _call(part, tools)}, signature or (_UNSIGNED if foreign else None)))
            foreign = False  # only the first of several calls is signed
        else:
            value: Any = unwrap_opaque(PROVIDER, part)
            signature = None if value is None else value.get("signature")
            if value is None or not value.get("thought"):
                continue  # it signs the next part
            parts.append(_sign({"text": part.text, "thought": True}, signature))
        signature = None
    return parts


def _sign(part: Wire, signature: str | None) -> Wire:
    return {**part, "thoughtSignature": signature} if signature else part


def _call(call: ToolCall, tools: EncodedTools) -> Wire:
    return {"id": wire_id(call.id), "name": tools.wire_name_of(call), "args": tools.wire_arguments(call)}


_STOPS: dict[str, Stop] = {"STOP": "end", "MAX_TOKENS": "length", "CONTINUATION": "paused"}
_REFUSALS = frozenset(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"))
_MALFORMED = frozenset(("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"))


@dataclass(slots=True)
class _Stretch:
    """Text or thinking that may still grow; a signature closes it."""

    text: str
    thought: bool
    signature: bytes | None


class GoogleDraft:
    """A message under construction from Gemini's chunks."""

    def __init__(self, tools: EncodedTools) -> None:
        self._tools = tools
        self._parts: list[_Stretch | tuple[ToolCall, bytes | None]] = []
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()

    def take(self, chunk: "types.GenerateContentResponse") -> list[ModelEvent]:
        """Add one chunk and return the model events it causes."""
        self._model = chunk.model_version or self._model
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self._reason = "SAFETY"
        events: list[ModelEvent] = []
        for candidate in (chunk.candidates or ())[:1]:
            parts = (candidate.content.parts if candidate.content is not None else None) or ()
            events += [event for part in parts if (event := self._add_part(part)) is not None]
            if candidate.finish_reason is not None:
                self._reason = candidate.finish_reason.value
        return events

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        if self._reason is None:
            raise broken_stream("it ended before the message was complete")
        if self._reason in _MALFORMED:  # a malformed generation: worth a retry, not part of the conversation
            raise broken_stream(f"the model stopped with {self._reason}")
        parts = tuple(part for grown in self._parts for part in _finish(grown))
        stop: Stop = "refusal" if self._reason in _REFUSALS else _STOPS.get(self._reason, "other")
        return AssistantMessage(parts, stop_for(stop, parts), self._usage, self._model)

    def _add_part(self, part: "types.Part") -> ModelEvent | None:
        signature = part.thought_signature
        if part.function_call is not None:
            call = self._call(part.function_call)
            self._parts.append((call, signature))
            return CallDelta(call.id, call.name, call.arguments if isinstance(call.arguments, str) else "{}")
        if part.text is None:
            return None
        thought = bool(part.thought)
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Stretch) and last.thought == thought and last.signature is None:
            last.text += part.text
            last.signature = signature
        else:
            self._parts.append(_Stretch(part.text, thought, signature))
        if not part.text:
            return None
        return ThinkingDelta(part.text) if thought else TextDelta(part.text)

    def _call(self, call: "types.FunctionCall") -> ToolCall:
        # older models send no ids; Google matches responses by name and order
        return self._tools.read_call(call.id or f"call_{token_hex(8)}", call.name or "", compact(call.args or {}))


def _finish(grown: "_Stretch | tuple[ToolCall, bytes | None]") -> list[AssistantPart]:
    if isinstance(grown, tuple):
        call, signature = grown
        return [*_signature_part(signature), call]
    if grown.thought:
        signed = {"signature": b64encode(grown.signature).decode()} if grown.signature else {}
        return [Thinking(grown.text, wrap_opaque(PROVIDER, {"thought": True, **signed}))]
    return [*_signature_part(grown.signature), Text(grown.text)]


def _signature_part(signature: bytes | None) -> list[AssistantPart]:
    """Return the signature as a part of its own, placed before the part it was on."""
    if signature is None:
        return []
    return [Thinking("", wrap_opaque(PROVIDER, {"signature": b64encode(signature).decode()}))]


def _usage(counts: "types.GenerateContentResponseUsageMetadata") -> Usage:
    cached = counts.cached_content_token_count or 0
    fresh = (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0) - cached
    return Usage(max(0, fresh), (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0), cached)


_THOUGHTLESS = re.compile(r"gemini-(?:1|2\.0)|gemma")
"""Models without thinking, which reject a request for it."""
_SHAPE = "generationConfig"


class GoogleGemini:
    """A Gemini model. Thinking and its signatures are sent back unchanged.

    Args:
        model: The model's name at Google.
        api_key: Used instead of `GEMINI_API_KEY`.
        base_url: Another address of the same API.
        client_options: For the SDK's `Client`, as for Vertex AI: `{"vertexai": True, "project": …, "location": …}`.
        thoughts: Whether the model summarizes its thinking; by default if it thinks.

    Raises:
        UsageError: The package `google-genai` is not installed.
    """

    vendor = "gcp.gemini"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client_options: Mapping[str, Any] | None = None,
        thoughts: bool | None = None,
    ) -> None:
        require("google.genai", "google")
        self.model = model
        self._encoder = ToolEncoder(PROVIDER, _encode_tool)
        self._bodies = RequestBodies(self._fields, "contents", merged=_SHAPE)
        self._thoughts = not _THOUGHTLESS.match(model) if thoughts is None else thoughts
        options = {"api_key": api_key} if client_options is None else client_options
        self._clients = Clients(lambda: connect(options, base_url), disconnect)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        return read_stream(GoogleDraft(tools), self._open(request, tools), key="GEMINI_API_KEY")

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    @asynccontextmanager
    async def _open(self, request: ModelRequest, tools: EncodedTools) -> AsyncGenerator[AsyncIterator[Any]]:
        from google.genai import types

        connection = await self._clients.get()
        # the agent runs tools and continues answers, not the SDK
        off = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(automatic_function_calling=off, automatic_continuation=False)
        ask = cast("Any", connection.client.aio.models).generate_content_stream  # its types need packages not installed
        sent = SentRequest(self._body(request, tools))
        try:
            async with aclosing(await ask(model=self.model, contents="(sent as bytes)", config=config)) as chunks:
                current_request.set(sent)  # the request is sent when the first chunk is requested
                yield chunks
        finally:
            if sent.response is not None:  # the SDK would leave this to the garbage collector
                await sent.response.aclose()

    def _body(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        joined, _ = encode_history(request.messages, tools.key, lambda message: encode(message, tools))
        return self._bodies.build(request, tools, list_pieces(joined))

    def _fields(self, request: ModelRequest, tools: EncodedTools) -> Fields:
        fields = {_SHAPE: to_bytes(self._shape_of(request))}
        if request.system:
            fields["systemInstruction"] = to_bytes({"parts": [{"text": request.system}]})
        if tools.payload:
            fields["tools"] = b'[{"functionDeclarations":' + tools.payload + b"}]"
        return fields

    def _shape_of(self, request: ModelRequest) -> dict[str, Any]:
        shape: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        if self._thoughts:
            shape["thinkingConfig"] = {"includeThoughts": True}
        if request.output_schema is not None:
            shape |= {"responseMimeType": "application/json", "responseJsonSchema": request.output_schema}
        own = request.options.get(_SHAPE)
        return shape | cast("dict[str, Any]", own) if isinstance(own, dict) else shape


def _encode_tool(spec: ToolSpec, name: str, _: bool) -> ToolPayload:
    return to_gemini(spec, name)
