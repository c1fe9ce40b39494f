"""Hears which sessions of a database were changed, by whichever machine, through NOTIFY."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

_connect: Callable[..., Any] = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
_CHANNEL = "callwright_changes"


class ChangeListener:
    """One connection of one event loop that listens while anyone waits for a change.

    Args:
        address: The database.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._connection: Any = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def listen(self, session_id: str) -> AsyncGenerator[asyncio.Event]:
        """Give an event that is set after every change of a session; clear it before reading."""
        event = asyncio.Event()
        self._waiting.setdefault(session_id, []).append(event)
        try:
            await self._open()
            yield event
        finally:
            self._waiting[session_id].remove(event)
            if not self._waiting[session_id]:
                del self._waiting[session_id]
            if not self._waiting:
                await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close(timeout=5)

    async def _open(self) -> None:
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                self._connection = await _connect(self._address, timeout=10)
                await self._connection.add_listener(_CHANNEL, self._hear)
                self._connection.add_termination_listener(self._hear_all)

    def _hear(self, connection: object, process: int, channel: str, session_id: str) -> None:
        for event in self._waiting.get(session_id, ()):
            event.set()

    def _hear_all(self, connection: object) -> None:
        """The connection is lost: every caller that waits looks for itself."""
        for events in self._waiting.values():
            for event in events:
                event.set()
