"""Stops a running request or batch of calls at the deadline of the run or when its caller cancels it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic

from callwright.agent.results import StopKind
from callwright.core.errors import UsageError
from callwright.tool.base import Cancellation


class CancelWatch:
    """Combines the deadline of a run with the cancellation its caller may have given.

    Without either there is no `cancellation` and nothing to watch, so most runs pay nothing for it.
    """

    def __init__(self, requested: Cancellation | None, deadline: float | None, seconds: float | None) -> None:
        self.cancellation = None if requested is None and deadline is None else Cancellation()
        """Given to the run's turns; requested at the deadline or by the caller."""
        self._seconds = seconds
        self._expired = False
        self._undo: tuple[Callable[[], None], ...] = ()
        if self.cancellation is None:
            return
        if requested is not None:
            inner = self.cancellation
            self._undo += (requested.subscribe(lambda: inner.cancel(requested.reason)),)
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(max(deadline - monotonic(), 0), self._expire)
            self._undo += (timer.cancel,)

    def find_stop_reason(self) -> tuple[StopKind, str] | None:
        """Return why the run must end, or None while it may continue."""
        if self.cancellation is None or not self.cancellation.requested:
            return None
        if self._expired:
            return "seconds", f"the limit of {self._seconds:g} s is reached"
        return "cancelled", self.cancellation.reason or "the run was cancelled"

    @asynccontextmanager
    async def time_out(self) -> AsyncGenerator[None, None]:
        """Raise `TimeoutError` in the block when the run is to end."""
        if self.cancellation is None:
            raise UsageError("this run has neither a deadline nor a cancellation to watch")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as window:

            def close() -> None:
                with suppress(RuntimeError):  # the block has been left already
                    window.reschedule(loop.time())

            def on_cancel() -> None:
                # A cancellation may come from any thread, a timeout may be changed on the loop's thread only.
                loop.call_soon_threadsafe(close)

            unsubscribe = self.cancellation.subscribe(on_cancel)
            try:
                yield
            finally:
                unsubscribe()

    def end(self) -> None:
        """Stop watching."""
        for undo in self._undo:
            undo()
        self._undo = ()

    def _expire(self) -> None:
        self._expired = True
        if self.cancellation is not None:
            self.cancellation.cancel("the time limit of the run is reached")
