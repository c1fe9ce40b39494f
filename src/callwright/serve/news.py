"""Clients are told when the list of tools changes, each as its version of the protocol has it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from mcp import MCPError
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged

_MOST_CLIENTS = 1024
_SETTLE_SECONDS = 0.02


class News:
    """Who has seen a list hears that it is old. `bus` is where clients of 2026-07-28 subscribe."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions: dict[str, ServerSession] = {}
        self._changed = asyncio.Event()

    def remember(self, key: str, session: ServerSession) -> None:
        """Tell this client of changes from now on."""
        while len(self._sessions) >= _MOST_CLIENTS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = session

    def changed(self, change: object = None) -> None:
        """Have everybody told soon."""
        self._changed.set()

    @asynccontextmanager
    async def told(self, source: object) -> AsyncGenerator[None, None]:
        """Follow a registry's changes while this is open; a toolset that tells nobody of changes is not followed."""
        subscribe: Callable[[Callable[[object], None]], object] | None = getattr(source, "subscribe", None)
        leave = None if subscribe is None else subscribe(self.changed)
        telling = asyncio.create_task(self._tell())
        try:
            yield
        finally:
            if callable(leave):
                leave()
            telling.cancel()

    async def _tell(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)  # a server that brings a hundred tools is one change
            self._changed.clear()
            await self.bus.publish(ToolsListChanged())
            for key, session in list(self._sessions.items()):
                try:
                    await session.send_tool_list_changed()
                except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    self._sessions.pop(key, None)
