"""Scheduling: runs the calls of a turn side by side, except those that must wait for another one.

A call that waits for an answer of the user has not ended: those that wait for it wait too, until it goes on in a later
turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from callwright.core.calls import Failed, Interrupted, Outcome
from callwright.core.errors import Crashed, describe_raised
from callwright.core.events import CallEnded, CallWaits, Event
from callwright.core.spec import Annotations, Effect
from callwright.executor.admitted import Admitted
from callwright.executor.conflicts import find_conflicts
from callwright.executor.driver import go_on_in, take_steps

Perform = Callable[[Admitted], Coroutine[Any, Any, Outcome]]
FinishCancelled = Callable[[Admitted, bool], Outcome]
_GRACE_FACTOR = 2.5
"""A cancelled call takes at most twice the grace period; whatever is not done then is left behind."""
_HARMLESS = Annotations(Effect.READ)
"""A call that failed in admission runs nothing, so it conflicts with nothing."""


class Batch:
    """Runs the calls of one turn, each to exactly one outcome.

    Calls that may start together share a task until one of them waits: that task is then its own, and each call left
    gets another. A task for a call that ends without waiting would cost more than the call.
    """

    def __init__(
        self,
        admitted: Sequence[Admitted],
        perform: Perform,
        finish_cancelled: FinishCancelled,
        *,
        width: int,
        grace_seconds: float,
        observe: Callable[[Event], None] | None = None,
    ) -> None:
        self._admitted = admitted
        self._observe = observe
        self._perform = perform
        self._finish_cancelled = finish_cancelled
        self._width = width
        self._stop_seconds = grace_seconds * _GRACE_FACTOR
        self._outcomes: list[Outcome | None] = [None] * len(admitted)
        self._running: dict[int, asyncio.Task[None] | None] = {}
        """The calls that were handed to a task; None until the call has begun."""
        self._handed: dict[asyncio.Task[None], list[int]] = {}
        """The tasks that have not begun, with the calls that were handed to them."""
        self._ready: deque[int] = deque()
        self._waiting_for_slot: dict[str, deque[int]] = {}
        self._slots_in_use: dict[str, int] = {}
        self._stopping = False
        self._held: set[int] = set()  # interrupted, or behind a call that is
        self._before = _find_batch_conflicts(admitted)
        self._unfinished_before = {index: len(others) for index, others in self._before.items()}
        self._followers: dict[int, list[int]] = {}
        for index, others in self._before.items():
            for other in others:
                self._followers.setdefault(other, []).append(index)

    async def run(self) -> list[Outcome]:
        """Run everything and return the outcomes in call order."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._context = copy_context()  # where ends are counted: one for all, instead of a copy per call
        everything = range(len(self._admitted))
        self._ready.extend([index for index in everything if index not in self._before] if self._before else everything)
        self._start_ready()
        if self._observe is not None:
            self._tell_waiting(self._observe)
        await self._done
        return self.outcomes()

    def _tell_waiting(self, observe: Callable[[Event], None]) -> None:
        """Tell which calls could not start at once, and for which others each of them waits."""
        for index, item in enumerate(self._admitted):
            if index not in self._running and self._outcomes[index] is None:
                others = tuple(self._admitted[other].call for other in sorted(self._before.get(index, ())))
                observe(CallWaits(item.call, others))

    def stop(self) -> None:
        """Cancel the running calls and drop the waiting ones; `run` then returns with outcomes for all.

        A tool that does not end within a grace period is left behind.
        """
        self._cancel()
        asyncio.get_running_loop().call_later(self._stop_seconds, self._end_run)

    def _cancel(self) -> "list[asyncio.Task[None]]":
        """Cancel the running calls, drop the waiting ones, and return the tasks that may take a while to end."""
        self._stopping = True
        tasks = [task for task in self._running.values() if task is not None]
        for task in tasks:
            task.cancel()
        self._start_ready()
        return tasks

    def _end_run(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    async def drain(self) -> None:
        """Stop as `stop` does, after the task that awaited `run` was cancelled."""
        tasks = self._cancel()
        if tasks:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(tasks, timeout=self._stop_seconds)

    def outcomes(self) -> list[Outcome]:
        """Return one outcome per call, in call order; a stopped call says whether it had started."""
        return [
            self._finish_cancelled(self._admitted[index], self._running.get(index) is not None)
            if outcome is None
            else outcome
            for index, outcome in enumerate(self._outcomes)
        ]

    def _start_ready(self) -> None:
        started: list[int] = []
        while self._ready and len(self._running) < self._width and not self._stopping:
            index = self._ready.popleft()
            entry = self._admitted[index].entry
            limit = None if entry is None else entry.limits.concurrency
            if limit is not None and not self._reserve(index, limit):
                continue
            self._running[index] = None
            started.append(index)
        if started:
            started.reverse()  # a list, taken from its end: a deque takes ten times the memory, once per call
            self._start_task(started)
        elif not self._running and (self._stopping or not self._ready):
            self._end_run()

    def _start_task(self, indexes: list[int]) -> None:
        task = self._done.get_loop().create_task(self._work(indexes), name=self._admitted[indexes[-1]].name)
        if indexes:  # it has not begun; an eager task has
            self._watch(task, indexes)

    def _watch(self, task: "asyncio.Task[None]", indexes: list[int]) -> None:
        """End the calls of a task with it. Only while it may be lost: to be called back costs as much as to start."""
        self._handed[task] = indexes
        task.add_done_callback(self._end_lost, context=self._context)

    def _end_lost(self, task: "asyncio.Task[None]") -> None:
        """End the calls of a task that other code cancelled before it began, or that an interrupt ended."""
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not report it: it has ended the event loop
        begun = [index for index, own in self._running.items() if own is task]
        for index in (*reversed(self._handed.pop(task)), *begun):
            item = self._admitted[index]
            self._end_call(index, item, self._finish_cancelled(item, self._running[index] is not None))
        self._start_ready()

    def _reserve(self, index: int, limit: int) -> bool:
        """Reserve a slot of the tool's own limit; a call that must wait for one does not use up the turn's width."""
        name = self._admitted[index].name
        if self._slots_in_use.get(name, 0) >= limit:
            self._waiting_for_slot.setdefault(name, deque()).append(index)
            return False
        self._slots_in_use[name] = self._slots_in_use.get(name, 0) + 1
        return True

    async def _work(self, indexes: list[int]) -> None:
        """Perform calls one after the other, from the end; the first that waits keeps this task for itself."""
        task = asyncio.current_task()
        assert task is not None
        if self._handed.pop(task, None) is not None:
            task.remove_done_callback(self._end_lost)
        alone = len(indexes) == 1  # it has the context variables of its task
        try:
            while indexes and not self._stopping:
                index = indexes.pop()
                item = self._admitted[index]
                self._running[index] = task
                performing = self._perform(item)
                try:
                    if alone:
                        outcome = await performing
                    else:
                        context = copy_context()  # one call must not see the context variables that another sets
                        ended: list[Outcome] = []
                        steps = take_steps(performing, ended)
                        waits_for = context.run(next, steps, None)
                        if not ended:
                            task.set_name(item.name)  # it is this call's own from now on
                            self._give_away(indexes)
                            await go_on_in(context, steps, waits_for)
                        outcome = ended[0]
                except asyncio.CancelledError:
                    outcome = self._finish_cancelled(item, True)
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever fails, every call gets its outcome
                    outcome = Failed(item.call, Crashed(describe_raised(error)), started=True)
                doomed = getattr(task, "_must_cancel", False)  # a tool has cancelled its own task and returned
                self._end_call(index, item, self._finish_cancelled(item, True) if doomed else outcome)
                if doomed or task.cancelling():  # which must reach no other call
                    break
        except KeyboardInterrupt:
            self._watch(task, indexes)
            raise
        if indexes or self._ready or not self._running:
            self._give_away(indexes)

    def _give_away(self, indexes: list[int]) -> None:
        """Start each call left in a task of its own, and what else may start."""
        while indexes:
            index = indexes.pop()
            if self._stopping:
                del self._running[index]
            else:
                self._start_task([index])
        self._start_ready()

    def _end_call(self, index: int, item: Admitted, outcome: Outcome) -> None:
        self._outcomes[index] = outcome
        del self._running[index]
        if self._slots_in_use:
            self._release_slot(item.name)
        if self._followers:
            if type(outcome) is Interrupted:
                self._held.add(index)
            self._release_followers(index)

    def _release_followers(self, ended: int) -> None:
        """Let the calls start that waited for nothing else; those behind an interrupted call are interrupted too."""
        left = [ended]
        while left:
            index = left.pop()
            for follower in self._followers.get(index, ()):
                self._unfinished_before[follower] -= 1
                if index in self._held:
                    self._held.add(follower)
                if self._unfinished_before[follower]:
                    continue
                if follower in self._held and self._admitted[follower].error is None:
                    self._outcomes[follower] = self._interrupt(self._admitted[follower])
                    left.append(follower)
                else:  # one that was refused runs nothing
                    self._ready.append(follower)

    def _interrupt(self, item: Admitted) -> Interrupted:
        """Return the outcome of a call that waits with an interrupted one; its end is told as that of any other."""
        outcome = Interrupted(item.call, ())
        if self._observe is not None:
            self._observe(CallEnded(outcome, item.call, item.name))
        return outcome

    def _release_slot(self, name: str) -> None:
        if name in self._slots_in_use:
            self._slots_in_use[name] -= 1
            if self._waiting_for_slot.get(name):
                self._ready.appendleft(self._waiting_for_slot[name].popleft())


def _find_batch_conflicts(admitted: Sequence[Admitted]) -> dict[int, set[int]]:
    """Return whom each call that must wait waits for; quickly for the usual turn of plain reads."""
    for item in admitted:
        if item.error is None and (item.entry is None or not item.entry.independent or item.accesses):
            break
    else:
        return {}
    conflicts = find_conflicts(
        (_HARMLESS if item.error or item.entry is None else item.entry.annotations, item.accesses) for item in admitted
    )
    return {index: others for index, others in enumerate(conflicts) if others}
