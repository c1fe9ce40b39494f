"""What each turn did to each path, replayed from the lines of a journal."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callwright.core.errors import ToolError
from callwright.system.undo.journal import Line
from callwright.system.undo.kept_content import (
    ABSENT,
    EntryState,
    UndoError,
    describe_failure,
    missing_folders,
    read_state,
)
from callwright.system.undo.restore import Restoration

States = dict[str, tuple[EntryState, EntryState]]
"""Paths with the state they had and the state they got."""
_LOST_FOLDER = EntryState("folder", "", 0o755)


@dataclass(slots=True)
class Change:
    """What one turn did to one path."""

    before: EntryState
    after: EntryState | None = None
    """None while it is being changed, or if the process was killed meanwhile."""
    foreign: bool = False
    """Whether another program changed the path within the turn too."""
    order: int = 0
    """When `before` was recorded, counted in changes and commands of this process."""
    ended: int = 0
    """When `after` was recorded."""


@dataclass(slots=True)
class ChangeSet:
    """The changes of one turn."""

    number: int
    at: float
    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    gaps: list[str] = field(default_factory=list[str])
    """Changes that were not kept, so that the turn cannot be undone."""
    notes: list[str] = field(default_factory=list[str])
    """What an undo leaves as it is."""

    @property
    def paths(self) -> set[str]:
        """The files and links that were changed."""
        return {
            path
            for path, change in self.changes.items()
            if change.before != change.after and {change.before.kind, _kind(change.after)} - {"absent", "folder"}
        }


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo or a redo would do to files."""

    sets: tuple[int, ...] = ()
    restorations: tuple[Restoration, ...] = ()
    """The paths whose state would change."""
    conflicts: tuple[str, ...] = ()
    """Paths that another program has changed since."""
    notes: tuple[str, ...] = ()
    """What is left as it is."""
    point: str = ""
    """Identifies the state of the session that an undo returns to."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and links that would change; folders come and go with their files."""
        return tuple(
            each.path for each in self.restorations if {each.current.kind, each.target.kind} - {"absent", "folder"}
        )


class ChangeHistory:
    """The turns of one session that changed something, and those that were undone."""

    def __init__(self) -> None:
        self.sets: dict[int, ChangeSet] = {}
        """The turns that are not undone, oldest first."""
        self.last = 0
        """The number of the latest turn."""
        self.forgotten = 0
        """The latest turn whose changes were removed to make room."""
        self.suspended = False
        """Whether nothing is recorded since the latest turn, because the disk is full."""
        self.restores: dict[str, tuple[list[ChangeSet], States]] = {}
        """The undos that can be redone, with the turns they undid."""
        self.points: dict[str, str] = {}
        """The states of the session that these undos returned to."""
        self.redone: set[str] = set()
        """The undos that were redone, and nothing was changed since."""

    def add_set(self, number: int, at: float) -> ChangeSet:
        """Add a turn; what was undone before cannot be redone any more."""
        self.last = number
        self.sets[number] = added = ChangeSet(number, at)
        for known in (self.restores, self.points, self.redone):
            known.clear()
        return added

    def suspend(self, number: int, at: float, reason: str) -> None:
        """Note that this turn and those that follow are not recorded."""
        current = self.sets[number] if number in self.sets else self.add_set(number, at)
        current.gaps.append(reason)
        self.suspended = True

    def read_line(self, line: Line) -> None:
        """Apply a line of the journal.

        Raises:
            ValueError, KeyError, TypeError: It is not a line that this version writes.
        """
        if "suspended" in line:
            self.suspend(int(line["set"]), float(line["at"]), str(line["suspended"]))
        elif "resumed" in line:
            self.suspended = False
        elif "at" in line:
            self.add_set(int(line["set"]), float(line["at"]))
        elif "restored" in line:
            self.apply_restored(line)
        elif "forgot" in line:
            self.apply_forgotten(int(line["forgot"]))
        elif "restoring" not in line and (current := self.sets.get(line["set"])) is not None:
            _read_change(current, line)

    def apply_restored(self, line: Line) -> None:
        """Take turns out, or put them back in if the line is a redo."""
        states: States = {
            path: (EntryState.load(old), EntryState.load(new)) for path, (old, new) in line["changes"].items()
        }
        redone = self.restores.pop(line["redo"], None) if line["redo"] else None
        if redone is None:
            undone = [self.sets.pop(number) for number in line["sets"] if number in self.sets]
            self.restores[line["restored"]] = undone, states
            self.points[line["restored"]] = str(line.get("point", ""))
            return
        self.redone.add(line["redo"])
        self.sets.update({each.number: each for each in redone[0]})
        self.sets = dict(sorted(self.sets.items()))
        for path, (_, new) in states.items():
            # the files are what the redo wrote, which may differ from what the turns had left
            latest = next((each for each in reversed(redone[0]) if path in each.changes), None)
            if latest is not None:
                latest.changes[path].after = new

    def apply_forgotten(self, number: int) -> None:
        """Drop the turns up to a number."""
        self.forgotten = max(self.forgotten, number)
        for each in [each for each in self.sets if each <= number]:
            del self.sets[each]

    def find_excess(self, sizes: Mapping[str, int], most_bytes: int, beside: set[str]) -> int:
        """Return the number up to which turns are to be forgotten so that the rest fits; never the latest; 0 if none.

        Args:
            sizes: The size of every content, by digest.
            most_bytes: How much may be kept.
            beside: The digests of contents that are kept for another reason.
        """

        def fits(number: int) -> bool:
            return sum(sizes.get(digest, 0) for digest in self.needed_contents(number) | beside) <= most_bytes

        # not one by one: each question looks at every content, those of the whole workspace too
        numbers = [0, *(number for number in self.sets if number != self.last)]
        return numbers[min(bisect_left(numbers, True, key=fits), len(numbers) - 1)]

    def needed_contents(self, after: int = 0) -> set[str]:
        """Return the digests that a redo needs, or an undo of the turns after a number."""
        sets = [each for number, each in self.sets.items() if number > after]
        states = [change.before for each in sets for change in each.changes.values()]
        for undone, changes in self.restores.values():
            states += [change.before for each in undone for change in each.changes.values()]
            states += [state for pair in changes.values() for state in pair]
        return {state.content for state in states if state.kind == "file"}


