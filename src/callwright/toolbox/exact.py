"""What is left to settle when old_string stands in the file exactly: line breaks at its end, and doubts."""

from collections.abc import Sequence

from callwright.toolbox.place import Doubtful, Place, indent_of, line_of, lines_of
from callwright.toolbox.slips import same_frame

_CURLY = frozenset("‘’“”")
_PLAIN = frozenset("'\"")


def settle(text: str, start: int, end: int, new: str) -> Place:
    """Replace an exact match; whole lines keep their breaks, and what would probably spoil the file is `Doubtful`."""
    line_start = text.rfind("\n", 0, start) + 1
    before, old = text[line_start:start].removeprefix("\ufeff"), text[start:end]
    _doubt_quotes(text, new)
    _doubt_indent_style(text, old, new)
    if before.strip():
        _doubt_lost_character(text, start, end)
        return Place(start, end, new)
    if before and old.split("\n", 1)[0].strip():
        return _indented(text, (start, end), before, new)
    _doubt_second_blank(text, start, old, new)
    return _whole_lines(text, start, end, new)


def _whole_lines(text: str, start: int, end: int, new: str) -> Place:
    """Lines stay lines: a break that only one of old and new has at its end is the line's own, or in doubt."""
    old = text[start:end]
    if old.endswith("\n") and new and not new.endswith("\n") and end < len(text):
        if old.endswith("\n\n"):
            raise Doubtful("old_string ends with an empty line and new_string without a line break; end both alike")
        return Place(start, end, new + "\n", "the line break at the end")
    if text.startswith("\n", end) and not old.endswith("\n"):
        if not new and old:
            return Place(start, end + 1, new, "the line break at the end")
        if new.endswith("\n") and new not in ("\n", old + "\n"):
            raise Doubtful("new_string ends with a line break and old_string does not; end both alike")
    return Place(start, end, new)


def _indented(text: str, match: tuple[int, int], before: str, new: str) -> Place:
    """The match starts behind a line's indentation: was only the first line cut there, or were all lines shifted?"""
    start, end = match
    old_lines, new_lines = lines_of(text[start:end]), lines_of(new)
    whole = text.endswith("\n", start, end)
    if not new_lines and (whole or text.startswith("\n", end)):
        return _whole_lines(text, start - len(before), end, new)
    later = [line for line in new_lines[1:] if line.strip()]
    alike = not new_lines or indent_of(old_lines[0]) == indent_of(new_lines[0])
    if alike and (not later or any(line.strip() for line in old_lines[1:]) or _at_full_depth(text, before, later)):
        return _whole_lines(text, start, end, new)
    if not alike or not whole or later[0].startswith(before) or not same_frame(old_lines, new_lines):
        raise Doubtful(
            f"old_string starts behind the indentation of line {line_of(text, start)}, so it is in doubt how deep the "
            "lines of new_string belong; start both with the whole line, indentation included"
        )
    shifted = "\n".join(before + line if line.strip() else line for line in new.split("\n"))
    place = _whole_lines(text, start - len(before), end, shifted)
    return Place(place.start, place.end, place.text, "indentation")


def _at_full_depth(text: str, before: str, later: Sequence[str]) -> bool:
    """Whether the lines after the first can only be meant as they stand: a step inwards would be too wide."""
    indents = {indent_of(line) for line in lines_of(text) if line.strip()}
    steps = [len(indent) for indent in indents if indent not in ("", " ")]  # one space leads comments, not blocks
    return all(line.startswith(before) for line in later) and len(indent_of(later[0])) > min(steps, default=1)


def _doubt_lost_character(text: str, start: int, end: int) -> None:
    """A whole line but for its first character may be a part of a line, and may be a copy that lost one."""
    at_second = start == 1 or text[start - 2] == "\n"
    to_line_end = end == len(text) or text.endswith("\n", start, end) or text.startswith("\n", end)
    if at_second and to_line_end:
        raise Doubtful(
            f"old_string starts behind the first character ({text[start - 1]!r}) of line {line_of(text, start)}; "
            "start old_string and new_string with the whole line"
        )


def _doubt_second_blank(text: str, start: int, old: str, new: str) -> None:
    if new.startswith("\n") and not old.startswith("\n") and text.endswith("\n\n", 0, start):
        raise Doubtful(
            f"new_string starts with an empty line and there is one before line {line_of(text, start)} already; "
            "leave it out, or put it into old_string too"
        )


def _doubt_quotes(text: str, new: str) -> None:
    quotes = _CURLY.intersection(new)
    if quotes and not _PLAIN.intersection(new) and not _CURLY.intersection(text):
        raise Doubtful(
            f"new_string brings typographic quotes ({' '.join(sorted(quotes))}) into a file that has none; "
            "write plain ones"
        )


def _doubt_indent_style(text: str, old: str, new: str) -> None:
    known = set(lines_of(old))
    fresh = [line for line in lines_of(new) if line not in known]
    tabs = text.startswith("\t") or "\n\t" in text
    spaces = text.startswith("  ") or "\n  " in text
    if tabs and not spaces and any(line.startswith("  ") and line.strip() for line in fresh):
        raise Doubtful("the file is indented with tabs, new_string with spaces; indent it with tabs")
    if spaces and not tabs and any(line.startswith("\t") and line.strip() for line in fresh):
        raise Doubtful("the file is indented with spaces, new_string with tabs; indent it with spaces")
