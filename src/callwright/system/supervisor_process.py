"""The keeper of commands: a small process beside ours, run as a script, whose commands leave nothing behind.

    our process ──── door ────► keeper ── fork ─► warden ── fork ─► command, its children, its daemons
         └───────────────── control ────────────────┘

One warden watches one command. The kernel hands it every process of the command that loses its parent, so
a daemon that forked twice, left the session and emptied its environment is still the warden's child. When
the command has ended, when we say so or when we die (the control socket closes), the warden ends them all.
A command that kills its warden gains nothing: its processes fall to the keeper, which ends them.

On the control socket: we send the request, later perhaps one byte for "stop"; the warden sends Notes.
"""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NoReturn, TypedDict

NOTE = struct.Struct("!ci")
"""What a warden tells: (BEGAN, its own pid), (ENDED, wait status), (GONE, processes it had to end)."""
BEGAN, ENDED, GONE = b"B", b"E", b"G"
SIZE = struct.Struct("!I")
"""Stands before a request: how many bytes of JSON follow."""
REPORT_FD = 250
"""Where a command finds the pipe for its last words; high, because scripts pick low numbers for themselves."""

_NATURAL_SECONDS = 0.1
_GRACE_SECONDS = 0.2
_ROUND_SECONDS = 0.002
_GIVE_UP_SECONDS = 60.0
_NOT_STARTED = 127 << 8
_SUBREAPER = 36
_prctl = getattr(ctypes.CDLL(None), "prctl", None)
_HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - pathlib would double the time this process takes to start
# only KILL and STOP, which nobody can ignore, may come between a command and its end
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_RESTORED = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


