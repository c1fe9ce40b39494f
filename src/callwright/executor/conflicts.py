"""Conflicts between the calls of a turn: which of them must wait for which.

Two calls conflict when one writes or deletes where the other reads, writes or deletes (the same path, or one holding
the other, in any spelling and with links followed; a command touches the folder it runs in and what its line names), or
the same resource or one below the other, when either has an effect above READ and declares no accesses, or when both
change something and one of them is a command. `parallel=True` or `False` on a tool overrides. Every call waits for the
earlier calls it conflicts with, directly or through a call between them, so the model's order is kept wherever it
matters.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
from callwright.core.spec import Annotations, Effect

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

    def add(
        self, index: int, annotations: Annotations, accesses: Sequence[Access], paths: Iterable[tuple[str, bool]]
    ) -> set[int]:
        """Add the next call and return the indexes of the calls it must wait for.

        `paths` are what its accesses touch, in every spelling that counts, and whether it changes them.
        """
        if annotations.parallel is True:
            return set()
        if annotations.parallel is False or (not accesses and annotations.effect > Effect.READ):
            return self._stand_alone(index)
        before = {*self._barrier, *self._order_commands(index, accesses)}
        for path, changes in paths:
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
                found.append((os.fspath(path), _changes(access)))
            case RunCommand(cwd=path, touches=touches):
                found.extend([(os.fspath(path), _changes(access)), *_list_paths(touches)])
            case ReadResource(uri) | WriteResource(uri) | DeleteResource(uri):
                found.append((_resource_key(uri), _changes(access)))
            case _:
                pass
    return found


def _list_spellings(path: str) -> set[str]:
    """Return a path as it is written and as it is without links: a folder may be removed, or used, by either."""
    if path.startswith(_RESOURCE):
        return {path}
    try:
        return {os.path.abspath(path), os.path.realpath(path)}  # noqa: PTH100 - text
    except (OSError, ValueError):  # not a path, or relative to a folder that was removed
        return {os.path.normpath(path)}


def _resource_key(uri: str) -> str:
    """Return a resource's key among the paths; spellings that a server may take for the same resource share one."""
    from callwright.core.uri import normalize_uri, uri_readings  # loaded when a tool declares a resource, which few do

    return _RESOURCE + (uri_readings(uri) or (normalize_uri(uri),))[-1].casefold().rstrip("/")


def _list_ancestors(path: str) -> list[str]:
    """Return the folders a path lies in, or the resources a resource is part of: cut at each `/`, `?` and `#`."""
    if not path.startswith(_RESOURCE):
        folders: list[str] = []
        while (folder := os.path.dirname(path)) != path:  # noqa: PTH120 - text, in a fifth of the time
            path = folder
            folders.append(folder)
        return folders
    cuts = (path[: found.start()].rstrip("/") for found in _BOUNDARY.finditer(path))
    return [cut for cut in dict.fromkeys(cuts) if cut not in (_RESOURCE, path)]


def find_conflicts(calls: Iterable[tuple[Annotations, Sequence[Access]]]) -> list[set[int]]:
    """Return for each call of a batch the indexes of the earlier ones it must wait for."""
    claims = [(annotations, accesses, _list_paths(accesses)) for annotations, accesses in calls]
    # reads alone never conflict, and resolving their paths costs system calls
    changing = any(changes for _, _, paths in claims for _, changes in paths)
    conflicts, found = Conflicts(), list[set[int]]()
    for index, (annotations, accesses, paths) in enumerate(claims):
        spelled = [(each, changes) for path, changes in paths for each in _list_spellings(path)] if changing else ()
        found.append(conflicts.add(index, annotations, accesses, spelled))
    return found
