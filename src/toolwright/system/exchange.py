"""Two system calls the standard library does not offer: swapping two names, asking whether anybody writes to a file."""

import ctypes
import errno
import fcntl
import os
from functools import cache
from typing import Any

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


def is_being_written(descriptor: int) -> bool:
    """Whether anybody has the file open for writing, told by the lease the kernel then refuses; False if unknown."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
