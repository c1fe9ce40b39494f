"""Records what a command changes in the workspace."""

from collections.abc import Sequence
from contextlib import suppress

from callwright.core.errors import CallwrightError
from callwright.system.sensitive_paths import comparable, is_secret
from callwright.system.undo.change_log import ChangeLog
from callwright.system.undo.kept_content import EntryState, NotKept
from callwright.system.undo.tree_scan import TreeView

_SHOWN = 5


class CommandWatch:
    """The workspace before a command."""

    def __init__(self, log: ChangeLog, roots: Sequence[str]) -> None:
        self._log = log
        self._roots = roots
        self._before = TreeView()
        self._id, self._since = "", 0

    def begin(self, *, everything: bool) -> None:
        """View the folders and keep their contents; never raises."""
        if self._log.scan.too_large:
            self._log.add_gap(f"a command, in a workspace of more than {self._log.limits.entries} files")
            return
        try:
            self._id, self._since = self._log.open_watch()
            self._before = self._log.scan.look(self._roots)
            self._log.scan.keep_all(self._before, _never if everything else _is_masked)
        except (NotKept, OSError) as error:
            self._log.add_gap(f"a command: {error}")

    def drop(self) -> None:
        """Record that no command was run after all; never raises."""
        if self._id and not self._log.idle:
            with suppress(NotKept):
                self._log.close_watch(self._id)

    def end(self) -> None:
        """Compare and record; never raises."""
        log, before = self._log, self._before
        if not self._id or log.idle:
            return
        try:
            after = log.scan.look(self._roots, before)
            if before.overflow or after.overflow:
                log.add_gap(f"the workspace has more than {log.limits.entries} files, too many to compare")
            changes: dict[str, tuple[EntryState, EntryState]] = {}
            for path, old, new in log.scan.differences(before, after):
                if old is None:
                    reason = "no room is left" if path in before.crowded else "too large, special, masked or in use"
                    log.add_gap(f"a command changed {path}, which is not kept: {reason}")
                else:
                    changes[path] = old, new
            gone, moved = log.scan.lost_folders(before, after)
            for path in moved:
                log.add_gap(f"a command moved {path}, a folder that is not kept")
            if changes:
                log.record_changes(changes, self._since)
            for path in gone[:_SHOWN]:
                log.add_note(f"not restored: {path} (a folder that is not kept)")
            log.close_watch(self._id)
        except (NotKept, OSError, CallwrightError) as error:
            log.add_gap(f"a command: {error}")


def _never(_: str) -> bool:
    return False


def _is_masked(path: str) -> bool:
    return is_secret(comparable(path))
