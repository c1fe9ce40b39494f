"""OpenAI's SDK client, shared by the Chat Completions and Responses providers."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from callwright.core.json import JsonObject
from callwright.core.messages import Usage
from callwright.providers.clients import Clients, require
from callwright.providers.encoding import get_object
from callwright.providers.schemas.openai_strict import strict_form

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_KEY = "none"
"""Sent to servers that need no key; the SDK refuses to be created without one."""


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


@asynccontextmanager
async def open_stream(
    clients: "Clients[AsyncOpenAI]", path: str, body: Callable[[], bytes]
) -> AsyncGenerator[AsyncIterator[Any]]:
    """Send a request as bytes: the typed call would convert every old message on every turn."""
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
    """Return the format of the final answer; enforced where the schema is in strict form already."""
    return {"name": "answer", "schema": schema, "strict": strict_form(schema).schema == schema}


def openai_usage(counts: dict[str, Any], inward: str, outward: str) -> Usage:
    """Read token counts; OpenAI counts cached tokens as part of the input, `Usage` does not."""
    details = get_object(counts, f"{inward}_tokens_details")
    cached, written = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    fresh = (counts.get(f"{inward}_tokens") or 0) - cached - written
    return Usage(max(0, fresh), counts.get(f"{outward}_tokens") or 0, cached, written)
