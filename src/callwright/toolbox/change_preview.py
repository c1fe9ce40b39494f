"""Previews of changes to files as numbered rows: what a call would remove and add, and where."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from callwright.core.errors import ToolError, join_first
from callwright.core.json import JsonObject
from callwright.system.files import detect_encoding, read_regular, unify_line_breaks
from callwright.system.line_diff import compare_lines
from callwright.system.paths import Workspace
from callwright.tool.base import Preview, PreviewRow

_BROKEN = re.compile("[\ud800-\udfff]")  # undecodable bytes are decoded as lone surrogates
_MOST_BYTES = 1 << 20
_MOST_COMPARED_LINES = 3_000
_CONTEXT_LINES = 1
_MOST_KEPT_LINES = 6
_MOST_NUMBERS = 200
_EDIT_KEYS = frozenset({"old_string", "new_string", "replace_all"})
_EDIT_ARGUMENTS = _EDIT_KEYS | {"edits"}


def preview_change(arguments: Mapping[str, Any], path: str) -> Preview | None:
    """Return the change that a call of `edit` or `write` would make to a file as it is now.

    Every line of the arguments is shown. Only lines that stay as they are may be left out.

    Args:
        arguments: The arguments of the call.
        path: The file that the call would write.

    Returns:
        The change; None if the arguments are not those of a change.
    """
    match arguments:
        case {"content": str() as content}:
            return Preview(path, tuple(_written(path, content)), frozenset({"content"}))
        case {"old_string": str() as old, "new_string": str() as new}:
            every = bool(arguments.get("replace_all"))
            return Preview(path, tuple(_replaced(_read(path), old, new, every=every)), _EDIT_ARGUMENTS)
        case _ if isinstance(arguments.get("edits"), (list, tuple)):
            return _several(path, cast("Sequence[Any]", arguments["edits"]))
        case _:
            return None


def preview_call(workspace: Workspace, arguments: JsonObject) -> Preview | None:
    """Return the change that a call of `edit` or `write` would make in a workspace; None if it would be refused."""
    try:
        return preview_change(arguments, str(workspace.check_write(str(arguments.get("path", "")))))
    except (ToolError, OSError, ValueError):
        return None


def _read(path: str) -> str | None:
    """Return the text of a file, or None if it is absent, large or not text: then changes have no line numbers."""
    try:
        data = read_regular(Path(path), _MOST_BYTES + 1)
    except (OSError, ValueError, ToolError):
        return None
    encoding = detect_encoding(data) if len(data) <= _MOST_BYTES else None
    if encoding is None:
        return None
    return _BROKEN.sub("\ufffd", unify_line_breaks(encoding.decode(data[len(encoding.mark) :])))


def _find_size(path: str) -> int:
    try:
        return Path(path).stat().st_size if Path(path).is_file() else 0
    except OSError:
        return 0


def _written(path: str, content: str) -> Iterator[PreviewRow]:
    before = _read(path)
    after = (unify_line_breaks(content) if before else content).removesuffix("\n").split("\n")
    old = [] if not before else before.removesuffix("\n").split("\n")
    if before is None and (size := _find_size(path)):  # must not look like a new file
        yield PreviewRow(f"replaces a file of {size:,} bytes, which is not shown:")
    if max(len(old), len(after)) > _MOST_COMPARED_LINES:  # comparing takes quadratic time
        yield PreviewRow(f"replaces {len(old)} lines by {len(after)}:")
        old = []
    yield from _compare(old, after, 1, brief=True)


def _replaced(text: str | None, old: str, new: str, *, every: bool) -> Iterator[PreviewRow]:
    start = -1 if text is None or not old else text.find(old)
    if text is None or start < 0:
        yield from (PreviewRow(line, "-") for line in (old.removesuffix("\n").split("\n") if old else ()))
        yield from (PreviewRow(line, "+") for line in (new.removesuffix("\n").split("\n") if new else ()))
        if every:
            yield PreviewRow("in every place")
        return
    first = text.rfind("\n", 0, start) + 1
    end = start + len(old)
    last = end if old.endswith("\n") else (text.find("\n", end) + 1 or len(text))
    lines = text[first:last].removesuffix("\n").split("\n")
    changed = text[first:start] + new + text[end:last]
    number = text.count("\n", 0, first) + 1
    above = text[:first].removesuffix("\n").split("\n")[-_CONTEXT_LINES:] if first else []
    below = text[last:].split("\n")[:_CONTEXT_LINES] if last < len(text) else []
    start = number - len(above)
    yield from (PreviewRow(line, " ", start + at, start + at) for at, line in enumerate(above))
    after = changed.removesuffix("\n").split("\n") if changed else []
    yield from _compare(lines, after, number)
    for at, line in enumerate(below):
        yield PreviewRow(line, " ", number + len(lines) + at, number + len(after) + at)
    others = _other_lines(text, old, end) if every else []
    if others:
        yield PreviewRow(f"and the same in line {join_first(others, _MOST_NUMBERS)}")


def _other_lines(text: str, old: str, start: int) -> list[int]:
    lines: list[int] = []
    number, counted = 1, 0
    for match in re.compile(re.escape(old)).finditer(text, start):
        number, counted = number + text.count("\n", counted, match.start()), match.start()
        lines.append(number)
    return lines


def _several(path: str, edits: Sequence[Any]) -> Preview | None:
    rows: list[PreviewRow] = []
    text = _read(path)
    for edit in edits:
        if not isinstance(edit, Mapping):
            return None  # not as the tool would bind it: shown as plain arguments
        given = cast("Mapping[str, Any]", edit)
        old, new = given.get("old_string"), given.get("new_string")
        if not isinstance(old, str) or not isinstance(new, str) or not given.keys() <= _EDIT_KEYS:
            return None
        rows += [*([PreviewRow("⋯")] if rows else []), *_replaced(text, old, new, every=bool(given.get("replace_all")))]
        text = _apply(text, old, new, every=bool(given.get("replace_all")))
    return Preview(path, tuple(rows), _EDIT_ARGUMENTS)


def _apply(text: str | None, old: str, new: str, *, every: bool) -> str | None:
    """Return the text after an edit; None if it is not known, or too long to be shown."""
    if text is None or not old:  # an empty text is put into an empty file, and refused in any other
        return text if text is None else text or new
    count = text.count(old) if every else 1
    return text.replace(old, new, count) if len(text) + count * (len(new) - len(old)) <= _MOST_BYTES else None


def _compare(old: Sequence[str], new: Sequence[str], number: int, *, brief: bool = False) -> Iterator[PreviewRow]:
    """Yield the lines of both texts; `brief` leaves out what is between unchanged lines."""
    for kind, first, last, start, end in compare_lines(old, new):
        if kind == "equal":
            yield from _kept(new[start:end], number + first, number + start, brief=brief)
            continue
        yield from (PreviewRow(old[at], "-", number + at, 0) for at in range(first, last))
        yield from (PreviewRow(new[at], "+", 0, number + at) for at in range(start, end))


def _kept(lines: Sequence[str], old: int, new: int, *, brief: bool) -> Iterator[PreviewRow]:
    rows = [PreviewRow(line, " ", old + at, new + at) for at, line in enumerate(lines)]
    hidden = len(rows) - 2 * _CONTEXT_LINES
    if not brief or hidden < _MOST_KEPT_LINES:
        yield from rows
        return
    yield from rows[:_CONTEXT_LINES]
    yield PreviewRow(f"⋯ {hidden} unchanged lines")
    yield from rows[-_CONTEXT_LINES:]
