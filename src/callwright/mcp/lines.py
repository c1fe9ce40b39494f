"""JSON-RPC messages as lines of a pipe: a reader, a writer, a rate limit, and a tap before the reader wakes."""

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import Callable
from io import BytesIO
from types import TracebackType
from typing import Any, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic_core import to_json

from callwright.core.json import read_object, replace_surrogates
from callwright.mcp.fast_path import is_request_id
from callwright.mcp.listing import Slices, cut_listing

_PER_SECOND = 2_000
_BURST = 10_000


class RateLimit:
    """A token bucket: a burst passes at once, what follows at a steady rate.

    A server that floods us is read more slowly, which stalls only that server.
    """

    def __init__(self) -> None:
        self._left: float = _BURST
        self._stamp = time.monotonic()
        self._slices = Slices()

    def allows(self) -> bool:
        """Count one message; False if there have been too many."""
        if self._left < 1:  # the clock is read only when the bucket is empty
            now = time.monotonic()
            self._left = min(_BURST, self._left + (now - self._stamp) * _PER_SECOND)
            self._stamp = now
            if self._left < 1:
                return False
        self._left -= 1
        return True

    async def wait(self) -> None:
        """Count one message; wait if there have been too many, and let other tasks run within a burst."""
        while not self.allows():  # noqa: ASYNC110 - it waits for time to pass, not for an event
            await asyncio.sleep((1 - self._left) / _PER_SECOND)
        await self._slices.pause()


TakeLine: TypeAlias = Callable[[bytes], bool]
"""Handles a line; False leaves it to the reader."""


class LineTap:
    """Offers complete lines to a handler before the reader; beyond the rate limit all lines go to the reader."""

    def __init__(self, reader: asyncio.StreamReader, take: TakeLine) -> None:
        self._reader = reader
        self._take = take
        self._rate_limit = RateLimit()
        self._mid_line = False
        """Whether the reader has the beginning of a line, so that the rest must follow it."""

    def feed(self, data: bytes) -> None:
        """Offer complete lines; everything else goes to the reader unchanged."""
        if self._mid_line or not data.endswith(b"\n"):
            self._reader.feed_data(data)
            self._mid_line = not data.endswith(b"\n")
            return
        # not by splitlines: a carriage return, as of a progress bar, ends no line for the reader
        for line in BytesIO(data) if data.count(b"\n") > 1 else (data,):
            if not (self._rate_limit.allows() and self._offer(line)):
                self._reader.feed_data(line)

    def _offer(self, line: bytes) -> bool:
        try:
            return self._take(line)
        except ValueError:  # not JSON: the reader reports it
            return False


class TappedPipe(asyncio.StreamReaderProtocol):
    """The protocol of a pipe we read, with a tap."""

    def __init__(self, reader: asyncio.StreamReader, take: TakeLine) -> None:
        super().__init__(reader)
        self._tap = LineTap(reader, take)

    def data_received(self, data: bytes) -> None:
        self._tap.feed(data)


_MOST_BATCHED = 100
"""How many answers of a batch fail their requests; a server must not keep us busy with more."""
_MAX_SKIPPED_BYTES = 1 << 30
"""The rest of a message that is too large is skipped up to here."""
_ID = rb'"id"\s*:\s*(0|[1-9]\d{0,17}|"[^"\\\x00-\x1f\x7f-\xff]{0,100}")\s*'  # which is valid JSON
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ANSWER = re.compile(rb"\s*\{\s*(?:(?:" + _VERSION + rb"|" + _ID + rb'),\s*){0,2}"(?:result|error)"\s*:')
"""The start of an answer, with its id if that comes first; a request of the server has an id of its own numbering."""
_ID_LAST = re.compile(_ID + rb"(?:,\s*" + _VERSION + rb")?\}\s*$")  # not of a nested object, which ends with "}}"
_END_BYTES = 200


