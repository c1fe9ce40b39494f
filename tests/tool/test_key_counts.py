"""A key with two values is refused, whether or not validated values prove that there is none."""

import asyncio
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import count
from random import Random
from typing import Annotated, Any, Literal, TypedDict, cast

import pytest
from hypothesis import example, given, settings, strategies as st
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    RootModel,
    field_validator,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict as DefaultingDict

from callwright import Completed, Executor, Failed, Registry, tool
from callwright.core.errors import InvalidArguments
from callwright.core.json import RepeatedKey, refuse_repeated_keys
from callwright.policy import AllowEverything
from callwright.tool.arguments import from_text, refuse_odd_numbers
from callwright.tool.function import FunctionTool

MANY = {"a": 1, "b": 2, "c": 3, "d": 4}


class Node(BaseModel):
    a: int = 0
    b: str = ":"
    c: "Node | None" = None
    d: "list[Node]" = []
    more: dict[str, int] = MANY


class Pair(TypedDict, total=False):
    a: int
    b: str


class Filled(DefaultingDict):
    a: Annotated[int, Field(default=1)]
    b: Annotated[str, Field(default="x")]


class Adding(BaseModel):
    a: int = 0
    b: int = 0

    @model_validator(mode="before")
    @classmethod
    def add(cls, data: Any) -> Any:
        return {"a": 1, "b": 2, **cast("dict[str, Any]", data)} if isinstance(data, dict) else data


class Replacing(BaseModel):
    a: dict[str, int] = MANY

    @field_validator("a")
    @classmethod
    def replace(cls, value: object) -> dict[str, int]:
        return MANY


class Finishing(BaseModel):
    a: int = 0
    b: int = 0

    def model_post_init(self, context: Any, /) -> None:
        self.a, self.b = 5, 6


class OneAlias(BaseModel):
    first: int = Field(0, validation_alias=AliasChoices("a", "b"))
    a: int = 0


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 0


class Whole(RootModel[dict[str, int]]):
    pass


