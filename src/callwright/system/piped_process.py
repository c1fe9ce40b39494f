"""Runs a program with pipes to its three streams; everything it starts ends with it, and it ends with us.

Also takes our own streams away from what prints or reads in this process, for a protocol over them.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from io import FileIO

from callwright.system.supervisor import SUPERVISOR, encode_request, split_notes
from callwright.system.supervisor_process import ENDED, GONE, shell_exit_code

_LINE_BYTES = 1 << 16
_NOT_STARTED = 127


def take_standard_streams() -> tuple[int, int]:
    """Return descriptors of our standard input and output, which nothing else in this process uses from now on.

    Standard output is redirected to standard error, and standard input is empty: what a tool or a library prints must
    not end up in a protocol, and no program started here may read the messages of its peer.
    """
    sys.stdout.flush()
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return taken


class PipedProcess:
    """A program under the supervisor, with its streams as asyncio streams.

    Start it with `start`, and always `close` it: that ends the program with its children and daemons. It also ends
    when our process dies.
    """

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._transports: list[asyncio.BaseTransport] = []
        self._watching: asyncio.Task[None] | None = None
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self.exit_code: int | None = None
        """As a shell counts, 128 plus the number of a fatal signal; None while it runs."""

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        line_bytes: int = _LINE_BYTES,
        read_with: Callable[[asyncio.StreamReader], asyncio.StreamReaderProtocol] | None = None,
    ) -> "PipedProcess":
        """Start a program. One that does not exist ends with exit code 127 and a line on its error output.

        Args:
            argv: The program and its arguments.
            cwd: The folder it starts in.
            environment: All of its environment.
            line_bytes: How much of one line the readers hold.
            read_with: Makes the protocol that feeds the reader of the output.

        Raises:
            ToolFailed: The supervisor cannot be started.
        """
        ours, theirs = socket.socketpair()
        process = cls(ours)
        try:
            with theirs, ExitStack() as near, ExitStack() as far:
                pipes = [_pipe(near, far, writes=index == 0) for index in range(3)]
                SUPERVISOR.hand_over([theirs.fileno(), *(end.fileno() for _, end in pipes)])
                far.close()
                await process._connect([end for end, _ in pipes], line_bytes, read_with)
                near.pop_all()  # the transports close them
            ours.setblocking(False)
            process._watching = asyncio.ensure_future(process._watch(encode_request(argv, cwd, environment)))
        except BaseException:
            process._close_transports()
            ours.close()
            raise
        return process

    async def wait(self) -> int:
        """Wait until the program ends and return its exit code."""
        await self._exited.wait()
        return _NOT_STARTED if self.exit_code is None else self.exit_code

    async def close(self) -> None:
        """End the program and everything it started, wait for that, and close the pipes."""
        with suppress(OSError):
            self._control.send(b"!")
        try:
            await self._gone.wait()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close everything without waiting; the supervisor then ends the program and all it started."""
        if self._watching is not None:
            self._watching.cancel()
        self._control.close()
        self._close_transports()

    def _close_transports(self) -> None:
        for transport in self._transports:
            transport.close()

    async def _connect(
        self,
        ends: Sequence[FileIO],
        line_bytes: int,
        read_with: Callable[[asyncio.StreamReader], asyncio.StreamReaderProtocol] | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.stdout, self.stderr = (asyncio.StreamReader(line_bytes, loop) for _ in range(2))
        feed = read_with or asyncio.StreamReaderProtocol
        for reader, end, make in ((self.stdout, ends[1], feed), (self.stderr, ends[2], asyncio.StreamReaderProtocol)):
            protocol = make(reader)
            transport, _ = await loop.connect_read_pipe(lambda protocol=protocol: protocol, end)
            self._transports.append(transport)
        flow = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop)
        writing, _ = await loop.connect_write_pipe(lambda: flow, ends[0])
        self._transports.append(writing)
        self.stdin = asyncio.StreamWriter(writing, flow, None, loop)

    async def _watch(self, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        rest = b""
        try:
            await loop.sock_sendall(self._control, request)
            while data := await loop.sock_recv(self._control, 4096):
                notes, rest = split_notes(rest + data)
                for kind, value in notes:
                    if kind == ENDED:
                        self.exit_code = shell_exit_code(value)
                        self._exited.set()
                    elif kind == GONE:
                        return
        except OSError:  # the supervisor is gone, and everything below it
            pass
        finally:
            self._exited.set()
            self._gone.set()


def _pipe(near: ExitStack, far: ExitStack, *, writes: bool) -> tuple[FileIO, FileIO]:
    reading, writing = os.pipe()
    ours, theirs = (writing, reading) if writes else (reading, writing)
    kept = near.enter_context(FileIO(ours, "wb" if writes else "rb"))
    return kept, far.enter_context(FileIO(theirs, "rb" if writes else "wb"))
