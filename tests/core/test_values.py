"""Specs, errors, outputs and answers: the values everything else is made of."""

import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright import (
    Annotations,
    Answers,
    Approve,
    Cancelled,
    Crashed,
    Decline,
    Denied,
    Effect,
    Halted,
    Image,
    InvalidArguments,
    Limits,
    Output,
    Question,
    ReadPath,
    Text,
    TimedOut,
    ToolError,
    ToolFailed,
    ToolSpec,
    Transient,
    UnknownTool,
    Unsafe,
    UsageError,
    WritePath,
)
from callwright.core._fast import make_constructor
from callwright.core.calls import digest_of
from callwright.core.spec import check_name

SCHEMA: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize("name", ["a", "fs.read", "mcp__github__search", "x-1", "A" * 128])
def test_a_valid_name_is_kept(name: str) -> None:
    assert check_name(name) == name
    assert ToolSpec(name, "Act.", SCHEMA, aliases=(name,)).name == name


@pytest.mark.parametrize("name", ["", "a b", "é", "a/b", "a\n", "x" * 129, "a:b"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not valid: use 1 to 128 letters"):
        check_name(name)


@pytest.mark.parametrize("name", ["", "a\n", "a\x00", "a\u202eb"])
def test_a_spec_may_carry_a_foreign_name_but_not_one_nobody_can_see(name: str) -> None:
    assert ToolSpec("Tool with spaces", "Act.", SCHEMA).name == "Tool with spaces"
    with pytest.raises(UsageError, match="is empty or has unprintable characters"):
        ToolSpec(name, "Act.", SCHEMA)


@pytest.mark.parametrize("description", ["", "  \n"])
def test_a_tool_must_be_described(description: str) -> None:
    with pytest.raises(UsageError, match="'a' has no description"):
        ToolSpec("a", description, SCHEMA)


def test_a_spec_is_frozen_through_and_through() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    spec: Any = ToolSpec("fs.read", "Read.", schema, output_schema={"type": "object"}, metadata={"a": [1]})
    schema["properties"]["a"]["type"] = "integer"
    assert spec.input_schema["properties"]["a"]["type"] == "string"
    assert spec.namespace == "fs"
    assert ToolSpec("read", "Read.", SCHEMA).namespace == ""
    for change in (
        spec.input_schema["properties"].clear,
        spec.output_schema.clear,
        lambda: spec.metadata["a"].append(2),
    ):
        with pytest.raises(TypeError):
            change()
    assert hash(spec.input_schema) is not None


def test_effects_are_ordered_and_the_defaults_are_cautious() -> None:
    assert Effect.READ < Effect.WRITE < Effect.DESTROY
    assert Annotations() == Annotations(Effect.WRITE, False, None, False, False, False)


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": float("nan")}, {"output_chars": 0}, {"concurrency": 0}])
def test_limits_that_allow_nothing_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Limits"):
        Limits(**limits)


ERRORS: list[tuple[ToolError, str, str]] = [
    (UnknownTool("raed", ["read"]), "not_found", "unknown tool: raed; did you mean read?"),
    (InvalidArguments("a: missing"), "invalid_input", "invalid arguments: a: missing"),
    (Unsafe("no"), "safety", "safety check failed: no"),
    (Denied("no"), "denied", "denied: no"),
    (Halted("no"), "denied", "halted: no"),
    (ToolFailed("no"), "tool_failed", "tool failed: no"),
    (Transient("no", retry_after=2), "transient", "transient failure (worth retrying): no"),
    (TimedOut("no"), "timed_out", "no"),
    (Cancelled("no"), "cancelled", "no"),
    (Crashed("no"), "crashed", "no"),
]


@pytest.mark.parametrize(("error", "code", "text"), ERRORS, ids=[code for _, code, _ in ERRORS])
def test_every_error_has_its_code_and_words_also_after_a_journey(error: ToolError, code: str, text: str) -> None:
    assert (error.code, str(error)) == (code, text)
    assert error.is_transient == (code == "transient")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), back.message, vars(back)) == (type(error), error.message, vars(error))


def test_an_error_in_other_words_is_the_same_error_beside_the_first() -> None:
    class OverQuota(ToolFailed, OSError):
        """Takes other arguments than its parents, and has another layout."""

        def __init__(self, used: int, limit: int) -> None:
            super().__init__(f"{used} of {limit} used")
            self.used = used

    first = OverQuota(9, 8)
    first.__cause__ = KeyError("quota")
    other = first.with_message("too much")
    assert (str(other), other.used, other.__cause__) == ("tool failed: too much", 9, first.__cause__)
    assert isinstance(other, OverQuota) and first.message == "9 of 8 used"


def test_an_unknown_tool_says_its_name_alone_where_nothing_is_near() -> None:
    assert UnknownTool("x").message == "unknown tool: x"
    assert UnknownTool("x", advice="search for it").message == "unknown tool: x; search for it"


def test_an_output_is_text_and_parts() -> None:
    assert Output("a").parts == (Text("a"),)
    mixed = Output((Text("a"), Image(b"x"), Text("b")))
    assert mixed.text == "a\nb"
    assert mixed.parts == mixed.content


def test_a_quick_value_is_the_same_value() -> None:
    make = make_constructor(ReadPath)
    assert make("x") == ReadPath("x")
    assert type(make("x")) is ReadPath
    with pytest.raises(AttributeError):
        make("x").path = "y"  # type: ignore[misc] - that it is refused is the point


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=4))
def test_a_digest_names_exactly_one_call(arguments: dict[str, Any]) -> None:
    digest = digest_of("t", arguments, [ReadPath("a")])
    assert digest == digest_of("t", dict(reversed(arguments.items())), [ReadPath("a")])
    for other in (
        digest_of("u", arguments, [ReadPath("a")]),
        digest_of("t", {**arguments, "extra": 1}, [ReadPath("a")]),
        digest_of("t", arguments, [WritePath("a")]),
        digest_of("t", arguments, [ReadPath("b")]),
        digest_of("t", arguments, []),
        digest_of("t", arguments, [ReadPath("a")], session_id="s"),
    ):
        assert other != digest


def test_an_answer_counts_for_its_digest_its_call_and_its_time() -> None:
    question = Question("call.1", "t", {}, "d" * 64, "Allow t?", expires_at=100)
    answers = Answers().approve(question, scope="session")
    assert answers.find("d" * 64, "call.1", now=99) == (question.id, Approve(None, "session"))
    assert answers.find("d" * 64, "call.1", now=100) is None
    assert answers.find("d" * 64, "call", now=99) is None
    assert answers.find("e" * 64, "call.1", now=99) is None
    forever = Question("c", "t", {}, "d" * 64, "Allow t?")
    found = Answers().decline(forever, "not now").find("d" * 64, "c", now=1e12)
    assert found is not None
    assert found[1] == Decline("not now")
    assert len(Answers.approving([question, forever])) == 2
