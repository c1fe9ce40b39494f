"""OpenAI's SDK client, shared by the Chat Completions and Responses providers."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import cache
from os import environ
from typing import TYPE_CHECKING, Any, Final

from callwright.core.json import JsonObject
from callwright.core.messages import Usage
from callwright.providers.clients import Clients, find_origin, require
from callwright.providers.encoding import IdentityCache, get_object, parse_object, read_count
from callwright.providers.errors import status_failure
from callwright.providers.schemas.merge import object_root
from callwright.providers.schemas.openai_strict import strict_form
from callwright.providers.streaming import check_body

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_KEY = "none"
"""Sent to servers that need no key; the SDK refuses to be created without one."""
KEY_NOT_SENT = (
    "the key: none is sent to a server that is named by its address; "
    "use openai-chat:NAME with OPENAI_BASE_URL and OPENAI_API_KEY, or in a program api_key="
)
STREAM_ENDED: Final = object()
"""Follows the last chunk of a stream that ended with its end marker."""


def openai_clients(client: "AsyncOpenAI | None", api_key: str | None, base_url: str | None) -> "Clients[AsyncOpenAI]":
    """Return clients made with the key and address, or the given one; raises `UsageError` without the package."""
    require("openai", "openai")
    return Clients(lambda: client or _make_client(api_key, base_url), _close)


def _make_client(api_key: str | None, base_url: str | None) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    if api_key is None and base_url is not None:  # OPENAI_API_KEY must not go to other servers
        api_key = _NO_KEY
    return AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0)


async def _close(client: "AsyncOpenAI") -> None:
    await client.close()


@cache
def _noting_stream() -> Any:
    """Return the SDK's stream class, with a note of the end marker, which the SDK itself drops.

    Events without data, such as keep-alives, are left out: the SDK would parse them.
    """
    from openai import AsyncStream

    class NotingStream(AsyncStream[object]):
        ended = False

        async def _iter_events(self) -> AsyncIterator[Any]:
            async for event in super()._iter_events():
                self.ended = self.ended or event.data.startswith("[DONE]")
                if event.data.strip():
                    yield event

    return NotingStream


@asynccontextmanager
async def open_stream(
    clients: "Clients[AsyncOpenAI]", path: str, body: Callable[[], bytes]
) -> AsyncGenerator[AsyncIterator[Any]]:
    """Send a request and yield its chunks.

    It is sent as bytes, because the typed call would convert every old message on every turn, but as an object to
    clients that rewrite it, such as Azure's. The chunk of a server that does not stream is the whole response.
    """
    from openai import AsyncOpenAI

    client = await clients.get()
    if type(client) is AsyncOpenAI:
        sent: dict[str, Any] = {"content": body(), "options": {"headers": {"content-type": "application/json"}}}
    else:
        sent = {"body": json.loads(body())}
    posted = client.post(path, cast_to=object, **sent, stream=True, stream_cls=_noting_stream())
    async with await posted as events, aclosing(_chunks(events)) as chunks:
        check_body(events.response)
        yield chunks


async def _chunks(events: Any) -> AsyncGenerator[Any]:
    if str(events.response.headers.get("content-type", "")).startswith("application/json"):
        for chunk in _read_unstreamed(await events.response.aread()):
            yield chunk
        return
    async for event in events:
        yield event
    if events.ended:
        yield STREAM_ENDED


def _read_unstreamed(text: bytes) -> Iterator[Any]:
    """Yield the response of a server that does not stream, or that calls its event stream JSON."""
    found = parse_object(text)
    if found is not None:
        if found.get("error"):
            raise status_failure(200, found, {})
        yield found
        yield STREAM_ENDED
        return
    for line in text.decode(errors="replace").splitlines():
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            yield STREAM_ENDED
        elif data:
            yield json.loads(data)


_OWN_HOSTS = ("", "openai.com", "azure.com")


def find_openai_origin(client: "AsyncOpenAI | None", base_url: str | None) -> str:
    """Return the server at an address, or that of a client; empty for OpenAI's own."""
    address = base_url or environ.get("OPENAI_BASE_URL") if client is None else str(client.base_url)
    return find_origin(address, "api.openai.com")


class AnswerFormats:
    """The formats of final answers for one server, named as `find_openai_origin` does."""

    def __init__(self, origin: str) -> None:
        self._own = ".".join(origin.partition(":")[0].split(".")[-2:]) in _OWN_HOSTS
        self._made: IdentityCache[JsonObject | None] = IdentityCache()

    def find(self, schema: JsonObject) -> JsonObject | None:
        """Return the format with a schema, enforced where that is in strict form already; None to ask for it in text.

        OpenAI itself refuses every schema whose root is not an object, such as that of a list; other servers do not.
        """
        return self._made.get(schema, make=lambda: self._make(schema))

    def _make(self, schema: JsonObject) -> JsonObject | None:
        sent, lost = object_root(schema) if self._own else (schema, ())
        return None if lost else {"name": "answer", "schema": sent, "strict": strict_form(sent).schema == sent}


def openai_usage(counts: dict[str, Any], inward: str, outward: str) -> Usage:
    """Read token counts; OpenAI counts cached tokens as part of the input, `Usage` does not."""
    details = get_object(counts, f"{inward}_tokens_details")
    cached, written = read_count(details.get("cached_tokens")), read_count(details.get("cache_write_tokens"))
    fresh = read_count(counts.get(f"{inward}_tokens")) - cached - written
    return Usage(max(0, fresh), read_count(counts.get(f"{outward}_tokens")), cached, written)
