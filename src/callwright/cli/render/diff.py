"""Changes of files as numbered rows: what a call would remove and add, and where."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from os import close
from pathlib import Path
from typing import Any, cast

from callwright.cli.render.text import mark_text
from callwright.core.errors import ToolError
from callwright.system.files import open_regular, read_all

_MOST_BYTES = 1 << 20
_MOST_COMPARED_LINES = 3_000
_CONTEXT_LINES = 1
_MOST_KEPT_LINES = 6


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One row: its text, escaped, and what stands in front of it."""

    text: str
    mark: str = ""
    """`+`, `-`, a blank for an unchanged line, or nothing for a row that is not a line of a file."""
    number: int = 0

    @property
    def gutter(self) -> str:
        """The line number and the mark, as wide in every row of a diff."""
        if not self.mark:
            return ""
        return f"{self.number or '':>4}  {self.mark} "


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows of a change, and the names of the arguments that they show whole."""

    rows: list[ChangeRow] = field(default_factory=list["ChangeRow"])
    shown: frozenset[str] = frozenset()


def change_rows(tool: str, arguments: Mapping[str, Any], path: str) -> Changes:
    """Return the change that a call of `edit` or `write` would make to a file as it is now; none for other tools.

    Every line of the arguments is shown. Only lines that stay as they are may be left out.

    Args:
        tool: The tool's name.
        arguments: The arguments of the call.
        path: The file that the call would write.
    """
    match tool, arguments:
        case "write", {"content": str() as content}:
            return Changes(list(_written(_read(path), content)), frozenset({"content"}))
        case "edit", {"old_string": str() as old, "new_string": str() as new}:
            every = bool(arguments.get("replace_all"))
            rows = _replaced(_read(path), old, new, every=every)
            return Changes(list(rows), frozenset({"old_string", "new_string", "edits", "replace_all"}))
        case "edit", _ if isinstance(arguments.get("edits"), (list, tuple)):
            return _several(_read(path), cast("Sequence[Any]", arguments["edits"]))
        case _:
            return Changes()


def _read(path: str) -> str | None:
    """Return the text of a file, or None if it is absent, large or not text: then changes have no line numbers."""
    try:
        descriptor = open_regular(Path(path))
    except (OSError, ValueError, ToolError):
        return None
    try:
        data = read_all(descriptor, _MOST_BYTES + 1)
    except OSError:
        return None
    finally:
        close(descriptor)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n") if len(data) <= _MOST_BYTES else None
    except UnicodeDecodeError:
        return None


def _written(before: str | None, content: str) -> Iterator[ChangeRow]:
    after = content.removesuffix("\n").split("\n")
    old = [] if not before else before.removesuffix("\n").split("\n")
    if max(len(old), len(after)) > _MOST_COMPARED_LINES:  # comparing takes quadratic time
        yield ChangeRow(f"replaces {len(old)} lines by {len(after)}:")
        old = []
    yield from _compare(old, after, 1, brief=True)


def _replaced(text: str | None, old: str, new: str, *, every: bool = False) -> Iterator[ChangeRow]:
    start = -1 if text is None or not old else text.find(old)
    if text is None or start < 0:
        yield from (ChangeRow(mark_text(line), "-") for line in (old.removesuffix("\n").split("\n") if old else ()))
        yield from (ChangeRow(mark_text(line), "+") for line in (new.removesuffix("\n").split("\n") if new else ()))
        if every:
            yield ChangeRow("in every place")
        return
    first = text.rfind("\n", 0, start) + 1
    end = start + len(old)
    last = end if old.endswith("\n") else (text.find("\n", end) + 1 or len(text))
    lines = text[first:last].removesuffix("\n").split("\n")
    changed = text[first:start] + new + text[end:last]
    number = text.count("\n", 0, first) + 1
    above = text[:first].removesuffix("\n").split("\n")[-_CONTEXT_LINES:] if first else []
    below = text[last:].split("\n")[:_CONTEXT_LINES] if last < len(text) else []
    yield from (ChangeRow(mark_text(line), " ", number - len(above) + at) for at, line in enumerate(above))
    after = changed.removesuffix("\n").split("\n") if changed else []
    yield from _compare(lines, after, number)
    yield from (ChangeRow(mark_text(line), " ", number + len(after) + at) for at, line in enumerate(below))
    others = _other_lines(text, old, end) if every else []
    if others:
        yield ChangeRow(f"and the same in line {', '.join(map(str, others))}")


def _other_lines(text: str, old: str, start: int) -> list[int]:
    found: list[int] = []
    while (start := text.find(old, start)) >= 0:
        found.append(text.count("\n", 0, start) + 1)
        start += len(old)
    return found


def _several(text: str | None, edits: Sequence[Any]) -> Changes:
    rows: list[ChangeRow] = []
    for edit in edits:
        if not isinstance(edit, Mapping):
            return Changes()  # not as the tool would bind it: shown as plain arguments
        given = cast("Mapping[str, Any]", edit)
        old, new = given.get("old_string"), given.get("new_string")
        if not isinstance(old, str) or not isinstance(new, str) or not given.keys() <= _EDIT_KEYS:
            return Changes()
        rows += [*([ChangeRow("⋯")] if rows else []), *_replaced(text, old, new, every=bool(given.get("replace_all")))]
        text = None if text is None else text.replace(old, new, -1 if given.get("replace_all") else 1)
    return Changes(rows, frozenset({"edits", "old_string", "new_string", "replace_all"}))


_EDIT_KEYS = frozenset({"old_string", "new_string", "replace_all"})


def _compare(old: Sequence[str], new: Sequence[str], number: int, *, brief: bool = False) -> Iterator[ChangeRow]:
    """Yield the lines of both texts; `brief` leaves out what is between unchanged lines."""
    for kind, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _kept(new, start, end, number, brief=brief)
            continue
        yield from (ChangeRow(mark_text(old[at]), "-", number + at) for at in range(first, last))
        yield from (ChangeRow(mark_text(new[at]), "+", number + at) for at in range(start, end))


def _kept(lines: Sequence[str], start: int, end: int, number: int, *, brief: bool) -> Iterator[ChangeRow]:
    hidden = end - start - 2 * _CONTEXT_LINES
    if not brief or hidden < _MOST_KEPT_LINES:
        yield from (ChangeRow(mark_text(lines[at]), " ", number + at) for at in range(start, end))
        return
    yield from (ChangeRow(mark_text(lines[at]), " ", number + at) for at in range(start, start + _CONTEXT_LINES))
    yield ChangeRow(f"⋯ {hidden} unchanged lines")
    yield from (ChangeRow(mark_text(lines[at]), " ", number + at) for at in range(end - _CONTEXT_LINES, end))
