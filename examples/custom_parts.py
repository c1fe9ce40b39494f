"""Parts of your own in one agent: a policy, a hook, a session store and a source of tools."""

import asyncio
import csv
import fcntl
import json
import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from callwright import (
    Agent,
    Allow,
    Ask,
    CallwrightError,
    Completed,
    Deny,
    Effect,
    Executor,
    Outcome,
    Output,
    ReadPath,
    Registry,
    Tool,
    ToolCall,
    WriteResource,
    tool,
)
from callwright.core.events import CallEnded, Event
from callwright.hooks import Hook, PendingCall
from callwright.policy import Access, ByMode, Decision, Policies, Policy, Subject
from callwright.registry import Catalog, combined
from callwright.sessions import (
    Record,
    SessionBusy,
    SessionDamaged,
    SessionEntry,
    SessionError,
    SessionHit,
    StoredRecord,
    check_session_id,
    count_settled_records,
    dump_record,
    find_first_prompt,
    find_open_questions,
    load_record,
)
from callwright.testing import ScriptedProvider, check_store, check_toolset


class PaymentLimit(Policy):
    """Allows small payments, asks about larger ones and denies the largest."""

    def __init__(self, free: int, most: int) -> None:
        self.free = free
        self.most = most

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        if not isinstance(access, WriteResource) or not access.uri.startswith("bank://"):
            return None  # no opinion: other policies decide
        amount = subject.arguments.get("amount")
        if not isinstance(amount, int) or amount > self.most:
            return Deny(f"payments are limited to {self.most}")
        return Allow("a small payment") if amount <= self.free else Ask(f"more than {self.free}", firm=True)


class HideAccounts(Hook):
    """Replaces account numbers in everything that a tool returns."""

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if not isinstance(outcome, Completed):
            return None
        hidden = re.sub(r"\b[A-Z]{2}\d{6,}\b", "[account]", outcome.text)
        return replace(outcome, output=Output(hidden))


class CsvTools:
    """A source of tools: one tool per CSV file of a folder, which looks up a row by its first column."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: list[str] = []
        self._changes = 0
        self._catalog = Catalog({})

    @property
    def changes(self) -> int:
        names = sorted(path.stem for path in self.folder.glob("*.csv"))
        if names != self._seen:
            self._seen = names
            self._catalog = Catalog({name: self._make(name) for name in names})
            self._changes += 1
        return self._changes

    def snapshot(self) -> Catalog:
        _ = self.changes  # looks at the folder
        return self._catalog

    def _make(self, name: str) -> Tool:
        path = self.folder / f"{name}.csv"

        @tool(
            name=name,
            description=f"Look up a row of {name} by its first column.",
            effect=Effect.READ,
            accesses=lambda arguments: [ReadPath(str(path))],
        )
        def look_up(key: str) -> str:
            with path.open(newline="", encoding="utf-8") as file:
                return next((", ".join(row) for row in csv.reader(file) if row[0] == key), "no such row")

        return look_up


@dataclass
class Journal:
    """What the file of a session contains."""

    session_id: str = ""
    title: str = ""
    stored: list[StoredRecord] = field(default_factory=list[StoredRecord])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    faults: dict[int, str] = field(default_factory=dict[int, str])
    size: int = 0

    @classmethod
    def load(cls, path: Path) -> "Journal":
        journal = cls()
        # the last line lacks its end if the process was killed while it wrote: then it was never confirmed
        for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
            if line.endswith(b"\n"):
                journal.size += len(line)
                journal.add(line)
        return journal

    def add(self, line: bytes) -> None:
        try:
            parts = json.loads(line)
        except ValueError as error:
            parts: dict[str, Any] = {"records": [(0.0, str(error))]}  # a text that no record has
        self.session_id = parts.get("session", self.session_id)
        self.title = parts.get("title", self.title)
        self.outputs |= parts.get("outputs", {})
        for at, text in parts.get("records", ()):
            position = len(self.stored) + len(self.faults)
            try:
                self.stored.append(StoredRecord(position, at, load_record(text)))
            except CallwrightError as error:
                self.faults[position] = str(error)

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(item.record for item in self.stored)

    def make_entry(self) -> SessionEntry:
        title = self.title or find_first_prompt(self.records)[:80]
        return SessionEntry(self.session_id, title, self.stored[0].at, self.stored[-1].at, len(self.stored))


class FolderHold:
    """The right to write a session: an open file with the operating system's lock."""

    def __init__(self, path: Path, session_id: str) -> None:
        self.session_id = session_id
        self.file = path.open("ab", buffering=0)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise SessionBusy(f"session {session_id!r} is being written by another run; wait for it") from None
        self.journal = Journal.load(path)
        self.file.truncate(self.journal.size)
        self.records: Sequence[Record] = self.journal.records

    def write(self, **parts: object) -> None:
        """Add one line in one write, so that all of it is stored or nothing."""
        self.file.write(json.dumps({"session": self.session_id, **parts}).encode() + b"\n")

    async def append(self, *records: Record) -> None:
        try:
            self.write(records=[(time.time(), dump_record(record)) for record in records])
            await asyncio.to_thread(os.fsync, self.file.fileno())
        except OSError as error:
            raise SessionError(f"session {self.session_id!r} cannot be stored: {error.strerror}") from error

    def note(self, record: Record) -> None:
        self.write(records=[(time.time(), dump_record(record))])

    def keep_output(self, output_id: str, text: str) -> None:
        self.write(outputs={output_id: text})

    async def release(self) -> None:
        self.file.close()


