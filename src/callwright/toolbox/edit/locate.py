"""What is left to settle when old_string stands in the file exactly: line breaks at its end, and doubts.

The place an edit means: where its text stands exactly, or where one slip explains it, and only if there is one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from callwright.core.errors import ToolFailed
from callwright.toolbox.edit.feedback import explain_miss
from callwright.toolbox.edit.typos import (
    SLIPS,
    Doubtful,
    Mend,
    Place,
    Region,
    Slip,
    indent_of,
    line_of,
    lines_of,
    occurrences,
    plain_writer,
    same_frame,
    straight,
)

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


_NUMBERED = re.compile(r" *([0-9]+)(?:\t|→)")
_SHOWN_PLACES = 10
_MARK = "\ufeff"  # the byte order mark: the file's own, wherever the model has it


def locate(text: str, old: str, new: str, *, literal: bool = False) -> Place:
    """Find the one place an edit means; all line breaks are `\\n`. `literal` takes an exact match to the letter."""
    numbered = _without_numbers(old, new)
    old, new = _unmarked(text, old, new)
    starts = occurrences(text, old)
    if len(starts) > 1:
        places = _listed([line_of(text, start) for start in starts])
        raise ToolFailed(
            f"old_string stands at {len(starts)} places ({places}); add surrounding lines until it is the only one, "
            "or pass replace_all=true"
        )
    if starts and literal:
        return Place(starts[0], starts[0] + len(old), new)
    if starts:
        return settle(text, starts[0], starts[0] + len(old), new)
    if numbered:
        return _by_number(text, *numbered)
    return _plainly(text, old, new) or _by_lines(text, old, new)


def _listed(lines: Sequence[int]) -> str:
    more = f" and {len(lines) - _SHOWN_PLACES} more" if len(lines) > _SHOWN_PLACES else ""
    return f"lines {', '.join(str(line) for line in lines[:_SHOWN_PLACES])}{more}"


def _without_numbers(old: str, new: str) -> tuple[str, str, int] | None:
    """Old and new without the line numbers copied from `read`, and the first number; None if there are none."""
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    numbers = [int(mark[1]) for line in old_lines if (mark := _NUMBERED.match(line))]
    if not numbers or numbers != [*range(numbers[0], numbers[0] + len(old_lines))]:
        return None
    marked = [bool(_NUMBERED.match(line)) for line in new_lines if line.strip()]
    if any(marked) and not all(marked):
        raise ToolFailed("old_string and part of new_string carry the line numbers of read; leave the numbers out")
    bare = "".join(_NUMBERED.sub("", line, count=1) for line in old_lines)
    replacement = "".join(_NUMBERED.sub("", line, count=1) for line in new_lines) if any(marked) else new
    return bare, replacement, numbers[0]


def _plainly(text: str, old: str, new: str) -> Place | None:
    write = plain_writer(old)
    if write is None or len(starts := occurrences(text, write(old))) != 1:
        return None
    place = settle(text, starts[0], starts[0] + len(old), write(new))
    return replace(place, slip=_both("typographic characters for plain ones", place.slip))


def _both(slip: str, other: str) -> str:
    return f"{slip}, {other}" if other else slip


def _unmarked(text: str, old: str, new: str) -> tuple[str, str]:
    old = old if text.startswith(_MARK) else old.removeprefix(_MARK)
    return old, new if old.startswith(_MARK) else new.removeprefix(_MARK)


def _by_number(text: str, old: str, new: str, number: int) -> Place:
    old, new = _unmarked(text, old, new)
    starts = occurrences(text, old)
    if len(starts) > 1:  # the number says which
        starts = [start for start in starts if line_of(text, start) == number]
    place = settle(text, starts[0], starts[0] + len(old), new) if len(starts) == 1 else _by_lines(text, old, new)
    return replace(place, slip=_both("line numbers of read", place.slip))


def _by_lines(text: str, old: str, new: str) -> Place:
    file, copied, wanted = lines_of(text), lines_of(old), lines_of(new)
    candidates = _alike(file, copied)
    for slips in SLIPS:
        found = [seen for at in candidates if (seen := _explained(Region(file, at, copied), slips))]
        if len(found) > 1:
            raise ToolFailed(
                f"old_string stands nowhere exactly; but for {found[0].slip.told} it stands at {len(found)} places "
                f"({_listed([seen.region.at + 1 for seen in found])}); copy the one you mean exactly, with more lines "
                "around it"
            )
        if found:
            return _spliced(text, found[0], _mended(found[0], wanted))
    raise ToolFailed(explain_miss(file, copied, candidates))


@dataclass(frozen=True, slots=True)
class _Explained:
    region: Region
    slip: Slip
    mend: Mend


def _explained(region: Region, slips: Sequence[Slip]) -> _Explained | None:
    for slip in slips:
        if mend := slip.recognise(region):
            return _Explained(region, slip, mend)
    return None


def _alike(file: Sequence[str], copied: Sequence[str]) -> list[int]:
    """Where the lines agree once white space and typography are taken away: every slip leaves that much."""
    wanted = [_skeleton(line) for line in copied]
    anchor = next((index for index, line in enumerate(wanted) if line), None)
    if anchor is None:
        return []
    skeletons = [_skeleton(line) for line in file]
    starts = (at - anchor for at, line in enumerate(skeletons) if line == wanted[anchor])
    return [at for at in starts if at >= 0 and skeletons[at : at + len(wanted)] == wanted]


def _skeleton(line: str) -> str:
    return "".join((line if line.isascii() else straight(line)).split())


def _mended(seen: _Explained, wanted: Sequence[str]) -> list[str]:
    """The new lines as they should have been: those that were only copied are the file's own, the others are mended."""
    copied, own = seen.region.copied, seen.region.own
    lines: list[str | None] = [] if not seen.slip.framed or same_frame(copied, wanted) else [None]
    for tag, a, b, c, d in SequenceMatcher(None, copied, wanted, autojunk=False).get_opcodes():
        lines += own[a:b] if tag == "equal" else [seen.mend(line) for line in wanted[c:d]]
    if None in lines:
        raise ToolFailed(
            f"old_string stands at line {seen.region.at + 1} but for {seen.slip.told}; how to mend new_string is in "
            "doubt, so copy the lines exactly as read shows them, without the number and the tab after it"
        )
    return [line for line in lines if line is not None]


def _spliced(text: str, seen: _Explained, lines: Sequence[str]) -> Place:
    start = sum(len(line) + 1 for line in seen.region.file[: seen.region.at])
    end = min(start + sum(len(line) + 1 for line in seen.region.own), len(text))
    ending = "\n" if lines and text.endswith("\n", start, end) else ""
    return Place(start, end, "\n".join(lines) + ending, seen.slip.told)