class Numbers(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    a: float = 0
    b: str = ""
    c: int | str | None = None
    d: list[float] = []
    more: dict[str, int] = {}
    first: Literal["a", ":"] = "a"


@with_config(ConfigDict(extra="allow"))
class OpenDict(DefaultingDict, total=False):
    a: int


class Part(DefaultingDict, total=False):
    a: int


class Around(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: Part = {}
    d: list[Part] = []


class Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")
    a: int = 0


class Lax(BaseModel):
    a: Annotated[str, Field(strict=False, coerce_numbers_to_str=True)] = ""
    b: Decimal = Decimal(0)


class Chosen(BaseModel):
    a: Literal[1, 2, 100000000000000000000000] = 1
    b: Any = None


class Written(BaseModel):
    a: Json[dict[str, int]] = MANY
    b: int = 0


def make_tool(kind: Any) -> FunctionTool:
    async def place(value: Any, size: int = 0, note: str = "") -> str:
        """Place."""
        return repr((value, size, note))

    place.__annotations__["value"] = kind
    return tool(place)


COUNTED: dict[str, Any] = {
    "node": Node,
    "nodes": list[Node],
    "maps": dict[str, dict[str, int]],
    "pair": Pair,
    "any": Any,
    "open": Open,
    "maybe": Node | None,
    "scalars": dict[str, int | str],
    "described": Annotated[dict[str, int], Field(description="A value.")],
}
NOT_COUNTED: dict[str, Any] = {
    "filled": Filled,
    "adding": Adding,
    "replacing": Replacing,
    "finishing": Finishing,
    "alias": OneAlias,
    "root": Whole,
    "written": Written,
    "either": Node | dict[str, int],
    "defaulted": Annotated[dict[str, int], Field(default=MANY)],
}
LOOKED_AT: dict[str, Any] = {
    "numbers": Numbers,
    "number lists": list[Numbers],
    "number maps": dict[str, Numbers],
    "loose": Loose,
}
SEARCHED: dict[str, Any] = {
    "lax": Lax,
    "chosen": Chosen,
    "any": Any,
    "open": Open,
    "open dict": OpenDict,
    "opens": list[Open],
    "around": Around,
}
TOOLS = {name: make_tool(kind) for name, kind in {**COUNTED, **NOT_COUNTED, **LOOKED_AT, **SEARCHED}.items()}
UNUSUAL = ("NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "100000000000000000000000", "-9223372036854775809")


class Writer:
    """Writes random JSON text with the keys of the schemas above: spaced, escaped, and now and then repeated."""

    def __init__(self, seed: int, *, numbers: Sequence[str] = ()) -> None:
        self._random = Random(seed)
        self._repeats = self._random.random() < 0.5
        self._numbers = numbers

    def write_arguments(self) -> str:
        members = [("value", self.write_value(3)), ("size", "7"), ("note", '"{\\"a\\": 1, \\"a\\": 2}"')]
        return self._join(members[: self._random.randint(1, 3)])

    def write_value(self, depth: int) -> str:
        kind = self._random.choice("nnsonl" if depth else "ns")
        if kind == "n":
            return self._write_number()
        if kind == "s":
            return self._random.choice(['":"', '"a"', r'"\"a\": 1"', r'"{\"a\": 1, \"b\"\u003a 2}"', '"{\\"a\\":1}"'])
        if kind == "l":
            return f"[{', '.join(self.write_value(depth - 1) for _ in range(self._random.randint(0, 2)))}]"
        names = self._random.sample(["a", "b", "c", "d", "more", "first"], self._random.randint(0, 3))
        return self._join([(name, self._write_field(name, depth - 1)) for name in names])

    def _write_field(self, name: str, depth: int) -> str:
        """Write a value that often fits `Node`, so that validators accept the whole."""
        if self._random.random() < 0.2:
            return self.write_value(depth)
        return {"a": self._write_number(), "b": '"x:"', "d": "[]", "c": "null"}.get(name, '{"a": 1, "b": 2}')

    def _write_number(self) -> str:
        if self._numbers and self._random.random() < 0.5:
            return self._random.choice(self._numbers)
        return str(self._random.randint(0, 2))

    def _join(self, members: list[tuple[str, str]]) -> str:
        if members and self._repeats and self._random.random() < 0.4:
            name, value = self._random.choice(members)
            again = value if self._random.random() < 0.2 else self._write_field(name, 1)
            members.insert(self._random.randint(0, len(members)), (name, again))
        written = [f"{self._quote(name)}{self._space()}:{self._space()}{value}" for name, value in members]
        return "{" + ",".join(written) + "}"

    def _quote(self, name: str) -> str:
        return f'"{name}"' if self._random.random() < 0.8 else f'"\\u{ord(name[0]):04x}{name[1:]}"'

    def _space(self) -> str:
        return self._random.choice(["", "", " ", "\n\t"])


def is_repeated(text: str) -> bool:
    try:
        refuse_repeated_keys(text)
    except RepeatedKey:
        return True
    return False


def complains(parse: Callable[[str], object], text: str) -> bool:
    """Whether a repeated key is refused; no text with one may be accepted."""
    try:
        parse(text)
    except InvalidArguments as error:
        return "is written twice with different values" in error.detail
    assert not is_repeated(text), text
    return False


@settings(max_examples=400)
@given(seed=st.integers(0, 2**32))
@example(seed=0)
def test_repeated_keys_are_found_in_any_text(seed: int) -> None:
    text = Writer(seed).write_arguments()
    repeated = is_repeated(text)
    assert complains(from_text, text) is repeated
    for made in TOOLS.values():
        assert complains(made.bind, text) or not repeated, text
        assert complains(lambda written, made=made: made.bind(written.encode()), text) or not repeated, text


@pytest.mark.parametrize("name", COUNTED)
def test_keys_of_plain_schemas_are_counted(name: str) -> None:
    assert TOOLS[name].contract.parser.count_keys is not None


@pytest.mark.parametrize("name", NOT_COUNTED)
def test_keys_that_validators_may_add_are_not_counted(name: str) -> None:
    assert TOOLS[name].contract.parser.count_keys is None


def test_defaults_of_a_model_are_not_counted() -> None:
    count_keys = TOOLS["node"].contract.parser.count_keys
    assert count_keys is not None
    text = '{"value": {"a": 1, "c": {"more": {"x": 1}}}, "size": 3}'
    assert count_keys(TOOLS["node"].bind(text).values) == text.count(":") == 6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("node", '{"value": {"a": 1, "a": 2}}'),
        ("node", '{"value": {"c": {"a": 1, "a": 2}, "b": "x"}}'),
        ("nodes", '{"value": [{"a": 1}, {"a": 1, "\\u0061": 2}]}'),
        ("maps", '{"value": {"m": {"a": 1, "a" : 2}}}'),
        ("any", '{"value": [[{"a": {}, "a": []}]]}'),
        ("adding", '{"value": {"a": 1, "a": 2}}'),
        ("replacing", '{"value": {"a": {"x": 1, "x": 2}}}'),
        ("finishing", '{"value": {"a": 1, "a": 2}}'),
        ("alias", '{"value": {"a": 1, "a": 2}}'),
        ("filled", '{"value": {"a": 1, "a": 2}}'),
        ("defaulted", '{"size": 1, "size": 2}'),
        ("written", r'{"value": {"a": "{\"x\"\u003a 1, \"y\"\u003a 2}", "b": 1, "b": 2}}'),
    ],
)
def test_repeated_key_is_refused_with_its_name(name: str, text: str) -> None:
    with pytest.raises(InvalidArguments, match=r'the key "(a|b|x|size)" is written twice'):
        TOOLS[name].bind(text)


def test_colons_and_quotes_in_strings_are_no_keys() -> None:
    text = json.dumps({"value": {"a": 1, "b": '{"a": 1, "a": 2}::'}, "note": '"a": "a":'})
    assert TOOLS["node"].bind(text).values["value"].b == '{"a": 1, "a": 2}::'


def is_unusual(text: str) -> bool:
    try:
        refuse_odd_numbers(text)
    except InvalidArguments:
        return True
    return False


@settings(max_examples=400)
@given(seed=st.integers(0, 2**32))
def test_unusual_numbers_are_found_in_any_text(seed: int) -> None:
    text = Writer(seed, numbers=(*UNUSUAL, "1e3", "9223372036854775808", "1.5")).write_arguments()
    if not is_unusual(text):
        return
    for name in (*LOOKED_AT, *SEARCHED, "node", "nodes", "open", "adding"):
        for written in (text, text.encode()):
            with pytest.raises(InvalidArguments):
                TOOLS[name].bind(written)


@pytest.mark.parametrize("number", UNUSUAL)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numbers", '{"a": %s}'),
        ("numbers", '{"b": %s}'),
        ("numbers", '{"c": %s}'),
        ("numbers", '{"d": [1, %s]}'),
        ("numbers", '{"more": {"x": %s}}'),
        ("numbers", '{"b": "::", "a": %s}'),
        ("number lists", '[{"a": 1}, {"a": %s}]'),
        ("number maps", '{"x": {"a": %s}}'),
        ("node", '{"d": [{"a": %s}]}'),
        ("lax", '{"a": %s}'),
        ("lax", '{"b": %s}'),
        ("chosen", '{"a": %s}'),
        ("chosen", '{"b": [%s]}'),
        ("any", '{"x": [%s]}'),
        ("open", '{"unknown": %s}'),
        ("opens", '[{"a": 1, "unknown": [%s]}]'),
        ("open dict", '{"unknown": %s}'),
        ("around", '{"a": {"unknown": %s}}'),
        ("around", '{"d": [{"a": 1, "unknown": %s}]}'),
        ("loose", '{"unknown": %s}'),
        ("loose", '{"a": 1, "unknown": [{"a": %s}]}'),
    ],
)
def test_unusual_number_is_refused_wherever_it_stands(name: str, value: str, number: str) -> None:
    text = '{"value": ' + value % number + "}"
    assert is_unusual(text)
    for written in (text, text.encode()):
        with pytest.raises(InvalidArguments, match=r"finite number|at most 64 bits"):
            TOOLS[name].bind(written)


