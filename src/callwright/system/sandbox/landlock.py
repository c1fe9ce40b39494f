"""Landlock, run as a script: gives up the network and writing outside some folders, then executes the command.

    python landlock.py '{"writable": ["/srv"], "network": false}' program argument…

The kernel enforces this for the process and everything it starts. If something cannot be given up, the command does
not run.
"""

import ctypes
import json
import os
import struct
import sys
from contextlib import suppress
from typing import NoReturn, TypedDict


class LandlockRequest(TypedDict):
    """The rights that the command keeps."""

    writable: list[str]
    network: bool


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_VERSION = 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2

# bits of LANDLOCK_ACCESS_FS_*: write file, remove and make entries; later versions add moving and truncating
_WRITES = 1 << 1 | sum(1 << bit for bit in range(4, 13))
_MOVE, _TRUNCATE = 1 << 13, 1 << 14
_FILE_ONLY = 1 << 1 | _TRUNCATE
_TCP = 0b11
_SCOPES = 0b11  # abstract sockets and signals stay inside
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")

# per machine: audit number, socket(2); io_uring is the same everywhere and opens sockets behind a filter's back
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_IO_URING_SETUP = 425
_X32_BIT = 0x40000000
_UNIX, _NETLINK = 1, 16
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def main() -> NoReturn:
    """Confine this process and execute the command, or print why not and exit with 126."""
    request: LandlockRequest = json.loads(sys.argv[1])
    try:
        confine(request)
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(f"cannot run {sys.argv[2]} in the sandbox: {error}", file=sys.stderr)
    os._exit(126)


def version() -> int:
    """Return the Landlock version of the kernel; 0 if there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def has_seccomp() -> bool:
    """Whether the network can be turned off on this kind of machine."""
    return sys.platform == "linux" and os.uname().machine in _MACHINES


def confine(request: LandlockRequest) -> None:
    """Give up all rights that the request does not keep, for this process and all it starts, irrevocably."""
    _check_result(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _restrict_writes(request)
    if not request["network"]:
        _close_network()


def _restrict_writes(request: LandlockRequest) -> None:
    spoken = version()
    rights = _WRITES | (_MOVE if spoken >= 2 else 0) | (_TRUNCATE if spoken >= 3 else 0)
    tcp = _TCP if spoken >= 4 and not request["network"] else 0
    scopes = _SCOPES if spoken >= 6 else 0
    attributes = struct.pack("=QQQ", rights, tcp, scopes)[: 8 if spoken < 4 else 16 if spoken < 6 else 24]
    ruleset = _check_result(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    for path in (*request["writable"], *_DEVICES):
        with suppress(FileNotFoundError):
            _allow_path(ruleset, path, rights)
    _check_result(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        kept = rights if os.path.isdir(path) else rights & _FILE_ONLY
        _check_result(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", kept, fd), 0))
    finally:
        os.close(fd)


def _close_network() -> None:
    # Landlock restricts TCP only; a seccomp filter that refuses every non-local socket covers the rest
    program = b"".join(struct.pack("=HBBI", *line) for line in _make_filter(*_MACHINES[os.uname().machine]))
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _check_result(_libc.prctl(_SET_SECCOMP, _FILTER, header, 0, 0))


def _make_filter(machine: int, socket_call: int) -> list[tuple[int, int, int, int]]:
    return [
        (_LOAD, 0, 0, 4),  # the machine: 32-bit programs have other numbers, so they may call nothing
        (_EQUAL, 0, 8, machine),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 6, 0, _X32_BIT),
        (_EQUAL, 5, 0, _IO_URING_SETUP),
        (_EQUAL, 0, 3, socket_call),
        (_LOAD, 0, 0, 16),
        (_EQUAL, 1, 0, _UNIX),
        (_EQUAL, 0, 1, _NETLINK),
        (_RETURN, 0, 0, _ALLOWED),
        (_RETURN, 0, 0, _REFUSED),
    ]


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main()
