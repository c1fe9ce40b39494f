"""Runs a synchronous tool in a process of its own, which can be killed with everything it started.

    our process ── control ──► worker, monitoring ── fork ─► the tool, its children, its daemons
         └──────────────── task and answer ──────────────────────┘

The worker forks: the child calls the function, the parent monitors it with the code of the command supervisor
(`callwright.system.supervisor_process`). When we close the control socket or die, everything the tool started ends.

The answer comes back as JSON: the tool may have been taken over by what it worked on, and a pickle could run anything
in our process. The worker starts isolated (`-I`) with our module path without the working folder, whose files could
otherwise replace modules of the standard library.
"""

import asyncio
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe, spawn
from multiprocessing.connection import Connection
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from pydantic_core import to_json

from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import (
    ApprovalRequired,
    AuthRequired,
    CallwrightError,
    Cancelled,
    Crashed,
    Denied,
    Halted,
    InvalidArguments,
    TimedOut,
    ToolError,
    ToolFailed,
    Transient,
    UnknownTool,
    Unsafe,
    UsageError,
)
from callwright.core.raised import normalise
from callwright.tool.render import render
from callwright.tool.threads import threads

_POLL_SECONDS = 0.05
_STOP_SECONDS = 10.0
_ANSWER_BYTES = 1 << 28
_WORKER = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]);"
    "from callwright.tool.subprocess import serve; serve(int(sys.argv[1]), int(sys.argv[2]))"
)
_ERRORS = {
    kind.__name__: kind
    for kind in (
        *(ToolError, UnknownTool, InvalidArguments, Unsafe, Denied, Halted, ToolFailed, Transient, TimedOut),
        *(Cancelled, Crashed, ApprovalRequired, AuthRequired),
    )
}
_importing: list[Connection] = []
"""In a worker that imports the module of the tool: the pipe to the process that waits for the answer."""


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
    _refuse_while_importing()
    if _find_function(sys.modules.get(function.__module__), function.__qualname__) is not function:
        place = f"{function.__module__}.{function.__qualname__}"
        raise Crashed(
            f"{place} is not the function of this tool, which another process cannot find; rename one of them"
        )
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


def _find_function(module: ModuleType | None, name: str) -> object:
    """Return the function that a module has under a name, or that of the tool made of it."""
    found = getattr(module, name, None)
    return found if isinstance(found, FunctionType) else getattr(found, "function", None)


def _refuse_while_importing() -> None:
    """End a worker whose import has come to a call: the script does all that it has done once more."""
    if _importing:
        _importing[0].send_bytes(
            _pack_error(
                Crashed(
                    "the tool's process imports the program, which then makes calls again; "
                    'put what the program runs under if __name__ == "__main__":'
                )
            )
        )
        os._exit(1)


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
            process = self._start(theirs.fileno(), _module_path(self._task[0]))
            theirs.close()
            try:
                if self._killed:  # while it was being started
                    raise Crashed("the tool's process was stopped")
                return _exchange(ours, process, self._task)
            finally:
                self.kill()
                _wait_for_end(process)

    def _start(self, pipe: int, module_path: Sequence[str]) -> "subprocess.Popen[bytes]":
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-I", "-c", _WORKER, str(pipe), str(theirs.fileno()), json.dumps(module_path)]
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
    _await_exit(process)
    # a tool that killed or froze its monitor gains nothing: the whole process group is killed as well
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _await_exit(process: "subprocess.Popen[bytes]") -> None:
    """Wait a moment for the end of a process without collecting it: its id must stay its own until the last signal."""
    if not hasattr(os, "waitid"):  # not everywhere
        return
    deadline = time.monotonic() + _STOP_SECONDS
    options = os.WEXITED | os.WNOWAIT | os.WNOHANG
    with suppress(ChildProcessError):
        while os.waitid(os.P_PID, process.pid, options) is None and time.monotonic() < deadline:
            time.sleep(0.005)


def _exchange(pipe: Connection, process: "subprocess.Popen[bytes]", task: tuple[str, Any, Any, Any]) -> object:
    try:
        pipe.send(_prepare_data(task[0]))
        pipe.send(task)
        while not pipe.poll(_POLL_SECONDS):  # a child of the worker may hold the pipe open after the worker died
            if process.poll() is not None and not pipe.poll():
                raise EOFError
        answer = pipe.recv_bytes(_ANSWER_BYTES)
    except (EOFError, OSError):
        process.wait()
        raise Crashed(f"the tool's process ended without an answer (exit code {process.returncode})") from None
    return _unpack(answer)


def _module_path(module: str) -> list[str]:
    """Return our module path without the working folder.

    A tool that is defined there still finds its neighbours: the folder then comes last, where it replaces nothing.
    """
    folder = Path.cwd().resolve()
    kept = [place for place in sys.path if Path(place).is_absolute() and Path(place).resolve() != folder]
    defined = getattr(sys.modules.get(module), "__file__", None)
    is_local = defined is not None and folder in Path(defined).resolve().parents
    return [*kept, str(folder)] if is_local else kept


