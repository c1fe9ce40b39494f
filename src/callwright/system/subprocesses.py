"""Runs ripgrep, git and our own search workers without a shell or a terminal; they end with the call."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from callwright.system.environment import safe_search_path

_ERROR_BYTES = 1 << 16
_QUIET_SECONDS = 0.1
_MOST_QUIET_CHECKS = 10
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


class _Child(asyncio.SubprocessProtocol):
    """What a child process has written, and whether it has ended.

    Args:
        max_bytes: The most output that is kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = max_bytes
        self._received = 0
        self.output: list[bytes] = []
        self.errors = b""
        self.open_pipes = {1, 2}
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self.finished: asyncio.Future[bool] = self._loop.create_future()
        """Done when all output is read; true if there was too much."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep a piece of output; implements asyncio's protocol."""
        self._received += len(data)
        if fd == 2:
            self.errors += data[: _ERROR_BYTES - len(self.errors)]
            return
        self.output.append(data)
        self._room -= len(data)
        if self._room < 0:
            self._finish(cut=True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note the end of a pipe; implements asyncio's protocol."""
        self.open_pipes.discard(fd)
        if self.exited.done() and not self.open_pipes:
            self._finish()

    def process_exited(self) -> None:
        """Note the end of the child; implements asyncio's protocol."""
        self.exited.set_result(None)
        if not self.open_pipes:
            self._finish()
        else:
            self._loop.call_later(_QUIET_SECONDS, self._check_quiet, self._received, _MOST_QUIET_CHECKS)

    def _check_quiet(self, received: int, left: int) -> None:
        # another process holds the pipes; what the child itself wrote has been in them since before it ended
        if self._received == received or not left:
            self._finish()
        else:
            self._loop.call_later(_QUIET_SECONDS, self._check_quiet, self._received, left - 1)

    def _finish(self, *, cut: bool = False) -> None:
        if not self.finished.done():
            self.finished.set_result(cut)


async def _end_child(transport: asyncio.SubprocessTransport, child: _Child) -> None:
    """Kill a child with its process group if it runs, or if some of the group still holds its pipes; close these."""
    try:
        if not child.exited.done() or child.open_pipes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
        await child.exited
    finally:
        writing = transport.get_pipe_transport(0)
        if isinstance(writing, asyncio.WriteTransport) and writing.get_write_buffer_size():
            writing.abort()  # closing it would wait until the rest is read
        transport.close()


async def run_child(
    command: Sequence[str],
    folder: Path,
    *,
    max_bytes: int,
    memory_bytes: int | None = None,
    feed: Awaitable[bytes] | None = None,
    stdin: int | None = None,
) -> ChildResult:
    """Run a child to its end, or until it has written `max_bytes`, and return its output.

    A process that it left behind, with our pipes still open, is not waited for.

    Args:
        command: The program and its arguments.
        folder: The folder it starts in.
        max_bytes: The most output that is kept.
        memory_bytes: The most memory it may use, where the system can limit that.
        feed: Its input.
        stdin: A descriptor to read its input from, where there is no `feed`; by default it has none.
    """
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: _Child(max_bytes),
            *command,
            cwd=folder,
            env=clean_environment({"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}),
            stdin=PIPE if feed else DEVNULL if stdin is None else stdin,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
    )
    try:
        transport, child = await asyncio.shield(starting)
    except asyncio.CancelledError:  # a start that is cancelled itself would wait for the end of the pipes
        with suppress(OSError):
            await _end_child(*await starting)
        raise
    feeding = asyncio.ensure_future(_write_input(transport.get_pipe_transport(0), feed))
    try:
        if memory_bytes is not None:
            _limit_memory(transport.get_pid(), memory_bytes)
        if await child.finished:
            return ChildResult(b"".join(child.output), "", 0, cut=True)
        code = transport.get_returncode()
        assert code is not None
        return ChildResult(b"".join(child.output), child.errors.decode("utf-8", "replace"), code)
    finally:
        feeding.cancel()
        try:
            await asyncio.gather(feeding, return_exceptions=True)
        finally:
            await _end_child(transport, child)


def _limit_memory(process: int, most_bytes: int) -> None:
    if sys.platform == "linux":  # elsewhere a process can only limit itself
        import resource

        with suppress(OSError, ValueError):  # it has ended, or has a lower limit
            resource.prlimit(process, resource.RLIMIT_DATA, (most_bytes, most_bytes))


async def _write_input(pipe: asyncio.BaseTransport | None, feed: Awaitable[bytes] | None) -> None:
    if feed is not None and isinstance(pipe, asyncio.WriteTransport):
        pipe.write(await feed)
        pipe.close()  # when all is written
