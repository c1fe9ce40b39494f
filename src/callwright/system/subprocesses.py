"""Runs ripgrep, git and our own search workers without a shell or a terminal; they end with the call."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from callwright.system.environment import safe_search_path

_CHUNK = 1 << 18
_ERROR_BYTES = 1 << 16
_DROPPED_PREFIXES = ("GIT_", "RIPGREP_")


@dataclass(frozen=True, slots=True)
class ChildResult:
    """The output of a child process and its exit code."""

    output: bytes
    errors: str
    code: int
    """Below zero, the number of the signal that ended it."""
    cut: bool = False
    """The output was too long, so the child was stopped."""


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment without the variables that change what git or ripgrep do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED_PREFIXES)}
    kept["PATH"] = safe_search_path(kept.get("PATH", os.defpath))  # children start in the workspace
    return {**kept, "LC_ALL": "C.UTF-8", **(extra or {})}


@asynccontextmanager
async def _start_child(command: Sequence[str], folder: Path, *, stdin: int) -> AsyncGenerator[Process, None]:
    """Start a child process; leaving the block, also by cancellation, kills it and its process group."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=clean_environment({"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}),
        stdin=stdin,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
        limit=_CHUNK,
    )
    try:
        yield process
    finally:
        await _kill_and_wait(process)


async def _kill_and_wait(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # reading to the end lets the transports close; a killed child writes nothing more than its pipes hold
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(_CHUNK):
            pass
    await process.wait()


async def run_child(
    command: Sequence[str],
    folder: Path,
    *,
    max_bytes: int,
    memory_bytes: int | None = None,
    feed: Awaitable[bytes] | None = None,
) -> ChildResult:
    """Run a child to its end, or until it has written `max_bytes`, and return its output.

    Args:
        command: The program and its arguments.
        folder: The folder it starts in.
        max_bytes: The most output that is kept.
        memory_bytes: The most memory it may use, where the system can limit that.
        feed: Its input.
    """
    async with _start_child(command, folder, stdin=PIPE if feed else DEVNULL) as process:
        if memory_bytes is not None:
            _limit_memory(process.pid, memory_bytes)
        assert process.stdout is not None
        assert process.stderr is not None
        feeding = asyncio.ensure_future(_write_input(process, feed))
        errors = asyncio.ensure_future(_drain(process.stderr))
        try:
            output, cut = await _read(process.stdout, max_bytes)
            if cut:
                return ChildResult(output, "", 0, cut=True)
            return ChildResult(output, (await errors).decode("utf-8", "replace"), await process.wait())
        finally:
            for task in (feeding, errors):
                task.cancel()
            await asyncio.gather(feeding, errors, return_exceptions=True)


def _limit_memory(process: int, most_bytes: int) -> None:
    if sys.platform == "linux":  # elsewhere a process can only limit itself
        import resource

        with suppress(OSError, ValueError):  # it has ended, or has a lower limit
            resource.prlimit(process, resource.RLIMIT_DATA, (most_bytes, most_bytes))


async def _read(stream: asyncio.StreamReader, max_bytes: int) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            return b"".join(parts), True
    return b"".join(parts), False


async def _drain(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept += chunk[: _ERROR_BYTES - len(kept)]
    return kept


async def _write_input(process: Process, feed: Awaitable[bytes] | None) -> None:
    if process.stdin is None or feed is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(await feed)
        await process.stdin.drain()
        process.stdin.close()
