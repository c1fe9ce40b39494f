"""The contract of a session store: one writer at a time, appended to only, durable when `append` returns.

Shows where a searched text stands in a record.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from callwright.core.errors import CallwrightError, UsageError
from callwright.sessions.records import Record, dump_record

_MAX_ID_CHARS = 256


class SessionError(CallwrightError):
    """A store that could not do what was asked; nothing that was there before is lost."""


class SessionBusy(SessionError):
    """Somebody else is writing this session."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One line of a list of sessions."""

    session_id: str
    title: str
    created_at: float
    updated_at: float
    records: int


@dataclass(frozen=True, slots=True)
class SessionHit:
    """Where a searched text was found."""

    session_id: str
    position: int
    excerpt: str


class SessionHold(Protocol):
    """The one writer's grip on a session, until it is released or its process ends."""

    @property
    def session_id(self) -> str: ...

    @property
    def records(self) -> Sequence[Record]:
        """What the session held when it was taken."""
        ...

    async def append(self, *records: Record) -> None:
        """Add records, all or none; they are durable when this returns. Raises `SessionError`."""
        ...

    def note(self, record: Record) -> None:
        """Add a record without waiting: a killed process has it, a power cut may lose it."""
        ...

    async def release(self) -> None:
        """Let others write; what was noted is written first."""
        ...


class SessionStore(Protocol):
    """Where sessions are kept."""

    @property
    def durable(self) -> bool:
        """Whether sessions outlive the process, so that it is worth saying what is about to run."""
        ...

    async def hold(self, session_id: str) -> SessionHold:
        """Take the session for writing, making it if it is new; raises `SessionBusy` if somebody else has it."""
        ...

    async def read(self, session_id: str) -> Sequence[Record]:
        """Every record, in order; raises `SessionError` if there is no such session."""
        ...

    async def list(self, *, limit: int = 100) -> Sequence[SessionEntry]:
        """The sessions, last used first."""
        ...

    async def search(self, text: str, *, limit: int = 50) -> Sequence[SessionHit]:
        """Where a text occurs, without regard to the case of ASCII letters, last used sessions first."""
        ...

    async def fork(self, session_id: str, new_id: str) -> None:
        """Copy a session up to the turn that is still open, to be continued another way."""
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Give it a title; the id stays."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove it; raises `SessionBusy` while somebody writes it."""
        ...


def check_session_id(session_id: str) -> str:
    """Return a valid session id as it is; the one place that says what valid means."""
    if not session_id or len(session_id) > _MAX_ID_CHARS or not session_id.isprintable():
        raise UsageError(f"session id {session_id!r} is not valid: use 1 to {_MAX_ID_CHARS} printable characters")
    return session_id


def no_such_session(session_id: str) -> SessionError:
    """Say that a session is not there."""
    return SessionError(f"there is no session {session_id!r}; list() names those there are")


async def export_jsonl(store: SessionStore, session_id: str) -> str:
    """Write a session as JSON lines, one record each, in the form the store keeps them in."""
    return "".join(f"{dump_record(record)}\n" for record in await store.read(session_id))


_AROUND_CHARS = 60


def escape_query(text: str) -> str:
    """The text as it stands inside a record's JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def make_excerpt(body: str, wanted: str) -> str:
    """A line of what stands around the first place a text was found."""
    at = max(body.lower().find(wanted.lower()), 0)
    start, end = max(at - _AROUND_CHARS, 0), at + len(wanted) + _AROUND_CHARS
    return f"{'…' if start else ''}{body[start:end]}{'…' if end < len(body) else ''}"
