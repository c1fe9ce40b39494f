"""States of directory entries, and the folder that keeps the contents of files by their digests."""

import itertools
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.errors import CallwrightError, Unsafe
from callwright.core.json import Json
from callwright.system.atomic_write import write_all
from callwright.system.paths import open_beneath, open_folder, opened

EntryKind: TypeAlias = Literal["absent", "file", "link", "folder", "special"]
_KINDS: tuple[EntryKind, ...] = ("absent", "file", "link", "folder", "special")
_CHUNK = 1 << 20
_DIGEST_CHARS = 64
_MOST_HASHED_BYTES = 1 << 30
_numbers = itertools.count()


class UndoError(CallwrightError):
    """Changes cannot be undone or redone; the message says why. Nothing was changed."""


class NotKept(CallwrightError):
    """A content was not kept; the message says why."""


def describe_failure(error: Exception) -> str:
    """Return why something failed, in a few words."""
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


@dataclass(frozen=True, slots=True)
class UndoLimits:
    """How much is kept for undoing, and how long."""

    total_bytes: int = 512 * 1024 * 1024
    """Of all sessions in one folder; the oldest changes are removed first."""
    file_bytes: int = 32 * 1024 * 1024
    """A larger file is not kept, so a turn that changes it cannot be undone; nor is one of more than 1 GiB."""
    days: float = 30.0
    """Sessions that changed nothing for so long are forgotten."""
    entries: int = 100_000
    """How many files and folders are compared before and after a command."""


@dataclass(frozen=True, slots=True)
class EntryState:
    """What a path is: nothing, a file with a content, a link, a folder, or something else."""

    kind: EntryKind = "absent"
    content: str = ""
    """The digest of a file's content, or the target of a link."""
    mode: int = 0
    size: int = field(default=0, compare=False)
    owner: tuple[int, int] = field(default=(-1, -1), compare=False)
    """User and group; restored where the system permits it."""

    def dump(self) -> Json:
        """Return the state as JSON."""
        if self.kind == "absent":
            return ["absent"]
        return [self.kind, self.content, self.mode, self.size, *self.owner]

    @classmethod
    def load(cls, data: object) -> "EntryState":
        """Read what `dump` returned.

        Raises:
            ValueError: It is something else.
        """
        match data:
            case ["absent"]:
                return ABSENT
            case [str(kind), str(content), int(mode), int(size), int(user), int(group)] if kind in _KINDS[1:]:
                if kind == "file" and not _is_digest(content):
                    raise ValueError(f"not a digest: {content!r}")
                return cls(_KINDS[_KINDS.index(kind)], content, mode, size, (user, group))
            case _:
                raise ValueError(f"not a state: {data!r}")


ABSENT = EntryState()


def _is_digest(text: str) -> bool:
    return len(text) == _DIGEST_CHARS and all(letter in "0123456789abcdef" for letter in text)


