"""OpenAI's client as both of its APIs use it."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from callwright.core.json import JsonObject
from callwright.core.messages import Usage
from callwright.providers.clients import Clients, require
from callwright.providers.encoding import nested
from callwright.providers.schemas.openai_strict import strict_form

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_KEY = "none"
"""What servers that want no key are sent; the client refuses to be made without one."""


def openai_clients(client: "AsyncOpenAI | None", api_key: str | None, base_url: str | None) -> "Clients[AsyncOpenAI]":
    """Hand out the given client, or clients made with the key and address; raises where the package is missing."""
    require("openai", "openai")
    return Clients(lambda: client or _made(api_key, base_url), _close)


def _made(api_key: str | None, base_url: str | None) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    if api_key is None and base_url is not None:
        api_key = _NO_KEY
    return AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0)


async def _close(client: "AsyncOpenAI") -> None:
    await client.close()


@asynccontextmanager
async def opened(
    clients: "Clients[AsyncOpenAI]", path: str, body: Callable[[], bytes]
) -> AsyncGenerator[AsyncIterator[Any]]:
    """Send a request; the body is ours, because the typed call would walk through every old message on every turn."""
    from openai import AsyncStream

    client = await clients.get()
    posted = client.post(
        path,
        cast_to=object,
        content=body(),
        options={"headers": {"content-type": "application/json"}},
        stream=True,
        stream_cls=AsyncStream[object],
    )
    async with await posted as events:
        yield events


def answer_format(schema: JsonObject) -> JsonObject:
    """Give the shape of the final answer; enforced where it is in strict mode's form already."""
    return {"name": "answer", "schema": schema, "strict": strict_form(schema).schema == schema}


def openai_usage(counts: dict[str, Any], inward: str, outward: str) -> Usage:
    """Read what a request took; what came from or went into the cache is part of the input in OpenAI's count."""
    details = nested(counts, f"{inward}_tokens_details")
    cached, written = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    fresh = (counts.get(f"{inward}_tokens") or 0) - cached - written
    return Usage(max(0, fresh), counts.get(f"{outward}_tokens") or 0, cached, written)
