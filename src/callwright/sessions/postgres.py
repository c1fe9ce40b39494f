"""`PostgresStore`: sessions in PostgreSQL, shared by processes on several machines."""

import asyncio
import math
import secrets
import weakref
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import Any

import asyncpg

from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import replace_surrogates
from callwright.sessions import postgres_sql as sql
from callwright.sessions.base import (
    SessionBusy,
    SessionEntry,
    SessionError,
    SessionHit,
    StoredRecord,
    StoreTooNew,
    check_session_id,
    is_session_id,
    no_such_session,
)
from callwright.sessions.postgres_connection import ERRORS, ChangeListener, Connections, NoConnection, describe_address
from callwright.sessions.postgres_hold import PendingWrite, PostgresHold
from callwright.sessions.postgres_loop import LoopState
from callwright.sessions.record_encoding import Redaction, dump_record, load_blob, make_redactor
from callwright.sessions.records import Record, count_settled_records
from callwright.sessions.stored_rows import limit_rows, load_records
from callwright.sessions.text_search import escape_query, make_excerpt, make_like_pattern


class PostgresStore:
    """Stores sessions in a PostgreSQL database.

    A session is held by a lease that its holder renews. Every append checks the lease in the same statement, so a
    holder that lost it, for example because its machine stood still, cannot write any more. Appends that come together
    are committed together.

    Args:
        address: The database, as `postgresql://user@host/name`.
        redact: Replaces secrets before they are written: as for `SqliteStore`.
        lease_seconds: After this time without a sign of its holder, others may take a session.
        connections: The most connections of one event loop.

    Raises:
        UsageError: The address is not one, a limit is not positive, or `redact` cannot be used.
    """

    durable = True

    def __init__(
        self,
        address: str,
        *,
        redact: Redaction | None = None,
        lease_seconds: float = 30.0,
        connections: int = 10,
    ) -> None:
        if not address.startswith(("postgresql://", "postgres://")):
            kind, found, _ = address.partition("://")  # the rest may hold a password
            raise UsageError(
                "expected an address like postgresql://user@host/name, got one that begins "
                f"{kind + '://' if found else 'otherwise'}"
            )
        if not 0 < lease_seconds < math.inf or connections < 1:
            raise UsageError(f"lease_seconds and connections must be positive, got {lease_seconds!r}, {connections!r}")
        self._address, self._place = address, describe_address(address)
        self._redactor = make_redactor(redact)
        self._connections = connections
        self.lease_seconds = lease_seconds
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[LoopState]] = (
            weakref.WeakKeyDictionary()
        )

    async def hold(self, session_id: str, *, owner: str = "") -> PostgresHold:
        """Take the session for writing.

        Args:
            session_id: The session.
            owner: Who takes it, if the same owner may take it over from itself: a worker that starts again. See
                `may_take_over`.

        Raises:
            SessionBusy: Another holder's lease has not run out.
            SessionDamaged: Records of it cannot be read.
        """
        check_session_id(session_id)
        loop, holder = await self._open(), secrets.token_hex(16)
        try:
            epoch = await self._value(sql.TAKE, session_id, holder, owner, self.lease_seconds)
            if epoch is None:
                raise SessionBusy(f"session {session_id!r} is being written by another process; wait for it or stop it")
            key = await self._value(sql.FIND, session_id)
            stored = None if key is None else await self._read(key, session_id)
        except SessionBusy:
            raise
        except BaseException:  # it may have been taken, also if that was interrupted
            with suppress(SessionError):
                await asyncio.shield(asyncio.ensure_future(self._rows(sql.RELEASE, session_id, holder)))
            raise
        records = None if stored is None else [item.record for item in stored]
        hold = PostgresHold(self, (session_id, holder, int(epoch)), records)
        loop.holds.add(hold)
        return hold

    async def read(self, session_id: str) -> Sequence[Record]:
        return [stored.record for stored in await self.read_from(session_id)]

    async def read_from(
        self, session_id: str, position: int = 0, *, limit: int | None = None
    ) -> Sequence[StoredRecord]:
        count = None if limit is None else limit_rows(limit)
        return await self._read(await self._key(session_id), session_id, limit_rows(position), count)

    async def read_output(self, session_id: str, output_id: str) -> str | None:
        if not is_session_id(session_id) or not output_id.isprintable():  # the model may ask for any text
            return None
        found = await self._value(sql.READ_OUTPUT, session_id, output_id)
        return None if found is None else str(found)

    async def version(self) -> str:
        # the transactions that are visible: differs after every commit, and reads no table
        return str(await self._value("SELECT pg_current_snapshot()::text"))

    @asynccontextmanager
    async def listen(self, session_id: str) -> AsyncGenerator[asyncio.Event]:
        """Give an event that is set after every append to a session, by whichever machine.

        Clear it, then read from your position, then wait. Wait with a time limit: a pooler between may drop notices.

        Args:
            session_id: The session; it need not exist yet.

        Raises:
            SessionError: The database cannot be used.
        """
        loop = await self._open()
        if loop.listener is None:
            loop.listener = ChangeListener(self._address)
        async with AsyncExitStack() as stack:
            try:
                changed = await stack.enter_async_context(loop.listener.listen(session_id))
            except ERRORS as error:
                raise self._explain(error) from error
            yield changed  # what the caller raises, a TimeoutError for example, says nothing about the database

    async def list(self, *, limit: int = 100, waiting: bool = False) -> Sequence[SessionEntry]:
        return [SessionEntry(*row) for row in await self._rows(sql.LIST, limit_rows(limit), waiting)]

    async def find(self, session_id: str) -> SessionEntry | None:
        rows = await self._rows(sql.ENTRY, session_id) if is_session_id(session_id) else ()
        return SessionEntry(*rows[0]) if rows else None

    async def search(self, text: str, *, limit: int = 50, session: str | None = None) -> Sequence[SessionHit]:
        if session is not None:
            await self._key(session)
        query = escape_query(text)
        rows = await self._rows(sql.SEARCH, make_like_pattern(query), session, limit_rows(limit))
        return [SessionHit(found, position, make_excerpt(body, query)) for found, position, body in rows]

    async def fork(self, session_id: str, new_id: str) -> None:
        taken = SessionError(f"session {new_id!r} already exists; choose another id")
        settled = count_settled_records(await self.read(session_id))
        try:
            hold = await self.hold(new_id)
        except SessionBusy:  # by a run that is about to create it, and would fail at its first record
            raise taken from None
        try:
            copied = await self._rows(sql.FORK, session_id, new_id, settled, repeatable=False)
        except SessionError as error:
            raise (taken if isinstance(error.__cause__, asyncpg.UniqueViolationError) else error) from error.__cause__
        finally:
            await hold.release()
        if not copied:  # deleted since it was read
            raise no_such_session(session_id)

    async def rename(self, session_id: str, title: str) -> None:
        await self._key(session_id)
        await self._rows("UPDATE callwright_sessions SET title = $2 WHERE id = $1", session_id, self.redact(title))

    async def delete(self, session_id: str) -> None:
        await self._key(session_id)
        if not await self._rows(sql.DELETE, session_id, repeatable=False):
            raise SessionBusy(f"session {session_id!r} is being written; wait for it or stop it")
        with suppress(SessionError):  # the session is deleted: what is left goes with the next one
            await self._rows(sql.FORGET)

    async def keep_blob(self, blob_id: str, record: Record) -> None:
        await self._rows(sql.KEEP_BLOB, blob_id, self.encode(record))

    async def read_blob(self, blob_id: str) -> Record | None:
        return load_blob(await self._value("SELECT body FROM callwright_blobs WHERE id = $1", blob_id))

    async def delete_blobs(self, blob_ids: Sequence[str]) -> None:
        await self._rows("DELETE FROM callwright_blobs WHERE id = ANY($1::text[])", [*blob_ids])

    async def aclose(self) -> None:
        """Write what waits and close the connections of this event loop; sessions that are held are given up."""
        opened = self._loops.get(asyncio.get_running_loop())
        if opened is not None and not _has_failed(opened):
            loop = await opened
            if loop.at_end is not None and not loop.closing:
                await loop.at_end.aclose()

    async def _close_at_end(self, loop: LoopState) -> AsyncGenerator[None]:
        """Wait to be closed, by `aclose` or by an event loop that ends: that closes the generators under way.

        Otherwise every `run_sync` would leave a connection open, until the database refuses further ones.
        """
        try:
            yield
        finally:
            loop.closing = True
            await loop.settle()
            self._loops.pop(asyncio.get_running_loop(), None)
            await loop.close(self._explain_closed())

    async def __aenter__(self) -> "PostgresStore":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def encode(self, record: Record) -> str:
        """Return a record as it is stored."""
        return dump_record(record, self._redactor)

    def redact(self, text: str) -> str:
        """Return a text as it is stored."""
        redacted = text if self._redactor is None else self._redactor.clean(text)
        return replace_surrogates(redacted.replace("\0", "\N{REPLACEMENT CHARACTER}"))

    def queue(self, write: PendingWrite) -> None:
        """Commit records together with those of other holders that wait; the order of a holder's writes is kept.

        Raises:
            SessionError: The store was closed, or the session was taken in another event loop.
        """
        loop = self._find_open()
        loop.waiting.append(write)
        if loop.writer is None or loop.writer.done():  # done: cancelled before it began
            loop.writer = asyncio.ensure_future(self._write_gathered(loop))

    async def keep(self, hold: PostgresHold, output_id: str, body: str) -> None:
        """Store `body` as the output `output_id`, if the lease of `hold` is still held."""
        await self._fetch(self._find_open(), sql.KEEP, *hold.identity, output_id, body)

    async def renew(self, hold: PostgresHold) -> bool:
        """Extend a lease; False if it was lost."""
        return bool(await self._fetch(self._find_open(), sql.RENEW, *hold.identity, self.lease_seconds))

    async def give_up(self, hold: PostgresHold) -> None:
        """Release a lease; nothing happens if it was lost."""
        await self._fetch(self._find_open(), sql.RELEASE, *hold.identity[:2])

    async def _write_gathered(self, loop: LoopState) -> None:
        failed = SessionError(f"the writer for {self._place} was stopped; the records may be stored or not")
        batch: list[PendingWrite] = []
        try:
            while loop.waiting:
                batch = loop.take_batch()
                try:
                    await self._commit(loop, batch)
                except NoConnection as error:
                    for write in batch:
                        write.fail(self._explain(error))
        finally:  # whatever happened: a run that waits for its record would wait for ever
            loop.writer = None
            left, loop.waiting = [*batch, *loop.waiting], []
            for write in left:
                write.fail(failed)

    async def _commit(self, loop: LoopState, gathered: Sequence[PendingWrite]) -> None:
        batch = [write for write in gathered if not write.refuse()]
        if not batch:
            return
        try:
            held = await self._append(loop, batch)
        except SessionError as error:
            if len(batch) > 1:  # one of them may be at fault
                for write in batch:
                    await self._commit(loop, [write])
            elif await self._is_stored(loop, batch[0], error):
                batch[0].done.set_result(None)
            else:
                batch[0].fail(error)
            return
        for write in batch:
            if write.hold.holder in held:
                write.done.set_result(None)
            else:
                write.fail(SessionBusy(f"session {write.hold.session_id!r} was taken over by another process"))

    async def _is_stored(self, loop: LoopState, write: PendingWrite, error: SessionError) -> bool:
        """Whether a write failed because it had been committed before its connection was lost."""
        if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
            return False
        place = write.hold.session_id, write.position, len(write.bodies)
        try:
            rows = await loop.connections.fetch(sql.READ_BODIES, *place)
        except ERRORS:
            return False
        return [row[0] for row in rows] == write.bodies

    async def _append(self, loop: LoopState, batch: Sequence[PendingWrite]) -> set[str]:
        """Commit a batch and return the holders whose leases were still theirs."""
        holds = {write.hold.holder: write for write in reversed(batch)}
        waiting = {write.hold.holder: write.waiting for write in batch}  # after the last write of each
        leases = [(*write.hold.identity, write.title, waiting[holder]) for holder, write in holds.items()]
        rows = [
            (write.hold.holder, write.position + offset, body)
            for write in batch
            for offset, body in enumerate(write.bodies)
        ]
        columns = [list(column) for column in zip(*leases, strict=True)]
        added = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        try:
            found = await loop.connections.fetch(sql.APPEND, *columns, self.lease_seconds, *added)
        except ERRORS as error:
            raise self._explain(error) from error
        return {str(row[0]) for row in found}

    async def _open(self) -> LoopState:
        """Return the connections of the running loop; the first use creates the tables."""
        running = asyncio.get_running_loop()
        opened = self._loops.get(running)
        if opened is None or _has_failed(opened):
            opened = self._loops[running] = asyncio.ensure_future(self._connect())
        return await asyncio.shield(opened)

    def _find_open(self) -> LoopState:
        """Return the connections of the running loop, without opening any: what a hold does must not."""
        opened = self._loops.get(asyncio.get_running_loop())
        if opened is None or not opened.done() or _has_failed(opened):
            raise self._explain_closed()
        return opened.result()

    async def _connect(self) -> LoopState:
        try:
            connections = await Connections.open(self._address, self._connections)
        except ERRORS as error:
            raise self._explain(error) from error
        except Exception:  # noqa: BLE001 - asyncpg raises anything for an address it cannot read, with parts of it
            raise SessionError(
                f"the address of the database {self._place} cannot be read; expected "
                "postgresql://user:password@host:port/name, with special characters of the password written as %XX"
            ) from None
        if connections.schema_version != sql.SCHEMA_VERSION:
            await connections.close()
            raise StoreTooNew(
                f"the tables in {self._place} are of version {connections.schema_version}, and this version of "
                f"callwright uses {sql.SCHEMA_VERSION}; install a newer one, or use another database"
            )
        loop = LoopState(connections)
        loop.at_end = self._close_at_end(loop)
        await anext(loop.at_end)
        return loop

    async def _key(self, session_id: str) -> int:
        key = await self._value(sql.FIND, session_id) if is_session_id(session_id) else None
        if key is None:
            raise no_such_session(session_id)
        return int(key)

    async def _read(
        self, key: int, session_id: str, position: int = 0, limit: int | None = None
    ) -> Sequence[StoredRecord]:
        return load_records(session_id, await self._rows(sql.READ, key, position, limit), position)

    async def _rows(self, query: str, *values: object, repeatable: bool = True) -> Sequence[Any]:
        return await self._fetch(await self._open(), query, *values, repeatable=repeatable)

    async def _fetch(self, loop: LoopState, query: str, *values: object, repeatable: bool = True) -> Sequence[Any]:
        try:
            return await loop.connections.fetch(query, *values, repeatable=repeatable)
        except (NoConnection, *ERRORS) as error:
            raise self._explain(error) from error

    async def _value(self, query: str, *values: object) -> Any:
        rows = await self._rows(query, *values)
        return rows[0][0] if rows else None

    def _explain(self, error: Exception) -> SessionError:
        reason = describe_exception(error.reason if isinstance(error, NoConnection) else error)
        return SessionError(f"the database {self._place} cannot be used: {reason or 'it did not answer in time'}")

    def _explain_closed(self) -> SessionError:
        return SessionError(f"the store {self._place} was closed, or the session was taken in another event loop")


def _has_failed(opened: "asyncio.Future[LoopState]") -> bool:
    return opened.done() and (opened.cancelled() or opened.exception() is not None)
