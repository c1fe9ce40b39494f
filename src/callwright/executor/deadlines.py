"""Time limits of running calls, and what else belongs to one event loop.

All calls of a loop share one timer: a timer per call would cost more than all checks of the call.
"""

import asyncio
import inspect
import threading
from contextvars import Context
from typing import Any

from callwright.core._fast import frozen
from callwright.executor.driver import OwnCancellation, count_cancellations, drive, is_cancelling, next_order


class Deadlines:
    """The time limits of all calls that run in one event loop, by the order in which the calls began.

    A call's task is cancelled when its time is up. Until then a limit is two entries and no object of its own, which
    every waiting call would leave to the garbage collector.
    """

    __slots__ = ("_context", "_expired", "_loop", "_tasks", "_timer", "_timer_at", "_when", "grace_seconds", "now")

    def __init__(self, loop: asyncio.AbstractEventLoop, grace_seconds: float) -> None:
        self._loop = loop
        self.grace_seconds = grace_seconds
        self.now = loop.time
        """The event loop's clock, which deadlines are measured by."""
        self._when: dict[int, float] = {}
        self._tasks: dict[int, asyncio.Task[object]] = {}
        self._expired: dict[int, OwnCancellation] = {}
        self._context = Context()
        """Empty: the timer outlasts the call that set it, whose context variables may hold a whole request."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    def start(self, when: float, order: int, task: "asyncio.Task[object] | None" = None) -> int:
        """Limit the current task to a point of event-loop time; return what stops the limit: its order.

        Args:
            when: That point.
            order: From `next_order`, when what is limited began.
            task: The current task, if it is known.

        Raises:
            RuntimeError: No task is running.
        """
        task = task or asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        self._when[order] = when
        self._tasks[order] = task
        if when < self._timer_at:  # most calls have the same limit, so a later call seldom ends first
            self._set_timer(when)
        return order

    async def limit(self, seconds: float, value: Any) -> Any:
        """Return a value, awaiting it for at most that long if it is awaitable, and a grace period.

        Raises:
            TimeoutError: The time is up.
        """
        if not inspect.isawaitable(value):
            return value
        cancellations = count_cancellations()
        deadline = self.start(self.now() + seconds, next_order())
        try:
            return await drive(value, self.grace_seconds)
        except asyncio.CancelledError as stopped:
            if self.claim_cancellation(deadline, cancellations):
                raise TimeoutError from None
            if is_cancelling():
                raise
            raise RuntimeError("something it awaited was cancelled") from stopped
        finally:
            self.stop(deadline)

    def claim_cancellation(self, order: int, cancellations: int) -> bool:
        """Whether the cancellation that arrived was this limit's alone; it is taken back and goes no further.

        Args:
            order: What `start` returned.
            cancellations: From `count_cancellations`, when the limit was started.
        """
        expired = self._expired.get(order)
        return expired is not None and expired.requested and expired.take_back() <= cancellations

    def stop(self, order: int) -> None:
        """Remove a limit."""
        if self._when.pop(order, None) is not None:
            del self._tasks[order]
        elif (expired := self._expired.pop(order, None)) is not None:
            expired.take_back()  # if the call ended before it noticed: its task must not stay half cancelled

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._expire_due, context=self._context)

    def _expire_due(self) -> None:
        now = self._loop.time()
        self._timer, self._timer_at = None, float("inf")
        for order in [order for order, when in self._when.items() if when <= now]:
            del self._when[order]
            expired = self._expired[order] = OwnCancellation(self._tasks.pop(order), order)
            expired.request()
        if self._when:
            self._set_timer(min(self._when.values()))


@frozen
class LoopParts:
    """What must not be shared between event loops."""

    loop: asyncio.AbstractEventLoop
    deadlines: Deadlines


class LoopLocal:
    """Keeps the parts of each event loop that an executor is used from."""

    __slots__ = ("_all", "_grace_seconds", "_lock", "_parts")

    def __init__(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._lock = threading.Lock()
        self._all: dict[asyncio.AbstractEventLoop, LoopParts] = {}
        self._parts: LoopParts | None = None
        """Those used last: most executors are used from one loop."""

    def get(self) -> LoopParts:
        """Return the running loop's parts."""
        loop = asyncio.get_running_loop()
        parts = self._parts
        if parts is None or parts.loop is not loop:
            parts = self._parts = self._find(loop)
        return parts

    def _find(self, loop: asyncio.AbstractEventLoop) -> LoopParts:
        with self._lock:
            parts = self._all.get(loop)
            if parts is None:
                self._forget_closed()
                parts = self._all[loop] = LoopParts(loop, Deadlines(loop, self._grace_seconds))
            return parts

    def forget_closed(self) -> None:
        """Drop the parts of event loops that have ended."""
        with self._lock:
            self._forget_closed()

    def _forget_closed(self) -> None:
        self._parts = None
        self._all = {loop: parts for loop, parts in self._all.items() if not loop.is_closed()}
