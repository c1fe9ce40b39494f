"""Claude, through Anthropic's Messages API."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from os import environ
from typing import TYPE_CHECKING, Any

from callwright.core.message import AssistantMessage
from callwright.core.spec import ToolSpec
from callwright.providers.answer import answer
from callwright.providers.anthropic_messages import PROVIDER, encode, marked
from callwright.providers.anthropic_stream import AnthropicDraft
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.body import Bodies, Fields
from callwright.providers.clients import Clients, require
from callwright.providers.edge import Edge, Edges
from callwright.providers.encoding import Pieces, grown, pieced, to_bytes
from callwright.providers.formats import Shape, to_anthropic

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

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
        self._edges = Edges(PROVIDER, _shape, late="by reference" if late_tools else "never")
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
    async def _open(self, request: ModelRequest, edge: Edge) -> AsyncGenerator[AsyncIterator[Any]]:
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

    def _body(self, request: ModelRequest, edge: Edge) -> bytes:
        return self._bodies.of(request, edge, self._messages(request, edge))

    def _fields(self, request: ModelRequest, edge: Edge) -> Fields:
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

    def _messages(self, request: ModelRequest, edge: Edge) -> Pieces:
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
