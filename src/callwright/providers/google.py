"""Gemini, through Google's GenAI SDK.

Google's client with a door for bodies that are encoded already.

The SDK builds every request anew from typed contents, which takes seconds for a long conversation, and hides the
answer it reads from. So the HTTP client it is given sends our body in place of the SDK's, and notes the answer.

Messages as Gemini's contents.

Gemini's stream of chunks as a message that grows.
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
from callwright.providers.encoding import base64_text, file_text, grown, kept, kept_by, pieced, to_bytes, wire_id
from callwright.providers.errors import broken
from callwright.providers.streaming import answer
from callwright.providers.tool_encoding import Bodies, EncodedTools, Fields, Shape, ToolEncoder, stop_for, to_gemini

if TYPE_CHECKING:
    from google.genai import Client, types
    from httpx2 import AsyncClient

_METHOD = ":streamGenerateContent"


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    body: bytes
    answer: Any = None
    """The HTTP response, once it has begun."""


current: ContextVar[Exchange | None] = ContextVar("current", default=None)
"""The exchange that the next request belongs to."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The SDK's client, and the HTTP client under it."""

    client: "Client"
    http: "AsyncClient"


def connect(options: Mapping[str, Any], base_url: str | None) -> Connection:
    """Make a client that leaves trying again to us."""
    from google.genai import Client, types
    from httpx2 import AsyncClient

    class Door(AsyncClient):
        def build_request(self, method: str, url: Any, **fields: Any) -> Any:
            exchange = current.get()
            if exchange is not None and _METHOD in str(url):
                fields["content"] = exchange.body
            return super().build_request(method, url, **fields)

    http = Door(event_hooks={"response": [_note_answer]})
    settings = types.HttpOptions(
        base_url=base_url, httpx_async_client=http, retry_options=types.HttpRetryOptions(attempts=1)
    )
    return Connection(Client(**options, http_options=settings), http)


async def disconnect(connection: Connection) -> None:
    """Close a client's connections."""
    await connection.client.aio.aclose()
    connection.client.close()
    await connection.http.aclose()


async def _note_answer(response: Any) -> None:
    exchange = current.get()
    if exchange is not None:
        exchange.answer = response


Wire = dict[str, Any]

PROVIDER = "google"
_SHOWN = ("application/pdf", "image/", "audio/", "video/")
_UNSIGNED = b64encode(b"skip_thought_signature_validator").decode()
"""What Google asks for in place of a signature on calls that no Gemini model made."""


def encode(message: Message, edge: EncodedTools) -> bytes:
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


def _outcome(outcome: Completed | Failed, edge: EncodedTools) -> list[Wire]:
    said = {"error" if isinstance(outcome, Failed) else "output": outcome.text}
    named = {"id": wire_id(outcome.call.id), "name": edge.outward_name(outcome.call)}
    shown = outcome.output.parts if isinstance(outcome, Completed) else ()
    pictures = [_part(part) for part in shown if not isinstance(part, Text)]
    return [{"functionResponse": {**named, "response": said}}, *pictures]


def _assistant(message: AssistantMessage, edge: EncodedTools) -> list[Wire]:
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


def _call(call: ToolCall, edge: EncodedTools) -> Wire:
    return {"id": wire_id(call.id), "name": edge.outward_name(call), "args": edge.outward(call)}


