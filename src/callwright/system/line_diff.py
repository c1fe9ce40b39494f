"""Compares lines in time that grows with their number: for lines that repeat, difflib takes cubic time.

few lines      difflib
many lines     the lines that occur once in both texts, in the same order, are anchors; what lies between two of them
               is compared by difflib if that is cheap, else line by line if it is equally long, else taken as replaced
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Change: TypeAlias = tuple[str, int, int, int, int]
"""As an opcode of difflib: `equal`, `replace`, `delete` or `insert`, and the lines of both texts that it is about."""
_Block: TypeAlias = tuple[int, int, int]

_MOST_LINES = 1_000
_MOST_PAIRS = 5_000
"""How many pairs of equal lines, beyond one for each line, difflib is left to choose from."""


def compare_lines(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the changes that turn the old lines into the new ones, with the lines that stay between them.

    Args:
        old: The lines before.
        new: The lines after.
    """
    if _is_cheap(old, new):
        return [*SequenceMatcher(None, old, new, autojunk=False).get_opcodes()]
    changes: list[Change] = []
    done_old = done_new = 0
    for start_old, start_new, size in [*_join_blocks(_match(old, new)), (len(old), len(new), 0)]:
        if done_old < start_old or done_new < start_new:
            tag = "insert" if done_old == start_old else "delete" if done_new == start_new else "replace"
            changes.append((tag, done_old, start_old, done_new, start_new))
        done_old, done_new = start_old + size, start_new + size
        if size:
            changes.append(("equal", start_old, done_old, start_new, done_new))
    return changes


def group_changes(changes: Sequence[Change], context: int) -> Iterator[list[Change]]:
    """Yield the changes in groups, each with at most `context` unchanged lines before and after it.

    Args:
        changes: What `compare_lines` returned.
        context: How many lines to show around a change; fewer than twice as many between two changes join them.
    """
    group: list[Change] = []
    for place, (tag, a, b, c, d) in enumerate(changes):
        if tag != "equal":
            group.append((tag, a, b, c, d))
            continue
        size, first, last = b - a, place == 0, place == len(changes) - 1
        if not first and not last and size <= 2 * context:
            group.append((tag, a, b, c, d))
            continue
        kept = min(size, context)
        if not first:
            yield [*group, (tag, a, a + kept, c, c + kept)] if kept else group
        group = [(tag, b - kept, b, d - kept, d)] if kept and not last else []
    if any(tag != "equal" for tag, *_ in group):
        yield group


def count_common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines at the start are the same."""
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return index
    return min(len(old), len(new))


def _is_cheap(old: Sequence[str], new: Sequence[str]) -> bool:
    if max(len(old), len(new)) > _MOST_LINES:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) - min(len(old), len(new)) <= _MOST_PAIRS


def _match(old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
    """Yield runs of equal lines: where they begin in both texts, and how long they are."""
    done_old = done_new = 0
    for at_old, at_new in _find_anchors(old, new):
        yield from _match_gap(old[done_old:at_old], new[done_new:at_new], done_old, done_new)
        yield at_old, at_new, 1
        done_old, done_new = at_old + 1, at_new + 1
    yield from _match_gap(old[done_old:], new[done_new:], done_old, done_new)


def _match_gap(old: Sequence[str], new: Sequence[str], at_old: int, at_new: int) -> Iterator[_Block]:
    head = count_common(old, new)
    tail = count_common(old[head:][::-1], new[head:][::-1])
    yield at_old, at_new, head
    old_rest, new_rest = old[head : len(old) - tail], new[head : len(new) - tail]
    if _is_cheap(old_rest, new_rest):
        for a, b, size in SequenceMatcher(None, old_rest, new_rest, autojunk=False).get_matching_blocks():
            yield at_old + head + a, at_new + head + b, size
    elif len(old_rest) == len(new_rest):
        for place, (one, other) in enumerate(zip(old_rest, new_rest, strict=True), head):
            if one == other:
                yield at_old + place, at_new + place, 1
    yield at_old + len(old) - tail, at_new + len(new) - tail, tail


def _find_anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of lines that occur once in each text: the most of them that are in the same order."""
    old_counts, new_counts = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, places[line]) for at, line in enumerate(old) if old_counts[line] == 1 and line in places]
    ends: list[int] = []  # for each length, where the chain ends that ends first
    chains: list[int] = []  # its last pair
    before: list[int] = []  # for each pair, the one before it in its chain
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(chains[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        chains[length : length + 1] = [index]
    anchors: list[tuple[int, int]] = []
    index = chains[-1] if chains else -1
    while index >= 0:
        anchors.append(pairs[index])
        index = before[index]
    return anchors[::-1]


def _join_blocks(blocks: Iterable[_Block]) -> list[_Block]:
    """Join runs that follow each other, and leave out empty ones."""
    joined: list[_Block] = []
    for at_old, at_new, size in blocks:
        if not size:
            continue
        if joined and (joined[-1][0] + joined[-1][2], joined[-1][1] + joined[-1][2]) == (at_old, at_new):
            at_old, at_new, size = joined[-1][0], joined[-1][1], joined.pop()[2] + size
        joined.append((at_old, at_new, size))
    return joined
