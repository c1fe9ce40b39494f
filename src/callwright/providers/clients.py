"""The vendors' clients: made when first needed, off the event loop, one for each loop they serve."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from callwright.core.errors import UsageError

Client = TypeVar("Client")


class Clients(Generic[Client]):
    """Hands each event loop a client of its own: pooled connections do not outlive the loop they were opened on."""

    def __init__(self, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    async def get(self) -> Client:
        """The running loop's client."""
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            made = await asyncio.to_thread(self._make)  # importing a vendor's package takes seconds
            found = self._clients.setdefault(loop, made)
            if found is not made:
                await self._close(made)
        return found

    async def close(self) -> None:
        """Close the running loop's connections."""
        found = self._clients.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await self._close(found)


async def close_provider(provider: object) -> None:
    """Close the connections a provider holds for the running event loop, if it is one that holds any."""
    close = getattr(provider, "aclose", None)
    if close is not None:
        await close()


def require(package: str, extra: str) -> None:
    """Say what to install when a vendor's package is missing."""
    try:
        present = find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        present = False
    if not present:
        raise UsageError(f"this model needs the package {package}: pip install 'callwright[{extra}]'")
