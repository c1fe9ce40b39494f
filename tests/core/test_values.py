"""Specs, errors, outputs, digests and answers."""

import inspect
import pickle
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from callwright import (
    Annotations,
    Answers,
    Cancelled,
    Crashed,
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
from callwright.core import _fast
from callwright.core._fast import frozen, make_constructor, slotted
from callwright.core.calls import ToolCall, digest_of
from callwright.core.messages import AssistantMessage
from callwright.core.spec import check_name

SCHEMA: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize("name", ["a", "fs.read", "mcp__github__search", "x-1", "A" * 128])
def test_valid_name_is_kept(name: str) -> None:
    assert check_name(name) == name
    assert ToolSpec(name, "Act.", SCHEMA, aliases=(name,)).name == name


@pytest.mark.parametrize("name", ["", "a b", "é", "a/b", "a\n", "x" * 129, "a:b"])
def test_invalid_name_raises(name: str) -> None:
    with pytest.raises(UsageError, match="is not valid: use 1 to 128 letters"):
        check_name(name)


@pytest.mark.parametrize("name", ["", "a\n", "a\x00", "a\u202eb"])
def test_spec_name_must_be_printable(name: str) -> None:
    assert ToolSpec("Tool with spaces", "Act.", SCHEMA).name == "Tool with spaces"
    with pytest.raises(UsageError, match="is empty or has unprintable characters"):
        ToolSpec(name, "Act.", SCHEMA)


@pytest.mark.parametrize("description", ["", "  \n"])
def test_spec_needs_a_description(description: str) -> None:
    with pytest.raises(UsageError, match="'a' has no description"):
        ToolSpec("a", description, SCHEMA)


def test_parts_of_a_spec_in_the_wrong_place_are_refused() -> None:
    wrong: list[tuple[Any, Any, Any, str]] = [
        (None, "Act.", SCHEMA, "expected str as name, got None"),
        ("a", None, SCHEMA, "expected str as description, got None; say what the tool 'a' does"),
        ("a", "Act.", "{}", "expected Mapping as input_schema, got '{}'; write"),
    ]
    for name, description, schema, said in wrong:
        with pytest.raises(UsageError, match=said):
            ToolSpec(name, description, schema)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("output_schema", Annotations(), "expected Mapping as output_schema of the tool 'a', got Annotations"),
        ("annotations", Effect.READ, "expected Annotations as annotations of the tool 'a'"),
        ("limits", 5, r"expected Limits as limits of the tool 'a', got 5; write Limits\(seconds=10\)"),
        ("aliases", "cat", r"the tool 'a': aliases must be several names, as in aliases=\['cat'\]"),
        ("group", None, "expected str as group of the tool 'a', got None"),
        ("search_hint", 5, "expected str as search_hint"),
        ("metadata", [1], "expected Mapping as metadata"),
    ],
)
def test_field_of_a_spec_of_another_kind_is_refused(field: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ToolSpec("a", "Act.", SCHEMA, **{field: value})


@pytest.mark.parametrize("effect", ["read", 0, None])
def test_effect_that_is_no_effect_is_refused(effect: Any) -> None:
    with pytest.raises(UsageError, match=r"expected Effect as the effect of annotations, got .*; write Annotations"):
        Annotations(effect)


def test_spec_is_deeply_immutable() -> None:
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


def test_effects_are_ordered_and_defaults_are_cautious() -> None:
    assert Effect.READ < Effect.WRITE < Effect.DESTROY
    assert Annotations() == Annotations(Effect.WRITE, False, None, False, False, False)


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": float("nan")}, {"output_chars": 0}, {"concurrency": 0}])
def test_limits_that_allow_nothing_raise(limits: dict[str, Any]) -> None:
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
def test_errors_keep_code_and_message_when_pickled(error: ToolError, code: str, text: str) -> None:
    assert (error.code, str(error)) == (code, text)
    assert error.is_transient == (code == "transient")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), back.message, vars(back)) == (type(error), error.message, vars(error))


def test_with_message_copies_the_error() -> None:
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


def test_unknown_tool_without_near_names_has_no_hint() -> None:
    assert UnknownTool("x").message == "unknown tool: x"
    assert UnknownTool("x", advice="search for it").message == "unknown tool: x; search for it"


def test_output_as_text_and_as_parts() -> None:
    assert Output("a").parts == (Text("a"),)
    mixed = Output((Text("a"), Image(b"x"), Text("b")))
    assert mixed.text == "a\nb"
    assert mixed.parts == mixed.content


