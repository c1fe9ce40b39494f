"""Gemini, through Google's GenAI SDK."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from toolwright.core.history import encoded
from toolwright.core.json import thaw
from toolwright.core.spec import ToolSpec
from toolwright.providers.base import MessageDone, ModelEvent, ModelRequest
from toolwright.providers.clients import Clients, require
from toolwright.providers.edge import Edge, Edges
from toolwright.providers.encoding import Kept
from toolwright.providers.formats import Shape, to_gemini
from toolwright.providers.google_messages import PROVIDER, encode, sayable
from toolwright.providers.google_stream import GoogleDraft
from toolwright.providers.vendor import vendor_errors

if TYPE_CHECKING:
    from google.genai import Client, types
    from httpx2 import AsyncClient


_THOUGHTLESS = re.compile(r"gemini-(?:1|2\.0)|gemma")
"""Models that do not think, and that refuse a request which asks for their thoughts."""
_answer: ContextVar[Any] = ContextVar("_answer", default=None)
"""What the request under way was answered with. The SDK hides it, and leaves closing it to the garbage collector."""


@dataclass(frozen=True, slots=True)
class _Connection:
    client: "Client"
    http: "AsyncClient | None" = None
    """Ours, unless the client was somebody else's."""


class GoogleGemini:
    """A Gemini model. Thoughts and their signatures go back as they came."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "Client | None" = None,
        thoughts: bool | None = None,
    ) -> None:
        """`client` is for Vertex AI; `thoughts` has the model's thoughts told in short, by default if it has any."""
        require("google.genai", "google")
        self.model = model
        self._edges = Edges(PROVIDER, _shape)
        self._thoughts = not _THOUGHTLESS.match(model) if thoughts is None else thoughts
        self._tools: Kept[types.Tool] = Kept()
        self._clients = Clients(lambda: _Connection(client) if client else _connected(api_key, base_url), _close)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        draft = GoogleDraft(edge)
        async with vendor_errors(key="GEMINI_API_KEY"):
            client = (await self._clients.get()).client
            _answer.set(None)
            contents = encoded(request.messages, edge.key, lambda message: encode(message, edge))
            ask = cast("Any", client.aio.models).generate_content_stream  # its types name packages nobody has
            opened = await ask(model=self.model, contents=list(contents), config=self._config(request, edge))
            chunks = cast("AsyncGenerator[types.GenerateContentResponse, None]", opened)
            answer: Any = None
            try:
                async for chunk in chunks:
                    answer = answer or _answer.get()  # asked early: another stream may begin before this one ends
                    for news in draft.take(chunk):
                        yield news
            finally:
                answer = answer or _answer.get()
                await chunks.aclose()
                if answer is not None:
                    await answer.aclose()
        yield MessageDone(draft.message())

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _config(self, request: ModelRequest, edge: Edge) -> "types.GenerateContentConfig":
        from google.genai import types

        fields: dict[str, Any] = {"max_output_tokens": request.max_tokens}
        fields["automatic_function_calling"] = {"disable": True}  # running tools is not the SDK's business
        if self._thoughts:
            fields["thinking_config"] = {"include_thoughts": True}
        if request.system:
            fields["system_instruction"] = sayable(request.system)
        if edge.tools:
            fields["tools"] = [self._tools.of(edge, make=lambda: _tool(edge))]
        if request.output_schema is not None:
            fields |= {"response_mime_type": "application/json", "response_json_schema": thaw(request.output_schema)}
        return types.GenerateContentConfig(**fields | thaw(request.options))


def _shape(spec: ToolSpec, name: str, _: bool) -> Shape:
    return to_gemini(spec, name)


def _tool(edge: Edge) -> "types.Tool":
    from google.genai import types

    declared = [types.FunctionDeclaration.model_validate(payload) for payload in json.loads(edge.tools)]
    return types.Tool(function_declarations=declared)


def _connected(api_key: str | None, base_url: str | None) -> _Connection:
    from google.genai import Client, types
    from httpx2 import AsyncClient

    http = AsyncClient(event_hooks={"response": [_note_answer]})
    options = types.HttpOptions(
        base_url=base_url, httpx_async_client=http, retry_options=types.HttpRetryOptions(attempts=1)
    )
    return _Connection(Client(api_key=api_key, http_options=options), http)


async def _note_answer(response: Any) -> None:
    _answer.set(response)


async def _close(connection: _Connection) -> None:
    await connection.client.aio.aclose()
    connection.client.close()
    if connection.http is not None:
        await connection.http.aclose()
