"""Vendor SDK clients, one per event loop, and questions to a server about itself."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from callwright.core._lazy import install_command
from callwright.core.errors import UsageError
from callwright.providers.encoding import parse_object

Client = TypeVar("Client")


def find_origin(address: str | None, own_host: str) -> str:
    """Return the server at an address, without a name and password; empty for the vendor's own host."""
    host = (urlsplit(address or "").netloc or address or "").rpartition("@")[2]
    return "" if host == own_host else host


class Clients(Generic[Client]):
    """One client per event loop, because pooled connections do not outlive the loop they were opened on.

    Args:
        make: Creates a client; runs in a thread.
        close: Closes a client's connections.
    """

    def __init__(self, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    async def get(self) -> Client:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            # their connections refer to the loop, so that neither would ever be freed
            ended = self._remove_ended()
            made = await asyncio.to_thread(self._make)  # importing a vendor's package takes seconds
            found = self._clients.setdefault(loop, made)  # another task may have made one meanwhile
            if found is not made:
                await self._close(made)
            for client in ended:
                if client is not found:  # one that was given is used in every loop
                    with suppress(Exception):  # its connections end with their loop, but it is marked as closed
                        await self._close(client)
        return found

    def _remove_ended(self) -> list[Client]:
        """Remove the clients of loops that have ended; other threads may do the same meanwhile."""
        loops = [reference() for reference in self._clients.keyrefs()]  # a copy, unlike iterating
        removed = [self._clients.pop(loop, None) for loop in loops if loop is not None and loop.is_closed()]
        return [client for client in removed if client is not None]

    async def close(self) -> None:
        """Close the connections of the running loop."""
        found = self._clients.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await self._close(found)


def require(package: str, extra: str) -> None:
    """Raise a `UsageError` that names the extra to install when a vendor's package is missing."""
    try:
        present = find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        present = False
    if not present:
        raise UsageError(f"this model needs the package {package}: " + install_command(f"'callwright[{extra}]'"))


_SECONDS = 2.0
_MAX_BYTES = 1 << 20


async def fetch_json(url: str) -> dict[str, Any] | None:
    """Return the JSON object at an address; None for anything else, also for a server that does not answer in time.

    No key is sent: the address need not belong to the API that the key is for.
    """
    from httpx2 import AsyncClient

    try:
        async with (
            asyncio.timeout(_SECONDS),
            AsyncClient(timeout=_SECONDS) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as response,
        ):
            text = b""
            async for piece in response.aiter_bytes():
                text += piece
                if len(text) > _MAX_BYTES:
                    return None
            return parse_object(text) if response.status_code == 200 else None
    except Exception:  # noqa: BLE001 - other servers have no such page and answer with anything
        return None
