"""Arguments as models write them: what is accepted, what is repaired, and the error messages."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel, Field, HttpUrl, Json, field_validator

from callwright import Arguments, InvalidArguments, SchemaTool, ToolContext, ToolSpec, TypedTool, tool
from callwright.tool.base import Tool
from callwright.tool.typed import describe


class Inner(BaseModel):
    n: int
    note: str = ""


@dataclass
class Spot:
    x: int
    label: str = ""


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(Arguments):
    count: int = 0
    inner: Inner | None = None
    anything: Any = None


class Typed(TypedTool[Everything]):
    spec = describe("typed", "Take arguments.")

    async def run(self, arguments: Everything, context: ToolContext) -> object:
        return arguments


@tool
def tight(count: int = 0, name: str = "", flag: bool = False, ratio: float = 0.0, tags: list[str] | None = None) -> str:
    """Take plain arguments."""
    return f"{count}{name}{flag}{ratio}{tags}"


@tool
def written(numbers: Json[list[int]] | None = None, link: HttpUrl | None = None) -> str:
    """Take JSON in a string, and an address."""
    return f"{numbers}{link}"


@tool
def loose(
    inner: Inner | None = None,
    anything: Any = None,
    items: list[Inner] | None = None,
    spot: Spot | None = None,
    count: int | None = None,
) -> str:
    """Take nested arguments."""
    return f"{inner}{anything}{items}{spot}{count}"


@tool
def choosy(
    mode: Literal["fast", "slow"] = "fast",
    color: Color = Color.RED,
    either: int | bool | None = None,
    place: Inner | int = 0,
    table: dict[str, int] | None = None,
) -> str:
    """Choose."""
    return f"{mode}{color}{either}{place}{table}"


def _echo(arguments: Any) -> Any:
    return arguments


handwritten = SchemaTool(
    ToolSpec(
        "handwritten",
        "Take anything in an object.",
        {"type": "object", "properties": {"count": {"type": "integer"}, "inner": {"type": "object"}}},
    ),
    _echo,
)
TOOLS: list[Tool] = [tight, loose, choosy, handwritten, Typed()]


def refusal(made: Tool, arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        made.bind(arguments)
    message = caught.value.message
    assert message.startswith("invalid arguments: ")
    assert len(message) < 2000
    message.encode()
    assert str(caught.value) == message
    assert caught.value.code == "invalid_input"
    return message.removeprefix("invalid arguments: ")


@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.spec.name)
@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "nope", "{'a': 1}", '{"count": }', '{"count": 1,}', b"\xff\xfe", b'{"a": "\xff"}', '"\ud800"'],
)
def test_text_that_is_not_json_is_refused(made: Tool, text: str | bytes) -> None:
    assert refusal(made, text)


@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.spec.name)
@pytest.mark.parametrize("value", ["null", "[]", "5", '"text"', "true", "[{}]"])
def test_json_that_is_not_an_object_is_refused(made: Tool, value: str) -> None:
    assert "arguments: expected an object, got" in refusal(made, value)


@pytest.mark.parametrize(
    ("made", "arguments", "said"),
    [
        (tight, {"count": "many"}, 'count: expected an integer, got "many" (string)'),
        (tight, {"flag": "yes"}, 'flag: expected a boolean, got "yes" (string)'),
        (tight, {"flag": 1}, "flag: expected a boolean, got 1 (integer)"),
        (tight, {"name": 5}, "name: expected a string, got 5 (integer)"),
        (tight, {"count": None}, "count: expected an integer, got null"),
        (tight, {"count": 5.5}, "count: expected an integer, got 5.5 (number)"),
        (tight, {"count": True}, "count: expected an integer, got true (boolean)"),
        (tight, {"tags": ["a", 2]}, "tags.1: expected a string, got 2 (integer)"),
        (tight, {"tags": "a"}, 'tags: expected an array, got "a" (string)'),
        (tight, {"tags": {"a": 1}}, 'tags: expected an array, got {"a":1} (object)'),
        (tight, {"cuont": 1}, "cuont: unknown field; did you mean count?"),
        (tight, {"zzz": 1}, "zzz: unknown field; known are count, name, flag, ratio, tags"),
        (
            tight,
            {"count": "x", "name": 1},
            'count: expected an integer, got "x" (string); name: expected a string, got',
        ),
        (loose, {"inner": {}}, "inner.n: missing, and it is required"),
        (loose, {"inner": {"n": 1, "nn": 2}}, "inner.nn: unknown field"),
        (loose, {"spot": {"x": 1, "y": 2}}, "spot.y: unknown field"),
        (loose, {"spot": {}}, "spot.x: missing, and it is required"),
        (loose, {"items": [{"n": 1}, {"n": "x"}]}, 'items.1.n: expected an integer, got "x" (string)'),
        (loose, {"inner": 5}, "inner: expected an object, got 5 (integer)"),
        (choosy, {"mode": "medium"}, "mode: expected 'fast' or 'slow', got \"medium\" (string)"),
        (choosy, {"color": "green"}, "color: expected 'red' or 'blue', got \"green\" (string)"),
        (choosy, {"either": "x"}, 'either: expected an integer or a boolean, got "x" (string)'),
        (choosy, {"place": "x"}, 'place: expected an object or an integer, got "x" (string)'),
        (choosy, {"place": {"m": 1}}, "place.n: missing, and it is required"),
        (choosy, {"table": {"a": "x"}}, 'table.a: expected an integer, got "x" (string)'),
        (written, {"numbers": "nope"}, "numbers: invalid JSON: expected"),
        (written, {"numbers": 5}, "numbers: JSON input should be string"),
        (written, {"link": "ftp://a"}, "link: URL scheme should be 'http'"),
        (handwritten, {"count": "5"}, 'count: "5" is not of type "integer"'),
        (Typed(), {"inner": {"n": "x"}}, 'inner.n: expected an integer, got "x" (string)'),
    ],
)
def test_error_names_field_expected_type_and_value(made: Tool, arguments: Any, said: str) -> None:
    assert said in refusal(made, arguments)
    assert said in refusal(made, json.dumps(arguments))


def test_a_missing_argument_is_named() -> None:
    @tool
    def read(path: str, encoding: str) -> str:
        """Read."""
        return path + encoding

    assert refusal(read, {"path": "x"}) == "encoding: missing, and it is required"
    assert "path: missing" in refusal(read, "{}")


def test_custom_validator_message_is_kept() -> None:
    class Even(Arguments):
        n: int
        short: str = Field("", max_length=3)

        @field_validator("n")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even; try the next number")
            return value

    class EvenTool(TypedTool[Even]):
        spec = describe("even", "Take an even number.")

    assert refusal(EvenTool(), {"n": 3}) == "n: must be even; try the next number, got 3 (integer)"
    assert "short: string should have at most 3 characters" in refusal(EvenTool(), {"n": 2, "short": "long"})


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (tight, '{"ratio": NaN}'),
        (tight, '{"ratio": Infinity}'),
        (tight, '{"ratio": -Infinity}'),
        (tight, '{"ratio": 1e400}'),
        (tight, {"ratio": float("nan")}),
        (tight, {"ratio": float("-inf")}),
        (tight, {"count": 2**64}),
        (tight, {"count": -(2**63) - 1}),
        (tight, '{"count": 1e30}'),
        (tight, f'{{"count": {"9" * 5000}}}'),
        (tight, {"count": "9" * 30}),
        (loose, '{"anything": NaN}'),
        (loose, '{"anything": [{"deep": 1e999}]}'),
        (loose, {"anything": {"a": [2**70]}}),
        (loose, {"inner": {"n": 2**64}}),
        (loose, {"inner": {"n": str(2**64)}}),
        (loose, {"inner": json.dumps({"n": 2**64})}),
        (loose, '{"inner": {"n": 5e300}}'),
        (loose, json.dumps(json.dumps({"anything": 2**70}))),
        (handwritten, '{"other": NaN}'),
        (handwritten, '{"other": [1e400]}'),
        (handwritten, {"other": 10**400}),
        (handwritten, {"inner": {"a": 2**64}}),
        (Typed(), {"anything": 2**64}),
        (Typed(), '{"anything": NaN}'),
    ],
)
def test_nan_and_integers_beyond_64_bits_are_refused(made: Tool, arguments: Any) -> None:
    refusal(made, arguments)


def test_the_longest_integers_that_fit_are_accepted() -> None:
    for number in (2**64 - 1, -(2**63)):
        assert tight.bind({"count": number}).values == {"count": number}
        assert loose.bind({"anything": [number]}).values == {"anything": [number]}
        assert handwritten.bind({"count": number}).arguments == {"count": number}


@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.spec.name)
def test_lone_surrogates_are_refused_in_text_and_in_objects(made: Tool) -> None:
    for arguments in ('{"name": "\ud800"}', '{"name": "\\ud800"}', {"name": "\ud800"}, {"\udfff": 1}):
        refusal(made, arguments)


@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.spec.name)
def test_megabytes_of_nesting_are_refused(made: Tool) -> None:
    size = 2_000_000
    refusal(made, "[" * size)
    refusal(made, '{"anything":' * (size // 12))
    refusal(made, '{"anything":' + "[" * (size // 2) + "]" * (size // 2) + "}")
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    refusal(made, {"anything": deep})


def test_ten_megabyte_string_is_accepted() -> None:
    long = "x" * 10_000_000
    assert tight.bind({"name": long}).values == {"name": long}
    assert tight.bind(json.dumps({"name": long})).values == {"name": long}


@pytest.mark.slow
def test_a_huge_argument_does_not_become_a_huge_message() -> None:
    huge = "x" * 1_000_000
    for arguments in (
        {"count": huge},
        {huge: 1},
        {"count": {huge: huge}},
        {"tags": [1] * 200_000},
        {str(number): 1 for number in range(5000)},
    ):
        refusal(tight, arguments)
    for arguments in ({"inner": {"n": huge}}, {"items": [{"n": "x"}] * 50_000}, {"inner": {huge: 1}}):
        refusal(loose, arguments)
        refusal(handwritten, {"count": huge})
    assert "tags.0: expected a string, got 1 (integer)" in refusal(tight, {"tags": [1] * 200_000})


@pytest.mark.parametrize(
    "text",
    [
        '{"count": 1, "count": 2}',
        b'{"count": 1, "count": 2}',
        ' {"count" : 1 , "count" : 2}',
        '{"count": 1, "c\\u006funt": 2}',
        '{"count": 1, "count": true}',
        '{"count": 1, "count": 1.0}',
        r'"{\"count\": 1, \"count\": 2}"',
    ],
)
def test_key_with_two_values_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidArguments, match='the key "count" is written twice with different values; write it once'):
        tight.bind(text)


def test_nested_key_with_two_values_is_refused() -> None:
    @tool
    async def place(spot: dict[str, int]) -> str:
        """Place."""
        return str(spot)

    for text in ('{"spot": {"x": 1, "x": 2}}', r'{"spot": "{\"x\": 1, \"x\": 2}"}'):
        with pytest.raises(InvalidArguments, match='the key "x" is written twice'):
            place.bind(text)


def test_key_with_the_same_value_twice_has_one_reading() -> None:
    assert tight.bind('{"count": 2, "count": 2}').values == {"count": 2}


def test_object_with_non_json_value_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["anything"] = circle
    for arguments in ({"anything": object()}, circle):
        assert "cannot be written as JSON" in refusal(loose, arguments)


def test_any_mapping_is_an_arguments_object() -> None:
    inner = MappingProxyType({"n": 1})
    assert loose.bind(MappingProxyType({"inner": inner})).values == {"inner": Inner(n=1)}  # type: ignore[dict-item] - a mapping


@pytest.mark.parametrize(
    ("made", "arguments", "values"),
    [
        (tight, {"count": "5"}, {"count": 5}),
        (tight, {"count": " 5 "}, {"count": 5}),
        (tight, {"count": 5.0}, {"count": 5}),
        (tight, {"count": -0.0}, {"count": 0}),
        (tight, {"count": "5.0"}, None),
        (tight, {"count": 2.0**53}, None),
        (tight, {"flag": "true"}, {"flag": True}),
        (tight, {"ratio": "1.5"}, {"ratio": 1.5}),
        (tight, {"ratio": 2}, {"ratio": 2.0}),
        (tight, {"tags": '["a"]'}, {"tags": ["a"]}),
        (tight, {"tags": "null"}, {"tags": None}),
        (tight, {"name": "5"}, {"name": "5"}),
        (tight, {"name": "{}"}, {"name": "{}"}),
        (tight, {"name": "null"}, {"name": "null"}),
        (tight, json.dumps('{"count": 5}'), {"count": 5}),
        (tight, json.dumps('{"count": "5"}'), {"count": 5}),
        (loose, {"inner": '{"n": 1}'}, {"inner": Inner(n=1)}),
        (loose, {"inner": {"n": "1", "note": "2"}}, {"inner": Inner(n=1, note="2")}),
        (loose, {"items": '[{"n": 1}]'}, {"items": [Inner(n=1)]}),
        (loose, {"items": [{"n": "1"}, {"n": 2.0}]}, {"items": [Inner(n=1), Inner(n=2)]}),
        (loose, {"anything": "5"}, {"anything": "5"}),
        (loose, {"count": "5", "anything": "5"}, {"count": 5, "anything": "5"}),
        (choosy, {"either": "5"}, {"either": 5}),
        (choosy, {"place": '{"n": 1}'}, {"place": Inner(n=1)}),
        (choosy, {"table": {"a": "1"}}, {"table": {"a": 1}}),
    ],
)
def test_unambiguous_mistake_is_repaired(made: Any, arguments: Any, values: dict[str, Any] | None) -> None:
    if values is None:
        refusal(made, arguments)
        return
    assert made.bind(arguments).values == values
    if not isinstance(arguments, str):
        assert made.bind(json.dumps(arguments)).values == values


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (tight, {"flag": "yes"}),
        (tight, {"flag": "True"}),
        (tight, {"flag": "1"}),
        (tight, {"flag": 0}),
        (tight, {"count": "five"}),
        (tight, {"count": "0x10"}),
        (tight, {"count": "1_000"}),
        (tight, {"count": ""}),
        (tight, {"count": '"5"'}),
        (tight, {"count": [5]}),
        (tight, {"count": "null"}),
        (tight, {"name": None}),
        (tight, {"name": 1.0}),
        (tight, {"name": ["a"]}),
        (tight, {"tags": "a,b"}),
        (tight, {"tags": "a"}),
        (tight, {"Count": 1}),
        (tight, json.dumps(json.dumps('{"count": 5}'))),
        (tight, [{"count": 1}]),
        (choosy, {"mode": "FAST"}),
        (choosy, {"mode": 0}),
        (choosy, {"color": "RED"}),
        (choosy, {"table": [["a", 1]]}),
        (loose, {"inner": [1]}),
        (handwritten, {"count": "5"}),
        (handwritten, json.dumps('{"count": 5}')),
        (handwritten, {"inner": "{}"}),
    ],
)
def test_nothing_else_is_repaired(made: Tool, arguments: Any) -> None:
    refusal(made, arguments)


def test_repaired_arguments_must_be_valid() -> None:
    said = refusal(tight, {"count": "5", "name": 1})
    assert said == 'count: expected an integer, got "5" (string); name: expected a string, got 1 (integer)'


async def test_body_does_not_run_for_invalid_arguments() -> None:
    ran: list[int] = []

    @tool
    async def act(count: int) -> None:
        """Act."""
        ran.append(count)

    for bad in ("", "{}", '{"count": "x"}', '{"count": NaN}', b"\xff"):
        with pytest.raises(InvalidArguments):
            act.bind(bad)
    assert ran == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(["count", "name", "flag", "tags", "inner", "anything", "items", "spot", "mode", "place", "x"])


def only_invalid_arguments(bind: Callable[[Any], object], arguments: Any) -> None:
    try:
        bind(arguments)
    except InvalidArguments as error:
        assert error.message.startswith("invalid arguments: ")
        assert len(error.message) < 2000
        error.message.encode()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary() | st.text(st.characters()) | st.dictionaries(NAMES, JSON, max_size=4) | JSON)
def test_only_invalid_arguments_is_raised(arguments: Any) -> None:
    for made in TOOLS:
        only_invalid_arguments(made.bind, arguments)
        if not isinstance(arguments, (str, bytes)):
            only_invalid_arguments(made.bind, json.dumps(arguments))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_objects_and_their_text_validate_alike(arguments: Any) -> None:
    def verdict(made: Tool, given_arguments: Any) -> bool:
        try:
            made.bind(given_arguments)
        except InvalidArguments:
            return False
        return True

    for made in TOOLS:
        assert verdict(made, arguments) == verdict(made, json.dumps(arguments))
