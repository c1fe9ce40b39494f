"""One connection and one writing thread per session file and process, shared by every store that uses the file.

Two connections of one process would work too, as long as SQLite alone opens the file. Sharing one means that two stores
of a file, also under different names, are one writer to other processes, and cost one thread. What the sessions add
while a commit is under way gathers, and goes into the next one together.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from callwright.sessions.base import SessionError
from callwright.sessions.sqlite_connection import explain_error
from callwright.sessions.sqlite_io import SessionFile
from callwright.sessions.sqlite_writes import Addition, Reply, write_together
from callwright.system.platforms import on_fork

_MOST_JOBS = 2_000
_MOST_DELAY_SECONDS = 0.005
"""How long the result of a brief job waits for others."""
_files: dict[Path, "SharedFile"] = {}
_inherited: list["SharedFile"] = []
"""Files that a forked child must neither use nor close: their connections belong to the parent."""
_guard = threading.RLock()  # reentrant: the garbage collector may close a store while this thread opens another


@dataclass(slots=True)
class Action:
    """A job that stands alone: a read, or taking and releasing a session.

    Attributes:
        run: Is called with the file.
        reply: Who waits for the result.
        brief: Whether the result may wait a little for those of brief jobs after it, so that one call into the event
            loop brings all of them: when many sessions begin or end at once, these calls cost more than the jobs.
    """

    run: Callable[[SessionFile], Any]
    reply: Reply[Any] | None = None
    brief: bool = False


@dataclass(slots=True)
class _Leave:
    """The last job of a store; if no other store uses the file, of the thread."""

    closing: bool
    done: threading.Event


Job = Action | Addition


class SharedFile:
    """A session file with its thread, while any store of this process uses it."""

    def __init__(self, path: Path) -> None:
        self.file = SessionFile(path)
        self.users = 0
        self.closed = False
        # Not a thread pool: its locks are held while a job is put in, and the garbage collector may end a store then.
        self._jobs: SimpleQueue[tuple[float, Job | _Leave]] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="callwright-sessions", daemon=True)
        self._thread.start()

    def submit(self, job: Job, wait_seconds: float) -> None:
        """Queue a job for the thread; it may wait that long for other processes.

        Raises:
            SessionError: Another thread has closed the file, so that the job would never run.
        """
        with _guard:
            if self.closed:
                raise SessionError(f"the session file {self.file.path} was closed; open a new SqliteStore")
            self._jobs.put((wait_seconds, job))

    def leave(self) -> None:
        """End one store's use of the file, after its writes; the last one closes the file."""
        with _guard:
            self.users -= 1
            last = self.users == 0
            if last:
                self.closed = True
                if _files.get(self.file.path) is self:
                    del _files[self.file.path]
        done = threading.Event()
        self._jobs.put((self.file.wait_seconds, _Leave(last, done)))
        if threading.current_thread() is not self._thread:  # the garbage collector may call this on it
            done.wait()

    def _work(self) -> None:
        open_ = True
        while open_:
            taken = [self._jobs.get()]
            with suppress(Empty):
                while len(taken) < _MOST_JOBS:
                    taken.append(self._jobs.get_nowait())
            for (seconds, adds), group in groupby(taken, lambda item: (item[0], isinstance(item[1], Addition))):
                self.file.wait_seconds = seconds
                jobs = [job for _, job in group]
                if adds:
                    self._write([job for job in jobs if isinstance(job, Addition)])
                else:
                    open_ = self._act_in_turn(jobs) and open_
                with suppress(sqlite3.Error):
                    self.file.finish()

    def _write(self, additions: list[Addition]) -> None:
        write_together(self.file, additions)
        _deliver(addition.reply for addition in additions if addition.reply is not None)

    def _act_in_turn(self, jobs: Iterable[Job | _Leave]) -> bool:
        """Do jobs that stand alone, one after the other; return whether the thread goes on."""
        open_, replies, began = True, list[Reply[Any]](), time.monotonic()
        for job in jobs:
            if replies and not (
                isinstance(job, Action) and job.brief and time.monotonic() - began < _MOST_DELAY_SECONDS
            ):
                _deliver(replies)
                replies, began = [], time.monotonic()
            open_ = self._act(job, replies) and open_
        _deliver(replies)
        return open_

    def _act(self, job: Job | _Leave, replies: list[Reply[Any]]) -> bool:
        """Do a job that stands alone and add the reply to deliver; return whether the thread goes on."""
        match job:
            case Action(run, reply):
                value, error = self._run(run)
                if reply is not None:
                    reply.value, reply.error = value, error
                    replies.append(reply)
            case _Leave(closing, done):
                try:
                    if closing:
                        self.file.close()
                finally:  # whatever happened: the store that leaves waits for it
                    done.set()
                return not closing
            case Addition():
                self._write([job])
        return True

    def _run(self, action: Callable[[SessionFile], Any]) -> tuple[Any, BaseException | None]:
        try:
            return action(self.file), None
        except (sqlite3.Error, OSError) as error:
            return None, explain_error(error, self.file.path)
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting task
            return None, error


def _deliver(replies: Iterable[Reply[Any]]) -> None:
    """Wake the tasks, with one call into each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Reply[Any]]] = {}
    for reply in replies:
        loops.setdefault(reply.loop, []).append(reply)
    for loop, waiting in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, waiting)
        except RuntimeError:  # the loop is closed
            for reply in waiting:
                reply.drop()


def _settle(replies: Iterable[Reply[Any]]) -> None:
    for reply in replies:
        reply.settle()


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


on_fork(before=_guard.acquire, in_parent=_guard.release, in_child=_forget_files)
