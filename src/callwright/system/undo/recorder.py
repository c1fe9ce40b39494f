"""`UndoRecorder`: keeps what a tool is about to change, and what a command changes while it runs."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.core.access import is_below

if TYPE_CHECKING:
    from callwright.system.undo.change_log import ChangeLog


class UndoRecorder:
    """Keeps what the tools of one session are about to change; without a log it keeps nothing.

    A failure to keep never fails a tool: the turn cannot be undone then, and the user is told.

    Args:
        log: The log of the session.
        report: Receives messages for the user.
    """

    def __init__(self, log: "ChangeLog | None" = None, report: Callable[[str], None] | None = None) -> None:
        self.log = log
        self._report = report
        self._inner = False

    def inside(self) -> "UndoRecorder":
        """Return a recorder for an agent inside a call: its changes belong to the turn of the outer agent."""
        other = UndoRecorder(self.log, self._report)
        other._inner = True
        return other

    def begin_turn(self) -> None:
        """Count the following changes for a new turn."""
        if self.log is not None and not self._inner:
            self.log.begin_turn()

    @contextmanager
    def changing(self, *paths: Path) -> Generator[None, None, None]:
        """Keep what resolved paths are now, and record what they are when the block ends, however it ends."""
        if self.log is None:
            yield
            return
        seen = self.log.keep_before(paths)
        try:
            yield
        finally:
            self.log.keep_after(seen)
            self._report_gaps()

    @asynccontextmanager
    async def watching(
        self, roots: Sequence[str], more: Sequence[str] = (), *, masked: bool = True
    ) -> AsyncGenerator[None, None]:
        """Keep what a command in the block may change, and record what it has changed.

        Args:
            roots: The folders that it may write to; without one, nothing is kept.
            more: Further paths that its line names.
            masked: Whether secrets are masked for it, so that it cannot change them.
        """
        if self.log is None or self.log.idle or not roots:
            yield
            return
        from callwright.system.undo.command_watch import CommandWatch  # loaded with the first command that may write

        outside = [path for path in map(os.path.realpath, more) if not is_below(path, roots)]
        outside = [path for path in outside if not any(is_below(root, (path,)) for root in roots)]
        watch = CommandWatch(self.log, [*roots, *dict.fromkeys(outside)])
        try:
            await _finish_in_thread(partial(watch.begin, everything=not masked))
        except asyncio.CancelledError:  # the command was not started, and must not count as one that was killed
            watch.drop()
            raise
        try:
            yield
        finally:
            await _finish_in_thread(watch.end)  # a cancelled command has changed files too
            self._report_gaps()

    def note(self, text: str) -> None:
        """Tell the user, when this turn is undone, what the undo leaves as it is."""
        if self.log is not None:
            self.log.add_note(text)

    def _report_gaps(self) -> None:
        if self.log is not None and self._report is not None:
            for reason in self.log.take_new_gaps():
                self._report(f"this turn cannot be undone: {reason}")


async def _finish_in_thread(work: Callable[[], None]) -> None:
    """Run work in a thread to its end, also if the task is cancelled meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await running
        raise
