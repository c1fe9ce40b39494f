"""Feedback of the `edit` tool: the diff of a change, and the closest lines when old_string was not found."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice

from callwright.core.errors import shorten
from callwright.system.line_diff import Change, compare_lines, count_common, group_changes
from callwright.toolbox.edit.typos import lines_of

_CONTEXT = 3
_SHOWN_LINES = 200
_NO_FINAL_BREAK = "\n\\ No newline at end of file"

Group = Sequence[Change]


def explain_empty(text: str) -> str:
    """Say how to add to a file: an empty old_string does not say where."""
    last = [json.dumps(shorten(line, _SHOWN_CHARS), ensure_ascii=False) for line in lines_of(text) if line.strip()][
        -_CONTEXT:
    ]
    shown = f"; the last lines of the file are {', '.join(last)}" if last else ""
    return (
        "old_string is empty, which only creates a new file, but this file exists. To add text, copy the line before "
        f"it into old_string, and send that line and the text as new_string{shown}"
    )


def show_change(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts and the changed region, numbered as by `read`."""
    old, new = _lines(before), _lines(after)
    groups = _groups(old, new)
    diff = _cap([f"--- {name}", f"+++ {name}", *(line for group in groups for line in _hunk(group, old, new))])
    region = _cap(
        [
            f"{n + 1}\t{new[n].removesuffix(_NO_FINAL_BREAK)}"
            for group in groups
            for n in range(group[0][3], group[-1][4])
        ]
    )
    return f"{diff}\n\nnow:\n{region}"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    unended = lines.pop()
    return [*lines, unended + _NO_FINAL_BREAK] if unended else lines


def _groups(old: Sequence[str], new: Sequence[str]) -> list[Group]:
    """Return the changes with context; the common start and end are skipped."""
    same = count_common(old, new)
    tail = count_common(old[same:][::-1], new[same:][::-1])
    start, end = max(0, same - _CONTEXT), max(0, tail - _CONTEXT)
    changes = compare_lines(old[start : len(old) - end], new[start : len(new) - end])
    return [
        [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]
        for group in group_changes(changes, _CONTEXT)
    ]


