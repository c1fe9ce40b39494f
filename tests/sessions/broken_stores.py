"""A store whose sessions several processes share and take over from each other; each rule can be broken on purpose."""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from examples.custom_parts import FolderStore, Journal

from callwright.sessions import SessionBusy, dump_record
from callwright.sessions.base import check_session_id
from callwright.sessions.records import Record

Fault = Literal["", "exclusive", "fencing", "stale", "release", "update", "durable", "death"]


class LeaseStore(FolderStore):
    """Keeps a lease beside each session: a process that died, or an owner that comes again, loses it.

    Args:
        folder: where the sessions are.
        fault: the rule to break; empty for none.
        still: also take sessions from processes that stand still, as a lease that expires would.
    """

    def __init__(self, folder: Path, fault: Fault = "", *, still: bool = False) -> None:
        super().__init__(folder)
        self.fault = fault
        self.still = still
        self._first: dict[str, Journal] = {}

    async def hold(self, session_id: str, *, owner: str = "") -> Any:
        path = self._path(check_session_id(session_id))
        with self.locked():
            held = self.read_lease(path)
            if held is not None and not (owner and owner == held["owner"]) and self._is_alive(held):
                raise SessionBusy(f"session {session_id!r} is being written by process {held['process']}")
            lease: dict[str, Any] = {"process": os.getpid(), "owner": owner, "token": secrets.token_hex(8)}
            path.with_suffix(".lease").write_text(json.dumps(lease))
            return LeaseHold(self, path, session_id, lease["token"])

    async def delete(self, session_id: str) -> None:
        self._journal(session_id)
        hold = await self.hold(session_id)
        self._path(session_id).write_bytes(b"")
        self._first.pop(session_id, None)
        await hold.release()

    async def rename(self, session_id: str, title: str) -> None:
        with self._path(session_id).open("ab") as file:
            file.write(json.dumps({"session": self._journal(session_id).session_id, "title": title}).encode() + b"\n")

    def load(self, path: Path, session_id: str) -> Journal:
        """Return the journal of a session; a store that loses updates keeps the one that it saw first."""
        if self.fault == "update" and session_id == "check-turns":
            return self._first.setdefault(session_id, Journal.load(path))
        return Journal.load(path)

    @contextmanager
    def locked(self) -> Generator[None]:
        with (self.folder / "mutex").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read_lease(self, path: Path) -> dict[str, Any] | None:
        lease = path.with_suffix(".lease")
        return json.loads(lease.read_text()) if lease.exists() else None

    def _is_alive(self, lease: dict[str, Any]) -> bool:
        if self.fault == "exclusive":  # each process knows its own leases only
            return lease["process"] == os.getpid()
        if self.fault == "death":
            return True
        try:
            state = Path(f"/proc/{lease['process']}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        return not (self.still and state == "T")


class LeaseHold:
    """The right to write a session while its token is in the lease."""

    def __init__(self, store: LeaseStore, path: Path, session_id: str, token: str) -> None:
        self.session_id = session_id
        self._store = store
        self._path = path
        self._token = token
        self._journal = store.load(path, session_id)
        self._later = b""
        self.records: Sequence[Record] = self._journal.records

    async def append(self, *records: Record) -> None:
        self.write(records=[(time.time(), dump_record(record)) for record in records])

    def note(self, record: Record) -> None:
        if self._is_mine():
            self.write(records=[(time.time(), dump_record(record))])

    def keep_output(self, output_id: str, text: str) -> None:
        self.write(outputs={output_id: text})

    async def release(self) -> None:
        with self._store.locked():
            if self._later:
                self._add(self._later)
            if self._is_mine() or (self._store.fault == "release" and not self._is_local()):
                self._path.with_suffix(".lease").unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        lease = self._store.read_lease(self._path)
        return lease is not None and lease["token"] == self._token

    def _is_local(self) -> bool:
        """Whether the successor is in this process: the faults are those that one process alone does not show."""
        lease = self._store.read_lease(self._path)
        return lease is not None and lease["process"] == os.getpid()

    def _is_fault_taking_effect(self) -> bool:
        lease = self._store.read_lease(self._path)
        if self._store.fault == "stale":  # an owner that comes again is heeded, a lease that ran out is not
            return lease is not None and not lease["owner"] and not self._is_local()
        return self._store.fault in ("fencing", "exclusive") and not self._is_local()

    def write(self, **parts: object) -> None:
        line = json.dumps({"session": self.session_id, **parts}).encode() + b"\n"
        with self._store.locked():
            if not self._is_mine() and not self._is_fault_taking_effect():
                raise SessionBusy(f"session {self.session_id!r} was taken over")
            if self._store.fault == "durable" and self.session_id == "check-death":
                self._later += line
            else:
                self._add(line)

    def _add(self, line: bytes) -> None:
        losing = self._store.fault == "update" and self.session_id == "check-turns"
        if losing:  # writes what it knows, which is not what others added
            self._journal.add(line)
            known = [(item.at, dump_record(item.record)) for item in self._journal.stored]
            parts = {"title": self._journal.title, "records": known, "outputs": self._journal.outputs}
            line = json.dumps({"session": self.session_id, **parts}).encode() + b"\n"
        with self._path.open("wb" if losing else "ab") as file:
            file.write(line)
