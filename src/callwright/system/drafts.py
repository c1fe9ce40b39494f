"""Drafts: files that are complete before they have a name, and a private folder in which they may have one briefly."""

import errno
import itertools
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from callwright.core.errors import ToolError
from callwright.system.paths import open_beneath, open_folder

NOT_OFFERED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EISDIR})
"""What systems answer that do not know the call."""

_SUFFIX = ".callwright-draft"
_DESCRIPTORS = Path("/proc/self/fd")
_NAMELESS = getattr(os, "O_TMPFILE", 0) if _DESCRIPTORS.exists() else 0
_numbers = itertools.count()


def open_nameless(folder: int) -> int | None:
    """Create a file in a folder without giving it a name: it vanishes with its last descriptor. None if not offered."""
    if not _NAMELESS:
        return None
    try:
        return os.open(".", _NAMELESS | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno in NOT_OFFERED:
            return None
        raise


def give_name(draft: int, folder: int, name: str) -> None:
    """Put a nameless file into a folder; raises `FileExistsError` if the name is taken."""
    os.link(str(_DESCRIPTORS / str(draft)), name, dst_dir_fd=folder, follow_symlinks=True)


def passing_name() -> str:
    """A name nobody else uses, which tells whose it is."""
    return f"{os.getpid()}-{next(_numbers)}{_SUFFIX}"


def fill(draft: int, data: bytes, folder: int, model: str | None) -> None:
    """Write a draft to the disk, with the mode, owner and attributes of the file `model` it will replace."""
    write_all(draft, data)
    if model is not None:
        source = open_beneath(folder, model, os.O_RDONLY | os.O_NONBLOCK)
        try:
            _copy_attributes(source, draft)
        finally:
            os.close(source)
    os.fsync(draft)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however many calls it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_attributes(source: int, draft: int) -> None:
    found = os.fstat(source)
    with suppress(PermissionError):  # another owner's file becomes ours, as with any editor
        os.fchown(draft, found.st_uid, found.st_gid)
    os.fchmod(draft, stat.S_IMODE(found.st_mode))
    with suppress(OSError, AttributeError):  # not every file system has them, nor every system the calls
        for name in os.listxattr(source):
            os.setxattr(draft, name, os.getxattr(source, name))


@contextmanager
def private_folder(device: int) -> Generator[int | None, None, None]:
    """Lend the user's own folder for drafts, cleared of what killed processes left, if it is on the same device."""
    folder = None
    with suppress(OSError, ToolError, RuntimeError):
        folder = _open_private()
    try:
        yield folder if folder is not None and os.fstat(folder).st_dev == device else None
    finally:
        if folder is not None:
            os.close(folder)


def _open_private() -> int:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(os.path.realpath(cache)) / "callwright" / "drafts"
    folder = open_folder(path, create=True)
    if os.fstat(folder).st_mode & 0o077:
        path.chmod(0o700)
    for name in os.listdir(path):  # noqa: PTH208 - names are all that is needed
        remove_left_over(folder, name)
    return folder


def remove_left_over(folder: int, name: str) -> None:
    """Remove a draft whose process is gone; other names are left alone."""
    owner = name.removeprefix(".").partition("-")[0]
    if name.endswith(_SUFFIX) and owner.isdigit() and not _is_running(int(owner)):
        with suppress(FileNotFoundError):  # somebody else sweeps too
            os.unlink(name, dir_fd=folder)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