class FolderStore:
    """Keeps each session as one file of JSON lines."""

    durable = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def hold(self, session_id: str, *, owner: str = "") -> FolderHold:
        hold = FolderHold(self._path(check_session_id(session_id)), session_id)
        if hold.journal.faults:
            await hold.release()
            raise SessionDamaged(session_id, hold.journal.faults, hold.journal.stored)
        return hold

    async def read(self, session_id: str) -> Sequence[Record]:
        return [item.record for item in await self.read_from(session_id)]

    async def read_from(
        self, session_id: str, position: int = 0, *, limit: int | None = None
    ) -> Sequence[StoredRecord]:
        journal = self._journal(session_id)
        found = [item for item in journal.stored if item.position >= position][:limit]
        if any(at >= position for at in journal.faults):
            raise SessionDamaged(session_id, journal.faults, found)
        return found

    async def read_output(self, session_id: str, output_id: str) -> str | None:
        return self._journal(session_id).outputs.get(output_id)

    async def version(self) -> str:
        states = ((path.name, path.stat()) for path in sorted(self.folder.glob("*.jsonl")))
        return str([(name, state.st_size, state.st_mtime_ns) for name, state in states])

    async def list(self, *, limit: int = 100, waiting: bool = False) -> Sequence[SessionEntry]:
        return [
            journal.make_entry() for journal in self._journals() if not waiting or find_open_questions(journal.records)
        ][:limit]

    async def find(self, session_id: str) -> SessionEntry | None:
        journal = Journal.load(self._path(session_id))
        return journal.make_entry() if journal.stored else None

    async def search(self, text: str, *, limit: int = 50, session: str | None = None) -> Sequence[SessionHit]:
        query = json.dumps(text, ensure_ascii=False)[1:-1].lower()
        searched = self._journals() if session is None else [self._journal(session)]
        bodies = ((journal, item, dump_record(item.record)) for journal in searched for item in journal.stored)
        hits = [
            SessionHit(journal.session_id, item.position, body[:120])
            for journal, item, body in bodies
            if query in body.lower()
        ]
        return hits[:limit]

    async def fork(self, session_id: str, new_id: str) -> None:
        origin = self._journal(session_id)
        copy = await self.hold(new_id)
        try:
            if copy.records:
                raise SessionError(f"session {new_id!r} already exists; choose another id")
            kept = origin.stored[: count_settled_records(origin.records)]
            records = [(item.at, dump_record(item.record)) for item in kept]
            copy.write(title=origin.title, records=records, outputs=origin.outputs)
        finally:
            await copy.release()

    async def rename(self, session_id: str, title: str) -> None:
        line = json.dumps({"session": self._journal(session_id).session_id, "title": title})
        with suppress(SessionBusy):
            await (await self.hold(session_id)).release()  # cuts off a line that was not finished
        with self._path(session_id).open("ab", buffering=0) as file:  # no lock: a title may change during a run
            file.write(line.encode() + b"\n")

    async def delete(self, session_id: str) -> None:
        self._journal(session_id)
        hold = await self.hold(session_id)
        hold.file.truncate(0)  # the file stays: another run may be about to lock it
        await hold.release()

    def _path(self, session_id: str) -> Path:
        return self.folder / f"{sha256(session_id.encode()).hexdigest()}.jsonl"

    def _journal(self, session_id: str) -> Journal:
        journal = Journal.load(self._path(session_id))
        if not journal.stored and not journal.faults:
            raise SessionError(f"there is no session {session_id!r}; list() returns the existing ones")
        return journal

    def _journals(self) -> Sequence[Journal]:
        journals = (Journal.load(path) for path in self.folder.glob("*.jsonl"))
        return sorted((journal for journal in journals if journal.stored), key=lambda found: -found.stored[-1].at)


@tool(accesses=lambda arguments: [WriteResource("bank://payments")])
def pay(to: str, amount: int) -> str:
    """Pay an amount to a customer."""
    return f"paid {amount} to {to}, from GB123456"


def show(event: Event) -> None:
    """Print what a call returned, as the model reads it."""
    if isinstance(event, CallEnded):
        print(f"{event.outcome.call.name}: {event.outcome.text}")


async def main(folder: Path) -> None:
    (folder / "customers.csv").write_text("ada,London,DE998877\n", encoding="utf-8")
    store, tables = FolderStore(folder), CsvTools(folder)
    await check_store(lambda: FolderStore(folder))
    await check_toolset(tables)

    policies = Policies(PaymentLimit(free=20, most=500), ByMode("default"))
    executor = Executor(combined(Registry(pay), tables), policies, hooks=[HideAccounts()], observe=show)
    model = ScriptedProvider(
        [ToolCall("1", "customers", {"key": "ada"}), ToolCall("2", "pay", {"to": "ada", "amount": 20})],
        [ToolCall("3", "pay", {"to": "ada", "amount": 800})],
        "Ada has her money.",
    )
    agent = Agent(model, executor=executor, sessions=store)
    result = await agent.run("Pay Ada.", session="payments")
    print(result.text, [entry.title for entry in await store.list()])


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder)))
