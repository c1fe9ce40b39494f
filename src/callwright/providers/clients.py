"""Vendor SDK clients: created on first use, off the event loop, one per loop."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from callwright.core.errors import UsageError

Client = TypeVar("Client")


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
            made = await asyncio.to_thread(self._make)  # importing a vendor's package takes seconds
            found = self._clients.setdefault(loop, made)  # another task may have made one meanwhile
            if found is not made:
                await self._close(made)
        return found

    async def close(self) -> None:
        """Close the connections of the running loop."""
        found = self._clients.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await self._close(found)


async def close_provider(provider: object) -> None:
    """Close the connections that a provider holds for the running event loop, if any."""
    close = getattr(provider, "aclose", None)
    if close is not None:
        await close()


def require(package: str, extra: str) -> None:
    """Raise a `UsageError` that names the extra to install when a vendor's package is missing."""
    try:
        present = find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        present = False
    if not present:
        raise UsageError(f"this model needs the package {package}: pip install 'callwright[{extra}]'")
