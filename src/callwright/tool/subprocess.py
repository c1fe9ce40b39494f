"""Runs a synchronous tool in a process of its own, which can be killed with everything it started.

    our process ── control ──► worker, monitoring ── fork ─► the tool, its children, its daemons
         └──────────────── task and answer ──────────────────────┘

The worker forks: the child calls the function, the parent monitors it with the code of the command supervisor
(`callwright.system.supervisor_process`). When we close the control socket or die, everything the tool started ends.
"""

import asyncio
import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe, spawn
from multiprocessing.connection import Connection
from types import FunctionType
from typing import Any, cast

from callwright.core.errors import Crashed, ToolError, UsageError
from callwright.tool.threads import threads

_POLL_SECONDS = 0.05
_STOP_SECONDS = 10.0
_WORKER = "from callwright.tool.subprocess import serve; serve(*map(int, __import__('sys').argv[1:]))"


def check_importable(function: Callable[..., Any]) -> None:
    """Check that another process can import the function.

    Raises:
        UsageError: The function is not defined at the top level of a module.
    """
    name = getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType) or "." in name:
        raise UsageError(
            f"isolation='process' needs a function at the top of a module; {name or repr(function)} is not"
        )


async def run_isolated(
    function: Callable[..., Any], arguments: Sequence[Any], named_arguments: Mapping[str, Any]
) -> object:
    """Call an importable function in a new process and return its value.

    Cancelling the await kills the process and everything it started.

    Raises:
        ToolError: The function raised it.
        Crashed: The function raised anything else, or the process ended without an answer.
    """
    task = (function.__module__, function.__qualname__, tuple(arguments), dict(named_arguments))
    worker = _Worker(task)
    job = asyncio.ensure_future(threads.run(worker.work))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        worker.kill()
        await asyncio.wait([job])  # a killed process ends at once; not waiting for it would leave a zombie
        with suppress(BaseException):
            job.result()  # retrieved, so that asyncio does not warn about an unseen exception
        raise


class _Worker:
    """One worker process and the pipe to it. Everything but `kill` blocks and runs in a thread."""

    def __init__(self, task: tuple[str, str, tuple[Any, ...], dict[str, Any]]) -> None:
        self._task = task
        self._control: socket.socket | None = None
        self._lock = threading.Lock()
        self._killed = False

    def work(self) -> object:
        """Start the process, wait for its answer and return the value, or raise what the function raised."""
        ours, theirs = Pipe()
        with ours, theirs:
            process = self._start(theirs.fileno())
            theirs.close()
            try:
                if self._killed:  # while it was being started
                    raise Crashed("the tool's process was stopped")
                return _exchange(ours, process, self._task)
            finally:
                self.kill()
                _wait_for_end(process)

    def _start(self, pipe: int) -> "subprocess.Popen[bytes]":
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _WORKER, str(pipe), str(theirs.fileno())]
            try:
                return subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, pass_fds=[pipe, theirs.fileno()], start_new_session=True
                )
            except BaseException:
                self.kill()
                raise

    def kill(self) -> None:
        """Close the control socket: the worker then ends the tool and everything it started. Thread-safe."""
        with self._lock:
            self._killed = True
            control, self._control = self._control, None
        if control is not None:
            control.close()


def _wait_for_end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    # a tool that killed or froze its monitor gains nothing: the whole process group is killed as well
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _exchange(pipe: Connection, process: "subprocess.Popen[bytes]", task: tuple[str, Any, Any, Any]) -> object:
    try:
        pipe.send(_prepare_data(task[0]))
        pipe.send(task)
        while not pipe.poll(_POLL_SECONDS):  # a child of the worker may hold the pipe open after the worker died
            if process.poll() is not None and not pipe.poll():
                raise EOFError
        done, value = cast("tuple[bool, object]", pickle.loads(pipe.recv_bytes()))
    except (EOFError, OSError):
        process.wait()
        raise Crashed(f"the tool's process ended without an answer (exit code {process.returncode})") from None
    if done:
        return value
    raise cast(BaseException, value)


def _prepare_data(module: str) -> dict[str, Any]:
    """Return what the worker needs to import the same modules: the paths, and the main script if it is needed."""
    data = spawn.get_preparation_data("callwright-tool")
    wanted = {"name", "sys_path", "sys_argv", "dir", "orig_dir"}
    if module == "__main__":
        wanted |= {"init_main_from_name", "init_main_from_path"}
    return {key: value for key, value in data.items() if key in wanted}


def serve(pipe: int, control: int) -> None:
    """Run one task in the worker process; the descriptors are the pipe for the answer and the control socket."""
    # imported here, because it loads ctypes, which only the worker needs
    from callwright.system.supervisor_process import supervise_call

    supervise_call(lambda: _answer(pipe), socket.socket(fileno=control))


def _answer(descriptor: int) -> None:
    with Connection(descriptor) as pipe:
        try:
            spawn.prepare(pipe.recv())
            answer: tuple[bool, object] = (True, _call(*pipe.recv()))
        except ToolError as error:
            answer = (False, error)
        except BaseException as error:  # noqa: BLE001 - any failure must reach our process
            answer = (False, Crashed(f"{type(error).__name__}: {error}"))
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # before the answer: once our process has it, this one may be ended at any moment
        pipe.send_bytes(_pack(answer))


def _call(module: str, name: str, arguments: tuple[Any, ...], named_arguments: dict[str, Any]) -> object:
    found = getattr(importlib.import_module(module), name)
    function = getattr(found, "function", found)  # the name now holds the tool made of the function
    return function(*arguments, **named_arguments)


def _pack(answer: tuple[bool, object]) -> bytes:
    try:
        packed = pickle.dumps(answer)
        pickle.loads(packed)  # an exception may be pickled and yet not be restored
    except Exception as error:  # noqa: BLE001 - an answer that cannot be sent is reported, not lost
        kind = "value" if answer[0] else "error"
        detail = "" if answer[0] else f" ({answer[1]})"
        return pickle.dumps((False, Crashed(f"the {kind} cannot be sent between processes: {error}{detail}")))
    return packed
