"""What a PostgreSQL store has open in one event loop, and how it is closed."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from callwright.sessions import postgres_sql as sql
from callwright.sessions.base import SessionError
from callwright.sessions.postgres_connection import CLOSE_SECONDS, ERRORS, ChangeListener, Connections, NoConnection
from callwright.sessions.postgres_hold import PendingWrite, PostgresHold

_MOST_WRITES = 500
_MOST_CHARS = 16_000_000
"""Of the records of one commit: PostgreSQL refuses a gigabyte, and short records wait behind long ones."""


@dataclass(slots=True)
class LoopState:
    """The connections of one event loop, its holds, and the writer that commits what has gathered."""

    connections: Connections
    waiting: list[PendingWrite] = field(default_factory=list[PendingWrite])
    writer: "asyncio.Task[None] | None" = None
    listener: ChangeListener | None = None
    holds: "weakref.WeakSet[PostgresHold]" = field(default_factory=weakref.WeakSet[PostgresHold])
    at_end: AsyncGenerator[None] | None = None
    """Closes all of this when it is closed."""
    closing: bool = False

    def take_batch(self) -> list[PendingWrite]:
        """Remove the writes of the next commit from those that wait, and return them; at least one."""
        count = size = 0
        for write in self.waiting[:_MOST_WRITES]:
            size += sum(map(len, write.bodies))
            if count and size > _MOST_CHARS:
                break
            count += 1
        batch, self.waiting = self.waiting[:count], self.waiting[count:]
        return batch

    async def settle(self) -> None:
        """Wait until everything that was added is stored, or cannot be."""
        await asyncio.gather(*(hold.settle() for hold in [*self.holds]))

    async def close(self, reason: SessionError) -> None:
        """Give up the sessions that are held, and close the connections."""
        holds = [hold for hold in self.holds if not hold.ended]
        for hold in holds:
            hold.end(reason)
        if self.listener is not None:
            await self.listener.aclose()
        if holds:
            giving_up = asyncio.ensure_future(self._give_up(holds))
            await asyncio.wait([giving_up], timeout=CLOSE_SECONDS)  # not cancelled: that would wait for the server too
        await self.connections.close()

    async def _give_up(self, holds: Sequence[PostgresHold]) -> None:
        with suppress(NoConnection, *ERRORS):  # otherwise their leases run out
            names = [hold.session_id for hold in holds], [hold.holder for hold in holds]
            await self.connections.fetch(sql.RELEASE_ALL, *names)
