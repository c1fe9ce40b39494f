"""Gemini, through Google's GenAI SDK."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

from callwright.core.spec import ToolSpec
from callwright.providers.answer import answer
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.body import Bodies, Fields
from callwright.providers.clients import Clients, require
from callwright.providers.edge import Edge, Edges
from callwright.providers.encoding import grown, pieced, to_bytes
from callwright.providers.formats import Shape, to_gemini
from callwright.providers.google_client import Exchange, connect, current, disconnect
from callwright.providers.google_messages import PROVIDER, encode
from callwright.providers.google_stream import GoogleDraft

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
        self._edges = Edges(PROVIDER, _shape)
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
    async def _open(self, request: ModelRequest, edge: Edge) -> AsyncGenerator[AsyncIterator[Any]]:
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

    def _body(self, request: ModelRequest, edge: Edge) -> bytes:
        settled, _ = grown(request.messages, edge.key, lambda message: encode(message, edge))
        return self._bodies.of(request, edge, pieced(settled))

    def _fields(self, request: ModelRequest, edge: Edge) -> Fields:
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
