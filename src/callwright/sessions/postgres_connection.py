"""The connections of one event loop to a PostgreSQL database: statements, and notices of changes by any machine."""

import asyncio
import re
from collections import deque
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
_FULL_SECONDS = 1.0
"""How long a server that accepts no further connection is not asked for one, while there are others."""
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
        self._in_use = 0
        self._full_until, self._refusal = 0.0, Exception()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        """Callers that wait for the connection of another, because the server accepts no further one."""

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
        connection = await self._acquire()
        sound = False
        try:
            rows = await connection.fetch(query, *values)
            sound = True
            return rows
        finally:
            await self._give_back(connection, sound=sound)

    async def _acquire(self) -> Any:
        """Take a connection; if the server accepts no further one, wait for one of those that there are."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CONNECT_SECONDS
        try:
            while True:
                if loop.time() < self._full_until and self._in_use and not self._pool.get_idle_size():
                    found = await self._wait_for_other()
                else:
                    try:
                        found = await self._pool.acquire()
                        self._in_use += 1
                    except asyncpg.TooManyConnectionsError as error:
                        if loop.time() >= deadline:
                            raise
                        self._refusal, self._full_until = error, loop.time() + _FULL_SECONDS
                        found = await self._find_other()
                if found is not None:
                    return found
        except ERRORS as error:
            raise NoConnection(error) from error

    async def _find_other(self) -> Any:
        """Return a connection that the server had accepted; None if there is none at the moment."""
        if self._pool.get_idle_size():
            return await self._take_idle()
        if self._in_use:
            return await self._wait_for_other()
        await asyncio.sleep(_FULL_SECONDS / 10)
        return None

    async def _take_idle(self) -> Any:
        """Return an idle connection, by taking all: the pool offers places first whose connection was refused."""
        tries = [asyncio.ensure_future(self._pool.acquire()) for _ in range(self._pool.get_max_size() - self._in_use)]
        kept = 0  # if it is cancelled
        try:
            await asyncio.wait(tries, timeout=_FULL_SECONDS)
            kept = 1
        finally:
            for each in tries:
                each.cancel()
            await asyncio.wait(tries)
            found = [each.result() for each in tries if not each.cancelled() and each.exception() is None]
            self._in_use += len(found)
            for connection in found[kept:]:
                await self._give_back(connection, sound=True)
        return found[0] if found else None

    async def _wait_for_other(self) -> Any:
        """Return the connection of a statement that has ended; None if it was lost, so that there is room for one."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await waiting
        except BaseException as error:
            if waiting.done() and not waiting.cancelled() and waiting.result() is not None:  # given meanwhile
                await self._give_back(waiting.result(), sound=True)
            if isinstance(error, TimeoutError):
                raise self._refusal from None
            raise
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    async def _give_back(self, connection: Any, *, sound: bool) -> None:
        """Give a connection to a caller that waits for one, or back to the pool."""
        if sound and (waiting := self._next_waiting()) is not None:
            waiting.set_result(connection)
            return
        try:
            with suppress(*ERRORS):  # a connection that is lost after the commit does not undo it
                await self._pool.release(connection)
        finally:
            self._in_use -= 1
            # without another one in use nothing would wake the rest, if the first one fails or is cancelled
            while (waiting := self._next_waiting()) is not None:
                waiting.set_result(None)
                if self._in_use:
                    break

    def _next_waiting(self) -> "asyncio.Future[Any] | None":
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                return waiting
        return None


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
