"""Supervises process trees: when a command ends, is stopped or loses us, everything it started ends too.

    our process ── handover ──► supervisor ── fork ─► monitor ── fork ─► command, its children, its daemons
         └───────────────── control ─────────────────────┘

The supervisor is one small process beside ours, this file run as a script; it forks one monitor per command. The
kernel gives the monitor every process of the command that loses its parent (it is a "child subreaper"), so a daemon
that forked twice, left the session and cleared its environment is still the monitor's child. The monitor ends them all
when the command has ended, when we ask for it, or when we die and the control socket closes. A command that kills its
monitor gains nothing: its processes become the supervisor's children, and the supervisor ends them.

On the control socket we send the request and later perhaps one byte for "stop"; the monitor sends notes. With it come
two descriptors (output and report) or three (input, output and error output).

A worker of an isolated tool needs no supervisor: it calls `supervise_call`, which makes it its own monitor.

Standard library only: the script runs with `-I -S`, without our package on its path.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NoReturn, TypedDict

NOTE = struct.Struct("!ci")
"""A note of the monitor: (BEGAN, its own pid), (ENDED, wait status), (GONE, number of processes it had to end)."""
BEGAN, ENDED, GONE = b"B", b"E", b"G"
SIZE = struct.Struct("!I")
"""The header of a request: how many bytes of JSON follow."""
REPORT_FD = 250
"""The descriptor on which a command may report to its caller; high, because scripts use low numbers themselves."""

_PIPES = 3
_NATURAL_SECONDS = 0.1
_GRACE_SECONDS = 0.2
_ROUND_SECONDS = 0.002
_GIVE_UP_SECONDS = 60.0
_NOT_STARTED = 127 << 8
_SUBREAPER = 36
_EXITING = 4  # PF_EXITING; a command line is empty at the end too, but also while another program is loaded
_prctl = getattr(ctypes.CDLL(None), "prctl", None)
_HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - pathlib would double the time this process takes to start
# only KILL and STOP, which cannot be ignored, may stop a monitor from cleaning up
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_RESTORED = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


def main() -> None:
    """Accept commands on the socket given as the only argument, until it is closed and all monitors have ended."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _adopt_orphans()
    gc.disable()
    gc.freeze()  # a collection in a monitor would copy the memory it shares with us
    handover = socket.socket(fileno=int(sys.argv[1]))
    wake = _wake_on_child()
    monitors: dict[int, int] = {}
    is_open = True
    while is_open or monitors:
        watched = [wake, handover.fileno()] if is_open else [wake]
        ready, _, _ = select.select(watched, (), ())
        if handover.fileno() in ready:
            is_open = _accept_command(handover, monitors)
        _reap_monitors(wake, monitors)


def _accept_command(handover: socket.socket, monitors: dict[int, int]) -> bool:
    try:
        data, fds, _, _ = socket.recv_fds(handover, 1, 4)
    except OSError:
        return False
    if not data:
        return False
    for fd in fds:
        os.set_inheritable(fd, False)
    control, *ends = fds
    try:
        pid = os.fork()
    except OSError:  # too many processes: our process sees the closed socket
        os.close(control)
    else:
        if pid == 0:
            for other in (handover.fileno(), *monitors.values()):
                os.close(other)
            _run_monitor(socket.socket(fileno=control), ends)
        # our copy stays open until nothing is left: to our process, a closed socket means that everything has ended
        monitors[pid] = control
    for end in ends:
        os.close(end)
    return True


def _reap_monitors(wake: int, monitors: dict[int, int]) -> None:
    _drain(wake)
    for pid, status in _reap_children():
        control = monitors.pop(pid, None)
        if control is None:
            continue
        if status:
            _kill_strays(monitors)
        os.close(control)


def _kill_strays(monitors: Mapping[int, int]) -> None:
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while strays := _descendants(os.getpid(), except_pids=monitors):
        _signal(strays, signal.SIGKILL)
        for pid in strays:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return


