"""The right to write a session in PostgreSQL: a lease that is renewed, and records that wait for the next commit."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from callwright.sessions.base import SessionBusy, SessionError, limit_output
from callwright.sessions.records import OpenQuestions, Record, find_first_prompt

_TITLE_CHARS = 80


@dataclass(slots=True)
class Write:
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
        """Tell that it was not stored; nothing more is added to the session through this hold."""
        self.hold.failure = self.hold.failure or error
        if not self.done.done():
            self.done.set_exception(error)


class LeaseStore(Protocol):
    """What a hold needs of its store."""

    lease_seconds: float

    def encode(self, record: Record) -> str: ...

    def redact(self, text: str) -> str: ...

    def queue(self, write: Write) -> None: ...

    async def keep(self, hold: "PostgresHold", output_id: str, body: str) -> None: ...

    async def renew(self, hold: "PostgresHold") -> bool: ...

    async def give_up(self, hold: "PostgresHold") -> None: ...


class PostgresHold:
    """The exclusive right to write a session in a database, while its lease is renewed."""

    def __init__(self, store: LeaseStore, session_id: str, holder: str, epoch: int) -> None:
        self.session_id = session_id
        self.records: Sequence[Record] = ()
        self.holder = holder
        self.identity = (session_id, holder, epoch)
        self._store = store
        self._exists = False
        self._position = 0
        self.failure: SessionError | None = None
        """Why a record was not stored: one after the gap would falsify the session."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: asyncio.Future[None] | None = None
        self._questions = OpenQuestions()
        self._renewing: asyncio.Task[None] | None = None

    def begin(self, records: Sequence[Record], *, exists: bool) -> None:
        """Start with the records of the session."""
        self.records, self._position, self._exists = records, len(records), exists
        self._questions = OpenQuestions(records)
        self._renewing = asyncio.ensure_future(self._renew())

    async def append(self, *records: Record) -> None:
        await asyncio.shield(self._queue(records).done)

    def note(self, record: Record) -> None:
        if self.failure is None:
            self._start(_wait_for(self._queue([record])))

    def keep_output(self, output_id: str, text: str) -> None:
        self._start(self._keep(output_id, self._store.redact(limit_output(text))))

    async def release(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._renewing is not None:
            self._renewing.cancel()
        await self._store.give_up(self)

    def _queue(self, records: Sequence[Record]) -> Write:
        """Put records into the queue; at once, so that notes and appends keep their order."""
        if self.failure is not None:
            raise self.failure
        title = "" if self._exists else self._store.redact(find_first_prompt(records))[:_TITLE_CHARS]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bodies = [self._store.encode(record) for record in records]
        self._questions.follow(self.records, records)
        write = Write(self, bodies, title, self._position, bool(self._questions), done)
        self._position, self._exists, self._last = self._position + len(records), True, done
        self._store.queue(write)
        return write

    async def _keep(self, output_id: str, body: str) -> None:
        if self._last is not None:  # a session exists from its first record on
            await asyncio.shield(self._last)
        await self._store.keep(self, output_id, body)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, SessionError):
            self.failure = self.failure or error

    async def _renew(self) -> None:
        while self.failure is None:
            await asyncio.sleep(self._store.lease_seconds / 3)
            with suppress(SessionError):  # a database that is away for a moment: the next append decides
                if not await self._store.renew(self):
                    self.failure = SessionBusy(f"session {self.session_id!r} was taken over by another process")


async def _wait_for(write: Write) -> None:
    await asyncio.shield(write.done)
