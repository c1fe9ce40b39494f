"""Which calls of a batch must wait for which: conflicts decide, not flags alone.

Two calls conflict when one writes or deletes where the other reads, writes or deletes (the same path, or one holding
the other; a command touches the folder it runs in and what its line names), when either has an effect above READ and
declares no accesses, or when both change something and one of them is a command. `parallel=True` or `False` on a tool
overrides. Every call waits for the earlier calls it conflicts with, directly or through a call between them, so the
model's order is kept wherever it matters.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from callwright.core.access import Access, DeletePath, Reach, ReadPath, RunCommand, UseTool, WritePath
from callwright.core.spec import Annotations, Effect


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
        ancestors = [str(parent) for parent in PurePath(path).parents]
        before = [writer for touched in self._met(path, ancestors) for writer in touched.writers]
        self._at.setdefault(path, _Touched()).readers.append(place)
        for parent in ancestors:
            self._below.setdefault(parent, _Touched()).readers.append(place)
        return before

    def _change(self, path: str, place: int) -> list[int]:
        ancestors = [str(parent) for parent in PurePath(path).parents]
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
        case WritePath() | DeletePath():
            return True
        case RunCommand(effect=effect) | Reach(effect=effect) | UseTool(effect=effect):
            return effect > Effect.READ
        case ReadPath():
            return False


def _paths(accesses: Iterable[Access]) -> "list[tuple[str, bool]]":
    """The paths a call touches, and whether it changes them; a command touches the folder it runs in as well."""
    found: list[tuple[str, bool]] = []
    for access in accesses:
        match access:
            case ReadPath(path) | WritePath(path) | DeletePath(path):
                found.append((os.path.normpath(path), _changes(access)))
            case RunCommand(cwd=path, touches=touches):
                found.extend([(os.path.normpath(path), _changes(access)), *_paths(touches)])
            case _:
                pass
    return found


def waits(calls: Iterable[tuple[Annotations, Sequence[Access]]]) -> list[set[int]]:
    """For each call of a batch, the earlier ones it must wait for."""
    conflicts = Conflicts()
    return [conflicts.add(place, *call) for place, call in enumerate(calls)]