def _prepare_data(module: str) -> dict[str, Any]:
    """Return what the worker needs to import the same modules: the paths, and the main script if it is needed."""
    data = spawn.get_preparation_data("callwright-tool") | {"sys_path": _module_path(module)}
    wanted = {"name", "sys_path", "sys_argv", "dir", "orig_dir"}
    if module == "__main__":
        wanted |= {"init_main_from_name", "init_main_from_path"}
    return {key: value for key, value in data.items() if key in wanted}


def serve(pipe: int, control: int) -> None:
    """Run one task in the worker process; the descriptors are the pipe for the answer and the control socket."""
    # imported here, because it loads ctypes, which only the worker needs
    from callwright.system.supervisor_process import supervise_call

    for descriptor in (pipe, control):  # what the tool starts must not be able to answer in its place
        os.set_inheritable(descriptor, False)
    supervise_call(lambda: _answer(pipe), socket.socket(fileno=control))


def _answer(descriptor: int) -> None:
    with Connection(descriptor) as pipe:
        try:
            _importing.append(pipe)
            spawn.prepare(pipe.recv())
            module, name, arguments, named_arguments = pipe.recv()
            function = _find_function(importlib.import_module(module), name)
            if not callable(function):
                raise Crashed(f"another process finds no {name} in {module}; define it outside of any condition")
            _importing.clear()
            answer = _pack(function(*arguments, **named_arguments))
        except (ToolError, ApprovalRequired, AuthRequired) as error:
            answer = _pack_error(error)
        except BaseException as error:  # noqa: BLE001 - any failure must reach our process
            answer = _pack_error(normalise(error))
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # before the answer: once our process has it, this one may be ended at any moment
        pipe.send_bytes(answer)


def _pack(value: object) -> bytes:
    if value is None or type(value) is str:  # a text as it is rendered, because JSON carries no lone surrogates
        return to_json({"value": None if value is None else render(value).content})
    try:
        output = render(value)
        plain = isinstance(output.content, str) and output.structured is not None and not isinstance(value, Output)
        fields = {"value": output.structured} if plain else {"output": _pack_output(output)}
        return to_json(fields, inf_nan_mode="constants")
    except ToolFailed as error:
        return _pack_error(error)
    except Exception as error:  # noqa: BLE001 - a value that cannot be sent is reported, not lost
        return _pack_error(Crashed(f"the value cannot be sent between processes: {error}"))


def _pack_output(output: Output) -> dict[str, Any]:
    content = output.content
    if isinstance(content, str):
        return {"content": content, "structured": output.structured}
    return {"content": [_pack_part(part) for part in content], "structured": output.structured}


def _pack_part(part: Part) -> dict[str, str]:
    if isinstance(part, Text):
        return {"text": part.text}
    packed = {"data": b64encode(part.data).decode("ascii"), "media_type": part.media_type}
    return packed | ({"name": part.name} if isinstance(part, File) else {})


def _pack_error(error: CallwrightError) -> bytes:
    """Pack an error as the nearest class of ours, with its message and its plain fields."""
    name = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    plain = {key: value for key, value in vars(error).items() if isinstance(value, (str, int, float, bool, type(None)))}
    message = str(plain.get("message") or plain.get("reason") or error)
    return json.dumps({"error": name, "message": message, "fields": plain}).encode()


def _unpack(answer: bytes) -> object:
    """Read an answer; raises the error in it. Only plain data and our own classes can come out."""
    try:
        fields = cast("dict[str, Any]", json.loads(answer))
        if "error" not in fields:
            return _unpack_output(fields["output"]) if "output" in fields else fields["value"]
        error = _unpack_error(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise Crashed(f"the tool's process sent an answer that cannot be read: {fault}") from None
    raise error


def _unpack_output(fields: dict[str, Any]) -> Output:
    content = fields["content"]
    if not isinstance(content, str):
        content = tuple(_unpack_part(part) for part in cast("list[dict[str, str]]", content))
    return Output(content, fields["structured"])


def _unpack_part(fields: dict[str, str]) -> Part:
    if "text" in fields:
        return Text(fields["text"])
    data = b64decode(fields["data"], validate=True)
    if "name" in fields:
        return File(data, fields["media_type"], fields["name"])
    return Image(data, fields["media_type"])


def _unpack_error(fields: dict[str, Any]) -> CallwrightError:
    kind, message = _ERRORS[fields["error"]], str(fields["message"])
    error = cast("CallwrightError", kind.__new__(kind, message))
    known = {key: value for key, value in fields["fields"].items() if isinstance(key, str) and key.isidentifier()}
    Exception.__init__(error, message)
    vars(error).update(known)
    return error
