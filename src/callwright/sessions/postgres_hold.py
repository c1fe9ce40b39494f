"""The right to write a session in PostgreSQL: a lease that is renewed, and records that wait for the next commit."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from callwright.sessions.base import SessionBusy, SessionError
from callwright.sessions.records import OpenQuestions, Record
from callwright.sessions.stored_rows import limit_output, make_title

_log = logging.getLogger("callwright")


@dataclass(slots=True)
class PendingWrite:
    """Records that wait to be committed."""

    hold: "PostgresHold"
    bodies: list[str]
    title: str
    """The session's title, if this creates it."""
    position: int
    waiting: bool
    """Whether the session waits for an answer after this."""
    done: "asyncio.Future[None]"

    def fail(self, error: SessionError) -> None:
        """Tell that it was not stored, unless it was; nothing more is added to the session through this hold."""
        if not self.done.done():
            self.hold.failure = self.hold.failure or error
            self.done.set_exception(error)

    def refuse(self) -> bool:
        """Fail if nothing may be added any more, because an earlier record was lost; tell whether it does."""
        if self.hold.failure is not None:
            self.fail(self.hold.failure)
        return self.hold.failure is not None


class LeaseStore(Protocol):
    """What a hold needs of its store."""

    lease_seconds: float

    def encode(self, record: Record) -> str: ...

    def redact(self, text: str) -> str: ...

    def queue(self, write: PendingWrite) -> None: ...

    async def keep(self, hold: "PostgresHold", output_id: str, body: str) -> None: ...

    async def renew(self, hold: "PostgresHold") -> bool: ...

    async def give_up(self, hold: "PostgresHold") -> None: ...


class PostgresHold:
    """The exclusive right to write a session in a database, while its lease is renewed.

    Args:
        store: Where the session is.
        identity: The session, the name of this holder, and the epoch of its lease.
        records: The records of the session; None if it does not exist yet.
    """

    def __init__(self, store: LeaseStore, identity: tuple[str, str, int], records: Sequence[Record] | None) -> None:
        self.identity = identity
        self.session_id, self.holder, _ = identity
        self.records: Sequence[Record] = records or ()
        self._store = store
        self._exists = records is not None
        self._position = len(self.records)
        self.failure: SessionError | None = None
        """Why a record was not stored: one after the gap would falsify the session."""
        self._keeping: set[asyncio.Task[None]] = set()
        self._last: asyncio.Future[None] | None = None
        self._questions = OpenQuestions(self.records)
        self._renewing = asyncio.ensure_future(self._renew())
        self.ended = False
        """Whether it was released, or its store was closed."""

    async def append(self, *records: Record) -> None:
        await asyncio.shield(self._queue(records))

    def note(self, record: Record) -> None:
        if self.failure is None:
            self._queue([record])

    def keep_output(self, output_id: str, text: str) -> None:
        if self.failure is None:
            keeping = asyncio.ensure_future(self._keep(output_id, self._store.redact(limit_output(text)), self._last))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)

    async def release(self) -> None:
        try:
            await self.settle()
        finally:
            self._renewing.cancel()
        if self.ended:
            return
        try:
            await self._store.give_up(self)
            self.ended = True
        except SessionError as error:  # what was written is stored: a run that is done must not fail now
            _log.warning("session %s stays busy until its lease runs out: %s", ascii(self.session_id), error)

    async def settle(self) -> None:
        """Wait until what was added is stored, or cannot be."""
        # also an append whose caller was cancelled: a later statement of this holder would be refused
        pending = {*self._keeping} if self._last is None else {*self._keeping, self._last}
        if pending:
            await asyncio.wait(pending)

    def end(self, failure: SessionError) -> None:
        """Add nothing more through this hold; the store gives its lease up."""
        self.failure, self.ended = self.failure or failure, True
        self._renewing.cancel()

    def _queue(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        """Put records into the queue; at once, so that notes and appends keep their order."""
        if self.failure is not None:
            raise self.failure
        title = "" if self._exists else make_title(records, self._store.redact)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)
        bodies = [self._store.encode(record) for record in records]
        self._questions.follow(self.records, records)
        self._store.queue(PendingWrite(self, bodies, title, self._position, bool(self._questions), done))
        self._position, self._exists, self._last = self._position + len(records), True, done
        return done

    async def _keep(self, output_id: str, body: str, after: "asyncio.Future[None] | None") -> None:
        try:
            if after is not None:  # a session exists from its first record on
                await asyncio.shield(after)
            await self._store.keep(self, output_id, body)
        except SessionError as error:  # the record is complete without it
            _log.warning("an output of session %s was not kept: %s", ascii(self.session_id), error)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._store.lease_seconds / 3)
            if self.failure is not None:
                return
            with suppress(SessionError):  # a database that is away for a moment: the next append decides
                if not await self._store.renew(self):
                    self.failure = SessionBusy(f"session {self.session_id!r} was taken over by another process")


def _retrieve(done: "asyncio.Future[None]") -> None:
    """Take note of an error that no caller waits for; the hold has it, and its next append raises it."""
    if not done.cancelled():
        done.exception()