_STOPS: dict[str, Stop] = {"STOP": "end", "MAX_TOKENS": "length", "CONTINUATION": "paused"}
_REFUSALS = frozenset(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"))
_MALFORMED = frozenset(("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"))


@dataclass(slots=True)
class _Stretch:
    """Text or thought that may still grow; a signature closes it."""

    text: str
    thought: bool
    signature: bytes | None


class GoogleDraft:
    """The message so far."""

    def __init__(self, edge: EncodedTools) -> None:
        self._edge = edge
        self._parts: list[_Stretch | tuple[ToolCall, bytes | None]] = []
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()

    def take(self, chunk: "types.GenerateContentResponse") -> list[ModelEvent]:
        """Take in one chunk; say what of it is news."""
        self._model = chunk.model_version or self._model
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self._reason = "SAFETY"
        news: list[ModelEvent] = []
        for candidate in (chunk.candidates or ())[:1]:
            parts = (candidate.content.parts if candidate.content is not None else None) or ()
            news += [event for part in parts if (event := self._grown(part)) is not None]
            if candidate.finish_reason is not None:
                self._reason = candidate.finish_reason.value
        return news

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        if self._reason is None:
            raise broken("it ended before the message did")
        if self._reason in _MALFORMED:  # a slip of the model's pen, not part of the conversation
            raise broken(f"the model stopped with {self._reason}")
        parts = tuple(part for grown in self._parts for part in _finished(grown))
        stop: Stop = "refusal" if self._reason in _REFUSALS else _STOPS.get(self._reason, "other")
        return AssistantMessage(parts, stop_for(stop, parts), self._usage, self._model)

    def _grown(self, part: "types.Part") -> ModelEvent | None:
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
        # older models give no ids, and answers are matched by name and order
        return self._edge.inward(call.id or f"call_{token_hex(8)}", call.name or "", compact(call.args or {}))


def _finished(grown: "_Stretch | tuple[ToolCall, bytes | None]") -> list[AssistantPart]:
    if isinstance(grown, tuple):
        call, signature = grown
        return [*_signature_part(signature), call]
    if grown.thought:
        signed = {"signature": b64encode(grown.signature).decode()} if grown.signature else {}
        return [Thinking(grown.text, kept(PROVIDER, {"thought": True, **signed}))]
    return [*_signature_part(grown.signature), Text(grown.text)]


def _signature_part(signature: bytes | None) -> list[AssistantPart]:
    """A signature goes before the part it was on."""
    if signature is None:
        return []
    return [Thinking("", kept(PROVIDER, {"signature": b64encode(signature).decode()}))]


def _usage(counts: "types.GenerateContentResponseUsageMetadata") -> Usage:
    cached = counts.cached_content_token_count or 0
    fresh = (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0) - cached
    return Usage(max(0, fresh), (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0), cached)


_THOUGHTLESS = re.compile(r"gemini-(?:1|2\.0)|gemma")
"""Models that do not think, and that refuse a request which asks for their thoughts."""
_SHAPE = "generationConfig"


class GoogleGemini:
    """A Gemini model. Thoughts and their signatures go back as they came."""

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
        """`client_options` go to the SDK's `Client`, for Vertex AI: `{"vertexai": True, "project": …, "location": …}`.

        `thoughts` has the model's thoughts told in short, by default if it has any.
        """
        require("google.genai", "google")
        self.model = model
        self._edges = ToolEncoder(PROVIDER, _shape)
        self._bodies = Bodies(self._fields, "contents", merged=_SHAPE)
        self._thoughts = not _THOUGHTLESS.match(model) if thoughts is None else thoughts
        options = {"api_key": api_key} if client_options is None else client_options
        self._clients = Clients(lambda: connect(options, base_url), disconnect)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        return answer(GoogleDraft(edge), self._open(request, edge), key="GEMINI_API_KEY")

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    @asynccontextmanager
    async def _open(self, request: ModelRequest, edge: EncodedTools) -> AsyncGenerator[AsyncIterator[Any]]:
        from google.genai import types

        connection = await self._clients.get()
        # tools are run and answers continued by the loop above us, not by the SDK
        off = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(automatic_function_calling=off, automatic_continuation=False)
        ask = cast("Any", connection.client.aio.models).generate_content_stream  # its types name packages nobody has
        exchange = Exchange(self._body(request, edge))
        try:
            async with aclosing(await ask(model=self.model, contents="(sent as bytes)", config=config)) as chunks:
                current.set(exchange)  # the request is sent when the first chunk is asked for
                yield chunks
        finally:
            if exchange.answer is not None:  # the SDK would leave this to the garbage collector
                await exchange.answer.aclose()

    def _body(self, request: ModelRequest, edge: EncodedTools) -> bytes:
        settled, _ = grown(request.messages, edge.key, lambda message: encode(message, edge))
        return self._bodies.of(request, edge, pieced(settled))

    def _fields(self, request: ModelRequest, edge: EncodedTools) -> Fields:
        fields = {_SHAPE: to_bytes(self._shape_of(request))}
        if request.system:
            fields["systemInstruction"] = to_bytes({"parts": [{"text": request.system}]})
        if edge.tools:
            fields["tools"] = b'[{"functionDeclarations":' + edge.tools + b"}]"
        return fields

    def _shape_of(self, request: ModelRequest) -> dict[str, Any]:
        shape: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        if self._thoughts:
            shape["thinkingConfig"] = {"includeThoughts": True}
        if request.output_schema is not None:
            shape |= {"responseMimeType": "application/json", "responseJsonSchema": request.output_schema}
        own = request.options.get(_SHAPE)
        return shape | cast("dict[str, Any]", own) if isinstance(own, dict) else shape


def _shape(spec: ToolSpec, name: str, _: bool) -> Shape:
    return to_gemini(spec, name)
