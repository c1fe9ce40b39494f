"""Finds the one place an edit means: an exact match, or the only place that a typical copying error explains.

exact match ──► applied as it is, or refused once if it would probably damage the file (`Doubtful`)
no match    ──► without line numbers ──► plain quotes and dashes ──► by lines, ignoring indentation and the like
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from callwright.core.errors import ToolFailed
from callwright.system.line_diff import compare_lines
from callwright.toolbox.edit.feedback import explain_miss, offer_exact_text
from callwright.toolbox.edit.typos import (
    TYPOS,
    Correction,
    Doubtful,
    EditPlace,
    Region,
    Typo,
    find_all,
    indent_of,
    indented_alike,
    line_of,
    lines_of,
    plain_writer,
    to_plain_characters,
)

_CURLY = frozenset("‘’“”")
_PLAIN = frozenset("'\"")


def _place_exact_match(text: str, start: int, end: int, new: str) -> EditPlace:
    """Return the place of an exact match; whole lines keep their line breaks.

    Raises:
        Doubtful: The replacement would probably damage the file.
    """
    line_start = text.rfind("\n", 0, start) + 1
    before, old = text[line_start:start].removeprefix("\ufeff"), text[start:end]
    _doubt_quotes(text, new)
    _doubt_indent_style(text, old, new)
    if before.strip():
        _doubt_lost_character(text, start, end)
        return EditPlace(start, end, new)
    if before and old.split("\n", 1)[0].strip():
        return _place_indented(text, (start, end), before, new)
    _doubt_second_blank(text, start, old, new)
    return _whole_lines(text, start, end, new)


def _whole_lines(text: str, start: int, end: int, new: str) -> EditPlace:
    """Keep lines whole: a final line break in only one of old and new belongs to the line, or is doubtful."""
    old = text[start:end]
    if old.endswith("\n") and new and not new.endswith("\n") and end < len(text):
        if old.endswith("\n\n"):
            raise Doubtful("old_string ends with an empty line and new_string without a line break; end both alike")
        return EditPlace(start, end, new + "\n", "the line break at the end")
    if text.startswith("\n", end) and not old.endswith("\n"):
        if not new and old:
            return EditPlace(start, end + 1, new, "the line break at the end")
        if new.endswith("\n") and new not in ("\n", old + "\n"):
            raise Doubtful("new_string ends with a line break and old_string does not; end both alike")
    return EditPlace(start, end, new)


def _place_indented(text: str, match: tuple[int, int], before: str, new: str) -> EditPlace:
    """Place a match that starts after the indentation: only the first line was cut there, or all were shifted."""
    start, end = match
    old_lines, new_lines = lines_of(text[start:end]), lines_of(new)
    whole = text.endswith("\n", start, end)
    if not new_lines and (whole or text.startswith("\n", end)):
        place = _whole_lines(text, start - len(before), end, new)
        return replace(place, typo=_join_typos("indentation", place.typo))
    later = [line for line in new_lines[1:] if line.strip()]
    alike = not new_lines or indent_of(old_lines[0]) == indent_of(new_lines[0])
    if alike and (not later or any(line.strip() for line in old_lines[1:]) or _at_full_depth(text, before, later)):
        return _whole_lines(text, start, end, new)
    if not alike or not whole or later[0].startswith(before) or not indented_alike(old_lines, new_lines):
        raise Doubtful(
            f"old_string starts after the indentation of line {line_of(text, start)}, so the indentation of the lines "
            "of new_string is unclear; start both with the whole line, indentation included"
        )
    shifted = "\n".join(before + line if line.strip() else line for line in new.split("\n"))
    place = _whole_lines(text, start - len(before), end, shifted)
    return EditPlace(place.start, place.end, place.text, "indentation")


def _at_full_depth(text: str, before: str, later: Sequence[str]) -> bool:
    """Tell whether the later lines are indented in full: one more level would be deeper than any in the file."""
    indents = {indent_of(line) for line in lines_of(text) if line.strip()}
    steps = [len(indent) for indent in indents if indent not in ("", " ")]  # one space aligns comments, not blocks
    return all(line.startswith(before) for line in later) and len(indent_of(later[0])) > min(steps, default=1)


def _doubt_lost_character(text: str, start: int, end: int) -> None:
    """Doubt a match of a whole line without its first character: the copy may have lost it."""
    at_second = start == 1 or text[start - 2] == "\n"
    to_line_end = end == len(text) or text.endswith("\n", start, end) or text.startswith("\n", end)
    if at_second and to_line_end:
        raise Doubtful(
            f"old_string starts after the first character ({text[start - 1]!r}) of line {line_of(text, start)}; "
            "start old_string and new_string with the whole line"
        )


def _doubt_second_blank(text: str, start: int, old: str, new: str) -> None:
    if new.startswith("\n") and not old.startswith("\n") and text.endswith("\n\n", 0, start):
        raise Doubtful(
            f"new_string starts with an empty line, but there is one before line {line_of(text, start)} already; "
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


_NUMBERED = re.compile(r" *([0-9]{1,9})(?:\t|→)")
_SHOWN_PLACES = 10
_MOST_COMPARED_LINES = 200_000
"""Of all the places where old_string may be meant; comparing them takes about a second."""
_MARK = "\ufeff"  # the byte order mark belongs to the file, whether or not the model copied it


def locate(text: str, old: str, new: str, *, literal: bool = False) -> EditPlace:
    """Return the one place an edit means.

    Args:
        text: The file, with `\\n` as line break.
        old: The text to find.
        new: The text to put in its place.
        literal: Apply a match of the whole text as given, without doubts and corrections.

    Raises:
        ToolFailed: There is no such place, or more than one.
        Doubtful: The replacement would probably damage the file.
    """
    numbered = _without_numbers(old, new)
    old, new = _strip_byte_order_mark(text, old, new)
    starts = find_all(text, old, _SHOWN_PLACES + 1)
    if len(starts) > 1:
        count = max(len(starts), text.count(old))  # a letter may occur millions of times
        places = _list_lines([line_of(text, start) for start in starts[:_SHOWN_PLACES]])
        more = f" and {count - _SHOWN_PLACES} more" if count > _SHOWN_PLACES else ""
        raise ToolFailed(
            f"old_string occurs at {count} places ({places}{more}); add surrounding lines until it is the only "
            "one, or pass replace_all=true"
        )
    if starts:
        return _place_literally(text, starts[0], old, new, literal=literal)
    if numbered:
        return _find_by_number(text, *numbered, literal=literal)
    return _find_plain(text, old, new, literal=literal) or _find_by_lines(text, old, new)


def _place_literally(text: str, start: int, old: str, new: str, *, literal: bool) -> EditPlace:
    """Return an exact match as it is; where a correction would be likely, the edit is doubted and not corrected."""
    exact = EditPlace(start, start + len(old), new)
    if literal:  # without the checks below, which would doubt it again
        return exact
    place = _place_exact_match(text, start, exact.end, new)
    if place == exact:
        return exact
    if place.start < start:
        raise Doubtful(
            f"old_string starts after the indentation of line {line_of(text, start)}, which would stay where it is; "
            "start old_string and new_string with the whole line, indentation included"
        )
    if not new:
        raise Doubtful("without its line break an empty line would stay; end old_string with the line break too")
    raise Doubtful(
        "old_string ends with a line break and new_string does not, so the next line would be joined to it; "
        "end both alike"
    )


def _list_lines(lines: Sequence[int]) -> str:
    return f"lines {', '.join(map(str, lines))}"


def _without_numbers(old: str, new: str) -> tuple[str, str, int] | None:
    """Return old and new without line numbers copied from `read`, and the first number; None if there are none."""
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


def _find_plain(text: str, old: str, new: str, *, literal: bool) -> EditPlace | None:
    write = plain_writer(old)
    if write is None or len(starts := find_all(text, write(old), 2)) != 1:
        return None
    place = _place_found(text, starts[0], starts[0] + len(old), write(new), literal=literal)
    return replace(place, typo=_join_typos("typographic characters for plain ones", place.typo))


def _place_found(text: str, start: int, end: int, new: str, *, literal: bool) -> EditPlace:
    """Return the place of the only text that was meant; an edit that was doubted before is applied as it is."""
    return EditPlace(start, end, new) if literal else _place_exact_match(text, start, end, new)


def _join_typos(typo: str, other: str) -> str:
    return f"{typo}, {other}" if other else typo


def _strip_byte_order_mark(text: str, old: str, new: str) -> tuple[str, str]:
    """Drop a mark that would stand twice at the start of the file, or that only the copy has."""
    if old.startswith(_MARK) and _MARK not in text:
        old, new = old.removeprefix(_MARK), new.removeprefix(_MARK)
    at_start = not old.startswith(_MARK) and text.find(old) <= 1
    return old, new.removeprefix(_MARK) if at_start else new


def _find_by_number(text: str, old: str, new: str, number: int, *, literal: bool) -> EditPlace:
    old, new = _strip_byte_order_mark(text, old, new)
    starts = find_all(text, old)
    if len(starts) > 1:  # the number tells which
        above = text.split("\n", number)[:number]
        begin, end = sum(len(line) + 1 for line in above[:-1]), sum(len(line) + 1 for line in above)
        starts = [start for start in starts if begin <= start < end] if len(above) == number else []
    place = (
        _place_found(text, starts[0], starts[0] + len(old), new, literal=literal)
        if len(starts) == 1
        else _find_by_lines(text, old, new)
    )
    return replace(place, typo=_join_typos("line numbers of read", place.typo))


def _find_by_lines(text: str, old: str, new: str) -> EditPlace:
    file, copied, wanted = lines_of(text), lines_of(_drop_begun_line(old)), lines_of(_drop_begun_line(new))
    candidates = _find_alike(file, copied)
    for typos in TYPOS:  # a place with the right indentation beats one that needs a shift
        explained = (seen for at in candidates if (seen := _explain(Region(file, at, copied), typos)))
        found = list(islice(explained, _SHOWN_PLACES + 1))  # each may look at the whole file
        if len(found) > 1:
            many = f"more than {_SHOWN_PLACES}" if len(found) > _SHOWN_PLACES else str(len(found))
            places = _list_lines([seen.region.at + 1 for seen in found[:_SHOWN_PLACES]])
            raise ToolFailed(
                f"old_string does not occur exactly; except for {found[0].typo.label} it occurs at {many} places "
                f"({places}); copy the one you mean exactly, with more lines around it"
            )
        if found:
            return _place_lines(text, found[0], _correct_lines(found[0], wanted))
    raise ToolFailed(explain_miss(text, file, old, new, candidates))


def _drop_begun_line(text: str) -> str:
    """Drop the whitespace after the last line break: the indentation of the next line, which was not copied."""
    end = text.rfind("\n") + 1
    return text if text[end:].strip() else text[:end] or text


@dataclass(frozen=True, slots=True)
class _Explanation:
    region: Region
    typo: Typo
    correct: Correction


def _explain(region: Region, typos: Sequence[Typo]) -> _Explanation | None:
    for typo in typos:
        if correct := typo.recognise(region):
            return _Explanation(region, typo, correct)
    return None


def _find_alike(file: Sequence[str], copied: Sequence[str]) -> list[int]:
    """Return where the lines agree without whitespace and typography: no typo changes more than these.

    Raises:
        ToolFailed: At too many places for a look at each.
    """
    wanted = "\n".join(map(_skeleton, copied))
    if not wanted.strip("\n"):
        return []
    # as texts: comparing lists of lines at each place would take the product of both lengths
    plain = "\n".join(["", *map(_skeleton, file), ""])
    most = max(_SHOWN_PLACES, _MOST_COMPARED_LINES // len(copied))
    starts = find_all(plain, f"\n{wanted}\n", most + 1)
    lines: list[int] = []
    line = counted = 0
    for start in starts:
        line, counted = line + plain.count("\n", counted, start), start
        lines.append(line)
    if len(lines) > most:
        places = _list_lines([line + 1 for line in lines[:_SHOWN_PLACES]])
        raise ToolFailed(
            f"old_string does not occur exactly; except for whitespace it occurs at more than {most} places ({places} "
            "and more); copy the one you mean exactly, with more lines around it"
        )
    return lines


def _skeleton(line: str) -> str:
    return "".join((line if line.isascii() else to_plain_characters(line)).split())


def _correct_lines(seen: _Explanation, wanted: Sequence[str]) -> list[str]:
    """Return the corrected new lines: unchanged ones are taken from the file, the others are corrected."""
    copied, own = seen.region.copied, seen.region.own
    lines: list[str | None] = [] if not seen.typo.framed or indented_alike(copied, wanted) else [None]
    for tag, a, b, c, d in compare_lines(copied, wanted):
        lines += own[a:b] if tag == "equal" else [seen.correct(line) for line in wanted[c:d]]
    if None in lines:
        raise ToolFailed(
            f"old_string occurs at line {seen.region.at + 1} except for {seen.typo.label}; how to correct new_string "
            f"is unclear, so indent it like the file; {offer_exact_text(chr(10).join(seen.region.own))}"
        )
    return [line for line in lines if line is not None]


def _place_lines(text: str, seen: _Explanation, lines: Sequence[str]) -> EditPlace:
    start = sum(len(line) + 1 for line in seen.region.file[: seen.region.at])
    end = min(start + sum(len(line) + 1 for line in seen.region.own), len(text))
    ending = "\n" if lines and text.endswith("\n", start, end) else ""
    return EditPlace(start, end, "\n".join(lines) + ending, seen.typo.label)
