"""Renders the points that a session can return to, and what undo has changed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from callwright.agent.undo import Rewinding, RewindPoint
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import format_time
from callwright.core.errors import join_first
from callwright.system.paths import shorten_path

_SHOWN_FILES = 8


def point_lines(points: Sequence[RewindPoint], width: int) -> Iterator[str]:
    """Yield a line per point, newest last, with its number, time, prompt and changed files."""
    for number, point in enumerate(points, 1):
        label = one_line(point.label or "(no text)", max(width - 38, 20))
        yield f"  {number:>3}  {_when(point.at):>8}  {_describe_change(point):>16}  {label}"


def point_entries(points: Sequence[RewindPoint]) -> Iterator[tuple[str, str, str]]:
    """Yield the number of each point, its prompt, and its changed files and time."""
    for number, point in enumerate(points, 1):
        details = " · ".join(filter(None, (_describe_change(point), _when(point.at))))
        yield str(number), point.label or "(no text)", details


def _describe_change(point: RewindPoint) -> str:
    return "cannot be undone" if point.problem else _count(len(point.paths))


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
        yield f"  {what} {join_first([shorten_path(path, cwd) for path in paths], _SHOWN_FILES)}"


def _count(files: int) -> str:
    return "" if not files else "1 file changed" if files == 1 else f"{files} files changed"


def _when(stamp: float) -> str:
    return format_time(stamp, "%b %d") if stamp else ""