@pytest.mark.parametrize("kind", [tuple, list])
def test_calls_of_a_message_are_a_tuple(kind: type) -> None:
    first, second = ToolCall("1", "read", "{}"), ToolCall("2", "read", "{}")
    assert AssistantMessage(kind((first, second))).calls == (first, second)
    assert AssistantMessage(kind((Text("both:"), first, second))).calls == (first, second)
    assert AssistantMessage(kind((Text("none"),))).calls == AssistantMessage(kind(())).calls == ()


def test_fast_constructor_makes_the_same_value() -> None:
    make = make_constructor(ReadPath)
    assert make("x") == ReadPath("x")
    assert type(make("x")) is ReadPath
    with pytest.raises(AttributeError):
        make("x").path = "y"  # type: ignore[misc] - that it is refused is the point


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=4))
def test_digest_identifies_one_call(arguments: dict[str, Any]) -> None:
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


def test_question_matches_earlier_id_of_same_call_only() -> None:
    question = Question("call.1", "t", {}, "d" * 64, "Allow t?", expires_at=100)
    assert question.matches(question.id, now=99) and not question.matches(question.id, now=100)
    for other in (
        Question("call", "t", {}, "d" * 64, "Allow t?"),
        Question("call.1", "t", {}, "e" * 64, "Allow t?"),
    ):
        assert not question.matches(other.id, now=99)
    assert not question.matches("", now=99) and not question.matches(f"{'d' * 64}.call.1.x.y", now=99)
    forever = Question("c", "t", {}, "d" * 64, "Allow t?")
    assert forever.matches(forever.id, now=1e12) and not forever.is_expired(1e12)
    assert len(Answers.approving([question, forever])) == 2


@pytest.mark.parametrize("given", [None, "abc", Question("c", "t", {}, "d" * 64, "Allow t?"), ["abc"]])
def test_approving_something_else_than_questions_says_what_to_write(given: Any) -> None:
    with pytest.raises(UsageError, match=r"expected questions, got .*; write Answers.approving\(result.questions\)"):
        Answers.approving(given)
    if not isinstance(given, Question):
        for answer in (Answers().approve, Answers().decline):
            with pytest.raises(UsageError, match=r"expected Question as the question, got .*; pass one of result"):
                answer(given)


def test_frozen_class_behaves_like_a_frozen_dataclass() -> None:
    assert str(inspect.signature(_Plain)) == str(inspect.signature(_Quick))
    assert [each.name for each in fields(_Plain)] == [each.name for each in fields(_Quick)]
    assert _Plain.__match_args__ == _Quick.__match_args__ and not hasattr(_Quick("a"), "__dict__")
    plain, quick = _Plain("a", items=(3,)), _Quick("a", items=(3,))
    assert repr(quick) == repr(plain).replace("_Plain", "_Quick")
    assert hash(quick) == hash(plain) and quick != plain and quick == _Quick("a", items=(3,)) != _Quick("a")
    assert replace(quick, count=2) == _fast.replace(quick, count=2) == _Quick("a", 2, (3,)) != quick
    assert quick.__replace__(count=2) == _Quick("a", 2, (3,))  # type: ignore[attr-defined] - for copy.replace
    assert asdict(quick) == asdict(plain) and _Quick("a").items == _Plain("a").items == ()
    for copied in (copy(quick), deepcopy(quick), pickle.loads(pickle.dumps(quick))):
        assert copied == quick and type(copied) is _Quick and copied.items == (3,)
    with pytest.raises(ValueError, match="count"):
        _fast.replace(quick, count=-1)


def test_frozen_class_refuses_changes() -> None:
    quick = _Quick("a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        quick.name = "b"  # type: ignore[misc] - that it is refused is the point
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del quick.name  # type: ignore[misc] - as above
    with pytest.raises(FrozenInstanceError):
        quick.other = 1  # type: ignore[attr-defined] - as above
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        _Quick()  # type: ignore[call-arg] - as above
    with pytest.raises(ValueError, match="count"):
        _Quick("a", -1)


def test_frozen_class_keeps_its_own_methods() -> None:
    @frozen
    class Folded:  # noqa: PLW1641 - the hash that a dataclass would get
        """Compares without case."""

        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Folded) and self.text.lower() == other.text.lower()

        def __repr__(self) -> str:
            return f"<{self.text}>"

    assert Folded("A") == Folded("a") and repr(Folded("A")) == "<A>"
    assert hash(Folded("A")) == hash(("A",))  # as dataclass does