def _kind(state: EntryState | None) -> str:
    return "file" if state is None else state.kind


def _read_change(current: ChangeSet, line: Line) -> None:
    if "before" in line:
        for path, data in line["before"].items():
            known = current.changes.get(path)
            current.changes[path] = Change(EntryState.load(data), None if known is None else known.after)
    elif "after" in line:
        foreign = frozenset(line["foreign"])
        for path, data in line["after"].items():
            current.changes[path].after = EntryState.load(data)
            current.changes[path].foreign = path in foreign
    elif "gap" in line:
        current.gaps.append(str(line["gap"]))
    elif "watch" in line:
        current.gaps.append(f"{line['watch']}: the process ended while a command was running")
    elif "watched" in line:
        current.gaps = [gap for gap in current.gaps if not gap.startswith(f"{line['watched']}: ")]
    elif "note" in line:
        current.notes.append(str(line["note"]))
    else:
        raise ValueError(f"unknown line {line!r}")


def merge_sets(sets: Sequence[ChangeSet]) -> dict[str, Change]:
    """Return what several turns together did to each path."""
    merged: dict[str, Change] = {}
    for each in sets:
        for path, change in each.changes.items():
            earlier = merged.get(path)
            if earlier is None:
                merged[path] = Change(change.before, change.after, change.foreign)
                continue
            # another program changed it between two turns: undoing both would lose that
            foreign = earlier.foreign or change.foreign or earlier.after != change.before
            merged[path] = Change(earlier.before, change.after, foreign)
    return merged


def dump_states(states: Mapping[str, EntryState]) -> dict[str, Any]:
    """Return states as JSON."""
    return {path: state.dump() for path, state in states.items()}


def plan_restorations(wanted: Mapping[str, tuple[EntryState | None, EntryState]]) -> UndoPlan:
    """Compare what paths are with what they should be.

    Args:
        wanted: For each path, the state that it was left in, None if that is not known, and the state to restore.

    Raises:
        UndoError: A path cannot be read, or its state cannot be restored.
    """
    restorations: list[Restoration] = []
    conflicts: list[str] = []
    for path, (expected, target) in sorted(wanted.items()):
        try:
            current = read_state(Path(path))
        except (OSError, ToolError) as error:
            raise UndoError(f"{path} cannot be restored: {describe_failure(error)}") from None
        if current == target:
            continue
        if target.kind == "special":
            raise UndoError(f"{path} cannot be restored: it was not a file, a link or a folder")
        if current != expected:
            conflicts.append(path)
        restorations.append(Restoration(path, current, target))
    folders = _find_lost_folders([each.path for each in restorations if each.target != ABSENT], wanted)
    return UndoPlan((), (*folders, *restorations), tuple(conflicts))


def _find_lost_folders(paths: Sequence[str], known: Collection[str]) -> list[Restoration]:
    """Return the folders that another program has removed, and that files are restored to."""
    missing = dict.fromkeys(str(folder) for path in paths for folder in missing_folders(Path(path)))
    return [Restoration(folder, ABSENT, _LOST_FOLDER) for folder in missing if folder not in known]