def _hunk(group: Group, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@"
    for tag, a, b, c, d in group:
        if tag == "equal":
            yield from (f" {line}" for line in old[a:b])
        else:
            yield from (f"-{line}" for line in old[a:b])
            yield from (f"+{line}" for line in new[c:d])


def _span(start: int, end: int) -> str:
    return f"{start + 1},{end - start}" if end > start else f"{start},0"


def _cap(lines: Sequence[str]) -> str:
    rest = len(lines) - _SHOWN_LINES
    return "\n".join([*lines[:_SHOWN_LINES], f"… ({rest} more lines)"] if rest > 0 else lines)


_ELISION = re.compile(r"^\W*(?:\.\.\.|…)[\w\s.…]*\W*$")
_MAX_MISS_LINES = 12
_MOST_OFFERED_CHARS = 4000
_SHOWN_CHARS = 200
_MAX_COMPARED_LINES = 4000
_MOST_VOTES = 1_000_000
_TELLING_CHARS = 4
"""A shorter text stands in many files by chance."""


def explain_miss(text: str, file: Sequence[str], old: str, new: str, candidates: Sequence[int]) -> str:
    """Explain that old_string was not found: the closest lines, where they are, and the first difference.

    Args:
        text: The file.
        file: Its lines.
        old: The text that was not found.
        new: The text that was to take its place.
        candidates: The lines where it may begin.
    """
    copied = lines_of(old)
    elided = [line.strip() for line in copied if len(line) <= _SHOWN_CHARS and _ELISION.match(line)]
    if elided:
        return f"old_string was not found: its line {elided[0]!r} abbreviates other lines; copy those lines"
    if not file:
        return "old_string was not found: the file is empty"
    if (meant := _find_except_white_space(text, file, old)) is not None:
        return f"old_string was not found: it differs in white space only; {offer_exact_text(meant)}"
    made = text.find(new) if len(new.strip()) >= _TELLING_CHARS else -1
    done = f"; new_string stands in the file already (line {text.count(chr(10), 0, made) + 1})" if made >= 0 else ""
    at = candidates[0] if candidates else _closest(file, copied)
    if at is None:
        return f"old_string was not found, nor anything similar{done}; read the file again"
    region = file[at : at + max(1, len(copied))]
    shown = "\n".join(
        f"{at + 1 + index}\t{shorten(line, _SHOWN_CHARS)}" for index, line in enumerate(region[:_MAX_MISS_LINES])
    )
    return f"old_string was not found{done}; the closest lines are\n{shown}\n{_difference(region, copied, at + 1)}"


def _find_except_white_space(text: str, file: Sequence[str], old: str) -> str | None:
    """Return the text of the file that equals old_string but for white space; None unless there is exactly one."""
    plain, wanted = "".join("".join(line.split()) for line in file), "".join(old.split())
    at = plain.find(wanted) if wanted else -1
    if at < 0 or plain.find(wanted, at + 1) >= 0:
        return None
    start, end = _offset_of(text, at), _offset_of(text, at + len(wanted) - 1) + 1
    line_start = text.rfind("\n", 0, start) + 1
    if not text[line_start:start].strip():  # whole lines, so that the indentation is shown too
        start = line_start
    line_end = text.find("\n", end)
    if old.endswith("\n") and line_end >= 0 and not text[end:line_end].strip():
        end = line_end + 1
    return text[start:end]


def _offset_of(text: str, count: int) -> int:
    """Return the offset of the character before which `count` others are no white space either."""
    for word in re.finditer(r"\S+", text):
        if count < len(word[0]):
            return word.start() + count
        count -= len(word[0])
    return len(text)


def offer_exact_text(exact: str) -> str:
    """Return the text of the file as JSON to copy; if it is long, advice to read it again."""
    if len(exact) > _MOST_OFFERED_CHARS:
        return "read the lines again and copy them exactly"
    return f"the file has this text; send it as old_string, exactly: {json.dumps(exact, ensure_ascii=False)}"


def _closest(file: Sequence[str], copied: Sequence[str]) -> int | None:
    """Return where most of the copied lines occur; if none does, the line most similar to the first."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(copied):
        if line.strip():
            offsets.setdefault(line.strip(), []).append(offset)
    starts = (index - offset for index, line in enumerate(file) for offset in offsets.get(line.strip(), ()))
    votes = Counter(islice(starts, _MOST_VOTES))  # a line that both repeat would have one for each pair
    if votes:
        return max(0, max(votes, key=lambda at: (votes[at], -at)))
    return _most_similar(file, next((line.strip() for line in copied if line.strip()), ""))


def _most_similar(file: Sequence[str], wanted: str) -> int | None:
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(wanted[:_SHOWN_CHARS])  # difflib caches the analysis of the second sequence only
    best, best_ratio = None, 0.5
    for index, line in enumerate(file[:_MAX_COMPARED_LINES]):
        matcher.set_seq1(line.strip()[:_SHOWN_CHARS])
        # the quick ratios are upper bounds and skip nearly every line
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = index, ratio
    return best


def _difference(region: Sequence[str], copied: Sequence[str], number: int) -> str:
    for offset, (line, other) in enumerate(zip(region, copied, strict=False)):
        if line != other:
            return (
                f"first difference, line {number + offset}: {_reason(line, other)}\n"
                f"  file: {shorten(line, _SHOWN_CHARS)!r}\n  old_string: {shorten(other, _SHOWN_CHARS)!r}"
            )
    return f"old_string continues for {len(copied) - len(region)} lines after the end of the file"


def _reason(line: str, other: str) -> str:
    if line.strip() == other.strip():
        if line.rstrip() == other.rstrip():
            return "whitespace at the end of the line"
        tabs, others = line.count("\t"), other.count("\t")
        return f"indentation ({tabs} tabs in the file, {others} in old_string)" if tabs != others else "indentation"
    if "".join(line.split()) == "".join(other.split()):
        return "whitespace inside the line"
    column = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    here, there = line[column : column + 1], other[column : column + 1]
    if "\udc80" <= here <= "\udcff":
        byte = f"0x{ord(here) - 0xDC00:02x}"
        return (
            f"column {column + 1} is the byte {byte}, which is not UTF-8 and cannot be copied; leave it out of the edit"
        )
    return f"column {column + 1} is {here!r} in the file, {there!r} in old_string"
