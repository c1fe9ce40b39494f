"""One JSON-RPC message per line over standard input and output, for peers that may send anything.

The SDK's own transport hands every JSON value on, and its connection ends at the first one that is not a message. Here
each line is checked first; the client gets an error for a line that is not a message, and the connection goes on.
"""

import asyncio
import json
import os
import stat
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any, cast

from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import refuse_constant
from callwright.system.piped_process import take_standard_streams

MESSAGE_BYTES = 64 * 1024 * 1024
"""The longest line that is read; a longer one is skipped and answered with an error."""
NO_VALID_ANSWER = "the client sent no valid answer"
"""The error of a request whose answer cannot be read: what the client did is not known."""
SENT_REQUEST: ContextVar[int | None] = ContextVar("callwright_acp_request", default=None)
"""The id of the last request that this task has sent; the SDK's connection does not tell it."""
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
_CHUNK = 64 * 1024


class LineTransport:
    """Messages as lines of two streams.

    Args:
        reader: The lines of the peer.
        writer: The lines for the peer.
        most_bytes: The longest line that is read.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, most_bytes: int = MESSAGE_BYTES
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._turn = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message; returns when the stream has taken it. A response that the peer left behind is dropped.

        Raises:
            ConnectionError: The peer reads no more.
        """
        if "method" in message and "id" in message:
            SENT_REQUEST.set(message["id"])
        # lone surrogates become ?: many JSON parsers refuse a document that has one
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        try:
            async with self._turn:
                if self._writer.is_closing():
                    raise ConnectionError("the client has closed the connection")
                self._writer.write(line)
                await self._writer.drain()
        except ConnectionError:
            if "method" in message:  # a response has no reader any more
                raise

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end of the input."""
        while True:
            line = await self._read_line()
            if line is None:
                return None
            if not line.strip():
                continue
            try:
                return check_message(line)
            except BadMessage as error:
                with suppress(OSError):
                    await self.send(error.reply)

    async def close(self) -> None:
        """Close the output."""
        self._writer.close()

    async def _read_line(self) -> bytes | None:
        skipped = 0
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                if not skipped:
                    return line
                await self._refuse_long(skipped + end)
                skipped = searched = 0
                continue
            searched = len(self._buffer)
            if searched > self._most_bytes:  # keep none of it, only look for its end
                skipped += searched
                searched = 0
                self._buffer.clear()
            chunk = await self._reader.read(_CHUNK)
            if not chunk:
                return bytes(self._buffer) if self._buffer and not skipped and self._take_rest() else None
            self._buffer += chunk

    def _take_rest(self) -> bool:
        """Tell whether a last line without a line break is a message, and not half of one."""
        with suppress(BadMessage):
            check_message(bytes(self._buffer))
            return True
        return False

    async def _refuse_long(self, size: int) -> None:
        reason = f"the message has {size} bytes; at most {self._most_bytes} are read"
        with suppress(OSError):
            await self.send(BadMessage(_INVALID_REQUEST, reason).reply)


class BadMessage(Exception):
    """A line that is not a JSON-RPC message; `reply` is the error to send for it."""

    def __init__(self, code: int, reason: str, message_id: object = None) -> None:
        super().__init__(reason)
        error = {"code": code, "message": reason}
        self.reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message_id, "error": error}


def check_message(line: bytes) -> dict[str, Any]:
    """Return the message of a line.

    Raises:
        BadMessage: It is not JSON, or not a request, notification or response.
    """
    repeated = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        built = dict(pairs)
        repeated = repeated or len(built) < len(pairs)
        return built

    try:
        found: object = json.loads(line, object_pairs_hook=build, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadMessage(_PARSE_ERROR, f"not JSON: {describe_exception(error)[:200]}") from None
    if not isinstance(found, dict):
        raise BadMessage(_INVALID_REQUEST, f"expected a JSON object, got {type(found).__name__}; batches are not read")
    message = cast("dict[str, Any]", found)
    known_id = message.get("id")
    if "id" in message and type(known_id) not in (str, int):
        raise BadMessage(_INVALID_REQUEST, "the id of a request must be a text or a whole number")
    if repeated and ("method" in message or "id" not in message):
        raise BadMessage(_INVALID_REQUEST, "a key of an object is given twice", known_id)
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessage(_INVALID_REQUEST, "method must be a text", known_id)
        return message
    if "id" not in message:
        raise BadMessage(_INVALID_REQUEST, "expected a method, or the id of a request that is answered")
    if repeated or ("result" in message) == _is_error(message.get("error")):
        # a broken answer ends the request that waits for it; one that says two things at once says nothing
        message = {"id": known_id, "error": {"code": _INVALID_REQUEST, "message": NO_VALID_ANSWER}}
    return message


def _is_error(error: object) -> bool:
    if not isinstance(error, dict):
        return False
    fields = cast("dict[str, object]", error)
    return type(fields.get("code")) is int and isinstance(fields.get("message"), str)


@asynccontextmanager
async def standard_streams() -> AsyncGenerator[LineTransport, None]:
    """Yield a transport on this process's standard input and output, which nothing else uses meanwhile."""
    if sys.platform == "win32":
        raise UsageError("callwright acp needs pipes that asyncio can wait for; on Windows run it in WSL")
    wire_in, wire_out = take_standard_streams()
    if not _is_pipe(wire_out) and not stat.S_ISCHR(os.fstat(wire_out).st_mode):  # asyncio writes to /dev/null too
        raise UsageError("callwright acp writes to a pipe: start it from an editor or another ACP client")
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    stop_reading = await _feed(reader, wire_in)
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    outgoing, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(wire_out, "wb"))
    try:
        yield LineTransport(reader, asyncio.StreamWriter(outgoing, protocol, None, loop))
    finally:
        stop_reading()
        outgoing.close()


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _feed(reader: asyncio.StreamReader, descriptor: int) -> Callable[[], None]:
    """Feed a reader from a descriptor; return what stops it."""
    loop = asyncio.get_running_loop()
    if _is_pipe(descriptor):
        source = os.fdopen(descriptor, "rb", buffering=0)
        incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        return incoming.close

    def read_file() -> None:  # a regular file or /dev/null, which asyncio cannot wait for: messages kept for a test
        with os.fdopen(descriptor, "rb") as file:
            while chunk := file.read(_CHUNK):
                loop.call_soon_threadsafe(reader.feed_data, chunk)
            loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read_file, daemon=True).start()
    return lambda: None
