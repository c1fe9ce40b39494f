"""Which files a session has seen, per-file locks, and loading and storing files that tools change.

A file is identified by its content. Up to a megabyte that is the digest of the whole, however few lines were shown. Of
a larger file, the shown parts are identified by their digests and the rest by inode, size and times, because hashing a
gigabyte to show twenty lines would cost more than the read. Any read permits an edit, which names the text it replaces;
replacing a whole file is permitted only after all of it was shown.
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
from callwright.system.files import Encoding, Identity, detect_encoding, digest, open_regular, read_all
from callwright.system.paths import opened
from callwright.toolbox._paths import explain_error


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of a large file that was shown."""

    offset: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What a session has seen of one file."""

    content: str = ""
    """Digest of the whole file; empty for a file too large to hash on every read."""
    identity: Identity | None = None
    parts: frozenset[ShownPart] = frozenset()
    lines: frozenset[tuple[int, int]] = frozenset()
    """First and last line of every part shown."""
    total: int = 0
    """Number of lines; 0 if unknown."""

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
        """Tell whether the file still has the content that was shown."""
        if self.content:
            return self.content == digest(data)
        same = all(digest(data[part.offset : part.offset + part.size]) == part.digest for part in self.parts)
        return same and self.identity == identity


class SeenFiles:
    """The files one session has read or written, by resolved path."""

    def __init__(self) -> None:
        self._known: dict[Path, KnownFile] = {}
        self._doubts: dict[Path, Sequence[object]] = {}
        self._lock = Lock()  # tools of one session run in several threads

    def remember_read(self, path: Path, known: KnownFile) -> None:
        """Remember what a read showed, merged with earlier reads of the same content."""
        with self._lock:
            self._doubts.pop(path, None)
            before = self._known.get(path)
            if before and (before.content, before.identity) == (known.content, known.identity):
                if before.whole:  # also where this session wrote it, and its lines were not counted
                    return
                total = max(before.total, known.total)
                known = replace(known, parts=before.parts | known.parts, lines=before.lines | known.lines, total=total)
            self._known[path] = known

    def remember_written(self, path: Path, content: str, *, whole: bool) -> None:
        """Remember content this session wrote; `whole` if the model knows all of it."""
        with self._lock:
            lines = frozenset({(1, 1)}) if whole else frozenset[tuple[int, int]]()
            self._known[path] = KnownFile(content, lines=lines, total=1)

    def remember_moved(self, source: Path, destination: Path) -> None:
        """Remember what was seen of a file, or of the files of a folder, by their new paths."""
        with self._lock:
            moved = {path: known for path, known in self._known.items() if path.is_relative_to(source)}
            for path, known in moved.items():
                del self._known[path]
                self._known[destination / path.relative_to(source)] = known

    def check(self, path: Path, given: str, data: bytes, identity: Identity) -> KnownFile:
        """Return what was seen of a file that is about to change.

        Raises:
            ToolFailed: The file was not read in this session, or has changed since.
        """
        known = self._known.get(path)
        if known is None:
            raise ToolFailed(f"{given} exists, but was not read in this session; read it first")
        if not known.still_holds(data, identity):
            raise _changed_error(given)  # by content, not by time: a restored file is not a change
        return known

    def consume_doubt(self, path: Path, edit: Sequence[object]) -> bool:
        """Tell whether this edit was rejected as doubtful just before; sending it again confirms it."""
        with self._lock:
            return self._doubts.pop(path, None) == edit

    def remember_doubt(self, path: Path, edit: Sequence[object]) -> None:
        """Remember an edit that was rejected as doubtful."""
        with self._lock:
            self._doubts[path] = edit


def _changed_error(given: str) -> ToolFailed:
    """Return the error for a file that changed since the model has seen it."""
    return ToolFailed(f"{given} was changed since it was read, or is being written; read it again")


class _PathLock:
    """A lock that is removed with its last user; a plain `Lock` cannot be referenced weakly."""

    def __init__(self) -> None:
        self.lock = Lock()


_locks: WeakValueDictionary[Path, _PathLock] = WeakValueDictionary()
_guard = Lock()


@contextmanager
def lock_path(path: Path) -> Generator[None, None, None]:
    """Hold the lock of a path, shared by all sessions of this process, which share the disk too."""
    with _guard:  # two callers must not create two locks for one path
        own = _locks.setdefault(path, _PathLock())
    with own.lock:
        yield


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The current content of a file."""

    data: bytes
    identity: Identity
    encoding: Encoding
    links: int = 1
    """How many names the file has."""
    unsaved: bool = False
    """The content is that of an editor, which has not saved it."""

    def describe_links(self) -> str:
        """Say that the other names of the file keep the old content; empty if it has none.

        The file is replaced, not written over: another name may lie outside of the workspace, or in a package store.
        """
        others = self.links - 1
        return f" ({others} other hard link{'s' * (others > 1)} to the old file unchanged)" if others > 0 else ""

    @property
    def text(self) -> str:
        """The text without the byte order mark."""
        return self.encoding.decode(self.data[len(self.encoding.mark) :])


_MOST_BYTES = 1 << 26


class FileAccess:
    """Where tools load and store the files they change: on disk. An editor may put itself in its place.

    The methods run in threads.
    """

    shares_buffers = False
    """Whether `load` may return content that is not on disk."""

    def load(self, path: Path, given: str) -> LoadedFile | None:
        """Return a file; None if it does not exist.

        Args:
            path: The real path.
            given: The path as the model wrote it, for messages.

        Raises:
            ToolFailed: It cannot be read, or is too large to be changed in memory.
        """
        try:
            descriptor = open_regular(path)
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise ToolFailed(f"{given} is a folder; give the path of a file in it") from None
        except OSError as error:
            raise explain_error(error, given, "read") from None
        with opened(descriptor):
            found = os.fstat(descriptor)
            data = b"" if found.st_size > _MOST_BYTES else read_all(descriptor, _MOST_BYTES + 1)
        if (size := max(found.st_size, len(data))) > _MOST_BYTES:
            raise ToolFailed(
                f"{given} has {size} bytes; above {_MOST_BYTES} a file is changed with a command, such as sed"
            )
        return LoadedFile(data, Identity.of(found), detect_encoding(data) or Encoding(), found.st_nlink)

    def store(self, path: Path, given: str, data: bytes, expected: str | None) -> None:
        """Replace the content of a file if it is still `expected`.

        Args:
            path: The real path.
            given: The path as the model wrote it, for messages.
            data: The new content.
            expected: The digest the old content must have, `ABSENT`, or None for any content.

        Raises:
            ToolFailed: It has changed, or cannot be written.
        """
        try:
            replace_file(path, data, expected=expected)
        except Changed:
            raise _changed_error(given) from None
        except IsADirectoryError:
            raise ToolFailed(f"{given} is a folder; give the path of a file in it") from None
        except OSError as error:
            raise explain_error(error, given, "write") from None


DISK = FileAccess()
