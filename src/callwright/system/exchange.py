"""What it takes to replace a file under the eyes of rivals: swapping two names at once, making writers wait."""

import ctypes
import errno
import fcntl
import os
import signal
from functools import cache
from typing import Any, Literal, TypeAlias

Hold: TypeAlias = Literal["held", "busy", "unavailable"]
"""Writers wait; somebody has the file open for writing already; the system does not offer it."""

_RENAME_EXCHANGE = 2


def exchange(folder: int, name: str, other_folder: int, other_name: str) -> None:
    """Swap what two names stand for, in one step; raises `OSError` (ENOSYS, EINVAL, EXDEV) where it cannot."""
    call = _renameat2()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(name), other_folder, os.fsencode(other_name), _RENAME_EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)


@cache
def _renameat2() -> Any:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call


def hold_writers(descriptor: int) -> Hold:
    """Make whoever opens the file for writing wait until the descriptor is closed.

    The kernel offers that as a lease, to the file's owner and on most file systems.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # who waits is announced; the usual signal would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return "busy"
    except (OSError, AttributeError):
        return "unavailable"
    return "held"


def nobody_waits(descriptor: int) -> bool:
    """Whether no writer came while the file was held, so that nobody is about to write to what was replaced."""
    return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK
