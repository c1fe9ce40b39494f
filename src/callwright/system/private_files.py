"""Files and folders that only their owner can read."""

import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TextIO

_MOST_ENTRIES = 20_000


def make_temporary_folder(owner: object, prefix: str) -> Path:
    """Create a private folder that is removed together with its owner, by the process that created it only."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process_id: int) -> None:
    if os.getpid() == process_id:  # a child that ends must not delete what its parent uses
        shutil.rmtree(folder, ignore_errors=True)


def open_private(path: Path, *, exclusive: bool = False, append: bool = False) -> TextIO:
    """Open a text file for writing that only its owner can read, also if it existed with another mode.

    Args:
        path: The file; a device or a pipe keeps its mode.
        exclusive: Fail if it exists.
        append: Keep what is in it.

    Raises:
        OSError: It cannot be opened, or it exists and `exclusive` is set.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if exclusive else 0) | (os.O_APPEND if append else os.O_TRUNC)
    descriptor = os.open(path, flags, 0o600)
    # a device or a pipe, such as /dev/null, belongs to everyone who uses it
    if hasattr(os, "fchmod") and stat.S_ISREG(os.fstat(descriptor).st_mode):  # Windows has no such modes
        with suppress(PermissionError):  # another owner's file stays as it is
            os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "a" if append else "w", encoding="utf-8")


def make_private(folder: Path) -> None:
    """Create a folder with its parents if needed, and take all access to what is in it from other users."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "getuid"):  # Windows: folders of a user are private by their place
        return
    pending, seen = [folder], 0
    while pending and seen < _MOST_ENTRIES:
        place = pending.pop()
        _restrict(place)
        with suppress(OSError):
            for entry in os.scandir(place):
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    _restrict(Path(entry.path))


def _restrict(path: Path) -> None:
    with suppress(OSError):
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o077 and found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode):
            path.chmod(mode & 0o700)
