"""Typed tools, run through the real executor."""

from typing import Any

import pytest
from pydantic import BaseModel

from callwright import (
    Annotations,
    Arguments,
    Completed,
    Effect,
    Executor,
    Failed,
    InvalidArguments,
    Registry,
    SchemaTool,
    ToolContext,
    ToolFailed,
    ToolSpec,
    TypedTool,
    UsageError,
    tool,
)
from callwright.policy import AllowEverything
from callwright.tool.base import Tool
from callwright.tool.typed import describe


class AddArguments(Arguments):
    a: int
    b: int


class Sum(BaseModel):
    sum: int


class Add(TypedTool[AddArguments]):
    spec = describe("add", "Add two numbers.", aliases=["plus"])

    def __init__(self) -> None:
        self.ran = 0

    async def run(self, arguments: AddArguments, context: ToolContext) -> Sum:
        assert type(arguments) is AddArguments
        self.ran += 1
        return Sum(sum=arguments.a + arguments.b)


def executor_of(*tools: Tool) -> Executor:
    return Executor(Registry(*tools), policies=AllowEverything())


async def test_a_typed_tool_round_trips_through_json() -> None:
    outcome = await executor_of(Add()).run("add", {"a": 2, "b": 3})
    assert isinstance(outcome, Completed)
    assert outcome.text == '{"sum":5}'
    assert outcome.output.structured == {"sum": 5}


async def test_invalid_arguments_are_explained_to_the_model() -> None:
    add = Add()
    outcome = await executor_of(add).run("add", {"a": "not-a-number"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, InvalidArguments)
    assert outcome.text.startswith("invalid arguments: a: expected an integer")
    assert "b: missing, and it is required" in outcome.text
    assert (outcome.started, add.ran) == (False, 0)


def test_name_and_description_need_no_instance() -> None:
    assert (Add.spec.name, Add.spec.description, Add.spec.aliases) == ("add", "Add two numbers.", ("plus",))
    assert Add.spec is Add().spec


def test_an_effect_beside_annotations_of_another_effect_is_refused() -> None:
    with pytest.raises(UsageError, match=r"describe\('drop'\): effect is DESTROY, and annotations say WRITE"):
        describe("drop", "Drop a table.", effect=Effect.DESTROY, annotations=Annotations(idempotent=True))


async def test_an_output_that_cannot_be_written_is_text_for_the_model() -> None:
    @tool
    async def odd() -> object:
        """Return what no JSON can hold."""
        return object()

    outcome = await executor_of(odd).run("odd", {})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, ToolFailed)
    assert outcome.text.startswith("output serialize: ")


async def test_three_kinds_of_tools_live_in_one_registry() -> None:
    @tool
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    def shout(arguments: Any) -> str:
        return str(arguments["text"]).upper()

    written = SchemaTool(ToolSpec("shout", "Shout a text.", {"type": "object", "required": ["text"]}), shout)
    executor = executor_of(Add(), double, written)
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("add", {"a": 1, "b": 1}, '{"sum":2}'),
        ("plus", {"a": 1, "b": 2}, '{"sum":3}'),
        ("double", {"number": 4}, "8"),
        ("shout", {"text": "hi"}, "HI"),
    ]
    for name, arguments, text in calls:
        outcome = await executor.run(name, arguments)
        assert isinstance(outcome, Completed)
        assert outcome.text == text


@pytest.mark.parametrize("arguments", [{"a": 1, "b": 2}, '{"a": 1, "b": 2}', b'{"a": 1, "b": 2}'])
def test_arguments_may_be_an_object_text_or_bytes(arguments: Any) -> None:
    assert Add().bind(arguments).given == AddArguments(a=1, b=2)


async def test_a_typed_tool_may_yield_its_progress(context: ToolContext, reports: list[object]) -> None:
    class Climb(TypedTool[AddArguments]):
        spec = describe("climb", "Climb from one number to another.")

        async def run(self, arguments: AddArguments, context: ToolContext) -> Any:  # type: ignore[override] - a generator
            for step in range(arguments.a, arguments.b):
                yield step

    assert await Climb().bind({"a": 1, "b": 4}).run(context) == 3
    assert reports == [1, 2]
