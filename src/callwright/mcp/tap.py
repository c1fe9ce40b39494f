"""Lines looked at as they come off a pipe: what is taken there never wakes the task that reads the rest."""

import asyncio
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Callable
from typing import TypeAlias

from callwright.mcp.pace import Pace

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