class ContentFolder:
    """Keeps contents in files named by their SHA-256 digests. Thread-safe.

    Args:
        path: The folder; it is created with the first content.
        most_bytes: How much it may hold.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self.most_bytes = most_bytes
        self._prefix = f"{path}/"  # joining with pathlib takes as long as writing a small file
        self.total_bytes = 0
        """The size of everything that is kept, as far as it was looked at."""
        self._sizes: dict[str, int] | None = None
        self._lock = threading.Lock()

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every content, by digest."""
        with self._lock:
            if self._sizes is None:
                self._sizes = self._find_sizes()
                self.total_bytes = sum(self._sizes.values())
        return self._sizes

    def _find_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if _is_digest(entry.name):
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
                else:  # a draft of a process that was killed; a session has one writer at a time
                    os.unlink(entry.path)
        return sizes

    def keep(self, descriptor: int, most_bytes: int) -> tuple[str, int]:
        """Keep the content of an open file; return its digest and size.

        Raises:
            NotKept: It is larger than `most_bytes`, the folder is full, or it cannot be written.
            OSError: The file cannot be read.
        """
        size, most_bytes = os.fstat(descriptor).st_size, min(most_bytes, _MOST_HASHED_BYTES)
        if size > most_bytes:
            raise NotKept(f"it is larger than {most_bytes} bytes")
        if size <= _CHUNK:  # usual, and then known contents need no draft
            data = os.pread(descriptor, size + 1, 0)  # one byte more tells a file that has grown
            if len(data) <= size:
                return self._keep_bytes(data), len(data)
        return self._keep_large(descriptor, most_bytes)

    def _keep_bytes(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        if self.sizes.get(digest) != len(data):
            self._check_room(len(data))
            draft, name = self._open_draft()
            try:
                write_all(draft, data)
                self._finish_draft(draft, name, digest, len(data))
            except OSError as error:
                self._drop_draft(name)
                raise NotKept(f"its content cannot be stored: {error.strerror}") from None
            finally:
                os.close(draft)
        return digest

    def _keep_large(self, descriptor: int, most_bytes: int) -> tuple[str, int]:
        _ = self.sizes
        self._check_room(os.fstat(descriptor).st_size)
        draft, name = self._open_draft()
        try:
            hashed, size = sha256(), 0
            while chunk := os.pread(descriptor, _CHUNK, size):
                size += len(chunk)
                if size > most_bytes:
                    raise NotKept(f"it is larger than {most_bytes} bytes")
                hashed.update(chunk)
                try:
                    write_all(draft, chunk)
                except OSError as error:
                    raise NotKept(f"its content cannot be stored: {error.strerror}") from None
            self._finish_draft(draft, name, hashed.hexdigest(), size)
        except BaseException:
            self._drop_draft(name)
            raise
        finally:
            os.close(draft)
        return hashed.hexdigest(), size

    def copy_to(self, digest: str, target: int) -> None:
        """Write a content to an open file.

        Raises:
            UndoError: The content is missing or damaged.
            OSError: The file cannot be written.
        """
        try:
            source = os.open(self._prefix + digest, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise UndoError(f"a kept content is missing ({error.strerror})") from None
        with opened(source):
            hashed, offset = sha256(), 0
            while chunk := os.pread(source, _CHUNK, offset):
                hashed.update(chunk)
                offset += len(chunk)
                write_all(target, chunk)
        if hashed.hexdigest() != digest:
            raise UndoError("a kept content is damaged")

    def sweep(self, needed: set[str]) -> None:
        """Remove every content that is not needed."""
        for digest in self.sizes.keys() - needed:
            with suppress(OSError):
                os.unlink(self._prefix + digest)
                self._count(digest, None)

    def _check_room(self, size: int) -> None:
        if self.total_bytes + size > self.most_bytes:  # `sizes` was read before
            raise NotKept(f"more than {self.most_bytes} bytes would be kept")

    def _open_draft(self) -> tuple[int, str]:
        name = f"draft-{os.getpid()}-{next(_numbers)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            try:
                return os.open(self._prefix + name, flags, 0o600), name
            except FileNotFoundError:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                return os.open(self._prefix + name, flags, 0o600), name
        except OSError as error:
            raise NotKept(f"its content cannot be stored: {error.strerror}") from None

    def _finish_draft(self, draft: int, name: str, digest: str, size: int) -> None:
        if os.fstat(draft).st_size != size:  # a file system that loses writes without an error
            raise OSError(0, "the draft is incomplete")
        os.rename(self._prefix + name, self._prefix + digest)
        self._count(digest, size)

    def _count(self, digest: str, size: int | None) -> None:
        sizes = self.sizes
        with self._lock:
            self.total_bytes += (size or 0) - sizes.pop(digest, 0)
            if size is not None:
                sizes[digest] = size

    def _drop_draft(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(self._prefix + name)


def read_state(path: Path, kept: ContentFolder | None = None, most_bytes: int = 0) -> EntryState:
    """Return what a path is now, following no link: below a link there is nothing.

    Args:
        path: An absolute path.
        kept: Where to keep the content of a file.
        most_bytes: The largest content to keep.

    Raises:
        NotKept: The content was to be kept, and was not.
        OSError: It cannot be read.
        Unsafe: It was replaced by a link while it was read.
    """
    try:
        folder = open_folder(path.parent)
    except (FileNotFoundError, NotADirectoryError, Unsafe):
        return ABSENT
    try:
        return read_entry(folder, path.name, kept, most_bytes)
    except FileNotFoundError:
        return ABSENT
    finally:
        os.close(folder)


def read_entry(folder: int, name: str, kept: ContentFolder | None, most_bytes: int) -> EntryState:
    """Return what an entry of an open folder is; as `read_state`, but a missing entry is a `FileNotFoundError`."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    owner = (found.st_uid, found.st_gid)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return EntryState("link", os.readlink(name, dir_fd=folder), 0, 0, owner)
    if stat.S_ISDIR(found.st_mode):
        return EntryState("folder", "", mode, 0, owner)
    if not stat.S_ISREG(found.st_mode):
        return EntryState("special", "", mode, 0, owner)
    with opened(open_beneath(folder, name, os.O_RDONLY | os.O_NONBLOCK)) as descriptor:
        digest, size = kept.keep(descriptor, most_bytes) if kept is not None else _hash_file(descriptor)
    return EntryState("file", digest, mode, size, owner)


def _hash_file(descriptor: int) -> tuple[str, int]:
    """Return the digest and size of an open file; of one that is too large to be kept, a digest of its `stat`.

    A command makes a sparse file of terabytes in a moment, and reading it would take hours.
    """
    found = os.fstat(descriptor)
    hashed, size = sha256(), found.st_size
    if size <= _MOST_HASHED_BYTES:
        size = 0
        while size <= _MOST_HASHED_BYTES and (chunk := os.pread(descriptor, _CHUNK, size)):
            hashed.update(chunk)
            size += len(chunk)
    if size > _MOST_HASHED_BYTES:
        hashed = sha256(repr((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)).encode())
    return hashed.hexdigest(), size


def list_tree(path: Path, most_entries: int) -> Iterator[Path]:
    """Yield a path and, if it is a folder, everything below it, following no link.

    Raises:
        NotKept: There are more than `most_entries`.
        OSError: A folder cannot be read.
    """
    if path.is_symlink():
        yield path
        return
    pending, count = [str(path)], 0
    while pending:
        place = pending.pop()
        yield Path(place)
        count += 1
        if count > most_entries:
            raise NotKept(f"it has more than {most_entries} entries")
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield Path(entry.path)
                        count += 1
        except (FileNotFoundError, NotADirectoryError):
            continue


def check_sizes(paths: Sequence[Path], most_bytes: int) -> None:
    """Check before anything is copied that files are not too large together.

    Raises:
        NotKept: They are.
    """
    if len(paths) > 1 and sum(path.lstat().st_size for path in paths if os.path.lexists(path)) > most_bytes:
        raise NotKept(f"its files have more than {most_bytes} bytes")


def missing_folders(path: Path) -> list[Path]:
    """Return the folders above a path that do not exist, outermost first."""
    missing: list[Path] = []
    for folder in path.parents:
        if os.path.lexists(folder):
            break
        missing.append(folder)
    return missing[::-1]
