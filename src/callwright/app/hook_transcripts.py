"""Sessions written down for hooks, which read files and not our store."""

import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from callwright.sessions import SessionError, SessionStore
from callwright.sessions.records import dump_record
from callwright.system.output_capture import private_folder

_REST = 20
"""Writing for calls takes a twentieth of the time at most: a long session takes 0.2 s to read, and calls are many."""


@dataclass(frozen=True, slots=True)
class _WriteState:
    records: int = 0
    due: float = 0.0


class TranscriptFiles:
    """Writes a session as JSON lines when a hook is about to be told of it; the files go when the process does."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[str, _WriteState] = {}

    async def __call__(self, session_id: str, *, whole: bool) -> str:
        """Write what is on record and name the file; empty where none is kept. It may lag behind unless `whole`."""
        if not session_id or not self._store.durable:
            return ""
        # a session's id may hold anything that can be printed, slashes included
        file = private_folder() / f"session-{sha256(session_id.encode()).hexdigest()[:16]}.jsonl"
        began = time.monotonic()
        known = self._known.get(session_id, _WriteState())
        if whole or began >= known.due:
            count = await self._write(session_id, file, known.records)
            ended = time.monotonic()
            self._known[session_id] = _WriteState(count, ended + _REST * (ended - began))
        return str(file)

    async def _write(self, session_id: str, file: Path, known: int) -> int:
        try:
            records = await self._store.read(session_id)
        except SessionError:  # nothing was said yet
            records = ()
        begun = known if 0 < known <= len(records) else 0
        with file.open("a" if begun else "w", encoding="utf-8") as lines:
            lines.writelines(f"{dump_record(record)}\n" for record in records[begun:])
        return len(records)
