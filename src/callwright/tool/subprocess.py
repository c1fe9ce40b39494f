"""Runs a synchronous tool in a process of its own, which can be killed with everything it started.

Minds a process and everything it starts: when it has ended, or nobody holds the leash any more, all of it ends.

    our process ── leash ──► minder ── fork ─► the tool, its children, its daemons

The kernel hands the minder whoever loses its parent, so a daemon that left the session is its child in the end.
"""

import asyncio
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe, spawn
from multiprocessing.connection import Connection
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn, cast

from callwright.core.errors import Crashed, ToolError, UsageError
from callwright.tool.threads import threads

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


_POLL_SECONDS = 0.05
_STOP_SECONDS = 10.0
_WORKER = "from callwright.tool.subprocess import serve; serve(*map(int, __import__('sys').argv[1:]))"


def check_importable(function: Callable[..., Any]) -> None:
    """Raise `UsageError` for a function another process could not find."""
    name = getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType) or "." in name:
        raise UsageError(
            f"isolation='process' needs a function at the top of a module; {name or repr(function)} is not"
        )


async def run_isolated(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> object:
    """Call an importable function in a new process and await its value; killed when the await is cancelled."""
    worker = _Worker((function.__module__, function.__qualname__, tuple(given), dict(named)))
    job = asyncio.ensure_future(threads.run(worker.work))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        worker.kill()
        await asyncio.wait([job])  # a killed process is gone at once; leaving it to be reaped later would be a leak
        with suppress(BaseException):
            job.result()  # seen, so that nobody complains that it was not
        raise


class _Worker:
    """One process and the pipe to it; everything but `kill` blocks and belongs to a thread."""

    def __init__(self, task: tuple[str, str, tuple[Any, ...], dict[str, Any]]) -> None:
        self._task = task
        self._leash: int | None = None
        self._lock = threading.Lock()
        self._killed = False

    def work(self) -> object:
        ours, theirs = Pipe()
        with ours, theirs:
            process = self._started(theirs.fileno())
            theirs.close()
            try:
                if self._killed:  # while it was being started
                    raise Crashed("the tool's process was stopped")
                return _outcome(ours, process, self._task)
            finally:
                self.kill()
                _see_out(process)

    def _started(self, pipe: int) -> "subprocess.Popen[bytes]":
        held, self._leash = os.pipe()
        command = [sys.executable, "-c", _WORKER, str(pipe), str(held)]
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[pipe, held], start_new_session=True)
        except BaseException:
            self.kill()
            raise
        finally:
            os.close(held)

    def kill(self) -> None:
        """Let go of the process: whoever minds it ends it, and all it started. Safe from any thread."""
        with self._lock:
            self._killed = True
            leash, self._leash = self._leash, None
        if leash is not None:
            os.close(leash)


def _see_out(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the minder; a tool that ended its minder gains nothing, because its group is ended too."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _outcome(pipe: Connection, process: "subprocess.Popen[bytes]", task: tuple[str, Any, Any, Any]) -> object:
    try:
        pipe.send(_preparation(task[0]))
        pipe.send(task)
        while not pipe.poll(_POLL_SECONDS):  # a child of the worker may hold the pipe open after it has died
            if process.poll() is not None and not pipe.poll():
                raise EOFError
        done, value = cast("tuple[bool, object]", pickle.loads(pipe.recv_bytes()))
    except (EOFError, OSError):
        process.wait()
        raise Crashed(f"the tool's process ended without an answer (exit code {process.returncode})") from None
    if done:
        return value
    raise cast(BaseException, value)


def _preparation(module: str) -> dict[str, Any]:
    """What the worker must know of this process to import the same things: paths, and the script if it is there."""
    data = spawn.get_preparation_data("callwright-tool")
    wanted = {"name", "sys_path", "sys_argv", "dir", "orig_dir"}
    if module == "__main__":
        wanted |= {"init_main_from_name", "init_main_from_path"}
    return {key: value for key, value in data.items() if key in wanted}


def serve(descriptor: int, leash: int) -> None:
    """Do one task in the worker process and send back what came of it; minded as long as the leash is held."""
    mind(lambda: _serve(descriptor), leash)


def _serve(descriptor: int) -> None:
    with Connection(descriptor) as pipe:
        try:
            spawn.prepare(pipe.recv())
            answer: tuple[bool, object] = (True, _call(*pipe.recv()))
        except ToolError as error:
            answer = (False, error)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the other side must hear of it
            answer = (False, Crashed(f"{type(error).__name__}: {error}"))
        pipe.send_bytes(_packed(answer))


def _call(module: str, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> object:
    found = getattr(importlib.import_module(module), name)
    function = getattr(found, "function", found)  # the name now holds the tool made of the function
    return function(*given, **named)


def _packed(answer: tuple[bool, object]) -> bytes:
    try:
        packed = pickle.dumps(answer)
        pickle.loads(packed)  # an exception may pickle and yet not come back
    except Exception as error:  # noqa: BLE001 - what cannot travel is reported, not lost
        kind = "value" if answer[0] else "error"
        said = "" if answer[0] else f" ({answer[1]})"
        return pickle.dumps((False, Crashed(f"the {kind} cannot be sent between processes: {error}{said}")))
    return packed
