"""A server as a process of ours: messages as lines over its pipes, with a bound on everything it may send.

How fast a server may talk: one that floods is read more slowly, which costs nobody else anything.

Lines looked at as they come off a pipe: what is taken there never wakes the task that reads the rest.
"""

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from pydantic_core import from_json

from callwright.mcp.config import ServerConfig
from callwright.mcp.fast_path import Lane

_PER_SECOND = 2_000
_BURST = 10_000


class Pace:
    """Lets a burst through at once and what follows at a steady rate."""

    def __init__(self, per_second: float = _PER_SECOND, burst: float = _BURST) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = burst
        self._stamp = time.monotonic()

    def allows(self) -> bool:
        """Count one message, unless there have been too many."""
        if self._left < 1:
            now = time.monotonic()
            self._left = min(self._burst, self._left + (now - self._stamp) * self._per_second)
            self._stamp = now
            if self._left < 1:
                return False
        self._left -= 1
        return True

    async def keep(self) -> None:
        """Count one message; wait if there have been too many."""
        while not self.allows():  # noqa: ASYNC110 - what is waited for is the clock
            await asyncio.sleep((1 - self._left) / self._per_second)


Take: TypeAlias = Callable[[bytes], bool]
"""Says whether a line was for it."""


class Tap:
    """Stands before a reader. Lines that come too fast are not looked at here: the reader takes its time with them."""

    def __init__(self, reader: asyncio.StreamReader, take: Take) -> None:
        self._reader = reader
        self._take = take
        self._pace = Pace()
        self._amid = False
        """The reader holds the beginning of a line, so the rest is its as well."""

    def feed(self, data: bytes) -> None:
        """Offer the lines that are whole; everything else goes to the reader as it came."""
        if self._amid or not data.endswith(b"\n"):
            self._reader.feed_data(data)
            self._amid = not data.endswith(b"\n")
            return
        for line in data.splitlines(keepends=True) if data.count(b"\n") > 1 else (data,):
            if not (self._pace.allows() and self._taken(line)):
                self._reader.feed_data(line)

    def _taken(self, line: bytes) -> bool:
        try:
            return self._take(line)
        except ValueError:  # no JSON: the reader knows what to make of it
            return False


class TappedPipe(asyncio.StreamReaderProtocol):
    """Our own input, tapped."""

    def __init__(self, reader: asyncio.StreamReader, take: Take) -> None:
        super().__init__(reader)
        self._tap = Tap(reader, take)

    def data_received(self, data: bytes) -> None:
        self._tap.feed(data)


class TappedProcess(SubprocessStreamProtocol):
    """A child whose output is tapped."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop, take: Take) -> None:
        super().__init__(limit=limit, loop=loop)
        self._take = take
        self._tap: Tap | None = None

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd != 1 or isinstance(data, str):
            super().pipe_data_received(fd, data)
            return
        if self._tap is None:
            reader: asyncio.StreamReader = self.stdout  # type: ignore[assignment] - made with the pipe
            self._tap = Tap(reader, self._take)
        self._tap.feed(data)


_GRACE_SECONDS = 2.0
_LAST_WORDS = 2_000


class _Stream:
    """What the SDK wants of a stream beside `receive` or `send`."""

    async def aclose(self) -> None:
        """Nothing to let go: the process is ended by whoever started it."""

    async def __aenter__(self) -> "_Stream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class LineReader(_Stream):
    """Messages from a pipe, one a line. What is no message is passed over; what `take` takes never gets further."""

    def __init__(self, reader: asyncio.StreamReader, take: Take | None = None) -> None:
        self._reader = reader
        self._take = take
        self._pace = Pace()
        self.ended = asyncio.Event()
        self.reason = ""
        """Why the reading ended, where it was not the other side's wish."""

    def __aiter__(self) -> "LineReader":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        while True:
            line = await self._line()
            await self._pace.keep()
            if line.isspace():
                continue
            try:
                if self._take is not None and self._take(line):
                    continue
                return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:  # a server that prints to its output is common, and no reason to give up on it
                self.reason = f"it wrote a line that is no message: {line[:200]!r}"

    async def _line(self) -> bytes:
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            self.reason = f"it sent one message of more than {error.consumed} bytes"
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                self.reason = "it ended in the middle of a message"
        except OSError as error:
            self.reason = f"its output cannot be read: {error}"
        self.ended.set()
        raise anyio.EndOfStream


