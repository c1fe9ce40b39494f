"""Time limits of running calls, and what else belongs to one event loop.

All calls of a loop share one timer: a timer per call would cost more than all checks of the call.
"""

import asyncio
import inspect
import threading
from contextvars import Context
from typing import Any

from callwright.core._fast import frozen
from callwright.executor.driver import OwnCancellation, drive, is_cancelling, next_order


class Deadline(OwnCancellation):
    """One call's time limit; cancels the call's task when it passes."""

    __slots__ = ("when",)

    def __init__(self, task: "asyncio.Task[object]", when: float, order: int) -> None:
        # as in the base class, without the call: every call with a time limit makes one of these
        self._task = task
        self.order = order
        self.cancelling = task.cancelling()
        self.requested = False
        self.when = when

    def claim_cancellation(self) -> bool:
        """Whether the cancellation that arrived was this deadline's alone; it is taken back and goes no further."""
        return self.requested and self.take_back() <= self.cancelling


class Deadlines:
    """The time limits of all calls that run in one event loop."""

    __slots__ = ("_context", "_loop", "_pending", "_timer", "_timer_at", "grace_seconds", "now")

    def __init__(self, loop: asyncio.AbstractEventLoop, grace_seconds: float) -> None:
        self._loop = loop
        self.grace_seconds = grace_seconds
        self.now = loop.time
        """The event loop's clock, which deadlines are measured by."""
        self._pending: dict[Deadline, None] = {}
        self._context = Context()
        """Empty: the timer outlasts the call that set it, whose context variables may hold a whole request."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    def start(self, when: float, order: int | None = None, task: "asyncio.Task[object] | None" = None) -> Deadline:
        """Limit the current task to a point of event-loop time.

        Args:
            when: That point.
            order: From `next_order`, if what is limited has begun already.
            task: The current task, if it is known.

        Raises:
            RuntimeError: No task is running.
        """
        task = task or asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        deadline = Deadline(task, when, next_order() if order is None else order)
        self._pending[deadline] = None
        if when < self._timer_at:  # most calls have the same limit, so a later call seldom ends first
            self._set_timer(when)
        return deadline

    async def limit(self, seconds: float, value: Any) -> Any:
        """Return a value, awaiting it for at most that long if it is awaitable, and a grace period.

        Raises:
            TimeoutError: The time is up.
        """
        if not inspect.isawaitable(value):
            return value
        deadline = self.start(self.now() + seconds)
        try:
            return await drive(value, self.grace_seconds)
        except asyncio.CancelledError as stopped:
            if deadline.claim_cancellation():
                raise TimeoutError from None
            if is_cancelling():
                raise
            raise RuntimeError("something it awaited was cancelled") from stopped
        finally:
            self.stop(deadline)

    def stop(self, deadline: Deadline) -> None:
        """Remove a limit."""
        self._pending.pop(deadline, None)
        if deadline.requested:  # the call ended before it noticed: its task must not stay half cancelled
            deadline.take_back()

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._expire_due, context=self._context)

    def _expire_due(self) -> None:
        now = self._loop.time()
        self._timer, self._timer_at = None, float("inf")
        for deadline in [deadline for deadline in self._pending if deadline.when <= now]:
            del self._pending[deadline]
            deadline.request()
        if self._pending:
            self._set_timer(min(deadline.when for deadline in self._pending))


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
