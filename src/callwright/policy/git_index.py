"""Finds tracked files in the index of a repository, which is read here because judging a line runs nothing."""

import os
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from callwright.core.access import is_below
from callwright.policy.git_folders import GitFolders, list_repositories, open_marker

_MAX_BYTES = 64 << 20
_MAX_DEPTH = 4
_LONGEST_NAME = 0xFFF
_EXTENDED = 0x4000
_FOLDER, _LINK = 0o040000, 0o160000


def find_tracked(folder: str, wanted: Callable[[str], bool], *, whole: bool) -> str | None:
    """Return a tracked file that is wanted; empty if there is none, None if that is not known.

    Args:
        folder: Where git would run.
        wanted: Compares an absolute path.
        whole: Whether the whole repository counts, or only what lies below the folder.

    Raises:
        LookupError: There is no repository.
    """
    real = os.path.realpath(folder)
    below = ("/",) if whole else (real,)
    inside = False
    try:
        for repository in list_repositories(folder):
            inside = True
            found = _find_in_repository(repository, _spell(folder, real, repository), below, wanted, depth=0)
            if found != "":
                return found
    except (OSError, ValueError, struct.error, IndexError):
        return None
    if not inside:
        raise LookupError(f"there is no repository around {folder}")
    return ""


def _spell(folder: str, real: str, repository: GitFolders) -> str:
    """Return the top folder of a repository as the folder is written, which may lead through a link."""
    top = os.path.realpath(repository.work_tree)
    inner = real[len(top.rstrip("/")) :] if is_below(real, (top,)) else ""
    return folder.removesuffix(inner) if folder.endswith(inner) else top


def _find_in_repository(
    repository: GitFolders, spelled: str, below: tuple[str, ...], wanted: Callable[[str], bool], *, depth: int
) -> str | None:
    top = os.path.realpath(repository.work_tree)
    if depth > _MAX_DEPTH:
        return None
    for mode, name in _list_entries(repository.own):
        path = f"{top}/{name}"
        if mode == _FOLDER:
            return None  # a sparse index leaves out what lies in it
        if mode == _LINK:
            inner = open_marker(Path(path) / ".git")
            found = _find_in_repository(inner, path, below, wanted, depth=depth + 1) if inner else ""
            if found != "":
                return found
        if not is_below(path, below):
            continue
        if wanted(path) or (spelled != top and wanted(f"{spelled}/{name}")):
            return path
    return ""


def _list_entries(own: Path) -> Iterator[tuple[int, str]]:
    """Yield the entries of an index, and of those that it is split into.

    Raises:
        ValueError: An index cannot be read.
    """
    for file in (own / "index", *own.glob("sharedindex.*")):
        status = file.stat()
        if not S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:  # opening a pipe would wait
            raise ValueError(f"{file} cannot be read")
        yield from _read_index(str(file), status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=8)
def _read_index(file: str, _changed_ns: int, _size: int, _inode: int) -> tuple[tuple[int, str], ...]:
    """Read an index, which may be large, only once while it does not change."""
    data = Path(file).read_bytes()
    for id_bytes in (20, 32):  # SHA-1 and SHA-256: only with the right one the extensions end where the file does
        try:
            return tuple(_parse_index(data, id_bytes))
        except (ValueError, struct.error, IndexError):
            continue
    raise ValueError(f"{file} is not an index that can be read")


def _parse_index(data: bytes, id_bytes: int) -> Iterator[tuple[int, str]]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index of a known version")
    place, name = 12, b""
    for _ in range(count):
        # two times and two numbers of the disk, the mode, two owners, the size, the id, flags, and the path
        (mode,) = struct.unpack_from(">I", data, place + 24)
        (flags,) = struct.unpack_from(">H", data, place + 40 + id_bytes)
        start = place + 42 + id_bytes + (2 if version > 2 and flags & _EXTENDED else 0)
        kept = b""
        if version == 4:  # a path is the start of the one before and an end of its own
            dropped, start = _read_number(data, start)
            kept = name[: len(name) - dropped]
        end = data.index(b"\0", start)
        name = kept + data[start:end]
        if (flags & _LONGEST_NAME) not in (_LONGEST_NAME, len(name)):
            raise ValueError("the length of a path is not the one that is stated")
        if name:
            yield mode, os.fsdecode(name)
        elif not S_ISREG(mode):  # a file without a path changes one of the shared index, which is read too
            raise ValueError("what has no path is not a file")
        place = end + 1 if version == 4 else place + ((end - place + 8) & ~7)
    while place + id_bytes < len(data):
        place += 8 + struct.unpack_from(">4sI", data, place)[1]
    if place + id_bytes != len(data):
        raise ValueError("the extensions do not end with the file")


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    number = data[place] & 0x7F
    while data[place] & 0x80:
        place += 1
        number = ((number + 1) << 7) | (data[place] & 0x7F)
    return number, place + 1