class LineWriter(_Stream):
    """Messages into a pipe, one a line."""

    def __init__(self, writer: asyncio.StreamWriter, sent: Callable[[SessionMessage], None] | None = None) -> None:
        self._writer = writer
        self._sent = sent

    async def send(self, item: SessionMessage, /) -> None:
        if self._sent is not None:
            self._sent(item)
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._writer.write(text.encode() + b"\n")
            await self._writer.drain()
        except (ConnectionError, RuntimeError, OSError) as error:
            raise anyio.BrokenResourceError from error


class ServerProcess:
    """A started server; `lost` is set when it has no more to say."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self.lost: asyncio.Event = asyncio.Event()
        self.lane: Lane | None = None
        self._last_words = bytearray()
        self._reader: LineReader | None = None
        self._code: int | None = None
        self.ended = False
        """It ended by itself, before anybody told it to."""
        self._told = False

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[tuple[LineReader, LineWriter], None]:
        """Start the server and lend its pipes; leaving, also by cancellation, ends it and all it started."""
        process = await self._start()
        hearing = asyncio.create_task(self._hear(process))
        assert process.stdout is not None and process.stdin is not None
        self.lane = Lane(process.stdin)
        self._reader = LineReader(process.stdout, self._taken)
        self.lost = self._reader.ended
        try:
            yield self._reader, LineWriter(process.stdin, self._overheard)
        finally:
            self.ended = self._reader.ended.is_set() and not self._reader.reason
            self._told = not self.ended
            self.lane.close()
            ending = asyncio.create_task(_end(process))
            try:
                await asyncio.shield(ending)
            finally:
                if not ending.done():  # cancelled meanwhile: no more patience
                    _kill(process)
                hearing.cancel()
                self._code = process.returncode

    def _taken(self, line: bytes) -> bool:
        return self.lane is not None and self.lane.busy and self.lane.take(from_json(line))

    def _overheard(self, item: SessionMessage) -> None:
        """Learn from a request of the SDK's what has to be sent along with each."""
        message = item.message
        if self.lane is not None and isinstance(message, types.JSONRPCRequest) and message.params:
            meta: dict[str, Any] = message.params.get("_meta") or {}
            self.lane.meta = {key: value for key, value in meta.items() if key != "progressToken"}

    async def _start(self) -> Process:
        """As `create_subprocess_exec` does it, with its output tapped."""
        config, loop = self._config, asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: TappedProcess(config.message_bytes, loop, self._taken),
            config.command,
            *config.args,
            cwd=config.cwd or None,
            env={**get_default_environment(), **config.env},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        return Process(transport, protocol, loop)

    async def _hear(self, process: Process) -> None:
        """Keep the end of what it says beside the protocol: that is where it tells why it fails."""
        assert process.stderr is not None
        while chunk := await process.stderr.read(1 << 16):
            if not self._told:  # what it says of being ended is no reason
                self._last_words += chunk
                del self._last_words[:-_LAST_WORDS]

    @property
    def log(self) -> str:
        """The end of what it wrote beside the protocol."""
        return self._last_words.decode("utf-8", "replace").strip()

    def explain(self) -> str:
        """Why it is gone, as far as anybody knows."""
        words = self.log.splitlines()
        reasons = [
            self._reader.reason if self._reader else "",
            self._ending(),
            f"it said: {words[-1][:300]}" if words else "",
        ]
        return "; ".join(filter(None, reasons))

    def _ending(self) -> str:
        if not self.ended:
            return ""
        return f"it ended with exit code {self._code}" if self._code is not None and self._code >= 0 else "it ended"


async def _end(process: Process) -> None:
    """Close its input, wait, ask, wait, kill: its whole group, for servers that are started by a script."""
    if process.stdin is not None:
        process.stdin.close()
    draining = asyncio.create_task(_drain(process.stdout))
    try:
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                _signal(process, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
                break
    finally:
        _kill(process)
        draining.cancel()
        _close(process)


async def _drain(stream: asyncio.StreamReader | None) -> None:
    """A server that is stuck writing cannot notice that it should end."""
    with suppress(OSError):
        while stream is not None and await stream.read(1 << 16):
            pass


def _kill(process: Process) -> None:
    _signal(process, signal.SIGKILL)


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _close(process: Process) -> None:
    """A descendant that fled its group may hold the pipes open; we do not wait for it."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with suppress(ProcessLookupError):
            transport.close()