def _run_monitor(control: socket.socket, ends: list[int]) -> NoReturn:
    code = 1
    try:
        _adopt_orphans()
        wake = _wake_on_child()
        control.sendall(NOTE.pack(BEGAN, os.getpid()))
        child = _spawn(_read_request(control), ends)
        for end in ends:
            os.close(end)
        _ProcessTree(child, control, wake).wait_and_clean_up()
        code = 0
    finally:
        os._exit(code)


def supervise_call(work: Callable[[], None], control: socket.socket) -> NoReturn:
    """Do the work in a forked child and monitor it; exit with its exit code when nothing it started is left.

    Args:
        work: What the child does. It exits with 1 if this raises.
        control: A socket to our process; when it closes, the child and everything it started is ended.
    """
    _adopt_orphans()
    wake = _wake_on_child()
    child = os.fork()
    if child == 0:
        control.close()
        _work_and_exit(work)
    for number in _IGNORED:  # the work may signal its own process group, which is ours too
        signal.signal(number, signal.SIG_IGN)
    tree = _ProcessTree(child, control, wake)
    tree.wait_and_clean_up()
    os._exit(tree.exit_code)


def _work_and_exit(work: Callable[[], None]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if not _HAS_PROC:
        os.setpgid(0, 0)  # without a process list the monitor ends the child's group, and must not be in it
    code = 1
    try:
        work()
        code = 0
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _read_request(control: socket.socket) -> "_Request":
    (size,) = SIZE.unpack(_read_exactly(control, SIZE.size))
    return json.loads(_read_exactly(control, size))


def _read_exactly(control: socket.socket, count: int) -> bytes:
    data = control.recv(count, socket.MSG_WAITALL)
    if len(data) != count:
        raise EOFError("the request is incomplete")
    return data


class _Request(TypedDict):
    argv: list[str]
    cwd: str
    env: dict[str, str]


def _spawn(request: _Request, ends: list[int]) -> int:
    failing = f"cannot enter the folder {request['cwd']}"
    try:
        os.chdir(request["cwd"])
        failing = f"cannot start {request['argv'][0]}"
        return os.posix_spawn(  # half the time of fork and exec: no copy of our memory is prepared
            _find_program(request),
            request["argv"],
            request["env"],
            file_actions=_list_file_actions(ends),
            setsid=True,
            setsigmask=(),
            setsigdef=_RESTORED,
        )
    except (OSError, ValueError) as error:
        errors = ends[-1] if len(ends) == _PIPES else ends[0]
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        os.write(errors, f"{failing}: {why}\n".encode("utf-8", "replace"))
        return 0
    finally:
        os.chdir("/")  # a working folder could not be unmounted or removed


def _list_file_actions(ends: list[int]) -> list[tuple[int, ...]]:
    if len(ends) == _PIPES:
        pairs = [*zip(ends, range(_PIPES), strict=True)]
    else:
        output, report = ends
        pairs = [(os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2), (report, REPORT_FD)]
    return [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in pairs]


def _find_program(request: _Request) -> str:
    name = request["argv"][0]
    if "/" in name:
        return name
    for folder in os.get_exec_path(request["env"]):
        # an empty or relative entry is the working folder, whose files must not replace programs
        if folder.startswith("/") and os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    raise FileNotFoundError(2, "no such program on the PATH", name)


class _ProcessTree:
    """A command and everything it starts, seen from the monitor that adopts the orphans."""

    def __init__(self, child: int, control: socket.socket, wake: int) -> None:
        self._child = child
        self._control = control
        self._wake = wake
        self._ended = self._stop_requested = self._gone = False
        self.exit_code = 0
        """As a shell counts: 128 plus the signal's number if a signal ended the command."""

    def wait_and_clean_up(self) -> None:
        """Wait for the command, then end everything that is left of it."""
        if not self._child:
            self._send_note(ENDED, _NOT_STARTED)
        self._wait(None)
        if not self._stop_requested:  # let finish what is about to end by itself, such as >(tee)
            self._wait(_NATURAL_SECONDS)
        left = self._list_leftovers() if self._ended else []
        self._signal_all(signal.SIGTERM, signal.SIGCONT)
        self._wait(_GRACE_SECONDS, stoppable=False)
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while not self._gone and time.monotonic() < deadline:
            self._signal_all(signal.SIGKILL)
            self._wait(_ROUND_SECONDS, stoppable=False)
        self._send_note(GONE, len(left))

    def _list_leftovers(self) -> list[int]:
        if self._gone:
            return []
        left = _descendants(os.getpid())
        if running := [pid for pid in left if not _is_ending(pid)]:
            return running
        # a process that hops from fork to fork always seems to end: whatever is new a moment later was left running
        self._wait(_ROUND_SECONDS, stoppable=False)
        return [] if self._gone else [pid for pid in _descendants(os.getpid()) if pid not in left]

    def _wait(self, seconds: float | None, *, stoppable: bool = True) -> None:
        # without a limit: until the command ends; with one: until nothing is left; a stop request ends both
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            self._check_children()
            if self._gone or (stoppable and self._stop_requested) or (self._ended and seconds is None):
                return
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            watched = [self._wake] if self._stop_requested else [self._wake, self._control.fileno()]
            ready, _, _ = select.select(watched, (), (), left)
            if not ready:
                return
            self._stop_requested = self._stop_requested or self._control.fileno() in ready
            _drain(self._wake)

    def _check_children(self) -> None:
        for pid, status in _reap_children():
            if pid == self._child:
                self._ended = True
                self.exit_code = shell_exit_code(status)
                self._send_note(ENDED, status)
        with suppress(ChildProcessError):
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return
        self._gone = True

    def _send_note(self, kind: bytes, value: int) -> None:
        with suppress(OSError):  # our process may be gone
            self._control.sendall(NOTE.pack(kind, value))

    def _signal_all(self, *numbers: signal.Signals) -> None:
        if self._gone:
            return
        for number in numbers:
            _signal(_descendants(os.getpid()), number)
            if not _HAS_PROC:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child, number)


