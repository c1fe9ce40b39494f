"""The connections of one event loop to a PostgreSQL database: statements, and notices of changes by any machine."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

from callwright.sessions import postgres_sql as sql

_connect: Callable[..., Any] = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
_create_pool: Callable[..., Any] = getattr(asyncpg, "create_pool")  # noqa: B009 - it has no types
_CONNECT_SECONDS = 10
_STATEMENT_SECONDS = 60
CLOSE_SECONDS = 10.0
"""How long closing waits for a server that does not answer; a process that ends must not hang."""
_REOPEN_SECONDS = 1.0
# InternalClientError: a connection that was lost between two messages of one statement
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
)
ERRORS = (asyncpg.PostgresError, *_LOST, OSError, TimeoutError)


def describe_address(address: str) -> str:
    """Return the host and the name of a database: neither a user, a password, nor parameters, which may hold one."""
    head, *tail = re.split("[?#]", address.partition("://")[2], maxsplit=1)
    if tail and "@" in tail[0]:  # where the password ends cannot be told
        return "of the given address"
    return head.rpartition("@")[2]


class NoConnection(Exception):
    """A statement was not sent, because there is no connection.

    Args:
        reason: Why there is none.
    """

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Connections:
    """A pool of connections; its methods raise `NoConnection` or one of `ERRORS`.

    Args:
        pool: An asyncpg pool; its methods have no types.
        schema_version: The version of the tables.
    """

    def __init__(self, pool: Any, schema_version: int) -> None:
        self._pool = pool
        self.schema_version = schema_version

    @classmethod
    async def open(cls, address: str, most: int) -> "Connections":
        """Connect, and create the tables if they are missing; raises anything for an address it cannot read."""
        pool = await _create_pool(
            address,
            min_size=0,  # asyncpg logs a traceback for every attempt to bring an idle pool back to its minimum
            max_size=most,
            statement_cache_size=0,
            command_timeout=_STATEMENT_SECONDS,
            timeout=_CONNECT_SECONDS,
            reset=_keep_as_it_is,
        )
        try:
            async with pool.acquire() as connection:
                # Creating what exists would wait for a writer that stands still inside a statement, perhaps for ever.
                if not await connection.fetchval(sql.IS_CREATED):
                    async with connection.transaction():
                        await connection.execute("SELECT pg_advisory_xact_lock($1)", sql.SCHEMA_LOCK)
                        await connection.execute(sql.CREATE)
                version = await connection.fetchval("SELECT max(version) FROM callwright_schema")
        except BaseException:
            await pool.close()
            raise
        return cls(pool, version)

    async def fetch(self, query: str, *values: object, repeatable: bool = True) -> Sequence[Any]:
        """Run a statement and return its rows.

        Args:
            query: The statement.
            values: Its parameters.
            repeatable: Whether it may run twice, and so runs again if its connection was lost: a server that was
                restarted has ended those that were idle, and a lost reply says nothing about the commit.
        """
        try:
            return await self._fetch(query, values)
        except _LOST:
            if not repeatable:
                raise
        await self._pool.expire_connections()  # the others may be lost too: connect anew
        return await self._fetch(query, values)

    async def close(self) -> None:
        """Close the connections, after the statements that run; those of a server that does not answer are cut."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()

    async def _fetch(self, query: str, values: Sequence[object]) -> Sequence[Any]:
        try:
            connection = await self._pool.acquire()
        except ERRORS as error:
            raise NoConnection(error) from error
        try:
            return await connection.fetch(query, *values)
        finally:
            with suppress(*ERRORS):  # a connection that is lost after the commit does not undo it
                await self._pool.release(connection)


async def _keep_as_it_is(connection: object) -> None:
    """Reset nothing: no statement of this package leaves anything in its connection, and a reset costs a round trip."""


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
        self._reopening: asyncio.Task[None] | None = None

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
        if self._reopening is not None:
            self._reopening.cancel()
        if connection is not None:
            with suppress(*ERRORS):  # it is ended in any case
                await connection.close(timeout=5)

    async def _open(self) -> None:
        async with self._opening:
            if self._connection is not None and not self._connection.is_closed():
                return
            connection = await _connect(self._address, timeout=_CONNECT_SECONDS)
            try:
                await connection.add_listener(sql.CHANGES, self._on_notification)
                connection.add_termination_listener(self._on_loss)
            except BaseException:  # not listening, so no other caller may find it
                connection.terminate()
                raise
            self._connection = connection

    def _on_notification(self, connection: object, process: int, channel: str, session_id: str) -> None:
        for event in self._waiting.get(session_id, ()):
            event.set()

    def _on_loss(self, connection: object) -> None:
        """The connection is lost: every caller that waits looks for itself, until there is another one."""
        self._wake_all()
        if connection is self._connection and self._reopening is None:
            self._reopening = asyncio.ensure_future(self._reopen())

    async def _reopen(self) -> None:
        try:
            while self._waiting:
                with suppress(*ERRORS):
                    await self._open()
                    self._wake_all()  # they may have missed a change meanwhile
                    return
                await asyncio.sleep(_REOPEN_SECONDS)
        finally:
            self._reopening = None

    def _wake_all(self) -> None:
        for events in self._waiting.values():
            for event in events:
                event.set()
