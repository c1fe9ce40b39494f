"""Text about undo points and about what an undo or a redo did."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from callwright.agent.undo import Rewinding, RewindPoint
from callwright.cli.render.calls import one_line

_SHOWN_FILES = 8
_DAY_SECONDS = 86_400


def point_lines(points: Sequence[RewindPoint], width: int) -> Iterator[str]:
    """Yield a line per point, newest last, with its number, time, prompt and changed files."""
    for number, point in enumerate(points, 1):
        changed = "cannot be undone" if point.problem else _count(len(point.paths))
        label = one_line(point.label or "(no text)", max(width - 38, 20))
        yield f"  {number:>3}  {_when(point.at):>8}  {changed:>16}  {label}"


def rewind_lines(result: Rewinding, cwd: Path, *, verb: str, dry_run: bool = False) -> Iterator[str]:
    """Yield what was done, or what would be done.

    Args:
        result: What was done.
        cwd: Paths below it are shown relative to it.
        verb: `undone` or `redone`.
        dry_run: Whether nothing was done.
    """
    parts = [part for part, done in (("conversation", result.conversation), ("files", bool(result.paths))) if done]
    what = " and ".join(parts) or "nothing: no file was changed"
    place = "back to before" if verb == "undone" else "with"
    yield f"{'would be ' if dry_run else ''}{verb}: {what}{f', {place}: {result.label}' if result.label else ''}"
    yield from _file_lines("would restore" if dry_run else "restored", result.restored, cwd)
    yield from _file_lines("would remove" if dry_run else "removed", result.removed, cwd)
    if dry_run:
        yield from _file_lines("changed by another program since", result.conflicts, cwd)
    yield from (f"  {note}" for note in result.notes)


def _file_lines(what: str, paths: Sequence[str], cwd: Path) -> Iterator[str]:
    if paths:
        more = f" and {len(paths) - _SHOWN_FILES} more" if len(paths) > _SHOWN_FILES else ""
        yield f"  {what} {', '.join(relative_path(path, cwd) for path in paths[:_SHOWN_FILES])}{more}"


def relative_path(path: str, cwd: Path) -> str:
    """Return a path relative to a folder if it is below it."""
    return os.path.relpath(path, cwd) if Path(path).is_relative_to(cwd) else path


def _count(files: int) -> str:
    return "" if not files else "1 file changed" if files == 1 else f"{files} files changed"


def _when(stamp: float) -> str:
    if not stamp:
        return ""
    recent = time.time() - stamp < _DAY_SECONDS
    return time.strftime("%H:%M:%S" if recent else "%b %d", time.localtime(stamp))
