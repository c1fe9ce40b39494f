"""The journal of a session's changes: one checked line of JSON per event, in the order in which they happened.

A line is written before what it announces, so that a killed process leaves no change without a trace.
"""

import json
import os
import secrets
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from callwright.system.paths import opened
from callwright.system.undo.kept_content import NotKept, UndoError

_FORMAT = 1
_SPARE_BYTES = 4096
Line = dict[str, Any]


class JournalDamaged(UndoError):
    """The journal cannot be read."""


class JournalNewer(UndoError):
    """A later version wrote the journal."""


class Journal:
    """The lines of one session, in a file of its own. Thread-safe.

    Args:
        folder: The session's folder; created with the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.log_id = ""
        """Identifies this journal: after one was lost, its numbers mean nothing in the next."""
        self.first = False
        """Whether the session had no journal before this one, so that this one has all of its changes."""
        self._spare = folder / "spare"
        self._lock = threading.Lock()
        self._torn = False
        self._known = (0, 0)

    @property
    def stale(self) -> bool:
        """Whether another process has written to the journal since it was loaded."""
        return self._known != self._identity()

    def _identity(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            return (0, 0)
        return found.st_ino, found.st_size

    def load(self) -> list[Line]:
        """Return the lines; none if there is no journal.

        Raises:
            JournalDamaged: It cannot be read.
            JournalNewer: A later version wrote it.
        """
        self._known = self._identity()
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            self.first = not self.path.parent.exists()  # it stays when its content is removed
            return []
        except OSError as error:
            raise JournalDamaged(f"the kept changes of this session cannot be read: {error.strerror}") from None
        *whole, torn = text.split(b"\n")
        self._torn = bool(torn)  # the process was killed while it wrote: what the line announced did not happen
        lines = [_parse(line) for line in whole]
        head = lines[0] if lines else {}
        if head.get("format", _FORMAT) != _FORMAT:
            raise JournalNewer("the changes of this session were kept by a later version; update to undo them")
        if not isinstance(head.get("log"), str):
            raise JournalDamaged("the kept changes of this session are damaged: the journal has no beginning")
        self.log_id, self.first = head["log"], head.get("first") is True
        return lines[1:]

    def append(self, line: Line) -> None:
        """Add a line.

        Raises:
            NotKept: It cannot be written.
        """
        with self._lock:
            try:
                self._write(line)
                self._known = self._identity()
            except OSError as error:
                raise NotKept(f"the undo journal cannot be written: {error.strerror}") from None

    def append_last(self, line: Line) -> None:
        """Add a line to a full disk, in the place of what was reserved for it.

        If even that fails, the journal is removed: without the line an undo would restore a part of a turn, without the
        journal it restores nothing.
        """
        with self._lock:
            try:
                self._spare.unlink(missing_ok=True)
                self._write(line)
            except OSError:
                with suppress(OSError):
                    self.path.unlink()
                self.log_id, self.first = "", False
            self._known = self._identity()

    def reserve(self) -> None:
        """Reserve room for the last line again.

        Raises:
            NotKept: The disk is still full.
        """
        with self._lock:
            try:
                _write_private(self._spare, b" " * _SPARE_BYTES)
            except OSError as error:
                raise NotKept(f"the undo journal cannot be written: {error.strerror}") from None

    def discard(self) -> None:
        """Begin a new journal with the next line; the old one is kept beside it until the session is deleted."""
        with self._lock, suppress(OSError):
            self.path.replace(self.path.with_name("journal-damaged"))
        self.log_id, self.first, self._known = "", False, (0, 0)

    def _write(self, line: Line) -> None:
        text = _encode(line)
        if not self.log_id:
            first = not self.path.parent.exists()
            for folder in (self.path.parent.parent, self.path.parent):  # `parents` would make folders for everyone
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_private(self._spare, b" " * _SPARE_BYTES)  # freed when the disk is full, for the last line
            log_id = secrets.token_hex(8)
            text = _encode({"format": _FORMAT, "log": log_id, "first": first}) + text
            _append(self.path, text, new=True)
            self.log_id, self.first = log_id, first
            return
        if self._torn:
            self._cut_torn_line()
        _append(self.path, text)

    def _cut_torn_line(self) -> None:
        text = self.path.read_bytes()
        os.truncate(self.path, text.rfind(b"\n") + 1)
        self._torn = False


def _append(path: Path, text: bytes, *, new: bool = False) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
    with opened(os.open(path, flags, 0o600)) as descriptor:
        before = os.fstat(descriptor).st_size
        written = os.write(descriptor, text)
        if written != len(text):  # a full disk may take a part; half a line must not stay
            os.ftruncate(descriptor, before)
            raise OSError(28, os.strerror(28))


def _write_private(path: Path, text: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(text)


def _encode(line: Line) -> bytes:
    text = json.dumps(line, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> Line:
    checksum, _, text = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            raise ValueError("the checksum does not fit")
        return dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise JournalDamaged(f"the kept changes of this session are damaged: {error}") from None
