"""Claude through Anthropic's Messages API: the provider."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from os import environ
from typing import TYPE_CHECKING, Any

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject
from callwright.core.messages import AssistantMessage
from callwright.providers.anthropic_messages import PROVIDER, AnthropicDraft, UniqueCallIds, encode, mark_cache_end
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.clients import Clients, find_origin, require
from callwright.providers.encoding import (
    Pieces,
    ask_for_schema,
    cache_with_history,
    encode_history,
    list_pieces,
    parse_object,
    to_bytes,
)
from callwright.providers.options import ModelOptions, limit_effort, set_fields
from callwright.providers.schemas.anthropic_output import anthropic_output_schema
from callwright.providers.streaming import check_body, read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    to_anthropic,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream
    from anthropic.lib.bedrock import AsyncAnthropicBedrock
    from anthropic.lib.vertex import AsyncAnthropicVertex

_LATE_TOOL_MODELS = re.compile(r"claude-(?:fable|mythos|opus|sonnet|haiku)-(?:4-[5-9]|[5-9])")
"""Models that accept more tools in the middle of a conversation."""
_VERSION = re.compile(r"claude-(?:fable|mythos|opus|sonnet|haiku)-(\d{1,2})(?!\d)(?:-(\d{1,2})(?!\d))?")
_OWN_HOST = "api.anthropic.com"
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
        address = base_url or environ.get("ANTHROPIC_BASE_URL")
        self._signed = not address
        self._origin = find_origin(address, _OWN_HOST)  # empty too where only a client knows another one
        if late_tools is None:
            late_tools = client is None and self._signed and _LATE_TOOL_MODELS.match(model) is not None
        self.late_tools = late_tools
        key = f"{PROVIDER} signed" if self._signed else f"{PROVIDER} {self._origin}"
        self._encoder = ToolEncoder(key, to_anthropic, late="by reference" if late_tools else "never")
        self._bodies = RequestBodies(self._fields, "messages", merged=("output_config",))
        self._cache = cache
        self._clients = Clients(lambda: client or _client(api_key, base_url), _close)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        return read_stream(AnthropicDraft(tools, self._origin), self._open(request, tools), key="ANTHROPIC_API_KEY")

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
        from anthropic import AsyncAnthropic

        client = await self._clients.get()
        body = self._body(request, tools)
        # as bytes: the typed call would convert every old message on every turn; other clients rewrite the object
        sent: dict[str, Any] = {"content": body} if type(client) is AsyncAnthropic else {"body": json.loads(body)}
        posted = client.post("/v1/messages", cast_to=object, **sent, stream=True, stream_cls=_naming_stream())
        async with await posted as events:
            check_body(events.response)
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
                system = ask_for_schema(system, request.output_schema)
            else:
                fields["output_config"] = to_bytes({"format": {"type": "json_schema", "schema": schema}})
        if system:
            ending = {"cache_control": {"type": "ephemeral"}} if self._cache else {}
            fields["system"] = to_bytes([{"type": "text", "text": system, **ending}])
        return fields

    def _messages(self, request: ModelRequest, tools: EncodedTools) -> Pieces:
        unjoined = _UNJOINED if self._cache else 0
        ids = cache_with_history(request.messages, (tools.key, UniqueCallIds), UniqueCallIds)
        joined, last = encode_history(
            request.messages,
            tools.key,
            lambda message: encode(message, tools, ids, signed=self._signed, origin=self._origin),
            unjoined=unjoined,
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


@cache
def _naming_stream() -> Any:
    """Return the SDK's stream class, with a name for events without one, which the SDK itself drops, errors too."""
    from anthropic import AsyncStream

    class NamingStream(AsyncStream[object]):
        async def _iter_events(self) -> AsyncIterator[Any]:
            async for event in super()._iter_events():
                found = parse_object(event.data) if event.event is None else None
                if found is not None:
                    name = "error" if found.get("error") else str(found.get("type", ""))
                    yield type(event)(event=name, data=event.data)
                else:
                    yield event

    return NamingStream


def _is_unstreamed(events: "AsyncStream[object]") -> bool:
    return str(events.response.headers.get("content-type", "")).startswith("application/json")


async def _read_whole(events: "AsyncStream[object]") -> AsyncIterator[Any]:
    found = parse_object(await events.response.aread())
    if found is not None:
        yield found


def _is_user(request: ModelRequest, place: int) -> bool:
    return not isinstance(request.messages[place], AssistantMessage)


def _client(api_key: str | None, base_url: str | None) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0)


async def _close(client: "AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex") -> None:
    await client.close()
