"""Scheduling: finds the conflicts between the calls of a turn and runs the others side by side.

Two calls conflict when one writes or deletes where the other reads, writes or deletes (the same path, or one holding
the other; a command touches the folder it runs in and what its line names), or the same resource or one below the
other, when either has an effect above READ and declares no accesses, or when both change something and one of them is
a command. `parallel=True` or `False` on a tool overrides. Every call waits for the earlier calls it conflicts with,
directly or through a call between them, so the model's order is kept wherever it matters. A call that waits for an
answer of the user has not ended: those that wait for it wait too, until it goes on in a later turn.
"""

import asyncio
import os
import re
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from callwright.core.access import (
    Access,
    DeletePath,
    DeleteResource,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.calls import Failed, Interrupted, Outcome
from callwright.core.errors import Crashed, describe_raised
from callwright.core.events import CallWaits, Event
from callwright.core.spec import Annotations, Effect
from callwright.executor.admitted import Admitted
from callwright.executor.driver import go_on_in

_RESOURCE = "\0"
"""Begins the name of a resource, which no path can begin with."""
_BOUNDARY = re.compile(r"[/?#]")


@dataclass(slots=True)
class _PathUse:
    """The calls that changed a path or resource, and those that read it."""

    writers: list[int] = field(default_factory=list[int])
    readers: list[int] = field(default_factory=list[int])


class Conflicts:
    """Takes calls one after the other and returns the earlier ones each must wait for."""

    def __init__(self) -> None:
        self._barrier: list[int] = []
        self._since_barrier: list[int] = []
        self._command: list[int] = []
        self._changed_since_command: list[int] = []
        self._used_at: dict[str, _PathUse] = {}
        self._used_below: dict[str, _PathUse] = {}

    def add(self, index: int, annotations: Annotations, accesses: Sequence[Access]) -> set[int]:
        """Add the next call and return the indexes of the calls it must wait for."""
        if annotations.parallel is True:
            return set()
        if annotations.parallel is False or (not accesses and annotations.effect > Effect.READ):
            return self._stand_alone(index)
        before = {*self._barrier, *self._order_commands(index, accesses)}
        for path, changes in _list_paths(accesses):
            before.update(self._change(path, index) if changes else self._read(path, index))
        self._since_barrier.append(index)
        before.discard(index)
        return before

    def _stand_alone(self, index: int) -> set[int]:
        """Let a call that may touch anything wait for all before it, and all after it wait for it."""
        before = {*self._barrier, *self._since_barrier}
        self.__init__()
        self._barrier = [index]
        return before

    def _order_commands(self, index: int, accesses: Sequence[Access]) -> list[int]:
        """Let a command wait for every change before it, and a change for the command before it."""
        if any(isinstance(access, RunCommand) and access.effect > Effect.READ for access in accesses):
            before = [*self._command, *self._changed_since_command]
            self._command, self._changed_since_command = [index], []
            return before
        if any(_changes(access) for access in accesses):
            self._changed_since_command.append(index)
            return self._command
        return []

    def _read(self, path: str, index: int) -> list[int]:
        ancestors = _list_ancestors(path)
        before = [writer for use in self._find_uses(path, ancestors) for writer in use.writers]
        self._used_at.setdefault(path, _PathUse()).readers.append(index)
        for parent in ancestors:
            self._used_below.setdefault(parent, _PathUse()).readers.append(index)
        return before

    def _change(self, path: str, index: int) -> list[int]:
        ancestors = _list_ancestors(path)
        before = [other for use in self._find_uses(path, ancestors) for other in use.writers + use.readers]
        self._used_at[path] = _PathUse(writers=[index])  # later calls wait for this one, and so for those before it
        self._used_below.pop(path, None)
        for parent in ancestors:
            self._used_below.setdefault(parent, _PathUse()).writers.append(index)
        return before

    def _find_uses(self, path: str, ancestors: Iterable[str]) -> list[_PathUse]:
        """Return the uses of this path, of anything below it, and of the folders it lies in."""
        uses = (
            self._used_at.get(path),
            self._used_below.get(path),
            *(self._used_at.get(parent) for parent in ancestors),
        )
        return [use for use in uses if use is not None]


def _changes(access: Access) -> bool:
    match access:
        case RunCommand(effect=effect) | Reach(effect=effect) | UseTool(effect=effect):
            return effect > Effect.READ
        case ReadPath() | ReadResource():
            return False
        case _:  # writes, deletes, and any kind this does not know
            return True


def _list_paths(accesses: Iterable[Access]) -> "list[tuple[str, bool]]":
    """Return the paths a call touches and whether it changes them; a command also touches its working directory."""
    found: list[tuple[str, bool]] = []
    for access in accesses:
        match access:
            case ReadPath(path) | WritePath(path) | DeletePath(path):
                found.append((os.path.normpath(path), _changes(access)))
            case RunCommand(cwd=path, touches=touches):
                found.extend([(os.path.normpath(path), _changes(access)), *_list_paths(touches)])
            case ReadResource(uri) | WriteResource(uri) | DeleteResource(uri):
                found.append((_resource_key(uri), _changes(access)))
            case _:
                pass
    return found


def _resource_key(uri: str) -> str:
    """Return a resource's key among the paths; spellings that a server may take for the same resource share one."""
    from callwright.core.uri import normalize_uri, uri_readings  # loaded when a tool declares a resource, which few do

    return _RESOURCE + (uri_readings(uri) or (normalize_uri(uri),))[-1].casefold().rstrip("/")


def _list_ancestors(path: str) -> list[str]:
    """Return the folders a path lies in, or the resources a resource is part of: cut at each `/`, `?` and `#`."""
    if not path.startswith(_RESOURCE):
        from pathlib import PurePath  # loaded with the first path

        return [str(parent) for parent in PurePath(path).parents]
    cuts = (path[: found.start()].rstrip("/") for found in _BOUNDARY.finditer(path))
    return [cut for cut in dict.fromkeys(cuts) if cut not in (_RESOURCE, path)]


def find_conflicts(calls: Iterable[tuple[Annotations, Sequence[Access]]]) -> list[set[int]]:
    """Return for each call of a batch the indexes of the earlier ones it must wait for."""
    conflicts = Conflicts()
    return [conflicts.add(index, *call) for index, call in enumerate(calls)]


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

    def _cancel(self) -> None:
        self._stopping = True
        for task in self._list_tasks():
            task.cancel()
        self._start_ready()

    def _list_tasks(self) -> "list[asyncio.Task[None]]":
        return [task for task in self._running.values() if task is not None]

    def _end_run(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    async def drain(self) -> None:
        """Stop as `stop` does, after the task that awaited `run` was cancelled."""
        self._cancel()
        tasks = self._list_tasks()
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
        task = self._done.get_loop().create_task(self._work(indexes))
        if indexes:  # it has not begun; an eager task has
            self._handed[task] = indexes
            task.add_done_callback(self._end_lost, context=self._context)

    def _end_lost(self, task: "asyncio.Task[None]") -> None:
        """End the calls of a task that other code cancelled before it began, or that is interrupted."""
        lost = [*reversed(self._handed.pop(task)), *(index for index, own in self._running.items() if own is task)]
        for index in lost:
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
            task.remove_done_callback(self._end_lost)  # cheaper than to be called back: most tasks end well
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
                        waits_for = context.run(performing.send, None)
                        self._give_away(indexes)
                        outcome = await go_on_in(context, performing, waits_for)
                except StopIteration as end:
                    outcome = end.value
                except asyncio.CancelledError:
                    outcome = self._finish_cancelled(item, True)
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever fails, every call gets its outcome
                    outcome = Failed(item.call, Crashed(describe_raised(error)), started=True)
                doomed = bool(getattr(task, "_must_cancel", False))  # a tool has cancelled its own task and returned
                self._end_call(index, item, self._finish_cancelled(item, True) if doomed else outcome)
                if doomed or task.cancelling():  # which must reach no other call
                    break
        except KeyboardInterrupt:
            self._handed[task] = indexes
            self._end_lost(task)
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
                    self._outcomes[follower] = Interrupted(self._admitted[follower].call, ())
                    left.append(follower)
                else:  # one that was refused runs nothing
                    self._ready.append(follower)

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
