"""Compares folders before and after a command, and keeps the contents that the command may change.

Left out are repositories' own data (.git), folders that ignore rules hide, and folders that tools make.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from callwright.core.errors import ToolError
from callwright.system.paths import open_folder
from callwright.system.search.gitignore import REPOSITORY_FOLDERS, RULE_NAMES, IgnoreScope
from callwright.system.sensitive_paths import own_home
from callwright.system.undo.kept_content import (
    ABSENT,
    ContentFolder,
    EntryState,
    NotKept,
    UndoLimits,
    read_entry,
    read_state,
)

_GENERATED = frozenset(
    "node_modules __pycache__ .venv venv site-packages .tox .nox .mypy_cache .ruff_cache .pytest_cache .hypothesis"
    " .gradle .next .nuxt bower_components .terraform".split()
)
_SETTLED_NS = 50_000_000
_DATABASE_PARTS = ("-wal", "-shm", "-journal")


class Signature(NamedTuple):
    """What `stat` tells about an entry; any change of its content or mode changes it."""

    mode: int
    size: int
    inode: int
    modified_ns: int
    changed_ns: int


@dataclass(slots=True)
class TreeView:
    """The entries below some folders at one moment."""

    entries: dict[str, Signature] = field(default_factory=dict[str, Signature])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Folders that were left out, with the reason."""
    folders: dict[int, str] = field(default_factory=dict[int, str])
    """All folders by inode, to see that one was moved."""
    unsure: set[str] = field(default_factory=set[str])
    """Files that had changed so recently that another change may not show."""
    crowded: set[str] = field(default_factory=set[str])
    """Files that were not kept because other files take the room."""
    overflow: bool = False
    """Whether there were too many entries."""
    excluded: frozenset[str] = frozenset()
    """Paths that belong to this program."""

    def in_use(self, path: str) -> bool:
        """Whether a file belongs to an SQLite database in use: opening it could drop the locks of this process."""
        if path.endswith(_DATABASE_PARTS):
            return path.rpartition("-")[0] in self.entries
        return any(path + part in self.entries for part in _DATABASE_PARTS)


class TreeScan:
    """Views of folders, and the states that files had in them. Used by one command at a time.

    Args:
        kept: Where contents are kept.
        limits: How much is looked at and kept.
    """

    def __init__(self, kept: ContentFolder, limits: UndoLimits) -> None:
        self.kept = kept
        self._limits = limits
        self._states: dict[str, tuple[Signature, EntryState]] = {}
        self._excluded: frozenset[str] = frozenset({os.path.realpath(own_home())})
        self.too_large = False
        """Whether there were too many entries once, so that it is not tried again."""

    def exclude(self, path: str) -> None:
        """Leave out a file or folder of this program, and what SQLite puts beside a database."""
        real = os.path.realpath(path)
        self._excluded |= {real, *(f"{real}{part}" for part in (*_DATABASE_PARTS, "-locks"))}

    def look(self, roots: Sequence[str], before: TreeView | None = None) -> TreeView:
        """View the folders; after a command, with the view from before it, whose choice of folders counts."""
        view = TreeView(excluded=self._excluded)
        for root in roots:
            _look_below(root, view, before, self._limits.entries)
        self.too_large = self.too_large or view.overflow
        return view

    def keep_all(self, view: TreeView, spared: Callable[[str], bool]) -> None:
        """Keep the content of every file of a view, but for those that the command cannot change.

        Half of the room is for this; files beyond it are not kept.
        """
        room = self._limits.total_bytes // 2
        # a later change is sure to show only in older files: the clock of a file system moves in steps
        settled_ns = time.time_ns() - _SETTLED_NS
        wanted: dict[str, list[tuple[str, Signature]]] = {}
        for path, signature in view.entries.items():
            if stat.S_ISREG(signature.mode) or stat.S_ISLNK(signature.mode):
                fresh = signature.changed_ns > settled_ns or signature.modified_ns > settled_ns
                if fresh:
                    view.unsure.add(path)
                known = self._states.get(path)
                if not fresh and known is not None and known[0] == signature:
                    room -= signature.size
                elif not spared(path) and not view.in_use(path):
                    self._states.pop(path, None)
                    if signature.size > self._limits.file_bytes:
                        continue
                    if signature.size > room:
                        view.crowded.add(path)
                        continue
                    room -= signature.size
                    wanted.setdefault(os.path.dirname(path), []).append((path, signature))
        for folder, files in wanted.items():
            self._keep_files(folder, files)

    def _keep_files(self, folder: str, files: Sequence[tuple[str, Signature]]) -> None:
        try:
            descriptor = open_folder(Path(folder))
        except (OSError, ToolError):
            return
        try:
            for path, signature in files:
                with suppress(NotKept, OSError, ToolError):  # only a problem if the command changes the file
                    name, most = os.path.basename(path), self._limits.file_bytes
                    self._states[path] = signature, read_entry(descriptor, name, self.kept, most)
        finally:
            os.close(descriptor)

    def needed(self) -> set[str]:
        """Return the digests of contents that spare the next command from reading files again."""
        return {state.content for _, state in self._states.values() if state.kind == "file"}

    def forget(self) -> None:
        """Keep nothing for the next command."""
        self._states.clear()

    def differences(self, before: TreeView, after: TreeView) -> Iterator[tuple[str, EntryState | None, EntryState]]:
        """Yield each changed path with its state before, which is None if it was not kept, and now."""
        changed = {path for path, _ in before.entries.items() ^ after.entries.items()}
        for path in sorted(changed | before.unsure):
            old, new = before.entries.get(path), after.entries.get(path)
            if before.in_use(path) or after.in_use(path):
                if old != new:
                    yield path, None, EntryState("special")
                continue
            state = ABSENT if old is None else self._state_before(path, old)
            now = _state_now(path, new)
            if now is not None and state != now:
                yield path, state, now

    def lost_folders(self, before: TreeView, after: TreeView) -> tuple[list[str], list[str]]:
        """Return the left-out folders that are gone, and those of them that were moved to where they show."""
        inodes = {path: inode for inode, path in before.folders.items()}
        gone = [path for path in before.skipped if path not in after.skipped and not os.path.lexists(path)]
        moved = [path for path in gone if after.folders.get(inodes.get(path, -1)) in after.entries]
        return gone, moved

    def _state_before(self, path: str, signature: Signature) -> EntryState | None:
        known = self._states.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        if stat.S_ISDIR(signature.mode):
            return EntryState("folder", "", stat.S_IMODE(signature.mode))
        return None


