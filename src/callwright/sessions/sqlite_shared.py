"""One connection and one writing thread per session file and process, shared by every store that uses the file.

Two connections of one process would work too, as long as SQLite alone opens the file. Sharing one means that two stores
of a file, also under different names, are one writer to other processes, and cost one thread.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from callwright.sessions.sqlite_io import SessionFile

Value = TypeVar("Value")
_files: dict[Path, "SharedFile"] = {}
_inherited: list["SharedFile"] = []
"""Files that a forked child must neither use nor close: their connections belong to the parent."""
_guard = threading.RLock()  # reentrant: the garbage collector may close a store while this thread opens another


class SharedFile:
    """A session file with its thread, while any store of this process uses it."""

    def __init__(self, path: Path) -> None:
        self.file = SessionFile(path)
        self.users = 0
        self.closed = False
        self._thread = ThreadPoolExecutor(1, "callwright-sessions")

    def submit(self, action: Callable[[], Value], wait_seconds: float) -> "Future[Value]":
        """Queue an action for the thread; it may wait that long for other processes."""

        def run() -> Value:
            self.file.wait_seconds = wait_seconds
            try:
                return action()
            finally:
                with suppress(sqlite3.Error):
                    self.file.finish()

        return self._thread.submit(run)

    def leave(self) -> None:
        """End one store's use of the file, after its writes; the last one closes the file."""
        with _guard:
            self.users -= 1
            last = self.users == 0
            if last:
                self.closed = True
                if _files.get(self.file.path) is self:
                    del _files[self.file.path]
        on_thread = threading.current_thread().name.startswith("callwright-sessions")
        try:
            # By way of the queue, because the garbage collector may call this on the writing thread itself.
            done = self._thread.submit(self.file.close if last else _do_nothing)
        except RuntimeError:  # the interpreter is ending and has joined the thread: all writes are done
            if last:
                self.file.close()
            return
        if not on_thread:
            done.result()
        if last:
            self._thread.shutdown(wait=not on_thread)


def _do_nothing() -> None:
    return None


class FileUse:
    """One store's use of a session file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shared: SharedFile | None = None
        self._process = 0

    def get(self) -> SharedFile:
        """Return the shared file; the first use in this process joins it."""
        if self._shared is None or self._process != os.getpid():
            self._shared, self._process = _join(Path(os.path.realpath(self._path))), os.getpid()
        return self._shared

    def end(self) -> None:
        """Leave the file; in a forked child what was used before the fork stays untouched."""
        shared, self._shared = self._shared, None
        if shared is not None and self._process == os.getpid():
            shared.leave()


def _join(path: Path) -> SharedFile:
    with _guard:
        while True:
            shared = _files.get(path)
            if shared is None:
                shared = _files[path] = SharedFile(path)
            shared.users += 1
            if not shared.closed:  # closed meanwhile by the garbage collector, in this very thread
                return shared


def _forget_files() -> None:
    """In a forked child: leave the parent's connections alone."""
    _inherited.extend(_files.values())
    _files.clear()
    _guard.release()


os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget_files)
