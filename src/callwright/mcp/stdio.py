"""Server processes that speak over their standard input and output."""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from pydantic_core import from_json

from callwright.mcp.config import ServerConfig
from callwright.mcp.fast_path import PipeFastPath
from callwright.mcp.lines import LineReader, LineWriter, TappedPipe
from callwright.system.environment import safe_search_path
from callwright.system.piped_process import PipedProcess

_GRACE_SECONDS = 2.0
_STDERR_TAIL_BYTES = 2_000
_SIGNALLED = 128


class ServerProcess:
    """A server process; `lost` is set when its output ends."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self.lost: asyncio.Event = asyncio.Event()
        self.fast_path: PipeFastPath | None = None
        self._stderr_tail = bytearray()
        self._reader: LineReader | None = None
        self._code: int | None = None
        self.ended = False
        """Whether the process ended by itself."""
        self._stopping = False

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[tuple[LineReader, LineWriter], None]:
        """Start the server and lend its pipes; leaving, also by cancellation, ends it and everything it started."""
        process = await self._start()
        collecting = asyncio.create_task(self._collect_stderr(process))
        self.fast_path = PipeFastPath(process.stdin)
        self._reader = LineReader(process.stdout, self._offer, answers_follow=True)
        self.lost = self._reader.ended
        writer = LineWriter(process.stdin, self._note_meta)
        try:
            yield self._reader, writer
        finally:  # the broken pipe may be seen before the end of its output
            self.ended = (self._reader.ended.is_set() or writer.broken) and not self._reader.reason
            self._stopping = not self.ended
            self.fast_path.close()
            ending = asyncio.create_task(_end(process))
            try:
                await asyncio.shield(ending)
            finally:
                if not ending.done():  # cancelled meanwhile: the supervisor kills it at once
                    ending.cancel()
                    process.abandon()
                collecting.cancel()
                self._code = process.exit_code

    def _offer(self, line: bytes) -> bool:
        return self.fast_path is not None and self.fast_path.busy and self.fast_path.take(from_json(line))

    def _note_meta(self, item: SessionMessage) -> None:
        """Copy the `_meta` of the SDK's requests, which the fast path must send too."""
        message = item.message
        if self.fast_path is not None and isinstance(message, types.JSONRPCRequest) and message.params:
            meta: dict[str, Any] = message.params.get("_meta") or {}
            self.fast_path.meta = {key: value for key, value in meta.items() if key != "progressToken"}

    async def _start(self) -> PipedProcess:
        """Start the process with a tap on its output."""
        config = self._config
        environment = {**get_default_environment(), **config.env}
        cwd = os.path.join(os.getcwd(), config.cwd)  # noqa: PTH109, PTH118 - text, and no file is read
        _check_program(config.command, cwd, environment)
        return await PipedProcess.start(
            (config.command, *config.args),
            cwd=cwd,
            environment=environment,
            line_bytes=config.message_bytes,
            read_with=lambda reader: TappedPipe(reader, self._offer),
        )

    async def _collect_stderr(self, process: PipedProcess) -> None:
        """Keep the end of the error output, which often holds the cause of a failure."""
        while chunk := await process.stderr.read(1 << 16):
            if not self._stopping:  # output caused by our shutdown explains nothing
                self._stderr_tail += chunk
                del self._stderr_tail[:-_STDERR_TAIL_BYTES]

    @property
    def log(self) -> str:
        """The end of its error output."""
        return self._stderr_tail.decode("utf-8", "replace").strip()

    def explain(self) -> str:
        """Describe why the process is gone."""
        lines = self.log.splitlines()
        reasons = [
            self._reader.reason if self._reader else "",
            self._ending(),
            f"its last output: {lines[-1][:300]}" if lines else "",
        ]
        return "; ".join(filter(None, reasons))

    def _ending(self) -> str:
        if not self.ended:
            return ""
        by_itself = self._code is not None and self._code < _SIGNALLED
        return f"it ended with exit code {self._code}" if by_itself else "it ended"


def _check_program(command: str, cwd: str, environment: Mapping[str, str]) -> None:
    """Raise `OSError` for a program that does not exist, which explains more than its exit code."""
    if "/" in command:
        path = Path(cwd, command)
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such file", command)
        if not os.access(path, os.X_OK) or path.is_dir():
            raise PermissionError(errno.EACCES, "permission denied", command)
    elif shutil.which(command, path=safe_search_path(environment.get("PATH", os.defpath))) is None:
        raise FileNotFoundError(errno.ENOENT, "no such program", command)


async def _end(process: PipedProcess) -> None:
    """Close its input and wait a moment, then end it and everything it started."""
    process.stdin.close()
    draining = asyncio.create_task(_drain(process.stdout))
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
        await process.close()
    finally:
        draining.cancel()


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read the rest of the output: a server blocked on writing would not notice that its input is closed."""
    with suppress(OSError):
        while await stream.read(1 << 16):
            pass
