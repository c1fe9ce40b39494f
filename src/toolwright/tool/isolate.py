"""Runs a synchronous tool in a process of its own, which can be killed with its children."""

import asyncio
import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, cast

from toolwright.core.errors import Crashed, ToolError, UsageError


async def run_isolated(function: Callable[..., Any], values: dict[str, Any]) -> object:
    """Call an importable function in a new process and await its value; killed when the await is cancelled."""
    module, name = _address(function)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(module, name, values, theirs), daemon=True)
    await asyncio.to_thread(process.start)  # starting an interpreter takes tens of milliseconds
    theirs.close()
    try:
        return await _received(ours, process)
    finally:
        _kill_group(process.pid)
        ours.close()
        await asyncio.to_thread(process.join)
        process.close()


def _address(function: Callable[..., Any]) -> tuple[str, str]:
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", "")
    if not module or not name or "<locals>" in name:
        raise UsageError(f"isolation='process' needs a function at the top of a module; {name or function!r} is not")
    return module, name


async def _received(pipe: Connection, process: Any) -> object:
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()
    loop.add_reader(pipe.fileno(), lambda: arrived.done() or arrived.set_result(None))
    try:
        await arrived
    finally:
        loop.remove_reader(pipe.fileno())
    try:
        done, value = cast("tuple[bool, object]", pipe.recv())
    except EOFError:
        process.join()
        raise Crashed(f"the tool's process ended without an answer (exit code {process.exitcode})") from None
    if done:
        return value
    raise cast(BaseException, value)


def _kill_group(pid: int | None) -> None:
    """The worker leads its own session, so this reaches every child it started."""
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _work(module: str, name: str, values: dict[str, Any], pipe: Connection) -> None:
    os.setsid()
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
        function = getattr(target, "function", target)  # the name now holds the tool made of the function
        answer: tuple[bool, object] = (True, function(**values))
    except ToolError as error:
        answer = (False, error)
    except BaseException as error:  # noqa: BLE001 - whatever it was, the other side must hear of it
        answer = (False, Crashed(f"{type(error).__name__}: {error}"))
    try:
        pipe.send(answer)
    except Exception as error:  # noqa: BLE001 - a value that cannot travel is reported, not lost
        pipe.send((False, Crashed(f"the value cannot be sent between processes: {error}")))