def main() -> None:
    """Serve the door whose descriptor is the only argument, until the other side is gone and all is quiet."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _adopt_orphans()
    gc.disable()
    gc.freeze()  # a collection in a warden would copy the memory it shares with us
    door = socket.socket(fileno=int(sys.argv[1]))
    wake = _wake_on_child()
    wardens: dict[int, int] = {}
    is_open = True
    while is_open or wardens:
        watched = [wake, door.fileno()] if is_open else [wake]
        ready, _, _ = select.select(watched, (), ())
        if door.fileno() in ready:
            is_open = _admit(door, wardens)
        _settle(wake, wardens)


def _admit(door: socket.socket, wardens: dict[int, int]) -> bool:
    try:
        data, fds, _, _ = socket.recv_fds(door, 1, 3)
    except OSError:
        return False
    if not data:
        return False
    for fd in fds:
        os.set_inheritable(fd, False)
    control, *ends = fds
    try:
        pid = os.fork()
    except OSError:  # too many processes: the closed socket tells
        os.close(control)
    else:
        if pid == 0:
            for other in (door.fileno(), *wardens.values()):
                os.close(other)
            _guard(socket.socket(fileno=control), ends)
        # our copy stays open until nothing is left: the other side takes the end of the socket for the end of all
        wardens[pid] = control
    for end in ends:
        os.close(end)
    return True


def _settle(wake: int, wardens: dict[int, int]) -> None:
    _drain(wake)
    for pid, status in _reaped():
        control = wardens.pop(pid, None)
        if control is None:
            continue
        if status:
            _end_strays(wardens)
        os.close(control)


def _end_strays(wardens: Mapping[int, int]) -> None:
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while strays := _descendants(os.getpid(), spare=wardens):
        _signal(strays, signal.SIGKILL)
        for pid in strays:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return


def _guard(control: socket.socket, ends: list[int]) -> NoReturn:
    code = 1
    try:
        _adopt_orphans()
        wake = _wake_on_child()
        control.sendall(NOTE.pack(BEGAN, os.getpid()))
        child = _spawn(_request(control), ends)
        for end in ends:
            os.close(end)
        _Household(child, control, wake).see_out()
        code = 0
    finally:
        os._exit(code)


def _request(control: socket.socket) -> "_Request":
    (size,) = SIZE.unpack(_exactly(control, SIZE.size))
    return json.loads(_exactly(control, size))


def _exactly(control: socket.socket, count: int) -> bytes:
    data = control.recv(count, socket.MSG_WAITALL)
    if len(data) != count:
        raise EOFError("the request was never finished")
    return data


class _Request(TypedDict):
    argv: list[str]
    cwd: str
    env: dict[str, str]


def _spawn(request: _Request, ends: list[int]) -> int:
    try:
        os.chdir(request["cwd"])
        return os.posix_spawn(  # half the time of fork and exec: no copy of our memory is prepared
            _program(request),
            request["argv"],
            request["env"],
            file_actions=_wiring(*ends),
            setsid=True,
            setsigmask=(),
            setsigdef=_RESTORED,
        )
    except (OSError, ValueError) as error:
        os.write(ends[0], f"cannot start {request['argv'][0]}: {error}\n".encode("utf-8", "replace"))
        return 0
    finally:
        os.chdir("/")  # so that we keep no folder busy


def _wiring(output: int, words: int) -> list[tuple[int, ...]]:
    nothing = os.open(os.devnull, os.O_RDONLY)
    return [
        (os.POSIX_SPAWN_DUP2, fd, number) for fd, number in ((nothing, 0), (output, 1), (output, 2), (words, REPORT_FD))
    ]


def _program(request: _Request) -> str:
    name = request["argv"][0]
    if "/" in name:
        return name
    for folder in os.get_exec_path(request["env"]):
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    raise FileNotFoundError(2, "no such program on the PATH", name)


class _Household:
    """A command and everything it starts, seen from the warden that adopts whoever loses its parent."""

    def __init__(self, child: int, control: socket.socket, wake: int) -> None:
        self._child = child
        self._control = control
        self._wake = wake
        self._ended = self._told = self._gone = False

    def see_out(self) -> None:
        """Wait for the command, then make sure that nothing of it is left."""
        if not self._child:
            self._tell(ENDED, _NOT_STARTED)
        self._wait(None)
        if not self._told:  # what is about to finish by itself, such as >(tee), may
            self._wait(_NATURAL_SECONDS)
        left = self._left() if self._ended else []
        self._signal_all(signal.SIGTERM, signal.SIGCONT)
        self._wait(_GRACE_SECONDS, heed=False)
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while not self._gone and time.monotonic() < deadline:
            self._signal_all(signal.SIGKILL)
            self._wait(_ROUND_SECONDS, heed=False)
        self._tell(GONE, len(left))

    def _left(self) -> list[int]:
        return [] if self._gone else _descendants(os.getpid())

    def _wait(self, seconds: float | None, *, heed: bool = True) -> None:
        # without a limit, until the command ends; with one, until nothing is left; a word to stop ends both
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            self._reap()
            if self._gone or (heed and self._told) or (self._ended and seconds is None):
                return
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            watched = [self._wake] if self._told else [self._wake, self._control.fileno()]
            ready, _, _ = select.select(watched, (), (), left)
            if not ready:
                return
            self._told = self._told or self._control.fileno() in ready
            _drain(self._wake)

    def _reap(self) -> None:
        for pid, status in _reaped():
            if pid == self._child:
                self._ended = True
                self._tell(ENDED, status)
        with suppress(ChildProcessError):
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return
        self._gone = True

    def _tell(self, kind: bytes, value: int) -> None:
        with suppress(OSError):  # nobody may be listening any more
            self._control.sendall(NOTE.pack(kind, value))

    def _signal_all(self, *numbers: signal.Signals) -> None:
        if self._gone:
            return
        for number in numbers:
            _signal(_descendants(os.getpid()), number)
            if not _HAS_PROC:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child, number)


def _adopt_orphans() -> None:
    if _prctl is not None:  # elsewhere than on Linux only what stays in the command's group can be ended
        _prctl(_SUBREAPER, 1, 0, 0, 0)


def _wake_on_child() -> int:
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _wake(number: int, frame: object) -> None:
    """Do nothing: that a signal has a handler is what makes it write to the wake-up descriptor."""


def _drain(wake: int) -> None:
    with suppress(BlockingIOError):
        while os.read(wake, 4096):
            pass


def _reaped() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, status


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants(root: int, spare: Mapping[int, int] | None = None) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    ahead = [root]
    while ahead:
        born = [pid for pid in children.get(ahead.pop(), ()) if pid not in (spare or ())]
        found += born
        ahead += born
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc") if _HAS_PROC else ():  # noqa: PTH208 - runs thousands of times while a fork bomb is put out
        if not name.isdigit():
            continue
        with suppress(OSError):
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            try:
                # the name may hold spaces and brackets: what follows counts from its last one
                yield int(name), int(os.read(fd, 1024).rpartition(b")")[2].split()[1])
            finally:
                os.close(fd)


if __name__ == "__main__":
    main()
