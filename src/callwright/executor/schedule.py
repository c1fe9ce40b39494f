"""Which calls of a batch must wait for which: conflicts decide, not flags alone.

Two calls conflict when one writes or deletes where the other reads, writes or deletes (the same path, or one holding
the other; a command touches the folder it runs in and what its line names), or the same resource or one below the
other, when either has an effect above READ and declares no accesses, or when both change something and one of them is
a command. `parallel=True` or `False` on a tool overrides. Every call waits for the earlier calls it conflicts with,
directly or through a call between them, so the model's order is kept wherever it matters.

Runs the calls of one turn side by side where they do not conflict, and in order where they do.
"""

import asyncio
import os
import re
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
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
from callwright.core.calls import Failed, Outcome
from callwright.core.errors import Crashed
from callwright.core.spec import Annotations, Effect
from callwright.executor.admit import Admitted

_RESOURCE = "\0"
"""Begins the name of a resource, which no path can begin with."""
_BOUNDARY = re.compile(r"[/?#]")


@dataclass(slots=True)
class _Touched:
    """Which calls changed a place, and which have read it."""

    writers: list[int] = field(default_factory=list[int])
    readers: list[int] = field(default_factory=list[int])


class Conflicts:
    """Fed one call after the other, says which earlier ones each must wait for."""

    def __init__(self) -> None:
        self._barrier: list[int] = []
        self._since_barrier: list[int] = []
        self._command: list[int] = []
        self._changed_since_command: list[int] = []
        self._at: dict[str, _Touched] = {}
        self._below: dict[str, _Touched] = {}

    def add(self, place: int, annotations: Annotations, accesses: Sequence[Access]) -> set[int]:
        """Take in the next call and return the places it must wait for."""
        if annotations.parallel is True:
            return set()
        if annotations.parallel is False or (not accesses and annotations.effect > Effect.READ):
            return self._stand_alone(place)
        before = {*self._barrier, *self._beside_commands(place, accesses)}
        for path, changes in _paths(accesses):
            before.update(self._change(path, place) if changes else self._read(path, place))
        self._since_barrier.append(place)
        before.discard(place)
        return before

    def _stand_alone(self, place: int) -> set[int]:
        """It may touch anything: it waits for all before it, and all after it wait for it."""
        before = {*self._barrier, *self._since_barrier}
        self.__init__()
        self._barrier = [place]
        return before

    def _beside_commands(self, place: int, accesses: Sequence[Access]) -> list[int]:
        """A command waits for every change before it, and every change waits for the command before it."""
        if any(isinstance(access, RunCommand) and access.effect > Effect.READ for access in accesses):
            before = [*self._command, *self._changed_since_command]
            self._command, self._changed_since_command = [place], []
            return before
        if any(_changes(access) for access in accesses):
            self._changed_since_command.append(place)
            return self._command
        return []

    def _read(self, path: str, place: int) -> list[int]:
        ancestors = _ancestors(path)
        before = [writer for touched in self._met(path, ancestors) for writer in touched.writers]
        self._at.setdefault(path, _Touched()).readers.append(place)
        for parent in ancestors:
            self._below.setdefault(parent, _Touched()).readers.append(place)
        return before

    def _change(self, path: str, place: int) -> list[int]:
        ancestors = _ancestors(path)
        before = [other for touched in self._met(path, ancestors) for other in touched.writers + touched.readers]
        self._at[path] = _Touched(writers=[place])  # whoever comes next waits for this one, and so for those before
        self._below.pop(path, None)
        for parent in ancestors:
            self._below.setdefault(parent, _Touched()).writers.append(place)
        return before

    def _met(self, path: str, ancestors: Iterable[str]) -> list[_Touched]:
        """What was touched here, anywhere below, or at a folder this lies in."""
        met = (self._at.get(path), self._below.get(path), *(self._at.get(parent) for parent in ancestors))
        return [touched for touched in met if touched is not None]


def _changes(access: Access) -> bool:
    match access:
        case RunCommand(effect=effect) | Reach(effect=effect) | UseTool(effect=effect):
            return effect > Effect.READ
        case ReadPath() | ReadResource():
            return False
        case _:  # writes, deletes, and any kind this does not know
            return True


def _paths(accesses: Iterable[Access]) -> "list[tuple[str, bool]]":
    """The paths a call touches, and whether it changes them; a command touches the folder it runs in as well."""
    found: list[tuple[str, bool]] = []
    for access in accesses:
        match access:
            case ReadPath(path) | WritePath(path) | DeletePath(path):
                found.append((os.path.normpath(path), _changes(access)))
            case RunCommand(cwd=path, touches=touches):
                found.extend([(os.path.normpath(path), _changes(access)), *_paths(touches)])
            case ReadResource(uri) | WriteResource(uri) | DeleteResource(uri):
                found.append((_resource_key(uri), _changes(access)))
            case _:
                pass
    return found


def _resource_key(uri: str) -> str:
    """Name a resource in the one dictionary of touched places; spellings a server may take for one get one name."""
    from callwright.core.uri import normalize_uri, uri_readings  # loaded when a tool declares a resource, which few do

    return _RESOURCE + (uri_readings(uri) or (normalize_uri(uri),))[-1].casefold().rstrip("/")


