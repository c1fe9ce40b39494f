"""Reading regular files, and only those, without hanging; what their content is known by."""

import os
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from callwright.core.errors import ToolFailed
from callwright.system.paths import open_beneath, open_resolved, parent_folder

_CHUNK = 1 << 20
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file it was and in which state, as far as the system tells without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Identity":
        """Take it from what `stat` says."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def digest(data: bytes) -> str:
    """Name a content: equal content, equal name."""
    return sha256(data).hexdigest()


def open_regular(path: Path) -> int:
    """Open a resolved path for reading if it is a regular file; pipes and devices are refused, not waited for."""
    with parent_folder(path) as folder:
        name = path.name or "."
        _refuse_irregular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))  # opening a device may act on it
        descriptor = open_beneath(folder, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _refuse_irregular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_irregular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(str(path))
    for matches, kind in _KINDS:
        if matches(found.st_mode):
            raise ToolFailed(f"{path} is {kind}, not a file; it cannot be read or written here")


def folder_names(path: Path) -> list[str]:
    """Name what is in a resolved folder, sub-folders with a slash, in order."""
    descriptor = open_resolved(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(descriptor) as entries:
            return sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries)
    finally:
        os.close(descriptor)


def read_all(descriptor: int, most_bytes: int | None = None) -> bytes:
    """Read an open file from its start to its end, or to `most_bytes`; the size it claims is not trusted."""
    chunks: list[bytes] = []
    offset = 0
    while most_bytes is None or offset < most_bytes:
        wanted = _CHUNK if most_bytes is None else min(_CHUNK, most_bytes - offset)
        try:
            chunk = os.pread(descriptor, wanted, offset)
        except BlockingIOError:  # a kernel log has nothing to say right now
            break
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