@pytest.mark.parametrize("number", ["0", "-1.5", "1e3", "9223372036854775808", "18446744073709551615", "1e300"])
def test_usual_number_is_accepted_by_a_model(number: str) -> None:
    assert TOOLS["numbers"].bind(f'{{"value": {{"a": {number}}}}}').values["value"].a == float(number)


def test_text_is_searched_for_numbers_where_the_values_may_not_show_them() -> None:
    assert all(TOOLS[name].contract.parser.sees_numbers for name in (*LOOKED_AT, "node", "maybe"))
    assert not any(TOOLS[name].contract.parser.sees_numbers for name in (*SEARCHED, *NOT_COUNTED))


def describe_bound(made: FunctionTool, text: str) -> str | None:
    """Return what a call would be given; None if its arguments are refused."""
    try:
        values = made.bind(text).values
    except InvalidArguments:
        return None
    return repr((values["value"], values.get("size", 0), values.get("note", "")))


def make_executor(made: FunctionTool) -> Executor:
    """Return an executor that has made a call of the tool, so that further ones take the fast path."""
    executor = Executor(Registry(made), AllowEverything(), repairs="off")
    texts = (Writer(seed).write_arguments() for seed in count())
    asyncio.run(executor.run("place", next(text for text in texts if describe_bound(made, text))))
    return executor


QUICK = {name: make_executor(TOOLS[name]) for name in (*LOOKED_AT, "node", "nodes", "maybe", "maps", "any", "alias")}


@settings(max_examples=400)
@given(seed=st.integers(0, 2**32))
def test_fast_call_is_given_what_bind_accepts(seed: int) -> None:
    text = Writer(seed, numbers=(*UNUSUAL, "1e3", "9223372036854775808", "1.5")).write_arguments()

    async def compare() -> None:
        for name, executor in QUICK.items():
            outcome = await executor.run("place", text)
            bound = describe_bound(TOOLS[name], text)
            assert outcome.text == bound if isinstance(outcome, Completed) else bound is None, (name, text)

    asyncio.run(compare())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("node", '{"a": 1, "a": 2}'),
        ("node", '{"unknown": 1}'),
        ("numbers", '{"a": 1e999}'),
        ("numbers", '{"b": "::", "a": NaN}'),
        ("number lists", '[{"a": 1}, {"a": 100000000000000000000000}]'),
    ],
)
def test_fast_call_refuses_what_values_do_not_show(name: str, value: str) -> None:
    outcome = asyncio.run(QUICK[name].run("place", f'{{"value": {value}}}'))
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, InvalidArguments)