def _ancestors(place: str) -> list[str]:
    """Return the folders a path lies in, or the resources a resource is part of: cut at each `/`, `?` and `#`."""
    if not place.startswith(_RESOURCE):
        return [str(parent) for parent in PurePath(place).parents]
    cuts = (place[: found.start()].rstrip("/") for found in _BOUNDARY.finditer(place))
    return [cut for cut in dict.fromkeys(cuts) if cut not in (_RESOURCE, place)]


def waits(calls: Iterable[tuple[Annotations, Sequence[Access]]]) -> list[set[int]]:
    """For each call of a batch, the earlier ones it must wait for."""
    conflicts = Conflicts()
    return [conflicts.add(place, *call) for place, call in enumerate(calls)]


Perform = Callable[[Admitted], Coroutine[Any, Any, Outcome]]
Stopped = Callable[[Admitted, bool], Outcome]
_GRACE_SECONDS = 5.0
_HARMLESS = Annotations(Effect.READ)
"""A call that failed in admission runs nothing, so it conflicts with nothing."""
_NOBODY: set[int] = set()


class Batch:
    """One turn's calls on their way to exactly one outcome each."""

    def __init__(self, admitted: Sequence[Admitted], perform: Perform, stopped: Stopped, *, width: int) -> None:
        self._admitted = admitted
        self._perform = perform
        self._stopped = stopped
        self._width = width
        self._outcomes: list[Outcome | None] = [None] * len(admitted)
        self._running: dict[int, asyncio.Task[Outcome]] = {}
        self._ready: deque[int] = deque()
        self._held: dict[str, deque[int]] = {}
        self._busy: dict[str, int] = {}
        self._stopping = False
        before = _conflicts(admitted)
        self._left = [len(others) for others in before]
        self._followers: list[list[int]] = [[] for _ in admitted]
        for place, others in enumerate(before):
            for other in others:
                self._followers[other].append(place)

    async def run(self) -> list[Outcome]:
        """Run everything and return the outcomes in call order."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ready.extend(place for place, left in enumerate(self._left) if left == 0)
        self._start_ready()
        await self._done
        return self.outcomes()

    def stop(self) -> None:
        """Cancel what runs and forget what waits; `run` then returns with outcomes for all.

        What ran has a moment to end; a tool that will not is left behind.
        """
        self._cancel()
        asyncio.get_running_loop().call_later(_GRACE_SECONDS, self._leave)

    def _cancel(self) -> None:
        self._stopping = True
        for task in list(self._running.values()):
            task.cancel()
        self._start_ready()

    def _leave(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    async def drain(self) -> None:
        """The same for whoever cannot wait for `run` any more."""
        self._cancel()
        if self._running:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(list(self._running.values()), timeout=_GRACE_SECONDS)

    def outcomes(self) -> list[Outcome]:
        """One per call, in call order; a call that was stopped says whether it had started."""
        return [
            self._stopped(self._admitted[place], place in self._running) if outcome is None else outcome
            for place, outcome in enumerate(self._outcomes)
        ]

    def _start_ready(self) -> None:
        loop = asyncio.get_running_loop()
        while self._ready and len(self._running) < self._width and not self._stopping:
            place = self._ready.popleft()
            if not self._take(place):
                continue
            task = loop.create_task(self._perform(self._admitted[place]))
            self._running[place] = task
            task.add_done_callback(lambda task, place=place: self._ended(place, task))
        if not self._running and (self._stopping or not self._ready):
            self._leave()

    def _take(self, place: int) -> bool:
        """A tool at its own limit waits aside, so that it does not take other tools' places."""
        item = self._admitted[place]
        limit = None if item.entry is None else item.entry.limits.concurrency
        if limit is None:
            return True
        name = item.name
        if self._busy.get(name, 0) >= limit:
            self._held.setdefault(name, deque()).append(place)
            return False
        self._busy[name] = self._busy.get(name, 0) + 1
        return True

    def _ended(self, place: int, task: "asyncio.Task[Outcome]") -> None:
        item = self._admitted[place]
        if task.cancelled():
            self._outcomes[place] = self._stopped(item, True)
        elif (error := task.exception()) is not None:
            self._outcomes[place] = Failed(item.call, Crashed(f"{type(error).__name__}: {error}"), started=True)
        else:
            self._outcomes[place] = task.result()
        del self._running[place]
        self._release(place)
        self._start_ready()

    def _release(self, place: int) -> None:
        item = self._admitted[place]
        name = item.name
        if name in self._busy:
            self._busy[name] -= 1
            if self._held.get(name):
                self._ready.appendleft(self._held[name].popleft())
        for follower in self._followers[place]:
            self._left[follower] -= 1
            if self._left[follower] == 0:
                self._ready.append(follower)


def _conflicts(admitted: Sequence[Admitted]) -> list[set[int]]:
    """Who waits for whom; plain reads wait for nobody, and a turn of a thousand is worth asking."""
    if all(
        item.error is not None or (item.entry is not None and item.entry.independent and not item.accesses)
        for item in admitted
    ):
        return [_NOBODY] * len(admitted)
    return waits(
        (_HARMLESS if item.error or item.entry is None else item.entry.annotations, item.accesses) for item in admitted
    )
