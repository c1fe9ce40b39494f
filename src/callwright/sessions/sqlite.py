"""`SqliteStore`: sessions in one SQLite file that survive `kill -9`, power cuts and concurrent processes."""

import asyncio
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from callwright.core.json import replace_surrogates
from callwright.sessions.base import (
    SessionEntry,
    SessionError,
    SessionHit,
    StoredRecord,
    check_session_id,
)
from callwright.sessions.lease import Lease
from callwright.sessions.record_encoding import Redaction, dump_record, load_blob, make_redactor
from callwright.sessions.records import OpenQuestions, Record
from callwright.sessions.sqlite_io import SessionFile
from callwright.sessions.sqlite_shared import Action, FileUse
from callwright.sessions.sqlite_writes import Addition, Reply, Tail
from callwright.sessions.stored_rows import limit_output, make_title

Value = TypeVar("Value")


class SqliteStore:
    """Stores sessions in one file, with one writing thread; an `append` returns once it is on the disk.

    What many sessions append at the same time goes into one commit, so that they share its fsync.

    Stores of one process that use the same file, under whatever name, share its connection and thread. A store may be
    used after `fork()`: the child opens the file anew.

    If `redact` changes the arguments of a call that waits for an approval, the approval no longer matches the call
    after a restart.

    Args:
        path: The file; created when it is first used, private to the user.
        redact: Replaces secrets before they are written: `Redact()` of `callwright.hooks`, which also knows them by the
            name of their field, or a function that gets each text by itself.
        wait_seconds: How long to wait while another process locks the file.

    Raises:
        UsageError: `redact` is neither.
    """

    durable = True

    def __init__(
        self, path: str | os.PathLike[str], *, redact: Redaction | None = None, wait_seconds: float = 5.0
    ) -> None:
        self.path = Path(path).absolute()
        self._redactor = make_redactor(redact)
        self._wait_seconds = wait_seconds
        self._use = FileUse(self.path)
        self._finalizer = weakref.finalize(self, self._use.end)

    async def hold(self, session_id: str, *, owner: str = "") -> "SqliteHold":
        check_session_id(session_id)
        reply: Reply[SqliteHold] = Reply(lambda taken: self._release_later(lambda: taken))
        self.submit(Action(lambda file: self._hold(file, session_id, owner), reply, brief=True))
        try:
            return await reply.waiting
        except asyncio.CancelledError:
            # queued now, so that the caller can take the session again at once, and behind the job that takes it
            self._release_later(lambda: reply.value)
            raise

    async def read(self, session_id: str) -> Sequence[Record]:
        return [stored.record for stored in await self.run(lambda file: file.read(session_id))]

    async def read_from(
        self, session_id: str, position: int = 0, *, limit: int | None = None
    ) -> Sequence[StoredRecord]:
        return await self.run(lambda file: file.read(session_id, position, limit))

    async def read_output(self, session_id: str, output_id: str) -> str | None:
        return await self.run(lambda file: file.read_output(session_id, output_id))

    async def version(self) -> str:
        return await self.run(lambda file: file.version())

    async def list(self, *, limit: int = 100, waiting: bool = False) -> Sequence[SessionEntry]:
        return await self.run(lambda file: file.entries(limit, waiting=waiting))

    async def find(self, session_id: str) -> SessionEntry | None:
        return await self.run(lambda file: file.entry(session_id))

    async def search(self, text: str, *, limit: int = 50, session: str | None = None) -> Sequence[SessionHit]:
        return await self.run(lambda file: file.search(text, limit, session))

    async def fork(self, session_id: str, new_id: str) -> None:
        check_session_id(new_id)
        await self.run(lambda file: file.fork(session_id, new_id))

    async def rename(self, session_id: str, title: str) -> None:
        stored = self.redact_text(title)
        await self.run(lambda file: file.rename(session_id, stored))

    async def delete(self, session_id: str) -> None:
        await self.run(lambda file: file.delete(session_id))

    async def keep_blob(self, blob_id: str, record: Record) -> None:
        body = self.encode(record)
        await self.run(lambda file: file.keep_blob(blob_id, body))

    async def read_blob(self, blob_id: str) -> Record | None:
        return load_blob(await self.run(lambda file: file.read_blob(blob_id)))

    async def delete_blobs(self, blob_ids: Sequence[str]) -> None:
        await self.run(lambda file: file.delete_blobs(blob_ids))

    def close(self) -> None:
        """Write pending notes and close the file; the store cannot be used afterwards."""
        self._finalizer()

    async def __aenter__(self) -> "SqliteStore":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def run(self, action: Callable[[SessionFile], Value]) -> Value:
        """Run an action, which is called with the file, on the writing thread, after all jobs submitted before."""
        reply: Reply[Value] = Reply()
        self.submit(Action(action, reply))
        return await reply.waiting

    def submit(self, job: Action | Addition) -> None:
        """Queue a job for the writing thread without waiting for it."""
        if not self._finalizer.alive:
            raise SessionError(f"the session store {self.path} is closed; open a new SqliteStore")
        self._use.get().submit(job, self._wait_seconds)

    def encode(self, record: Record) -> str:
        """Return a record as it is stored."""
        return dump_record(record, self._redactor)

    def redact_text(self, text: str) -> str:
        """Return a text as it is stored."""
        redacted = text if self._redactor is None else self._redactor.clean(text)
        return replace_surrogates(redacted)  # SQLite cannot store a lone surrogate

    def _hold(self, file: SessionFile, session_id: str, owner: str) -> "SqliteHold":
        lease = Lease.take(file.locks, session_id, owner)
        try:
            key, stored = file.find(session_id)
        except BaseException:
            lease.release()
            raise
        return SqliteHold(self, lease, session_id, (key, [item.record for item in stored]))

    def _release_later(self, find_taken: Callable[[], "SqliteHold | None"]) -> None:
        """Release what was taken for a caller that was cancelled, or whose event loop has ended."""

        def release(_: object) -> None:
            if (taken := find_taken()) is not None:
                taken.release_lease()

        try:
            self.submit(Action(release))
        except SessionError:  # closed meanwhile, after all jobs
            release(None)


