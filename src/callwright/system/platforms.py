"""What differs between operating systems and Pythons: locks, folders on disk, forks, and what is not offered."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from callwright.core.errors import UsageError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None


def lock_file(descriptor: int) -> None:
    """Lock an open file for this descriptor alone, without waiting; closing it releases the lock.

    Raises:
        BlockingIOError: another descriptor has locked it.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore] - Windows only
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from error


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, or a power cut could bring an old file back; Windows does so by itself.

    Raises:
        OSError: the file system cannot.
    """
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SYNCS_FILE_SYSTEMS = sys.platform == "linux"
"""Whether `sync_file_system` waits until everything is written."""


def sync_file_system(descriptor: int) -> None:
    """Write everything on the file system of an open file to the disk: quicker than many files one by one.

    Raises:
        OSError: something could not be written.
    """
    import ctypes  # rarely needed, and slow to load

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None or call(descriptor) != 0:
        code = ctypes.get_errno()
        if call is not None and code != errno.ENOSYS:
            raise OSError(code, os.strerror(code))
        os.sync()


def on_fork(
    *,
    in_child: Callable[[], object],
    before: Callable[[], object] = lambda: None,
    in_parent: Callable[[], object] = lambda: None,
) -> None:
    """Register what to do around `os.fork`, where the system has it."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def keep_forever(value: object) -> None:
    """Never free a value, not even when the interpreter ends: it could block or loop while it is freed."""
    import ctypes  # rarely needed, and slow to load

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def require_posix(what: str) -> None:
    """Raise on Windows, for parts that need processes, descriptors of folders or terminals as POSIX has them.

    Args:
        what: what needs it, in the plural.

    Raises:
        UsageError: this is not a POSIX system.
    """
    if os.name != "posix":
        raise UsageError(
            f"{what} need Linux or macOS, and this is {os.name!r}; on Windows run callwright in WSL. "
            "Your own tools, the executor, agents and session stores work here"
        )
