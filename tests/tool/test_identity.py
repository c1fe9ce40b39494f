"""Tools that are the same for an approval, and tools that only look alike."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from callwright import Annotations, Effect, SchemaTool, ToolContext, ToolSpec, TypedTool, tool
from callwright.core.access import Access, ReadPath, WritePath
from callwright.registry.compose import RenamedTool
from callwright.registry.visibility import DeferrableTool
from callwright.tool.base import Tool
from callwright.tool.identity import fingerprint, is_same_tool

SPEC = ToolSpec("send", "Send it.", {"type": "object"})


def handler(place: object, *, kind: str = "a") -> Callable[..., Any]:
    async def handle(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"{place}{kind}"

    return handle


def other_handler(place: object) -> Callable[..., Any]:
    async def handle(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"{place}!"

    return handle


def reads(arguments: Mapping[str, Any]) -> list[Access]:
    return [ReadPath("/w/a")]


def writes(arguments: Mapping[str, Any]) -> list[Access]:
    return [WritePath("/w/a")]


async def send_partial(place: object, arguments: dict[str, Any], context: ToolContext) -> str:
    return f"{place}"


class Sender:
    """Has a handler as a method."""

    async def send(self, arguments: dict[str, Any], context: ToolContext) -> str:
        return "sent"

    async def drop(self, arguments: dict[str, Any], context: ToolContext) -> str:
        return "dropped"


class Loud(Sender):
    """Another class with the same method."""


def looped() -> Callable[..., Any]:
    """A function that refers to itself, without an end."""

    async def handle(arguments: dict[str, Any], context: ToolContext) -> str:
        return str(handle)

    return handle


ALIKE: list[Callable[[], SchemaTool]] = [
    lambda: SchemaTool(SPEC, handler("a")),
    lambda: SchemaTool(SPEC, handler(("a", 1, None, b"x", 2.5, True))),
    lambda: SchemaTool(SPEC, handler({"b": 1, "a": [2, {"c"}]})),
    lambda: SchemaTool(SPEC, handler(frozenset({"x", "y", "z"}))),
    lambda: SchemaTool(SPEC, handler(object())),
    lambda: SchemaTool(SPEC, Sender().send),
    lambda: SchemaTool(SPEC, partial(send_partial, "a")),
    lambda: SchemaTool(SPEC, looped()),
    lambda: SchemaTool(SPEC, handler("a"), accesses=reads),
]


@pytest.mark.parametrize("make", ALIKE)
def test_tool_made_again_has_the_same_fingerprint(make: Callable[[], SchemaTool]) -> None:
    assert fingerprint(make()) == fingerprint(make())


def test_every_difference_changes_the_fingerprint() -> None:
    tools: list[Tool] = [make() for make in ALIKE]
    tools += [
        SchemaTool(replace(SPEC, description="Send it now."), handler("a")),
        SchemaTool(replace(SPEC, metadata={"server": "other"}), handler("a")),
        SchemaTool(replace(SPEC, input_schema={"type": "object", "required": ["x"]}), handler("a")),
        SchemaTool(replace(SPEC, annotations=Annotations(Effect.READ)), handler("a")),
        SchemaTool(SPEC, handler("b")),
        SchemaTool(SPEC, other_handler("a")),
        SchemaTool(SPEC, handler(("a", 1, None, b"x", 2.5, False))),
        SchemaTool(SPEC, handler({"b": 1, "a": [2, {"d"}]})),
        SchemaTool(SPEC, handler("a", kind="b")),
        SchemaTool(SPEC, handler(str)),
        SchemaTool(SPEC, handler(int)),
        SchemaTool(SPEC, Sender().drop),
        SchemaTool(SPEC, Loud().send),
        SchemaTool(SPEC, partial(send_partial, "b")),
        SchemaTool(SPEC, handler("a"), accesses=writes),
    ]
    assert len({fingerprint(each) for each in tools}) == len(tools)


def test_name_that_is_not_bound_yet_counts_as_nothing() -> None:
    def make() -> SchemaTool:
        async def handle(arguments: dict[str, Any], context: ToolContext) -> str:
            return later

        made = SchemaTool(SPEC, handle)
        assert fingerprint(made)  # `later` has no value yet
        later = "x"
        return made

    assert fingerprint(make())


def reads_count(count: int) -> list[Access]:
    return [ReadPath("/w/a")]


def writes_count(count: int) -> list[Access]:
    return [WritePath("/w/a")]


def function_tool(text: str, *, isolation: Any = "thread", accesses: Any = None, default: int = 1) -> Tool:
    @tool(isolation=isolation, accesses=accesses)
    async def act(count: int = default) -> str:
        """Act."""
        return text

    return act


def test_functions_differ_by_code_defaults_accesses_and_isolation() -> None:
    tools = [
        function_tool("a"),
        function_tool("b"),
        function_tool("a", default=2),
        function_tool("a", isolation="inline"),
        function_tool("a", accesses=reads_count),
        function_tool("a", accesses=writes_count),
    ]
    assert len({fingerprint(each) for each in tools}) == len(tools)
    assert fingerprint(tools[0]) == fingerprint(function_tool("a"))


class Counter(TypedTool[Any]):
    """A tool as a class."""

    spec = SPEC


class Doubler(Counter):
    """The same spec with another method."""

    def bind(self, arguments: Any) -> Any:
        return None


def test_classes_differ_by_their_methods() -> None:
    assert fingerprint(Counter()) == fingerprint(Counter())
    assert fingerprint(Counter()) != fingerprint(Doubler())


def test_same_tool_in_one_process_shares_its_objects() -> None:
    shared = handler("a")
    one = SchemaTool(SPEC, shared, accesses=reads)
    assert is_same_tool(one, one)
    assert is_same_tool(one, SchemaTool(replace(SPEC), shared, accesses=reads))
    assert not is_same_tool(one, SchemaTool(SPEC, handler("a"), accesses=reads))  # another place in memory
    assert not is_same_tool(one, SchemaTool(SPEC, shared, accesses=writes))
    assert not is_same_tool(one, SchemaTool(replace(SPEC, description="Other."), shared, accesses=reads))
    assert not is_same_tool(one, function_tool("a"))
    assert not is_same_tool(Counter(), Counter())
    first, second = function_tool("a"), function_tool("a")
    assert is_same_tool(first, first) and not is_same_tool(first, second)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), (b"a", b"b"), (1, 2), (1.5, 2.5), (True, False), (None, 0)])
def test_every_kind_of_plain_value_counts(one: object, other: object) -> None:
    assert fingerprint(SchemaTool(SPEC, handler(one))) != fingerprint(SchemaTool(SPEC, handler(other)))


def first_inner() -> Callable[..., Any]:
    async def handle(arguments: dict[str, Any], context: ToolContext) -> str:
        return str([f"{key}a" for key in arguments])

    return handle


def second_inner() -> Callable[..., Any]:
    async def handle(arguments: dict[str, Any], context: ToolContext) -> str:
        return str([f"{key}b" for key in arguments])

    return handle


def test_code_inside_the_code_counts() -> None:
    assert fingerprint(SchemaTool(SPEC, first_inner())) == fingerprint(SchemaTool(SPEC, first_inner()))
    assert fingerprint(SchemaTool(SPEC, first_inner())) != fingerprint(SchemaTool(SPEC, second_inner()))


def test_order_of_keys_does_not_count() -> None:
    one = SchemaTool(replace(SPEC, metadata={"a": 1, "b": 2}), handler("a"))
    assert fingerprint(one) == fingerprint(SchemaTool(replace(SPEC, metadata={"b": 2, "a": 1}), handler("a")))


@pytest.mark.parametrize("name", ["bind", "accesses", "run"])
def test_each_method_of_a_class_counts(name: str) -> None:
    def first(self: object, given: object) -> str:
        return "a"

    def second(self: object, given: object) -> str:
        return "b"

    made: list[Any] = [type("M", (), {"spec": SPEC, "bind": first, name: method})() for method in (first, second)]
    assert fingerprint(made[0]) != fingerprint(made[1])


def test_function_tools_are_the_same_by_function_and_options() -> None:
    async def act(count: int = 1) -> str:
        """Act."""
        return "a"

    async def act_too(count: int = 1) -> str:
        """Act."""
        return "a"

    assert is_same_tool(tool(act), tool(act))
    assert not is_same_tool(tool(act), tool(act_too))
    assert not is_same_tool(tool(act), tool(group="g")(act))
    assert not is_same_tool(tool(act), SchemaTool(SPEC, handler("a")))
    assert not is_same_tool(SchemaTool(SPEC, handler("a")), tool(act))


@pytest.mark.parametrize("wrap", [partial(DeferrableTool, deferred=True), partial(RenamedTool, name="x")])
def test_wrappers_are_told_apart_by_the_tool_inside(wrap: Callable[[Tool], Tool]) -> None:
    one, other = SchemaTool(SPEC, handler("a")), SchemaTool(SPEC, other_handler("a"))
    assert is_same_tool(wrap(one), wrap(one)) and fingerprint(wrap(one)) == fingerprint(wrap(one))
    assert not is_same_tool(wrap(one), wrap(other)) and fingerprint(wrap(one)) != fingerprint(wrap(other))
    assert not is_same_tool(wrap(one), one) and not is_same_tool(RenamedTool(one, "a"), RenamedTool(one, "b"))
