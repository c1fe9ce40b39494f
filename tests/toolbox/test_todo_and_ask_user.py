"""`todo` and `ask_user`: their checks, and what a reply may carry."""

import pytest

from callwright.core.calls import Answers, Approve, Completed, Failed, Interrupted, ToolCall
from callwright.core.json import JsonObject
from callwright.core.spec import Effect
from callwright.executor.executor import Executor
from callwright.policy import AllowEverything, ByMode, Policies
from callwright.registry import Registry
from callwright.toolbox import AskUser, Todo

ASKED = ToolCall("c1", "ask_user", {"question": "Which?", "choices": ["a", "b"]})


@pytest.mark.parametrize(
    ("todos", "told"),
    [
        ([{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}], "one at a time"),
        ([{"content": "a"}, {"content": "a"}], "listed twice"),
        ([{"content": ""}], "content"),
        ([{"content": "a", "status": "half"}], "status"),
    ],
)
async def test_todo_explains_a_wrong_list(todos: list[JsonObject], told: str) -> None:
    outcome = await Executor(Registry(Todo())).run("todo", {"todos": todos})
    assert isinstance(outcome, Failed) and told in outcome.text


async def test_todo_keeps_the_list_when_a_new_one_is_wrong() -> None:
    executor = Executor(Registry(Todo()))
    await executor.run("todo", {"todos": [{"content": "a"}]})
    await executor.run("todo", {"todos": [{"content": "b"}, {"content": "b"}]})
    outcome = await executor.run("todo")
    assert outcome.text == "0 of 1 done\n[ ] a"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (None, "no reply"),
        ({}, "no reply"),
        ({"choices": ["c"], "text": ""}, "not one of the choices"),
        ({"choices": ["a", "b"]}, "2 choices"),
        ({"text": 3}, "no reply"),
    ],
)
async def test_only_a_reply_that_fits_reaches_the_model(reply: JsonObject | None, told: str) -> None:
    executor = Executor(Registry(AskUser()), Policies(AllowEverything()))
    (asked,) = await executor.execute([ASKED])
    assert isinstance(asked, Interrupted) and asked.questions[0].kind == "input"
    answers = Answers({asked.questions[0].id: Approve(reply)})
    (outcome,) = await executor.execute([ASKED], answers=answers)
    assert isinstance(outcome, Failed) and told in outcome.text


async def test_reply_is_used_once_and_leaves_no_grant() -> None:
    executor = Executor(Registry(AskUser()), Policies(AllowEverything()))
    (asked,) = await executor.execute([ASKED])
    answers = Answers({asked.questions[0].id: Approve({"choices": ["a"]}, "always")})  # type: ignore[union-attr] - Interrupted
    (outcome,) = await executor.execute([ASKED], answers=answers)
    assert isinstance(outcome, Completed) and outcome.text == "the user chose: a"
    (again,) = await executor.execute([ASKED], answers=answers)
    assert isinstance(again, Interrupted)


async def test_mode_that_never_asks_declines_the_question() -> None:
    (outcome,) = await Executor(Registry(AskUser()), Policies(ByMode("dontAsk"))).execute([ASKED])
    assert isinstance(outcome, Failed) and outcome.error.code == "denied"


def test_neither_tool_claims_an_effect() -> None:
    assert Todo().spec.annotations.effect is Effect.READ
    assert AskUser().spec.annotations.effect is Effect.READ
