"""`SqliteStore`: sessions in one SQLite file that survive `kill -9`, power cuts and concurrent processes."""

import asyncio
import os
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from callwright.sessions.base import (
    SessionBusy,
    SessionEntry,
    SessionError,
    SessionHit,
    StoredRecord,
    check_session_id,
    limit_output,
)
from callwright.sessions.lease import Lease
from callwright.sessions.record_encoding import dump_record
from callwright.sessions.records import OpenQuestions, Record, find_first_prompt
from callwright.sessions.sqlite_connection import explain_error
from callwright.sessions.sqlite_io import SessionFile
from callwright.sessions.sqlite_shared import FileUse

Value = TypeVar("Value")
Redact = Callable[[str], str]
_TITLE_CHARS = 80


class SqliteStore:
    """Stores sessions in one file, with one writing thread and one commit with fsync per `append`.

    Stores of one process that use the same file, under whatever name, share its connection and thread. A store may be
    used after `fork()`: the child opens the file anew.

    If `redact` changes the arguments of a call that waits for an approval, the approval no longer matches the call
    after a restart.

    Args:
        path: the file; created when it is first used, private to the user.
        redact: is applied to every text before it is written.
        wait_seconds: how long to wait while another process locks the file.
    """

    durable = True

    def __init__(
        self, path: str | os.PathLike[str], *, redact: Redact | None = None, wait_seconds: float = 5.0
    ) -> None:
        self.path = Path(path).absolute()
        self._redact = redact
        self._wait_seconds = wait_seconds
        self._use = FileUse(self.path)
        self._finalizer = weakref.finalize(self, self._use.end)

    async def hold(self, session_id: str, *, owner: str = "") -> "SqliteHold":
        check_session_id(session_id)
        taken = self._submit(lambda file: self._hold(file, session_id, owner))
        try:
            return await asyncio.shield(asyncio.wrap_future(taken))
        except asyncio.CancelledError:
            taken.add_done_callback(_release_unclaimed)
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

    async def search(self, text: str, *, limit: int = 50, session: str | None = None) -> Sequence[SessionHit]:
        return await self.run(lambda file: file.search(text, limit, session))

    async def fork(self, session_id: str, new_id: str) -> None:
        check_session_id(new_id)
        await self.run(lambda file: file.fork(session_id, new_id))

    async def rename(self, session_id: str, title: str) -> None:
        await self.run(lambda file: file.rename(session_id, title))

    async def delete(self, session_id: str) -> None:
        await self.run(lambda file: file.delete(session_id))

    async def keep_blob(self, blob_id: str, text: str) -> None:
        body = self.redact_text(text)
        await self.run(lambda file: file.keep_blob(blob_id, body))

    async def read_blob(self, blob_id: str) -> str | None:
        return await self.run(lambda file: file.read_blob(blob_id))

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
        """Run an action on the writing thread, after all actions submitted before."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Value] = loop.create_future()

        def work(file: SessionFile) -> None:
            try:
                value = self._run_action(action, file)
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting task
                loop.call_soon_threadsafe(_set_error, result, error)
            else:
                loop.call_soon_threadsafe(_set_result, result, value)

        # Not chained to the job: cancelling the wait must not cancel a write that has been submitted.
        self._submit(work)
        return await result

    def submit(self, action: Callable[[SessionFile], None]) -> None:
        """Queue an action for the writing thread without waiting for it."""
        self._submit(action)

    def _submit(self, action: Callable[[SessionFile], Value]) -> "Future[Value]":
        if not self._finalizer.alive:
            raise SessionError(f"the session store {self.path} is closed; open a new SqliteStore")
        shared = self._use.get()
        return shared.submit(lambda: self._run_action(action, shared.file), self._wait_seconds)

    def encode(self, record: Record) -> str:
        """Return a record as it is stored."""
        return dump_record(record, self._redact)

    def redact_text(self, text: str) -> str:
        """Return a text as it is stored."""
        redacted = text if self._redact is None else self._redact(text)
        return redacted.encode(errors="replace").decode()  # SQLite cannot store a lone surrogate

    def _run_action(self, action: Callable[[SessionFile], Value], file: SessionFile) -> Value:
        try:
            return action(file)
        except (sqlite3.Error, OSError) as error:
            raise explain_error(error, self.path) from error

    def _hold(self, file: SessionFile, session_id: str, owner: str) -> "SqliteHold":
        lease = Lease.take(file.locks, session_id, owner)
        try:
            key, stored = file.find(session_id)
        except BaseException:
            lease.release()
            raise
        return SqliteHold(self, lease, session_id, (key, [item.record for item in stored]))


class SqliteHold:
    """The exclusive right to write a session in a file."""

    def __init__(self, store: SqliteStore, lease: Lease, session_id: str, found: tuple[int, list[Record]]) -> None:
        self.session_id = session_id
        self.records: Sequence[Record]
        self._key, self.records = found
        self._position = len(self.records)
        self._store = store
        self._lease = lease
        self._failure: SessionError | None = None
        self._questions = OpenQuestions(self.records)

    async def append(self, *records: Record) -> None:
        bodies = [self._store.encode(record) for record in records]
        title = "" if self._key else self._store.redact_text(find_first_prompt(records))[:_TITLE_CHARS]
        waited = bool(self._questions)
        self._questions.follow(self.records, records)
        waiting = None if waited == bool(self._questions) else not waited
        await self._store.run(lambda file: self._write(file, bodies, title, waiting))

    def note(self, record: Record) -> None:
        body = self._store.encode(record)
        self._store.submit(lambda file: self._write_note(file, body))

    def keep_output(self, output_id: str, text: str) -> None:
        body = self._store.redact_text(limit_output(text))
        self._store.submit(lambda file: self._write_output(file, output_id, body))

    async def release(self) -> None:
        await self._store.run(lambda _: self.release_lease())

    def release_lease(self) -> None:
        """Release the lease; runs on the writing thread, after all writes."""
        self._lease.release()

    def _write(self, file: SessionFile, bodies: Sequence[str], title: str, waiting: bool | None) -> None:
        self._check_writable()
        if self._key:
            file.append(self._key, self._position, bodies, synced=True, waiting=waiting)
        else:
            self._key = file.create(self.session_id, title, bodies, waiting=bool(waiting))
        self._position += len(bodies)

    def _check_writable(self) -> None:
        if self._failure is not None:  # a note was lost: appending after a gap would falsify the record
            raise self._failure
        if self._lease.inherited:
            raise SessionError(f"session {self.session_id!r} is held by the parent process; take it with hold()")
        if self._lease.lost:
            raise SessionBusy(f"session {self.session_id!r} was taken over by another run")

    def _write_output(self, file: SessionFile, output_id: str, body: str) -> None:
        self._check_writable()
        if self._key:  # a session exists from its first record on
            file.keep_output(self._key, output_id, body)

    def _write_note(self, file: SessionFile, body: str) -> None:
        try:
            self._check_writable()
            file.append(self._key, self._position, [body], synced=False)
        except SessionError as error:
            self._failure = error
        except (sqlite3.Error, OSError) as error:
            self._failure = explain_error(error, file.path)
        else:
            self._position += 1


def _set_result(waiting: "asyncio.Future[Value]", value: Value) -> None:
    if not waiting.done():
        waiting.set_result(value)


def _set_error(waiting: "asyncio.Future[Any]", error: BaseException) -> None:
    if not waiting.done():
        waiting.set_exception(error)


def _release_unclaimed(taken: "Future[SqliteHold]") -> None:
    """Release a session that was taken for a caller that has been cancelled."""
    if not taken.cancelled() and taken.exception() is None:
        taken.result().release_lease()
