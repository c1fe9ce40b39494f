"""Changing a file: one change at a time per file, only of what the session has seen, and remembered afterwards.

Which files this session has seen, and whether they still are what was seen.

A file is known by its content. Up to a megabyte that is the digest of all of it, however few lines were shown. Of a
larger file the parts that were shown are known by their digest and the rest by inode, size and times, because hashing a
gigabyte to show twenty lines would cost more than the read. Any read counts for an edit, which names the text it
replaces; writing a whole file anew counts only if all of it was shown.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from callwright.core.errors import ToolFailed
from callwright.system.atomic_write import Changed, replace_file
from callwright.system.files import Encoding, Identity, detect, digest, open_regular, read_all
from callwright.toolbox._paths import explain


@dataclass(frozen=True, slots=True)
class Shown:
    """A stretch of a large file as it was shown."""

    offset: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a session knows of one file."""

    content: str = ""
    """Digest of the whole; empty for a file too large to be hashed by every read."""
    identity: Identity | None = None
    parts: frozenset[Shown] = frozenset()
    lines: frozenset[tuple[int, int]] = frozenset()
    """First and last line of every stretch shown."""
    total: int = 0
    """How many lines there are; 0 while unknown."""

    @property
    def whole(self) -> bool:
        """Whether every line was shown."""
        reached = 0
        for first, last in sorted(self.lines):
            if first > reached + 1:
                break
            reached = max(reached, last)
        return self.total > 0 and reached >= self.total

    def still_holds(self, data: bytes, identity: Identity) -> bool:
        """Whether a file that now has this content is the one that was shown."""
        if self.content:
            return self.content == digest(data)
        same = all(digest(data[part.offset : part.offset + part.size]) == part.digest for part in self.parts)
        return same and self.identity == identity


class Freshness:
    """The files one session has read or written, by resolved path."""

    def __init__(self) -> None:
        self._known: dict[Path, Known] = {}
        self._doubted: dict[Path, Sequence[object]] = {}
        self._lock = Lock()

    def saw(self, path: Path, known: Known) -> None:
        """Remember what a read showed, together with what earlier reads of the same content did."""
        with self._lock:
            self._doubted.pop(path, None)
            before = self._known.get(path)
            if before and (before.content, before.identity) == (known.content, known.identity):
                total = max(before.total, known.total)
                known = replace(known, parts=before.parts | known.parts, lines=before.lines | known.lines, total=total)
            self._known[path] = known

    def made(self, path: Path, content: str, *, whole: bool) -> None:
        """Remember what this session made of a file itself; `whole` if the model knows all of it."""
        with self._lock:
            lines = frozenset({(1, 1)}) if whole else frozenset[tuple[int, int]]()
            self._known[path] = Known(content, lines=lines, total=1)

    def check(self, path: Path, given: str, data: bytes, identity: Identity) -> Known:
        """Return what is known of a file about to change; raise `ToolFailed` if it was not read or changed since."""
        known = self._known.get(path)
        if known is None:
            raise ToolFailed(f"{given} exists and was not read in this session; read it first")
        if not known.still_holds(data, identity):
            raise changed(given)
        return known

    def insists(self, path: Path, edit: Sequence[object]) -> bool:
        """Whether this very edit was doubted just before, so that sending it again is an answer."""
        with self._lock:
            return self._doubted.pop(path, None) == edit

    def doubt(self, path: Path, edit: Sequence[object]) -> None:
        """Remember an edit that was sent back as doubtful."""
        with self._lock:
            self._doubted[path] = edit


def changed(given: str) -> ToolFailed:
    """Say that a file is no longer what the model has seen."""
    return ToolFailed(f"{given} was changed by somebody else since it was read, or is being written; read it again")


class _PathLock:
    """A lock that goes away with its last user."""

    def __init__(self) -> None:
        self.lock = Lock()


_locks: WeakValueDictionary[Path, _PathLock] = WeakValueDictionary()
_guard = Lock()


@contextmanager
def alone_with(path: Path) -> Generator[None, None, None]:
    """Hold a file against every other change in this process: sessions share the disk, so they share the lock."""
    with _guard:
        own = _locks.setdefault(path, _PathLock())
    with own.lock:
        yield


@dataclass(frozen=True, slots=True)
class Current:
    """A file as it is right now."""

    data: bytes
    identity: Identity
    encoding: Encoding

    @property
    def text(self) -> str:
        """Its text, byte order mark left out."""
        return self.encoding.decode(self.data[len(self.encoding.mark) :])


def load(path: Path, given: str) -> Current | None:
    """Read the file about to be changed; None if there is none."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise ToolFailed(f"{given} is a folder; give the path of a file in it") from None
    except OSError as error:
        raise explain(error, given, "read") from None
    try:
        identity = Identity.of(os.fstat(descriptor))
        data = read_all(descriptor)
    finally:
        os.close(descriptor)
    return Current(data, identity, detect(data) or Encoding())


def store(path: Path, given: str, data: bytes, expected: str | None) -> None:
    """Put new content in place if the file still is what was expected; see `replace_file`."""
    try:
        replace_file(path, data, expected=expected)
    except Changed:
        raise changed(given) from None
    except IsADirectoryError:
        raise ToolFailed(f"{given} is a folder; give the path of a file in it") from None
    except OSError as error:
        raise explain(error, given, "write") from None
