"""Time limits for many calls with one timer: a timer of its own would cost each call more than its checks."""

import asyncio
import inspect
from typing import Any


class Deadline:
    """One call's limit; cancels the call's task when it passes."""

    __slots__ = ("_cancelling", "_task", "expired", "when")

    def __init__(self, task: "asyncio.Task[object]", when: float) -> None:
        self.when = when
        self.expired = False
        self._task = task
        self._cancelling = task.cancelling()

    def expire(self) -> None:
        """Stop the call."""
        self.expired = True
        self._task.cancel()

    def caused(self) -> bool:
        """Whether a cancellation that arrived was this deadline's alone; takes it back, so it goes no further."""
        if not self.expired:
            return False
        self.expired = False
        return self._task.uncancel() <= self._cancelling


def being_cancelled() -> bool:
    """Whether somebody asked this task to stop; if nobody did, what it awaited was cancelled by somebody else."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Deadlines:
    """The limits of all calls running in one event loop."""

    __slots__ = ("_armed", "_loop", "_pending", "_timer", "now")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now = loop.time
        """The event loop's time, which deadlines are counted in."""
        self._pending: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._armed = float("inf")

    def start(self, when: float) -> Deadline:
        """Limit the current task to a point of event-loop time."""
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        deadline = Deadline(task, when)
        self._pending[deadline] = None
        if when < self._armed:  # calls mostly have the same limit, so later ones seldom get here
            self._arm(when)
        return deadline

    async def limit(self, seconds: float, value: Any) -> Any:
        """Await a value, if it needs awaiting, for at most that long; raise `TimeoutError` after."""
        if not inspect.isawaitable(value):
            return value
        deadline = self.start(self.now() + seconds)
        try:
            return await value
        except asyncio.CancelledError as stopped:
            if deadline.caused():
                raise TimeoutError from None
            if being_cancelled():
                raise
            raise RuntimeError("something it awaited was cancelled") from stopped
        finally:
            self.stop(deadline)

    def stop(self, deadline: Deadline) -> None:
        """Lift a limit; a call that ended well although its time was up must not leave its task half cancelled."""
        self._pending.pop(deadline, None)
        if deadline.expired:
            deadline.caused()

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed = when
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        now = self._loop.time()
        self._timer, self._armed = None, float("inf")
        for deadline in [deadline for deadline in self._pending if deadline.when <= now]:
            del self._pending[deadline]
            deadline.expire()
        if self._pending:
            self._arm(min(deadline.when for deadline in self._pending))
