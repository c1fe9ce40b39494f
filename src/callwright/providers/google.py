"""Gemini through Google's GenAI SDK: the client and the provider.

The SDK builds every request again from typed contents, which takes seconds for a long conversation, and hides the
HTTP response it reads. So the HTTP client it gets replaces the SDK's body by ours and keeps the response.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from callwright.core.json import JsonObject
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.clients import Clients, require
from callwright.providers.encoding import ask_for_schema, encode_history, list_pieces, parse_object, to_bytes
from callwright.providers.errors import status_failure
from callwright.providers.gemini_messages import PROVIDER, GoogleDraft, encode, is_older
from callwright.providers.options import ModelOptions, limit_effort, set_fields
from callwright.providers.schemas.gemini import gemini_answer_schema
from callwright.providers.streaming import check_body, read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    to_gemini,
)

if TYPE_CHECKING:
    from google.genai import Client
    from httpx2 import AsyncClient

_OK = 200
_METHOD = ":streamGenerateContent"
_SILENCE_SECONDS = 600.0
_CONNECT_SECONDS = 10.0
_MAX_ERROR_BYTES = 8192
_NO_DATA = (":", "event:", "id:", "retry:")
"""The beginnings of lines of an event stream that are no data."""


@dataclass(slots=True)
class SentRequest:
    """One encoded request and its response."""

    body: bytes
    response: Any = None
    """The HTTP response, once it has begun."""
    ending: bytes = b""
    """The last bytes that were read of it."""


current_request: ContextVar[SentRequest | None] = ContextVar("current_request", default=None)
"""The request that the SDK is about to send."""


@dataclass(frozen=True, slots=True)
class GoogleConnection:
    """The SDK's client and the HTTP client it uses."""

    client: "Client"
    http: "AsyncClient"


def connect(
    options: Mapping[str, Any], base_url: str | None, silence_seconds: float = _SILENCE_SECONDS
) -> GoogleConnection:
    """Create a client without retries of its own, which gives up after a silence of the server."""
    from google.genai import Client, types
    from httpx2 import AsyncClient, Timeout

    limit = Timeout(silence_seconds, connect=min(silence_seconds, _CONNECT_SECONDS))

    class BodyReplacingClient(AsyncClient):
        def build_request(self, method: str, url: Any, **fields: Any) -> Any:
            sent = current_request.get()
            if sent is not None and _METHOD in str(url):
                fields["content"] = sent.body
                fields["timeout"] = limit  # the SDK sends without any
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
        if response.status_code == _OK:
            check_body(response)
            _read_as_events(response, sent)
        else:
            response.json = lambda: json.loads(response.text)  # its own fails at bytes that are not UTF-8


def _read_as_events(response: Any, sent: SentRequest) -> None:
    """Give the SDK only lines that it can read.

    It fails at comments and at other fields than data, which gateways send, and at separators of lines inside a text.
    """

    async def read_lines() -> AsyncGenerator[str]:
        response.__dict__.pop("aiter_lines", None)  # a cycle would hold the request's body after the response was read
        held = bytearray()
        async for piece in response.aiter_bytes():
            sent.ending = (sent.ending + piece)[-_MAX_ERROR_BYTES:]
            held += piece
            if b"\n" not in piece and b"\r" not in piece:  # a line as long as an image comes in many pieces
                continue
            *lines, held = held.splitlines(keepends=True)
            if held.endswith(b"\n"):
                lines, held = [*lines, held], bytearray()
            for line in lines:
                if (fitted := _fit_line(line)) is not None:
                    yield fitted
        if (fitted := _fit_line(held)) is not None:
            yield fitted

    response.aiter_lines = read_lines


def _fit_line(line: bytearray) -> str | None:
    """Return a line as the SDK reads it; None for one without content."""
    text = line.decode(errors="replace").rstrip("\r\n")
    if text.startswith("data:"):
        data = text.removeprefix("data:").strip()
        return f"data: {data}" if data not in ("", "[DONE]") else None
    return None if text.startswith(_NO_DATA) else text


