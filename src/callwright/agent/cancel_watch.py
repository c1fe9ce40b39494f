"""Stops what is under way, a request or a batch of calls: when the time is up, or when somebody says so."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic

from callwright.agent.results import StopKind
from callwright.core.errors import UsageError
from callwright.tool.base import Cancellation


class CancelWatch:
    """One run's switch. Without a deadline and without anybody to turn it, it costs nothing."""

    def __init__(self, asked: Cancellation | None, deadline: float | None, seconds: float | None) -> None:
        self.cancellation = None if asked is None and deadline is None else Cancellation()
        """What the run's turns are given; turned by the deadline and by whoever asked."""
        self._seconds = seconds
        self._late = False
        self._undo: list[Callable[[], None]] = []
        if self.cancellation is None:
            return
        if asked is not None:
            inner = self.cancellation
            self._undo.append(asked.subscribe(lambda: inner.cancel(asked.reason)))
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(max(deadline - monotonic(), 0), self._expire)
            self._undo.append(timer.cancel)

    def stopped(self) -> tuple[StopKind, str] | None:
        """Whether and why the run must end."""
        if self.cancellation is None or not self.cancellation.requested:
            return None
        if self._late:
            return "seconds", f"the limit of {self._seconds:g} s is reached"
        return "cancelled", self.cancellation.reason or "the run was cancelled"

    @asynccontextmanager
    async def over(self) -> AsyncGenerator[None, None]:
        """Raise `TimeoutError` inside when the switch is turned."""
        if self.cancellation is None:
            raise UsageError("nothing can stop this run, so there is nothing to watch")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as window:

            def close() -> None:
                with suppress(RuntimeError):  # it was left in the meantime
                    window.reschedule(loop.time())

            def turned() -> None:
                loop.call_soon_threadsafe(close)

            leave = self.cancellation.subscribe(turned)
            try:
                yield
            finally:
                leave()

    def end(self) -> None:
        """Stop watching."""
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _expire(self) -> None:
        self._late = True
        if self.cancellation is not None:
            self.cancellation.cancel("the time is up")