def _state_now(path: str, signature: Signature | None) -> EntryState | None:
    if signature is None:
        return ABSENT
    try:
        return read_state(Path(path))
    except (OSError, ToolError):
        return EntryState("special")  # equal to no state from before: the change is recorded


def _look_below(root: str, view: TreeView, before: TreeView | None, most: int) -> None:
    try:
        found = os.lstat(root)
    except OSError:
        return
    view.entries[root] = _signature(found)
    if not stat.S_ISDIR(found.st_mode):
        return
    pending = [(root, IgnoreScope.of(Path(root), Path(root)))]
    while pending:
        folder, scope = pending.pop()
        folders, rules = _look_into(folder, view)
        if len(view.entries) > most:
            view.overflow = True
            return
        if folder != root and rules:
            scope = scope.enter(folder, rules)
        for path in folders:
            reason = _reason_to_skip(path, scope, before)
            if reason:
                view.skipped[path] = reason
                view.entries.pop(path, None)
            else:
                pending.append((path, scope))


def _look_into(folder: str, view: TreeView) -> tuple[list[str], list[str]]:
    """Add the entries of one folder; return its folders, and the names of those entries that hold ignore rules."""
    folders: list[str] = []
    rules: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # removed meanwhile
                continue
            if entry.path in view.excluded:
                continue
            if entry.name in RULE_NAMES:
                rules.append(entry.name)
            if stat.S_ISDIR(found.st_mode):
                folders.append(entry.path)
                view.folders[found.st_ino] = entry.path
            elif entry.name in REPOSITORY_FOLDERS:  # the file that leads from a linked worktree to its repository
                continue
            view.entries[entry.path] = _signature(found)
    return folders, rules


def _reason_to_skip(path: str, scope: IgnoreScope, before: TreeView | None) -> str:
    if before is not None and path in before.skipped:
        return before.skipped[path]
    if before is not None and path in before.entries:
        return ""  # rules that the command has changed do not make a folder vanish
    name = os.path.basename(path)
    if name in REPOSITORY_FOLDERS:
        return "repository"
    if name in _GENERATED:
        return "generated"
    return "ignored" if scope.verdict(path, folder=True) is not None else ""


def _signature(found: os.stat_result) -> Signature:
    if stat.S_ISDIR(found.st_mode):
        # its entries are compared by themselves, and its times change with them
        return Signature(found.st_mode, 0, 0, 0, 0)
    return Signature(found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
