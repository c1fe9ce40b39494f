"""OpenAI's models, through its Responses API."""

import re
from collections.abc import AsyncIterator
from os import environ
from typing import TYPE_CHECKING

from callwright.core.spec import ToolSpec
from callwright.providers.answer import answer
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.body import Bodies, Fields
from callwright.providers.edge import Edge, Edges
from callwright.providers.encoding import grown, pieced, to_bytes
from callwright.providers.formats import Shape, to_openai_responses
from callwright.providers.openai_client import answer_format, openai_clients, opened
from callwright.providers.openai_responses_messages import PROVIDER, encode
from callwright.providers.openai_responses_stream import ResponsesDraft

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_THOUGHTLESS = re.compile(r"(?:chat)?gpt-[34]")
"""Models that do not think, and that refuse a request which asks for their thoughts."""


class OpenAIResponses:
    """An OpenAI model. Nothing is stored with OpenAI: thoughts come encrypted and go back as they came."""

    vendor = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
        strict: bool = True,
        late_tools: bool | None = None,
    ) -> None:
        """`strict` has tools enforced by the server, where their schemas lose nothing by it.

        `late_tools` has tools that were searched for join where they were found, so that what is cached stays valid;
        by default at OpenAI's own address.
        """
        self.model = model
        if late_tools is None:
            late_tools = client is None and not (base_url or environ.get("OPENAI_BASE_URL"))
        self.late_tools = late_tools
        self._edges = Edges(PROVIDER, _shape, strict=strict, late="by definition" if late_tools else "never")
        self._bodies = Bodies(self._fields, "input")
        self._clients = openai_clients(client, api_key, base_url)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        sent = opened(self._clients, "/responses", lambda: self._body(request, edge))
        return answer(ResponsesDraft(edge), sent, key="OPENAI_API_KEY")

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _body(self, request: ModelRequest, edge: Edge) -> bytes:
        settled, _ = grown(request.messages, edge.key, lambda message: encode(message, edge))
        return self._bodies.of(request, edge, pieced(settled))

    def _fields(self, request: ModelRequest, edge: Edge) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            "max_output_tokens": to_bytes(request.max_tokens),
            "stream": b"true",
            "store": b"false",
        }
        if not _THOUGHTLESS.match(self.model):
            fields["include"] = b'["reasoning.encrypted_content"]'
        if request.system:
            fields["instructions"] = to_bytes(request.system)
        if edge.tools:
            fields["tools"] = edge.tools
        if request.output_schema is not None:
            fields["text"] = to_bytes({"format": {"type": "json_schema", **answer_format(request.output_schema)}})
        return fields


def _shape(spec: ToolSpec, name: str, strict: bool) -> Shape:
    return to_openai_responses(spec, name, strict=strict)