class SqliteHold:
    """The exclusive right to write a session in a file."""

    interruptible = True

    def __init__(self, store: SqliteStore, lease: Lease, session_id: str, found: tuple[int, list[Record]]) -> None:
        self.session_id = session_id
        self.records: Sequence[Record]
        key, self.records = found
        self._tail = Tail(session_id, lease, key, len(self.records))
        self._store = store
        self._questions = OpenQuestions(self.records)
        self._waiting: bool | None = bool(self._questions)
        """Whether the session is marked as waiting for an answer; None after a failure, until it is written anew."""

    async def append(self, *records: Record) -> None:
        bodies = [self._store.encode(record) for record in records]
        title = "" if self._tail.key else make_title(records, self._store.redact_text)
        self._questions.follow(self.records, records)
        waiting = bool(self._questions)
        waits = None if waiting is self._waiting else waiting
        self._waiting = waiting
        reply: Reply[None] = Reply()
        addition = Addition(self._tail, bodies, title, waits=waits, reply=reply)
        self._store.submit(addition)
        try:
            await reply.waiting
        except SessionError:  # the caller knows, and may try again; not if it was cancelled
            self._waiting = None
            with suppress(SessionError):  # closed meanwhile
                self._store.submit(Action(lambda _: self._tail.lost.pop(addition, None)))
            raise

    def note(self, record: Record) -> None:
        self._store.submit(Addition(self._tail, [self._store.encode(record)]))

    def keep_output(self, output_id: str, text: str) -> None:
        body = self._store.redact_text(limit_output(text))
        self._store.submit(Addition(self._tail, [body], output_id=output_id))

    async def release(self) -> None:
        reply: Reply[None] = Reply()
        try:
            self._store.submit(Action(lambda _: self.release_lease(), reply, brief=True))
        except SessionError:  # the store was closed, after all writes
            self.release_lease()
            return
        await reply.waiting

    def release_lease(self) -> None:
        """Release the lease; after all writes, so on the writing thread while there is one."""
        self._tail.lease.release()
