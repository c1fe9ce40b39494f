"""Stores what many sessions add to one SQLite file in one commit, so that one write to the disk serves all of them."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from callwright.sessions.base import SessionBusy, SessionError
from callwright.sessions.lease import Lease
from callwright.sessions.sqlite_connection import explain_error
from callwright.sessions.sqlite_io import SessionFile, insert_records, insert_session

Value = TypeVar("Value")
_log = logging.getLogger("callwright")
_KEEP_OUTPUT = "INSERT OR REPLACE INTO outputs (session, id, body) VALUES (?, ?, ?)"
_CHANGED = "the session was changed or deleted by another process; nothing was added, read it again"
_TOO_LARGE = "a record is too large: SQLite stores none of more than a billion bytes"
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)
"""What SQLite raises for the values of one addition; the others of the same commit may be stored."""


class Reply(Generic[Value]):
    """Brings the result of a job from the writing thread to the task that waits for it.

    Cancelling the wait does not cancel the job.

    Args:
        unclaimed: Is called with the result if the task no longer waits.
    """

    __slots__ = ("_unclaimed", "error", "loop", "value", "waiting")

    def __init__(self, unclaimed: Callable[[Value], None] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.waiting: asyncio.Future[Value] = self.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None
        self._unclaimed = unclaimed

    def settle(self) -> None:
        """Wake the task; runs in its event loop."""
        if self.waiting.done():
            self.drop()
        elif self.error is not None:
            self.waiting.set_exception(self.error)
        else:
            self.waiting.set_result(self.value)

    def drop(self) -> None:
        """Give back a result that no caller takes."""
        if self._unclaimed is not None and self.error is None:
            self._unclaimed(self.value)


class Tail:
    """Where the next record of a held session goes; used by the writing thread only.

    Attributes:
        key: The session's key in the file; 0 before its first record.
        position: The position of the next record.
        lost: Records that were not stored, whose callers do not know it: one after the gap would falsify the session.
    """

    def __init__(self, session_id: str, lease: Lease, key: int, position: int) -> None:
        self.session_id = session_id
        self.lease = lease
        self.key = key
        self.position = position
        self.lost: dict[Addition, SessionError] = {}

    def check_writable(self) -> None:
        """Raise if nothing may be added to the session through this hold."""
        for error in self.lost.values():
            raise error
        if self.lease.inherited:
            raise SessionError(f"session {self.session_id!r} is held by the parent process; take it with hold()")
        if self.lease.lost:
            raise SessionBusy(f"session {self.session_id!r} was taken over by another run")
        if self.lease.released:  # a late note of a call that was abandoned would take the place of another run's record
            raise SessionError(f"session {self.session_id!r} was released; take it with hold()")


@dataclass(slots=True, eq=False)
class Addition:
    """Records, or one output, to add to a session.

    Attributes:
        tail: The session.
        bodies: The records, or the text of the output.
        title: The session's title, if these are its first records.
        output_id: The id of the output; "" for records.
        waits: Whether the session waits for an answer from now on; None if that does not change.
        reply: Who waits until it is durable; None for a note, which need only survive the process.
    """

    tail: Tail
    bodies: Sequence[str]
    title: str = ""
    output_id: str = ""
    waits: bool | None = None
    reply: Reply[None] | None = None

    def fail(self, error: SessionError) -> None:
        """Tell that it was not stored; until the caller knows, nothing is added after it."""
        if self.reply is not None:
            self.reply.error = error
        if not self.output_id:
            self.tail.lost[self] = error


_Ends = dict[Tail, tuple[int, int]]
"""Key and next position of the sessions that a transaction has changed; they count once it is committed."""


def write_together(file: SessionFile, additions: Sequence[Addition]) -> None:
    """Store additions in one commit, in their order. One that cannot be stored is told so and disturbs no other."""
    failed: dict[Addition, SessionError] = {}
    synced = any(addition.reply is not None for addition in additions)
    try:
        with file.transaction(synced=synced) as connection:
            ends = _store(connection, additions, failed)
    except Exception as error:  # noqa: BLE001 - nothing was stored, and everyone who waits is told why
        reason = explain_error(error, file.path) if isinstance(error, (sqlite3.Error, OSError)) else error
        lost = reason if isinstance(reason, SessionError) else SessionError(f"the records were not stored: {reason}")
        failed = dict.fromkeys(additions, lost) | failed
    else:
        for tail, end in ends.items():
            tail.key, tail.position = end
    for addition, error in failed.items():
        addition.fail(error)
        if addition.output_id:  # the record is complete without it, and no caller waits for it
            _log.warning("an output of session %s was not kept: %s", ascii(addition.tail.session_id), error)


def _store(
    connection: sqlite3.Connection, additions: Sequence[Addition], failed: dict[Addition, SessionError]
) -> _Ends:
    if len(additions) == 1:
        return _add(connection, additions, {})
    with suppress(SessionError), _savepoint(connection):
        return _add(connection, additions, {})
    ends: _Ends = {}
    for addition in additions:  # one of them cannot be stored: find it
        try:
            with _savepoint(connection):
                ends |= _add(connection, [addition], ends)
        except SessionError as error:
            failed[addition] = error
            addition.fail(error)  # now, so that nothing is added after the gap
    return ends


def _add(connection: sqlite3.Connection, additions: Iterable[Addition], ends: _Ends) -> _Ends:
    """Add all of them or raise a `SessionError`; return where the changed sessions end then."""
    ends, now = dict(ends), time.time()
    rows: list[tuple[int, int, float, str]] = []
    for addition in additions:
        tail = addition.tail
        tail.check_writable()
        key, position = ends.get(tail, (tail.key, tail.position))
        if addition.output_id:
            if key:  # a session exists from its first record on
                _keep_output(connection, key, addition)
            continue
        key = key or insert_session(connection, tail.session_id, addition.title, now)
        rows += [(key, position + offset, now, body) for offset, body in enumerate(addition.bodies)]
        ends[tail] = (key, position + len(addition.bodies))
        if addition.waits is not None:
            connection.execute("UPDATE sessions SET waiting = ? WHERE key = ?", (addition.waits, key))
    try:
        insert_records(connection, rows)
    except _REFUSALS as error:
        raise _explain_refusal(error) from None
    return ends


def _keep_output(connection: sqlite3.Connection, key: int, addition: Addition) -> None:
    try:
        connection.execute(_KEEP_OUTPUT, (key, addition.output_id, addition.bodies[0]))
    except _REFUSALS as error:
        raise _explain_refusal(error) from None


def _explain_refusal(error: Exception) -> SessionError:
    return SessionError(_CHANGED if isinstance(error, sqlite3.IntegrityError) else _TOO_LARGE)


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("SAVEPOINT addition")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # after a grave error SQLite has ended the whole transaction
            connection.execute("ROLLBACK TO addition")
            connection.execute("RELEASE addition")
        raise
    connection.execute("RELEASE addition")
