"""Session transcripts as JSON Lines: for export without credentials, and as files for hooks."""

import json
import os
import secrets
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from callwright.core.json import compact, hash_text
from callwright.hooks.builtin import Redact
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.record_encoding import dump_record
from callwright.sessions.records import Record
from callwright.system.output_capture import output_folder

_REST_FACTOR = 20
"""Pause after writing, as a multiple of the time it took: a long session takes 0.2 s at first, and calls are many."""


async def export_redacted(store: SessionStore, session_id: str) -> str:
    """Return the records of a session as JSON Lines, with credentials replaced.

    Raises:
        SessionError: The session is not stored, or a record cannot be read.
    """
    return redact_records(await store.read(session_id))


def redact_records(records: Iterable[Record]) -> str:
    """Return records as JSON Lines, with credentials replaced."""
    redact = Redact()
    # parsed first: a pattern that matches across quotes would leave invalid JSON
    parsed = (json.loads(dump_record(record)) for record in records)
    text = "".join(f"{compact(redact.clean_data(record))}\n" for record in parsed)
    # a lone surrogate, which UTF-8 cannot encode, becomes the escape sequence that JSON has for it
    return text.encode(errors="backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class _WriteState:
    records: int = 0
    due: float = 0.0


class TranscriptFiles:
    """Writes the transcript of a session when a hook is about to receive its path.

    The files are removed together with this object, by the process that made it only.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[str, _WriteState] = {}
        self._name = secrets.token_hex(4)
        """Part of the names: another object for the same session, later or elsewhere, has files of its own."""
        self._files: set[Path] = set()
        weakref.finalize(self, _remove_all, self._files, os.getpid())

    async def __call__(self, session_id: str, *, whole: bool) -> str:
        """Write the transcript and return its path.

        Args:
            session_id: The session.
            whole: Write now, even if the file was written a moment ago; otherwise it may lag behind.

        Returns:
            The path, or an empty text if the session is not stored or the file cannot be written.
        """
        if not session_id or not self._store.durable:
            return ""
        try:
            return await self._update(session_id, whole=whole)
        except OSError:  # a full disk, where a hook can decide without the file
            self._known.pop(session_id, None)  # what was written may end in the middle of a record
            return ""

    async def _update(self, session_id: str, *, whole: bool) -> str:
        # a session id may contain any printable character, slashes included
        file = output_folder() / f"session-{hash_text(session_id)[:16]}-{self._name}.jsonl"
        began = time.monotonic()
        known = self._known.get(session_id, _WriteState())
        if whole or began >= known.due:
            count = await self._write(session_id, file, known.records)
            ended = time.monotonic()
            self._known[session_id] = _WriteState(count, ended + _REST_FACTOR * (ended - began))
        return str(file)

    async def _write(self, session_id: str, file: Path, known: int) -> int:
        kept = file.exists()  # noqa: ASYNC240 - one look, as a cleaner may have removed the file
        try:
            entry = await self._store.find(session_id)
            begun = known if kept and entry is not None and 0 < known <= entry.records else 0
            # only what is new, because a session may be long
            stored = () if entry is None else await self._store.read_from(session_id, begun)
        except SessionError:  # the store or a record cannot be read
            stored, begun = (), 0
        self._files.add(file)
        with file.open("a" if begun else "w", encoding="utf-8") as lines:
            lines.writelines(f"{dump_record(each.record)}\n" for each in stored)
        return begun + len(stored)


def _remove_all(files: Iterable[Path], process_id: int) -> None:
    if os.getpid() == process_id:  # a child that ends must not delete what its parent uses
        for file in files:
            with suppress(OSError):
                file.unlink()
