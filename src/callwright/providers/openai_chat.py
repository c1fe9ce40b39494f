"""Models behind the Chat Completions API: OpenAI's, and those of llama.cpp, vLLM, Ollama and many a gateway."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from callwright.core.spec import ToolSpec
from callwright.providers.answer import answer
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.body import Bodies, Fields
from callwright.providers.edge import Edge, Edges
from callwright.providers.encoding import Kept, Pieces, grown, pieced, to_bytes
from callwright.providers.formats import Shape, to_openai_chat
from callwright.providers.openai_chat_messages import PROVIDER, encode
from callwright.providers.openai_chat_stream import ChatDraft
from callwright.providers.openai_client import answer_format, openai_clients, opened

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChat:
    """A model that speaks Chat Completions."""

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
        """`strict` has tools enforced by the server, where their schemas lose nothing by it and the server can."""
        self.model = model
        self._edges = Edges(PROVIDER, _shape, strict=strict)
        self._limit = "max_completion_tokens" if base_url is None else "max_tokens"  # the old name is known everywhere
        self._bodies = Bodies(self._fields, "messages")
        self._systems: Kept[bytes] = Kept()
        self._clients = openai_clients(client, api_key, base_url)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        sent = opened(self._clients, "/chat/completions", lambda: self._body(request, edge))
        return answer(ChatDraft(edge), sent, key="OPENAI_API_KEY")

    async def calls_tools(self) -> bool | None:
        """Ask a llama.cpp server whether its model was taught to call tools; None where nobody can tell."""
        client = await self._clients.get()
        try:
            found = await client.get(str(client.base_url.join("/props")), cast_to=object)
        except Exception:  # noqa: BLE001 - other servers know no such page, and their answers are of any kind
            return None
        template = cast("dict[str, Any]", found).get("chat_template") if isinstance(found, dict) else None
        return "tools" in template if isinstance(template, str) else None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _body(self, request: ModelRequest, edge: Edge) -> bytes:
        return self._bodies.of(request, edge, self._messages(request, edge))

    def _fields(self, request: ModelRequest, edge: Edge) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            self._limit: to_bytes(request.max_tokens),
            "stream": b"true",
            "stream_options": b'{"include_usage":true}',
        }
        if edge.tools:
            fields["tools"] = edge.tools
        if request.output_schema is not None:
            shape = {"type": "json_schema", "json_schema": answer_format(request.output_schema)}
            fields["response_format"] = to_bytes(shape)
        return fields

    def _messages(self, request: ModelRequest, edge: Edge) -> Pieces:
        system = self._systems.of(request.system, make=lambda: _told(request.system))
        settled, _ = grown(request.messages, edge.key, lambda message: encode(message, edge))
        return pieced(system, settled)


def _told(system: str) -> bytes:
    return to_bytes({"role": "system", "content": system}) if system else b""


def _shape(spec: ToolSpec, name: str, strict: bool) -> Shape:
    return to_openai_chat(spec, name, strict=strict)