class _Stream:
    """The parts of the SDK's stream interface besides `receive` and `send`."""

    async def aclose(self) -> None:
        """Do nothing: the process is ended by its owner."""

    async def __aenter__(self) -> "_Stream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class LineReader(_Stream):
    """Messages from a pipe, one per line. Lines that are not messages, or that `take` handles, are skipped."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        take: TakeLine | None = None,
        *,
        answers_follow: bool = False,
        refuse: Callable[[bytes, ValueError], None] | None = None,
    ) -> None:
        self._reader = reader
        self._take = take
        self._answers_follow = answers_follow
        """Whether the lines are answers to our requests, so that an invalid one must fail its request."""
        self._refuse = refuse
        """Told of lines that are not messages."""
        self._failed: deque[SessionMessage] = deque()
        """Errors for the requests that an invalid line answered."""
        self._rate_limit = RateLimit()
        self.ended = asyncio.Event()
        self.reason = ""
        """Why reading ended, if it was an error."""

    def __aiter__(self) -> "LineReader":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        while True:
            if self._failed:
                return self._failed.popleft()
            line = await self._line()
            await self._rate_limit.wait()
            if line.isspace():
                continue
            try:
                if self._take is not None and self._take(line):
                    continue
                message = SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
                self.reason = ""  # the line before it explains nothing that comes later
                return cut_listing(message)
            except ValueError as error:  # servers that print to their output are common; the line is skipped
                self.reason = f"it wrote a line that is not a message: {line[:200]!r}"
                if self._refuse is not None:
                    self._refuse(line, error)
                if self._answers_follow:
                    self._fail_answered(line, error)

    def _fail_answered(self, line: bytes, error: ValueError) -> None:
        """Turn the answers of a line that violates the protocol into errors, so that their requests fail at once."""
        answered, why = _read_invalid(line, error)
        for number in answered:
            self._fail(number, f"the response is not valid: {why}")

    def _fail(self, number: int | str, why: str) -> None:
        fault = {"code": types.INTERNAL_ERROR, "message": replace_surrogates(why)}
        if self._take is None or not self._take(to_json({"jsonrpc": "2.0", "id": number, "error": fault})):
            failed = types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData.model_validate(fault))
            self._failed.append(SessionMessage(failed))

    async def _line(self) -> bytes:
        try:
            try:
                return await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                if self._answers_follow and await self._skip_answer(error.consumed):
                    return b"\n"
                self.reason = f"it sent one message of {error.consumed} bytes or more"
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                self.reason = "it ended in the middle of a message"
        except OSError as error:
            self.reason = f"its output cannot be read: {error}"
        self.ended.set()
        raise anyio.EndOfStream

    async def _skip_answer(self, size: int) -> bool:
        """Read past an answer that is too large and fail its request; False for other messages, or without an id."""
        end = await self._reader.readexactly(size)
        answer = _ANSWER.match(end)
        if answer is None:  # perhaps output that never ends
            return False
        why = f"the response has {size:,} bytes or more, which is too large; ask for less at a time"
        number = answer[1]
        if number is not None:
            self._fail(json.loads(number), why)
        while size < _MAX_SKIPPED_BYTES:
            try:
                more = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                more = await self._reader.readexactly(error.consumed)
            size, end = size + len(more), end[-_END_BYTES:] + more
            if more.endswith(b"\n"):
                if number is None and (found := _ID_LAST.search(end[-_END_BYTES:])):
                    number = found[1]
                    self._fail(json.loads(number), why)
                return number is not None
        return False


def _read_invalid(line: bytes, error: ValueError) -> tuple[list[int | str], str]:
    """Return the ids of the requests that an invalid line answers, and what is wrong with it.

    The standard library reads what the strict parser rejects, such as half of a surrogate pair.
    """
    wide = b"\0" in line
    text = line.replace(b"\0", b"").lstrip(b"\xff\xfe") if wide else line
    try:  # some servers write in the encoding of their system
        found: Any = json.loads(text.decode("utf-8-sig", "replace"), parse_int=_read_start)
    except (ValueError, RecursionError):
        return [], ""
    batch = cast("list[object]", found)[:_MOST_BATCHED] if isinstance(found, list) else [cast("object", found)]
    answers = [
        each for each in map(read_object, batch) if "method" not in each and ("result" in each or "error" in each)
    ]
    if isinstance(found, list):
        why = "it is a batch, which MCP does not have; send each message on a line of its own"
    else:
        why = "it is UTF-16; MCP is written in UTF-8" if wide else str(error).splitlines()[0][:200]
    return [number for each in answers if is_request_id(number := each.get("id"))], why


def _read_start(digits: str) -> int:
    """Read a number, or the start of one that is too long to be an id: Python refuses to read thousands of digits."""
    return int(digits[:30])


class LineWriter(_Stream):
    """Messages into a pipe, one per line."""

    def __init__(self, writer: asyncio.StreamWriter, sent: Callable[[SessionMessage], None] | None = None) -> None:
        self._writer = writer
        self._sent = sent
        self.broken = False
        """Whether the other side has closed the pipe."""

    async def send(self, item: SessionMessage, /) -> None:
        if self._sent is not None:
            self._sent(item)
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._writer.write(text.encode() + b"\n")
            await self._writer.drain()
        except (ConnectionError, RuntimeError, OSError) as error:
            self.broken = isinstance(error, ConnectionError)
            raise anyio.BrokenResourceError from error
