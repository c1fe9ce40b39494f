"""Final answers of a given type."""

import pickle
from dataclasses import replace
from enum import Enum
from typing import Any, Literal, assert_type

import pytest
from pydantic import BaseModel

from callwright import Effect, ToolCall, tool
from callwright.agent import Agent, Done, Stopped
from callwright.core.content import Text
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, UserMessage
from callwright.sessions.records import Said
from callwright.testing.fakes import ScriptedProvider


class City(BaseModel):
    """A place."""

    name: str
    people: int


@tool(effect=Effect.READ)
async def look() -> str:
    """Look."""
    return "Bern, 134000"


async def test_output_is_a_typed_value_and_model_gets_schema() -> None:
    with ScriptedProvider(ToolCall("1", "look"), '{"name": "Bern", "people": 134000}') as provider:
        result = await Agent(provider, [look]).run("which city?", output=City)
    assert isinstance(result, Done) and result.output == City(name="Bern", people=134000)
    schema = provider.requests[0].output_schema
    assert schema is not None and set(schema["properties"]) == {"name", "people"}  # type: ignore[arg-type] - an object


async def test_type_checkers_know_the_type_of_the_output() -> None:
    agent, answer = Agent(ScriptedProvider(*['{"name": "Bern", "people": 134000}'] * 3)), "which city?"
    result = await agent.run(answer, output=City)
    assert isinstance(result, Done) and assert_type(result.output, City).name == "Bern"
    untyped = await agent.run(answer)
    assert isinstance(untyped, Done) and assert_type(untyped.output, Any) is None
    either = await agent.run(answer, output=City | None)  # not a class: the value may be anything
    assert isinstance(either, Done) and assert_type(either.output, Any).people == 134000
    assert pickle.loads(pickle.dumps(result)) == replace(result) == result


@pytest.mark.parametrize("text", ["```json\n[1, 2]\n```", "Here they are:\n\n```JSON\n[1,\n2]\n```\nThat is all."])
async def test_output_in_code_fence_is_parsed(text: str) -> None:
    result = await Agent(ScriptedProvider(text)).run("numbers", output=list[int])
    assert isinstance(result, Done) and result.output == [1, 2]


@pytest.mark.parametrize(
    ("text", "answer"), [("Bern it is.", "Bern it is."), ('"Bern"', "Bern"), ('"No," she said', None)]
)
async def test_output_of_type_str_need_not_be_json(text: str, answer: str | None) -> None:
    result = await Agent(ScriptedProvider(text)).run("which city?", output=str)
    assert isinstance(result, Done) and result.output == (answer or text)


class Mode(Enum):
    FAST = "fast"


class Mark(Enum):
    NONE = object()
    A = "a"


class Choice(BaseModel):
    mode: Literal[Mode.FAST]


class Outline(BaseModel):
    arguments: list[str]


async def test_answer_of_another_kind_is_not_called_arguments() -> None:
    result = await Agent(ScriptedProvider("3", "3", "3")).run("is it so?", output=bool)
    assert isinstance(result, Stopped) and "schema: expected a boolean, got 3 (integer)" in result.reason
    result = await Agent(ScriptedProvider("{}", "{}", "{}")).run("why?", output=Outline)
    assert isinstance(result, Stopped) and "schema: arguments: missing" in result.reason


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Choice, "output: the field 'mode' is a Literal of Mode.FAST, which is not read from JSON"),
        (type[int], "output is a class"),
        (Mark, "output: the type Mark cannot be sent as JSON"),
        ({"type": "object", "properties": {}}, "use JSON types, .* or a pydantic model .a JSON Schema is not a type"),
    ],
)
async def test_output_type_that_no_json_matches_is_refused(kind: object, said: str) -> None:
    with pytest.raises(UsageError, match=said), ScriptedProvider() as provider:
        await Agent(provider).run("which mode?", output=kind)


async def test_error_is_of_the_json_around_a_code_fence() -> None:
    broken = '{"name": "see\n```\ncode\n```\nend", "people": 1}'
    with ScriptedProvider(broken, '{"name":"Bern","people":1}') as provider:
        await Agent(provider).run("which city?", output=City)
    assert "control character" in str(provider.requests[1].messages[-1])


async def test_wrong_output_is_returned_at_most_twice() -> None:
    with ScriptedProvider("Bern", '{"name": "Bern", "people": "many"}', '{"name":"Bern","people":1}') as provider:
        result = await Agent(provider).run("which city?", output=City)
    assert isinstance(result, Done) and result.output == City(name="Bern", people=1)
    complaints = [request.messages[-1] for request in provider.requests[1:]]
    assert "people: expected an integer" in str(complaints[-1])
    assert all('"properties":{"name":{"type":"string"}' in str(each) for each in complaints)
    with ScriptedProvider("no", "no", "no") as provider:
        agent = Agent(provider)
        result = await agent.run("which city?", session="s", output=City)
    assert isinstance(result, Stopped) and result.kind == "output" and result.text == "no"
    assert "properties" not in result.reason
    again = await agent.resume("s", output=City)
    assert isinstance(again, Stopped) and again.kind == "output" and again.text == "no"


async def test_wrong_output_of_a_killed_run_is_corrected() -> None:
    with ScriptedProvider('{"name":"Bern","people":1}') as provider:
        agent = Agent(provider)
        hold = await agent.sessions.hold("s")
        await hold.append(Said(UserMessage("which city?")), Said(AssistantMessage((Text("Bern"),))))  # killed here
        await hold.release()
        result = await agent.resume("s", output=City)
    assert isinstance(result, Done) and result.output == City(name="Bern", people=1)
    assert "does not match the requested schema" in str(provider.requests[0].messages[-1])