def test_frozen_class_can_be_inherited_from() -> None:
    @dataclass(frozen=True)
    class Wider(_Quick):
        size: int = 0

    wider = Wider("a", size=3)
    assert (wider.name, wider.size) == ("a", 3) and wider != Wider("a", size=4)
    assert repr(wider).endswith("size=3)") and pickle.loads(pickle.dumps(Wide("a", size=3))) == Wide("a", size=3)
    assert _fast.replace(wider, size=4) == Wider("a", size=4)
    with pytest.raises(FrozenInstanceError):
        wider.name = "b"  # type: ignore[misc] - that it is refused is the point


def test_frozen_class_makes_what_it_needs_once() -> None:
    @frozen
    class Late:
        text: str = ""

        def __init__(self) -> None:
            object.__setattr__(self, "text", "own")

    class Child(Late):
        def __init__(self) -> None:
            super().__init__()

    assert Child().text == "own"
    first = fields(Child)
    assert vars(Late)["__dataclass_fields__"] == {"text": first[0]} and fields(Late)[0] is first[0]

    class Quicker(_Quick):
        def __init__(self, name: str) -> None:
            super().__init__(name, count=7)

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

        def __hash__(self) -> int:
            return super().__hash__()

    assert Quicker("a") == Quicker("a") != _Quick("a", 7) and hash(Quicker("a")) == hash(_Quick("a", 7))
    with pytest.raises(FrozenInstanceError):
        Quicker("a").name = "b"  # type: ignore[misc] - that it is refused is the point
    Quicker("a").other = 1  # type: ignore[attr-defined] - a subclass may have more


@given(
    args=st.lists(st.integers(0, 3), max_size=4),
    named=st.dictionaries(st.sampled_from(["name", "count", "items", "other"]), st.integers(0, 3)),
)
def test_first_instances_are_filled_like_the_later_ones(args: list[int], named: dict[str, int]) -> None:
    first, later = _define_example(), _define_example()
    assert list(inspect.signature(later).parameters) == ["name", "count", "items"]  # compiles its __init__
    assert _make(first, args, named) == _make(later, args, named)
    for _ in range(20):
        first(1)
    assert inspect.isfunction(vars(first)["__init__"]) and inspect.isfunction(vars(later)["__init__"])


def _define_example() -> type[Any]:
    class Example:
        name: int
        count: int = 1
        items: Sequence[int] = _fast.field(default_factory=tuple[int])

        def __post_init__(self) -> None:
            if self.name == 3:
                raise ValueError("three")

    return frozen(Example)


def _make(kind: type[Any], args: list[int], named: dict[str, int]) -> str:
    try:
        return repr(kind(*args, **named))
    except (TypeError, ValueError) as error:
        return str(error)


def test_slotted_class_may_change_and_equals_only_itself() -> None:
    @slotted
    class Entry:
        name: str
        places: list[int] = _fast.field(default_factory=list[int])

    first, second = Entry("a"), Entry("a")
    first.name = "b"
    assert repr(first).endswith("Entry(name='b', places=[])") and first.places is not second.places
    assert first != Entry("b") and hash(first) == object.__hash__(first) and copy(first).name == "b"
    assert replace(first, name="c").name == "c" and not hasattr(first, "__dict__")
    with pytest.raises(AttributeError):
        first.other = 1  # type: ignore[attr-defined] - that it is refused is the point

    @dataclass(slots=True)
    class Wider(Entry):  # a dataclass that may change inherits only from one that may
        size: int = 0

    assert Wider("a", size=2).size == 2


def test_frozen_refuses_what_it_does_not_support() -> None:
    with pytest.raises(TypeError, match="inherits from a dataclass"):
        frozen(type("Narrow", (_Plain,), {}))
    with pytest.raises(TypeError, match="unusual fields"):
        frozen(type("Odd", (), {"__annotations__": {"a": int}, "a": field(default=1, kw_only=True)}))
    for annotation in (ClassVar[int], ClassVar, "ClassVar[int]", "typing.ClassVar"):
        with pytest.raises(TypeError, match="unusual fields"):
            frozen(type("Shared", (), {"__annotations__": {"a": annotation}, "a": 1}))()
    with pytest.raises(ValueError, match="mutable default"):
        frozen(type("Open", (), {"__annotations__": {"a": list}, "a": []}))()


@dataclass(frozen=True, slots=True)
class _Plain:
    """An example, defined by the standard library."""

    name: str
    count: int = 1
    items: Sequence[int] = field(default_factory=tuple[int])

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count")


@frozen
class _Quick:
    """The same example."""

    name: str
    count: int = 1
    items: Sequence[int] = _fast.field(default_factory=tuple[int])

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count")


@dataclass(frozen=True)
class Wide(_Quick):
    """Inherits from a frozen class, and adds a field that only its own description knows."""

    size: int = field(default=0, kw_only=True)
