"""Records the changes of one session turn by turn, and undoes or redoes them."""

import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from callwright.core.errors import ToolError
from callwright.system.undo.change_sets import (
    Change,
    ChangeHistory,
    ChangeSet,
    UndoPlan,
    dump_states,
    merge_sets,
    plan_restorations,
)
from callwright.system.undo.journal import Journal, JournalDamaged, JournalNewer, Line
from callwright.system.undo.kept_content import (
    ABSENT,
    ContentFolder,
    EntryState,
    NotKept,
    UndoError,
    UndoLimits,
    check_sizes,
    describe_failure,
    list_tree,
    missing_folders,
    read_state,
)
from callwright.system.undo.restore import Restoration, recover, restore
from callwright.system.undo.tree_scan import TreeScan

_MOST_ENTRIES = 20_000
"""In a folder that a tool moves or deletes; keeping more would take longer than a user waits."""


class ChangeLog:
    """The journal and the kept contents of one session. Thread-safe.

    Recording never raises for a change that cannot be kept: the turn gets a gap, and cannot be undone.

    Args:
        folder: The session's folder.
        limits: How much is kept.
    """

    def __init__(self, folder: Path, limits: UndoLimits) -> None:
        self.folder = folder
        self.limits = limits
        self.kept = ContentFolder(folder / "contents", limits.total_bytes)
        self.scan = TreeScan(self.kept, limits)
        self.scan.exclude(str(folder.parent))
        self.history = ChangeHistory()
        self.problem = ""
        """Why nothing can be recorded or undone; empty if it can."""
        self._journal = Journal(folder)
        self._current: ChangeSet | None = None
        self._new_gaps: list[str] = []
        self._order = 0
        self._watches = 0
        self._mark: tuple[str, int] | None = None
        self._lock = threading.RLock()
        self._load()

    @property
    def log_id(self) -> str:
        """Identifies the journal that turn numbers belong to; empty before the first change."""
        return self._journal.log_id

    def covers(self, log_id: str) -> bool:
        """Whether the journal has every change since a moment at which it had this id."""
        return log_id == self._journal.log_id if log_id else self._journal.first

    def refresh(self) -> None:
        """Read the journal again if another process has used it."""
        with self._lock:
            if self._journal.stale:
                self._journal = Journal(self.folder)
                self.kept = self.scan.kept = ContentFolder(self.folder / "contents", self.limits.total_bytes)
                self.scan.forget()
                self.history, self.problem, self._current = ChangeHistory(), "", None
                self._load()

    @property
    def idle(self) -> bool:
        """Whether nothing is recorded."""
        return bool(self.problem) or self.history.suspended

    def mark_point(self) -> None:
        """Make the next point begin here: something is about to change files before the prompt is recorded."""
        with self._lock:
            self._mark = self._mark or self._point()

    def take_point(self) -> tuple[str, int]:
        """Return the id of the journal and the latest turn, as they were when the point was marked."""
        with self._lock:
            marked, self._mark = self._mark, None
            return marked or self._point()

    def _point(self) -> tuple[str, int]:
        # the latest turn has a gap while nothing is recorded, so that what follows cannot be undone either
        return self.log_id, self.history.last - self.history.suspended

    def begin_turn(self) -> None:
        """Count the next change for a new turn."""
        with self._lock:
            self._current = None
            if self.history.suspended:
                self._resume()

    def keep_before(self, paths: Iterable[Path]) -> list[Path]:
        """Keep what paths are before they are changed, with everything below folders.

        Returns:
            The paths, with the missing folders above them; for `keep_after`.
        """
        wanted = [each for path in paths for each in (*missing_folders(path), path)]
        with self._lock:
            if self.idle:
                return []
            try:
                self._open_set()
                entries = [entry for path in wanted for entry in list_tree(path, _MOST_ENTRIES)]
                check_sizes(entries, self.limits.total_bytes // 2)
                found = {str(entry): read_state(entry, self.kept, self.limits.file_bytes) for entry in entries}
                self._record_before(found)
            except (NotKept, OSError, ToolError) as error:
                self.add_gap(f"{wanted[-1]}: {describe_failure(error)}")
            return wanted

    def keep_after(self, paths: Sequence[Path]) -> None:
        """Record what paths have become."""
        with self._lock:
            current = self._current
            if not paths or current is None or self.idle:
                return
            try:
                entries = (entry for path in paths for entry in list_tree(path, _MOST_ENTRIES))
                found = {str(entry): read_state(entry) for entry in entries}
                below = tuple(f"{path}/" for path in paths)
                for known in current.changes:  # what was below a folder that is gone
                    if known not in found and known.startswith(below):
                        found[known] = read_state(Path(known))
                self._record_after(found)
            except (NotKept, OSError, ToolError) as error:
                self.add_gap(f"{paths[-1]}: {describe_failure(error)}")

    def record_changes(self, changes: Mapping[str, tuple[EntryState, EntryState]], since: int) -> None:
        """Record what a command has changed; `since` is what `open_watch` returned.

        Raises:
            NotKept: It cannot be recorded.
        """
        with self._lock:
            self._record_before({path: before for path, (before, _) in changes.items()}, since=since)
            self._record_after({path: after for path, (_, after) in changes.items()})

    def open_watch(self) -> tuple[str, int]:
        """Announce that a command runs; return an id for `close_watch`, and a moment for `record_changes`.

        Raises:
            NotKept: It cannot be recorded.
        """
        with self._lock:
            watch = secrets.token_hex(4)
            self._append({"watch": watch})
            self._watches += 1
            self._order += 1
            return watch, self._order

    def close_watch(self, watch: str) -> None:
        """Record that the changes of a command are known.

        Raises:
            NotKept: It cannot be recorded.
        """
        with self._lock:
            self._watches -= 1
            self._append({"watched": watch})

    def add_note(self, text: str) -> None:
        """Record what an undo of this turn leaves as it is."""
        with self._lock, suppress(NotKept):
            if self.idle:
                return
            current = self._open_set()
            if text not in current.notes:
                self._append({"note": text})
                current.notes.append(text)

    def add_gap(self, reason: str) -> None:
        """Record that a change of this turn was not kept, so that the turn is never undone by half."""
        with self._lock:
            if self.history.suspended:
                return
            self._new_gaps.append(reason)
            try:
                self._append({"gap": reason})
                self._open_set().gaps.append(reason)
            except NotKept:
                self._suspend(reason)

    def _suspend(self, reason: str) -> None:
        number = self.history.last + (self._current is None)
        at = time.time()
        self._journal.append_last({"suspended": reason, "set": number, "at": at})
        if self._journal.log_id:
            self.history.suspend(number, at, reason)
        else:  # all is lost, but for the knowledge that it is
            self.history = ChangeHistory()
        self._current = None

    def _resume(self) -> None:
        """Record again, if the disk has room."""
        with suppress(NotKept):
            self._journal.reserve()
            self._journal.append({"resumed": True})
            self.history.suspended = False

    def take_new_gaps(self) -> list[str]:
        """Return the gaps that the user was not told about yet."""
        with self._lock:
            gaps, self._new_gaps = self._new_gaps, []
            return gaps

    def _record_before(self, found: Mapping[str, EntryState], since: int | None = None) -> None:
        current = self._open_set()
        fresh: dict[str, EntryState] = {}
        for path, state in found.items():
            known = current.changes.get(path)
            if known is None or (since is not None and known.order > since and known.before != state):
                fresh[path] = state
            elif (since is None or known.ended < since) and known.after is not None and known.after != state:
                known.foreign = True
        self._order += 1
        if fresh:
            self._append({"before": dump_states(fresh)})
        for path, state in fresh.items():
            known = current.changes.get(path)
            current.changes[path] = replace(known or Change(state), before=state, order=self._order)
        self._make_room()

    def _record_after(self, found: Mapping[str, EntryState]) -> None:
        current = self._open_set()
        new = {path: ABSENT for path in found if path not in current.changes}
        if new:  # created below a folder that did not exist
            self._record_before(new)
        foreign = [path for path in found if current.changes[path].foreign]
        self._append({"after": dump_states(found), "foreign": foreign})
        for path, state in found.items():
            current.changes[path].after, current.changes[path].ended = state, self._order

    def _open_set(self) -> ChangeSet:
        if self._current is None:
            at, number = time.time(), self.history.last + 1
            self._journal.append({"set": number, "at": at})
            self._current = self.history.add_set(number, at)
        return self._current

    def _append(self, line: Line) -> None:
        self._journal.append({**line, "set": self._open_set().number})

    def plan_undo(self, after: int) -> UndoPlan:
        """Return what undoing every turn after the one with this number would do.

        Raises:
            UndoError: It is impossible: changes were not kept, or are gone.
        """
        self._check_usable()
        if after < self.history.forgotten:
            raise UndoError("the changes since then are not kept any more: they were older than the limits allow")
        sets = [each for number, each in self.history.sets.items() if number > after]
        for each in sets:
            if each.gaps:
                raise UndoError(f"a turn after that point changed what was not kept: {each.gaps[0]}")
        merged = merge_sets(sets)
        plan = plan_restorations({path: (change.after, change.before) for path, change in merged.items()})
        foreign = {path for path, change in merged.items() if change.foreign}.union(plan.conflicts)
        conflicts = tuple(each.path for each in plan.restorations if each.path in foreign)
        notes = tuple(dict.fromkeys(note for each in sets for note in each.notes))
        return UndoPlan(tuple(each.number for each in sets), plan.restorations, conflicts, notes)

    def plan_redo(self, restore_id: str) -> UndoPlan:
        """Return what redoing an undo would do.

        Raises:
            UndoError: It cannot be redone.
        """
        self._check_usable()
        if restore_id in self.history.redone:  # the process ended, or the disk was full, before that was on record
            return UndoPlan()
        if restore_id not in self.history.restores:
            raise UndoError("nothing to redo: files have been changed since they were undone")
        sets, changes = self.history.restores[restore_id]
        plan = plan_restorations({path: (target, previous) for path, (previous, target) in changes.items()})
        return UndoPlan(tuple(each.number for each in sets), plan.restorations, plan.conflicts)

    def apply(self, plan: UndoPlan, *, redo: str = "") -> tuple[str, list[str]]:
        """Restore what a plan says, all of it or nothing.

        Args:
            plan: The plan, made just before.
            redo: The id of the undo that this redoes.

        Returns:
            An id with which it can be redone, and the folders that stay because other files are in them.

        Raises:
            UndoError: It failed; nothing was changed.
        """
        self._check_usable()
        restore_id = secrets.token_hex(6)
        with self._lock:
            try:
                if not self._journal.log_id:
                    self._open_set()
                for each in plan.restorations:
                    self._keep_current(each)
                done = restore(
                    plan.restorations,
                    self.kept,
                    self.folder,
                    lambda steps: self._journal.append({"restoring": restore_id, "steps": steps}),
                )
            except (NotKept, OSError, ToolError) as error:
                raise UndoError(f"nothing was restored: {describe_failure(error)}") from None
            line: Line = {"restored": restore_id, "sets": list(plan.sets), "redo": redo, "point": plan.point}
            line["changes"] = {each.path: [each.current.dump(), each.target.dump()] for each in plan.restorations}
            try:
                self._journal.append(line)
            except NotKept as error:
                done.roll_back()
                raise UndoError(f"nothing was restored: {error}") from None
            done.finish()
            self._current = None
            self.history.apply_restored(line)
        return restore_id, done.left

    def _keep_current(self, each: Restoration) -> None:
        """Keep what is about to be replaced, so that it can be redone."""
        try:
            current = read_state(Path(each.path), self.kept, self.limits.file_bytes)
        except NotKept as error:
            raise NotKept(f"{each.path} cannot be kept for a redo: {error}; move it away and try again") from None
        if current != each.current:
            raise NotKept(f"{each.path} is being changed by another program; try again")

    def _check_usable(self) -> None:
        if self.problem:
            raise UndoError(self.problem)

    def _load(self) -> None:
        try:
            lines = self._journal.load()
            for line in lines:
                self.history.read_line(line)
        except JournalNewer as error:
            self.problem = str(error)  # neither read nor written: the later version may need it
            return
        except (JournalDamaged, ValueError, KeyError, TypeError, AttributeError):
            self._journal.discard()
            self.history = ChangeHistory()
            return
        self._recover(lines)

    def _recover(self, lines: Sequence[Line]) -> None:
        """Take back a restore that a killed process left half done."""
        restored = {line["restored"] for line in lines if "restored" in line}
        try:
            recover(((line["restoring"], line["steps"]) for line in lines if "restoring" in line), restored)
        except (OSError, ToolError, UndoError) as error:
            self.problem = f"an interrupted undo could not be taken back: {describe_failure(error)}"

    def _make_room(self) -> None:
        """Forget the oldest turns while much is kept; the current one stays."""
        if self.kept.total_bytes <= self.limits.total_bytes * 3 // 4:
            return
        if not self._watches:
            self.scan.forget()
        scanned = self.scan.needed()
        self.kept.sweep(self.history.needed_contents() | scanned)
        forgot = self.history.find_excess(self.kept.sizes, self.limits.total_bytes // 2, scanned)
        if forgot:
            self._journal.append({"forgot": forgot})
            self.history.apply_forgotten(forgot)
            self.kept.sweep(self.history.needed_contents() | scanned)

    def sweep(self) -> None:
        """Remove contents that are not needed to undo or redo."""
        with self._lock:
            if not self.problem:
                self.scan.forget()
                self.kept.sweep(self.history.needed_contents())
