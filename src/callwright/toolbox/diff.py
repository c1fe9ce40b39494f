"""What an edit did, shown: a unified diff and the new lines with their numbers."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_CONTEXT = 3
_SHOWN_LINES = 200
_UNENDED = "\n\\ No newline at end of file"

Group = Sequence[tuple[str, int, int, int, int]]


def show_change(before: str, after: str, name: str) -> str:
    """Show the difference between two texts and, numbered as `read` does, the lines that are new."""
    old, new = _lines(before), _lines(after)
    groups = _groups(old, new)
    diff = _capped([f"--- {name}", f"+++ {name}", *(line for group in groups for line in _hunk(group, old, new))])
    region = _capped(
        [f"{n + 1}\t{new[n].removesuffix(_UNENDED)}" for group in groups for n in range(group[0][3], group[-1][4])]
    )
    return f"{diff}\n\nnow:\n{region}"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    unended = lines.pop()
    return [*lines, unended + _UNENDED] if unended else lines


def _groups(old: Sequence[str], new: Sequence[str]) -> list[Group]:
    """The changes with lines around them; what both texts start and end with is skipped, which keeps it linear."""
    same = _same(old, new)
    tail = _same(old[same:][::-1], new[same:][::-1])
    start, end = max(0, same - _CONTEXT), max(0, tail - _CONTEXT)
    matcher = SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False)
    return [
        [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]
        for group in matcher.get_grouped_opcodes(_CONTEXT)
    ]


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return index
    return min(len(old), len(new))


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


def _capped(lines: Sequence[str]) -> str:
    rest = len(lines) - _SHOWN_LINES
    return "\n".join([*lines[:_SHOWN_LINES], f"… ({rest} more lines)"] if rest > 0 else lines)
