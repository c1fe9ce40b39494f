"""Comparing lines: what is found to have changed, and that many equal lines do not matter."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given, settings, strategies as st

from callwright.system import line_diff
from callwright.system.line_diff import Change, compare_lines, group_changes

_LINES = st.lists(st.sampled_from(["a", "b", "c", "}", "", "x1", "x2", "x3", "x4"]), max_size=20)


def check(old: list[str], new: list[str], changes: list[Change]) -> None:
    """Check that the changes cover both texts in order, and that equal lines are equal."""
    assert [line for _, a, b, _, _ in changes for line in old[a:b]] == old
    assert [line for _, _, _, c, d in changes for line in new[c:d]] == new
    for tag, a, b, c, d in changes:
        assert (tag == "equal") <= (old[a:b] == new[c:d])
        assert (tag in ("equal", "replace"), tag == "delete", tag == "insert") == (a < b and c < d, c == d, a == b)
    equal = [tag == "equal" for tag, *_ in changes]
    assert equal in ([bool(place % 2) for place in range(len(equal))], [not place % 2 for place in range(len(equal))])


@given(_LINES, _LINES)
def test_few_lines_are_compared_as_by_difflib(old: list[str], new: list[str]) -> None:
    assert compare_lines(old, new) == SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


@settings(max_examples=500)
@given(_LINES, _LINES, st.integers(0, 5))
def test_many_lines_are_compared_correctly(old: list[str], new: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_diff, "_MOST_LINES", most)
        patch.setattr(line_diff, "_MOST_PAIRS", most)
        check(old, new, compare_lines(old, new))


@given(_LINES, _LINES, st.integers(1, 3))
def test_changes_are_grouped_as_by_difflib(old: list[str], new: list[str], context: int) -> None:
    expected = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context)
    assert list(group_changes(compare_lines(old, new), context)) == (list(expected) if old != new else [])


def test_lines_that_repeat_are_compared_in_time_that_grows_with_their_number() -> None:
    old = [line for number in range(3000) for line in ("{", '"kind": "x"', f'"size": {number}', "},")]
    new = [line.replace("x", "y") for line in old]
    assert sum(tag == "replace" for tag, *_ in compare_lines(old, new)) == 3000
    same = ["{", "x", "}"] * 3000
    other = ["{", "y", "}"] * 3000
    assert sum(tag == "replace" for tag, *_ in compare_lines(same, other)) == 3000
    check(same, other[5:], compare_lines(same, other[5:]))