def _find_error(ending: bytes) -> dict[str, Any] | None:
    """Return the error that a response ended with, if any."""
    last = (b"\n" + ending).rpartition(b"\ndata:")[2]
    found = parse_object(last.strip())
    return found if found is not None and found.get("error") else None


_THOUGHTLESS = re.compile(r"gemini-(?:1|2\.0)|gemma")
"""Models without thinking, which reject a request for it."""
_SHAPE = "generationConfig"
_BUDGETS = {"none": 0, "minimal": 512, "low": 1_024, "medium": 8_192, "high": 24_576}
"""Tokens of thinking, for models that have no levels of effort."""


class GoogleGemini:
    """A Gemini model. Thinking and its signatures are sent back unchanged.

    Args:
        model: The model's name at Google.
        api_key: Used instead of `GEMINI_API_KEY`.
        base_url: Another address of the same API.
        client_options: For the SDK's `Client`, as for Vertex AI: `{"vertexai": True, "project": …, "location": …}`.
        thoughts: Whether the model summarizes its thinking; by default if it thinks.
        silence_seconds: A request fails when the server sends nothing for so long.

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
        silence_seconds: float = _SILENCE_SECONDS,
    ) -> None:
        require("google.genai", "google")
        self.model = model
        self._older = is_older(model)
        self._encoder = ToolEncoder(f"{PROVIDER} {'older' if self._older else 'signed'}", to_gemini)
        self._bodies = RequestBodies(self._fields, "contents", merged=(_SHAPE,))
        self._thoughts = not _THOUGHTLESS.match(model) if thoughts is None else thoughts
        options = {"api_key": api_key} if client_options is None else client_options
        self._clients = Clients(lambda: connect(options, base_url, silence_seconds), disconnect)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        return read_stream(GoogleDraft(tools), self._open(request, tools), key="GEMINI_API_KEY")

    def wire_options(self, options: ModelOptions) -> JsonObject:
        """Return the fields of a request for these options; raises `UsageError` for one that the API does not have."""
        shape = set_fields(temperature=options.temperature, stopSequences=options.stop)
        if options.effort is not None and self._older:
            effort = limit_effort(options, tuple(_BUDGETS), self.model) or ""
            shape["thinkingConfig"] = {"thinkingBudget": _BUDGETS[effort]}
        elif options.effort is not None:
            effort = limit_effort(options, ("minimal", "low", "medium", "high"), self.model)
            shape["thinkingConfig"] = {"thinkingLevel": effort}
        return {_SHAPE: shape} if shape else {}

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
            if (found := _find_error(sent.ending)) is not None:  # the SDK knows an error only by its first key
                raise status_failure(_OK, found, {})
        except (AttributeError, TypeError) as error:  # the SDK expects an object with a number as its code
            if (found := _find_error(sent.ending)) is None:
                raise
            raise status_failure(_OK, found, {}) from error
        finally:
            response, sent.response, sent.body = sent.response, None, b""  # the context may hold it for long
            sent.ending = b""
            if response is not None:  # the SDK would leave this to the garbage collector
                await response.aclose()

    def _body(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        joined, _ = encode_history(
            request.messages, tools.key, lambda message: encode(message, tools, signed=not self._older)
        )
        return self._bodies.build(request, tools, list_pieces(joined))

    def _fields(self, request: ModelRequest, tools: EncodedTools) -> Fields:
        # older models accept a schema or tools, not both
        asked = request.output_schema if self._older and tools.payload else None
        fields = {_SHAPE: to_bytes(self._shape_of(request, shaped=asked is None))}
        system = request.system if asked is None else ask_for_schema(request.system, asked)
        if system:
            fields["systemInstruction"] = to_bytes({"parts": [{"text": system}]})
        if tools.payload:
            fields["tools"] = b'[{"functionDeclarations":' + tools.payload + b"}]"
        return fields

    def _shape_of(self, request: ModelRequest, *, shaped: bool) -> dict[str, Any]:
        shape: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        if self._thoughts:
            shape["thinkingConfig"] = {"includeThoughts": True}
        if request.output_schema is not None and shaped:
            sent = gemini_answer_schema(request.output_schema)
            shape |= {"responseMimeType": "application/json", "responseJsonSchema": sent}
        return shape
