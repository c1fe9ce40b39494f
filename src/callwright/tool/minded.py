"""Minds a process and everything it starts: when it has ended, or nobody holds the leash any more, all of it ends.

    our process ── leash ──► minder ── fork ─► the tool, its children, its daemons

The kernel hands the minder whoever loses its parent, so a daemon that left the session is its child in the end.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

_SUBREAPER = 36
_GIVE_UP_SECONDS = 5.0
_ROUND_SECONDS = 0.002
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def mind(work: Callable[[], None], leash: int) -> NoReturn:
    """Do the work in a child and leave with its exit code, when nothing it started is left; never returns."""
    _adopt_orphans()
    ended = _wake_on_child()
    child = os.fork()
    if child == 0:
        os.close(leash)
        _work(work)
    for number in _IGNORED:  # what the tool sends to its group is not meant for us
        signal.signal(number, signal.SIG_IGN)
    code = _watch(child, leash, ended)
    _end_all()
    os._exit(code)


def _work(work: Callable[[], None]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        work()
        code = 0
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _watch(child: int, leash: int, ended: int) -> int:
    while True:
        ready, _, _ = select.select([leash, ended], (), ())
        if leash in ready:
            return 0
        os.read(ended, 4096)
        while (found := os.waitpid(-1, os.WNOHANG))[0]:  # orphans end too
            if found[0] == child:
                code = os.waitstatus_to_exitcode(found[1])
                return code if code >= 0 else 128 - code  # as shells count what a signal ended


def _end_all() -> None:
    """End our children until there are none: who is left behind by them becomes one."""
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            for pid in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(_ROUND_SECONDS)


def _children() -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()]
    except OSError:  # no such list here: what stayed in the group can be ended, ourselves included
        os.killpg(0, signal.SIGKILL)
        return []


def _adopt_orphans() -> None:
    import ctypes  # only a process that minds another needs it

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SUBREAPER, 1, 0, 0, 0)


def _wake_on_child() -> int:
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _wake(number: int, frame: object) -> None:
    """Do nothing: that a signal has a handler is what makes it write to the wake-up descriptor."""