def shell_exit_code(status: int) -> int:
    """Translate a wait status into the exit code that a shell reports: 128 plus the number of a fatal signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _adopt_orphans() -> None:
    if _prctl is not None:  # without it (not Linux) only processes that stay in the command's group can be ended
        _prctl(_SUBREAPER, 1, 0, 0, 0)


def _wake_on_child() -> int:
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, _do_nothing)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _do_nothing(number: int, frame: object) -> None:
    """Handle SIGCHLD: a signal writes to the wake-up descriptor only if it has a handler."""


def _drain(wake: int) -> None:
    with suppress(BlockingIOError):
        while os.read(wake, 4096):
            pass


def _reap_children() -> Iterator[tuple[int, int]]:
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


def _is_ending(pid: int) -> bool:
    """Whether a process has begun to end, or has ended: on a busy machine that takes time."""
    try:
        return bool(int(_read_stat(pid)[6]) & _EXITING)
    except OSError:
        return True


def _descendants(root: int, except_pids: Mapping[int, int] | None = None) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _iter_parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    pending = [root]
    while pending:
        below = [pid for pid in children.get(pending.pop(), ()) if pid not in (except_pids or ())]
        found += below
        pending += below
    return found


def _iter_parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc") if _HAS_PROC else ():  # noqa: PTH208 - runs thousands of times while a fork bomb is killed
        if not name.isdigit():
            continue
        with suppress(OSError):
            yield int(name), int(_read_stat(name)[1])


def _read_stat(pid: int | str) -> list[bytes]:
    """Return what the kernel tells about a process, from its state on; the second is its parent, the seventh flags."""
    fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    try:
        # the name may contain spaces and brackets: the fields start after the last bracket
        return os.read(fd, 1024).rpartition(b")")[2].split()
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
