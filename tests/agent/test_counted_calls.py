"""The count of repeated calls: what is taken quickly is counted as what is not."""

import itertools
from collections.abc import Sequence

import pytest

from callwright.agent.run_limits import RunLimits, Spending
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Output
from callwright.core.errors import ToolFailed

_ids = itertools.count()


def done(arguments: dict[str, int] | str, text: str = "same", name: str = "look") -> Completed:
    return Completed(ToolCall(f"c{next(_ids)}", name, arguments), Output(text))


def find_noted(*turns: Sequence[Completed | Failed], limits: RunLimits | None = None) -> list[list[bool]]:
    """Return which outcomes of which turns have a note for the model."""
    spending = Spending(limits or RunLimits())
    return [[o is not n for o, n in zip(turn, spending.count_outcomes(turn), strict=True)] for turn in turns]


def test_call_is_repeated_only_in_the_next_turn() -> None:
    assert find_noted([done("1")], [done("1")], [done("1")]) == [[False], [True], [True]]
    assert find_noted([done("1")], [done("2")], [done("1")]) == [[False], [False], [False]]
    assert find_noted([done("1")], [done("1", name="find")], [done("1")]) == [[False], [False], [False]]
    assert find_noted([done("1")], [done("1", "other")], [done("1", "other")]) == [[False], [False], [True]]


def test_turns_of_one_and_of_several_calls_are_compared() -> None:
    assert find_noted([done("1")], [done("2"), done("1")], [done("2")]) == [[False], [False, True], [True]]
    assert find_noted([done("1"), done("2")], [done("3")], [done("3")]) == [[False, False], [False], [True]]
    assert find_noted([done("1"), done("2")], [done("3")], [done("1")]) == [[False, False], [False], [False]]


def test_arguments_are_the_same_as_object_and_as_text() -> None:
    assert find_noted([done({"a": 1})], [done('{"a": 1}')], [done({"a": 1})]) == [[False], [True], [True]]
    assert find_noted([done({"a": 1})], [done({"a": 2})], [done({"a": 2})]) == [[False], [False], [True]]


def test_failures_between_completed_calls_count_too() -> None:
    failed = Failed(ToolCall("f", "look", "1"), ToolFailed("broken"))
    assert find_noted([done("1")], [failed], [done("1")], [done("1")]) == [[False], [False], [False], [True]]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_limit_of_same_calls_is_reached_exactly(limit: int) -> None:
    spending = Spending(RunLimits(same_calls=limit))
    for _ in range(limit - 1):
        spending.count_outcomes([done("1")])
        assert spending.repetition is None
    spending.count_outcomes([done("1")])
    assert spending.repetition is not None


def test_count_goes_on_after_the_run_is_resumed() -> None:
    earlier, spending = Spending(RunLimits()), Spending(RunLimits())
    earlier.count_outcomes([done("1")])
    spending.carry(earlier)
    (noted,) = spending.count_outcomes([done("1")])
    assert "made before" in noted.text
    spending.restart("repeated")
    (noted,) = spending.count_outcomes([done("1")])
    assert noted.text == "same"
