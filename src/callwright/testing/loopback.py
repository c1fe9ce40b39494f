"""`Loopback`: a local HTTP server with scripted replies, for testing providers through real SDKs."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Ending: TypeAlias = Literal["whole", "broken", "held"]
"""How a reply ends: complete, with a broken connection, or only when the client disconnects."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request that the server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class LoopbackReply:
    """One scripted reply. Each piece of the body is a chunk of its own, so a test decides where a stream is cut."""

    pieces: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    ending: Ending = "whole"


class Loopback:
    """Answers each request with the next reply, and repeats the last one.

    Args:
        find_faults: Returns what is wrong with a request; a request with faults is answered with status 400.
    """

    def __init__(self, find_faults: Callable[[Received], list[str]] | None = None) -> None:
        self._find_faults = find_faults
        self.received: list[Received] = []
        self.arrived = asyncio.Event()
        """Set when a request has arrived."""
        self.left = asyncio.Event()
        """Set when the client of a held reply has disconnected."""
        self._replies: deque[LoopbackReply] = deque()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Loopback":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.close()
        await asyncio.sleep(0)

    @property
    def url(self) -> str:
        """The base URL of the server."""
        assert self._server is not None, "use the server with `async with`"
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    def reply(self, *replies: LoopbackReply) -> None:
        """Replace the remaining replies."""
        self._replies = deque(replies)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # tests disconnect in the middle of a reply on purpose
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ")
        received = Received(method, path, headers, body)
        self.received.append(received)
        self.arrived.set()
        if self._find_faults is not None and (faults := self._find_faults(received)):
            return await self._answer(_refusal(faults), reader, writer)
        reply = self._replies.popleft() if len(self._replies) > 1 else self._replies[0]
        return await self._answer(reply, reader, writer)

    async def _answer(self, reply: LoopbackReply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = [f"{name}: {value}\r\n" for name, value in reply.headers.items()]
        head = f"HTTP/1.1 {reply.status} Said\r\n{''.join(lines)}transfer-encoding: chunked\r\n\r\n"
        pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in reply.pieces if piece]
        writer.write(head.encode() + b"".join(pieces))
        if reply.ending == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if reply.ending == "held":
            try:
                await reader.read()
            finally:
                self.left.set()
        return reply.ending == "whole"


def _refusal(faults: list[str]) -> LoopbackReply:
    error = {"type": "invalid_request_error", "message": "; ".join(faults)}
    return LoopbackReply([json.dumps({"error": error}).encode()], 400, {"content-type": "application/json"})
