"""`UndoStore`: the folder that keeps the changes of many sessions, bounded by size and age."""

import os
import shutil
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from callwright.core.json import hash_text
from callwright.system.private_files import make_temporary_folder
from callwright.system.undo.change_log import ChangeLog
from callwright.system.undo.kept_content import UndoLimits
from callwright.system.undo.recorder import UndoRecorder

_DAY_SECONDS = 86_400
_IN_USE_SECONDS = 3600
_RECENT_LOGS = 32
_DEFAULT_LIMITS = UndoLimits()


class UndoStore:
    """Keeps what files were before agents changed them, so that it can be undone.

    Args:
        folder: Where to keep it; private to the user. By default a temporary folder that is removed with this object.
        limits: How much to keep, and how long.
        report: Receives messages for the user, such as that a change could not be kept.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        limits: UndoLimits = _DEFAULT_LIMITS,
        report: Callable[[str], None] | None = None,
    ) -> None:
        if folder is None:
            folder = make_temporary_folder(self, "callwright-undo-")
        self.folder = Path(os.path.realpath(folder))
        self.limits = limits
        self._report = report
        self._logs: weakref.WeakValueDictionary[str, ChangeLog] = weakref.WeakValueDictionary()
        self._recent: deque[ChangeLog] = deque(maxlen=_RECENT_LOGS)
        """Keeps the logs used last, also between two runs."""
        self._pruned = False

    def open(self, session_id: str) -> ChangeLog:
        """Return the log of a session as it is on disk; one object per session while it is in use."""
        log = self._logs.get(session_id)
        if log is None:
            self._prune_once()
            log = self._logs[session_id] = ChangeLog(self._folder_of(session_id), self.limits)
            log.sweep()
        else:
            log.refresh()
        if log not in self._recent:
            self._recent.append(log)
        return log

    def close(self) -> None:
        """Remove contents that only this process had a use for."""
        for log in list(self._logs.values()):
            log.sweep()

    def recorder(self, session_id: str) -> UndoRecorder:
        """Return what the tools of a session record with."""
        return UndoRecorder(self.open(session_id), self._report)

    def record_before_prompt(self, session_id: str) -> UndoRecorder:
        """Return a recorder for changes that belong to a prompt which is not recorded yet."""
        log = self.open(session_id)
        log.mark_point()
        log.begin_turn()
        return UndoRecorder(log, self._report)

    def forget(self, session_id: str) -> None:
        """Delete everything that is kept for a session."""
        log = self._logs.pop(session_id, None)
        if log in self._recent:
            self._recent.remove(log)
        shutil.rmtree(self._folder_of(session_id), ignore_errors=True)

    def prune(self) -> None:
        """Empty the folders of sessions that are too old, and of the oldest ones while too much is kept."""
        used = sorted(self._find_used())
        total = sum(size for _, size, _ in used)
        for at, size, folder in used:
            age = time.time() - at
            # one that was used just now may be in use by another process
            if age > self.limits.days * _DAY_SECONDS or (total > self.limits.total_bytes and age > _IN_USE_SECONDS):
                _empty(folder)
                total -= size

    def _prune_once(self) -> None:
        if not self._pruned:
            self._pruned = True
            with suppress(OSError):
                self.prune()

    def _find_used(self) -> Iterator[tuple[float, int, Path]]:
        """Yield when each session last changed something, how much is kept for it, and its folder."""
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                journal = Path(entry.path, "journal")
                if entry.is_dir(follow_symlinks=False) and journal.exists():
                    with suppress(OSError):
                        sizes = (
                            each.stat(follow_symlinks=False).st_size for each in os.scandir(f"{entry.path}/contents")
                        )
                        yield journal.stat().st_mtime, sum(sizes), Path(entry.path)

    def _folder_of(self, session_id: str) -> Path:
        return self.folder / hash_text(session_id)[:32]


def _empty(folder: Path) -> None:
    # the folder itself stays: it tells that a later journal is not the session's first
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()
