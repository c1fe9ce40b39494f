"""Progress of a call, passed on to the client that made it, in order and before the result."""

import asyncio
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, cast

from callwright.core.event import CallProgressed, Event
from callwright.serve.caller import Caller

_MOST_QUEUED = 256


class ProgressPump:
    """Takes a turn's events, which come without waiting, and sends what is progress, which has to wait."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._queue: deque[tuple[float, float | None, str | None]] = deque(maxlen=_MOST_QUEUED)
        self._count = 0
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ProgressPump":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)

    def __call__(self, event: Event) -> None:
        """Observe one event of the turn."""
        if not isinstance(event, CallProgressed):
            return
        self._count += 1
        self._queue.append(self._read(event.progress))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    def _read(self, progress: object) -> tuple[float, float | None, str | None]:
        """Numbers as they are; anything else is a message, numbered."""
        if isinstance(progress, Mapping):
            said = cast("Mapping[str, Any]", progress)
            done, total, message = said.get("progress"), said.get("total"), said.get("message")
            if isinstance(done, (int, float)):
                return (
                    done,
                    total if isinstance(total, (int, float)) else None,
                    None if message is None else str(message),
                )
        return self._count, None, str(cast("object", progress))

    async def _send(self) -> None:
        while self._queue:
            await self._caller.progress(*self._queue.popleft())
