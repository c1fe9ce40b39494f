"""`MemoryStore`: sessions that last as long as the process, for tests and short-lived programs."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from callwright.core.messages import AssistantMessage, ToolMessage
from callwright.sessions.base import (
    SessionBusy,
    SessionEntry,
    SessionError,
    SessionHit,
    StoredRecord,
    check_session_id,
    no_such_session,
)
from callwright.sessions.lease import may_take_over
from callwright.sessions.record_encoding import dump_record
from callwright.sessions.records import Record, Said, count_settled_records, find_open_questions
from callwright.sessions.stored_rows import limit_output, limit_rows, make_title
from callwright.sessions.text_search import escape_query, find_text, make_excerpt


@dataclass(slots=True)
class _Session:
    kept: list[Any] = field(default_factory=list[Any])
    """The records; of a turn its message, the turn's id and its outcomes, which become records when they are read."""
    times: list[float] = field(default_factory=list[float])
    title: str = ""
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    created_at: float = field(default_factory=time.time)
    updated_at: float = field(default_factory=time.time)
    holder: "MemoryHold | None" = None
    owner: str = ""

    @property
    def records(self) -> list[Record]:
        """All records."""
        kept = self.kept
        if len(kept) > len(self.times):
            items = iter(before := kept[:])
            kept[: len(before)] = [_make_record(item, items) for item in items]
        return kept

    def make_entry(self, session_id: str) -> SessionEntry:
        """Return the entry in the list of sessions."""
        title = self.title or make_title(self.records)
        return SessionEntry(session_id, title, self.created_at, self.updated_at, len(self.records))


def _make_record(item: Any, following: Iterator[Any]) -> Record:
    if isinstance(item, AssistantMessage):
        return Said(item, next(following))
    return Said(item) if isinstance(item, ToolMessage) else item


class MemoryStore:
    """Keeps records in memory, without encoding them; they are lost when the process ends."""

    durable = False

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._changes = [0]
        self._blobs: dict[str, Record] = {}

    async def hold(self, session_id: str, *, owner: str = "") -> "MemoryHold":
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[check_session_id(session_id)] = _Session()
        if session.holder is not None and not may_take_over(owner, session.owner):
            raise SessionBusy(f"session {session_id!r} is being written by another run in this process")
        session.holder, session.owner = MemoryHold(session_id, session, self._sessions, self._changes), owner
        return session.holder

    async def read(self, session_id: str) -> Sequence[Record]:
        return tuple(self._get(session_id).records)

    async def read_from(
        self, session_id: str, position: int = 0, *, limit: int | None = None
    ) -> Sequence[StoredRecord]:
        session, start = self._get(session_id), limit_rows(position)
        end = len(session.records) if limit is None else min(start + limit_rows(limit), len(session.records))
        return [StoredRecord(at, session.times[at], session.records[at]) for at in range(start, end)]

    async def read_output(self, session_id: str, output_id: str) -> str | None:
        session = self._sessions.get(session_id)
        return None if session is None else session.outputs.get(output_id)

    async def version(self) -> str:
        return str(self._changes[0])

    async def list(self, *, limit: int = 100, waiting: bool = False) -> Sequence[SessionEntry]:
        found = self._most_recent()
        if waiting:
            found = [item for item in found if find_open_questions(item[1].records)]
        return [session.make_entry(key) for key, session in found[: limit_rows(limit)]]

    async def find(self, session_id: str) -> SessionEntry | None:
        session = self._sessions.get(session_id)
        return session.make_entry(session_id) if session is not None and session.kept else None

    async def search(self, text: str, *, limit: int = 50, session: str | None = None) -> Sequence[SessionHit]:
        query = escape_query(text)
        hits: list[SessionHit] = []
        searched = self._most_recent() if session is None else [(session, self._get(session))]
        for key, found in searched:
            for position, record in enumerate(found.records):
                body = dump_record(record)
                if find_text(body, query) >= 0:
                    hits.append(SessionHit(key, position, make_excerpt(body, query)))
        return hits[: limit_rows(limit)]

    async def fork(self, session_id: str, new_id: str) -> None:
        origin = self._get(session_id)
        if check_session_id(new_id) in self._sessions:
            raise SessionError(f"session {new_id!r} already exists; choose another id")
        kept = count_settled_records(origin.records)
        self._sessions[new_id] = _Session(
            origin.records[:kept], origin.times[:kept], origin.title, dict(origin.outputs)
        )
        self._changes[0] += 1

    async def rename(self, session_id: str, title: str) -> None:
        self._get(session_id).title = title
        self._changes[0] += 1

    async def delete(self, session_id: str) -> None:
        if self._get(session_id).holder is not None:
            raise SessionBusy(f"session {session_id!r} is being written; end that run first")
        del self._sessions[session_id]
        self._changes[0] += 1

    async def keep_blob(self, blob_id: str, record: Record) -> None:
        self._blobs.setdefault(blob_id, record)

    async def read_blob(self, blob_id: str) -> Record | None:
        return self._blobs.get(blob_id)

    async def delete_blobs(self, blob_ids: Sequence[str]) -> None:
        for blob_id in blob_ids:
            self._blobs.pop(blob_id, None)

    def _get(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None or not session.kept:  # a session exists from its first record on
            raise no_such_session(session_id)
        return session

    def _most_recent(self) -> Sequence[tuple[str, _Session]]:
        existing = (item for item in self._sessions.items() if item[1].kept)
        return sorted(existing, key=lambda item: item[1].updated_at, reverse=True)


class MemoryHold:
    """The exclusive right to write a session in memory."""

    interruptible = True
    __slots__ = ("_changes", "_session", "_sessions", "records", "session_id")

    def __init__(self, session_id: str, session: _Session, sessions: dict[str, _Session], changes: list[int]) -> None:
        self.session_id = session_id
        self.records: Sequence[Record] = tuple(session.records)
        self._session = session
        self._sessions = sessions
        self._changes = changes

    async def append(self, *records: Record) -> None:
        session = self._session
        if session.holder is not self:
            raise SessionBusy(f"session {self.session_id!r} was taken over by another run")
        session.updated_at = now = time.time()
        session.kept.extend(records)
        session.times.extend([now] * len(records))
        self._changes[0] += 1

    def keep_turn(self, message: AssistantMessage, turn_id: str, outcomes: ToolMessage) -> bool:
        """Append the two records of a turn without making them: most sessions in memory are never read.

        Returns:
            False if another run has taken the session over.
        """
        session = self._session
        if session.holder is not self:
            return False
        session.updated_at = now = time.time()
        session.kept.extend((message, turn_id, outcomes))
        session.times.extend((now, now))
        self._changes[0] += 1
        return True

    def note(self, record: Record) -> None:
        if self._session.holder is not self:
            return
        self._session.updated_at = now = time.time()
        self._session.kept.append(record)
        self._session.times.append(now)
        self._changes[0] += 1

    def keep_output(self, output_id: str, text: str) -> None:
        if self._session.holder is not self:
            return
        self._session.outputs[output_id] = limit_output(text)

    async def release(self) -> None:
        if self._session.holder is not self:
            return
        self._session.holder = None
        if not self._session.kept:  # a session exists from its first record on
            self._sessions.pop(self.session_id, None)
