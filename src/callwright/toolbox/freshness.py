"""Which files this session has seen, and whether they still are what was seen.

A file is known by its content. Up to a megabyte that is the digest of all of it, however few lines were shown. Of a
larger file the parts that were shown are known by their digest and the rest by inode, size and times, because hashing a
gigabyte to show twenty lines would cost more than the read. Any read counts for an edit, which names the text it
replaces; writing a whole file anew counts only if all of it was shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from callwright.core.errors import ToolFailed
from callwright.system.files import Identity, digest


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
