"""Calling a server's tools like our own."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from callwright import Answers, Completed, Effect, Failed, Interrupted
from callwright.core.calls import Question
from callwright.core.content import Image, Text
from callwright.core.events import CallProgressed, Event
from callwright.executor.turn import Turn
from callwright.policy import ByMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.mcp.conftest import OpenRough, World


async def test_a_servers_tool_is_called_like_one_of_ours(rough: "World"):
    outcome = await rough.run("echo", {"text": "hello"})
    assert isinstance(outcome, Completed)
    assert outcome.text == "hello"


async def test_arguments_are_checked_before_the_server_is_asked(rough: "World"):
    outcome = await rough.run("echo", {"text": 5})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "invalid_input"
    assert not outcome.started


async def test_answers_find_their_calls_whatever_order_they_come_in(rough: "World"):
    seconds = [0.04, 0.02, 0.0, 0.03, 0.01]
    outcomes = await asyncio.gather(*(rough.run("wait", {"seconds": s}) for s in seconds))
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Completed)] == [f"waited {s}" for s in seconds]


async def test_pictures_stay_pictures(rough: "World"):
    outcome = await rough.run("picture")
    assert isinstance(outcome, Completed)
    assert outcome.output.content == (Image(b"hi", "image/png"), Text("hi"))


async def test_structured_content_is_data_for_programs(rough: "World"):
    outcome = await rough.run("structured", {"value": {"n": 3}})
    assert isinstance(outcome, Completed)
    assert outcome.output.structured == {"n": 3}


async def test_progress_reaches_observers_but_a_flood_of_it_does_not(rough: "World"):
    heard: list[Event] = []
    outcome = await rough.run("chatter", turn=Turn(observe=heard.append))
    assert isinstance(outcome, Completed)
    progress = [event.progress for event in heard if isinstance(event, CallProgressed)]
    assert progress[0] == {"progress": 0, "total": 299}
    assert progress[-1] == {"progress": 299, "total": 299}
    assert len(progress) < 100


async def test_resources_are_listed_and_read_by_tools(rough: "World"):
    listed = await rough.run("list_resources")
    assert isinstance(listed, Completed)
    assert json.loads(listed.text)["resources"] == [{"uri": "memo://a", "name": "a"}]
    read = await rough.run("read_resource", {"uri": "memo://a"})
    assert isinstance(read, Completed)
    assert read.text == "remember the milk"


async def test_prompts_are_got_by_a_tool_that_names_them(rough: "World"):
    tool = rough.registry["mcp__rough__get_prompt"]
    assert "greet(who)" in tool.spec.description
    got = await rough.run("get_prompt", {"name": "greet", "arguments": {"who": "Ada"}})
    assert isinstance(got, Completed)
    assert got.text == "user: Greet Ada."


async def test_cancelling_a_call_tells_the_server(rough: "World"):
    task = asyncio.ensure_future(rough.run("wait", {"seconds": 5}))
    await asyncio.sleep(0.03)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    outcome = await rough.run("cancelled")
    assert isinstance(outcome, Completed)
    assert outcome.text == "1"


async def test_what_an_untrusted_server_claims_counts_for_nothing(rough: "World"):
    claims = rough.registry["mcp__rough__look"].spec.annotations
    assert (claims.effect, claims.open_world, claims.idempotent) == (Effect.DESTROY, True, False)


async def test_a_servers_question_becomes_one_of_ours_and_the_answer_goes_back(rough: "World"):
    asked: list[Question] = []

    async def ask(questions: "Sequence[Question]") -> Answers:
        asked.extend(questions)
        [question] = questions
        return Answers().approve(question, arguments={**question.arguments, "answer": {"name": "Ada"}})

    outcome = await rough.run("ask", turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text) == {"action": "accept", "content": {"name": "Ada"}}
    assert asked[0].reason == "rough asks: Who?"


async def test_a_servers_question_is_dismissed_where_nobody_is_there(rough: "World"):
    outcome = await rough.run("ask")
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text)["action"] == "cancel"


async def test_a_yes_to_a_form_nobody_filled_in_is_no_answer(rough: "World"):
    async def ask(questions: "Sequence[Question]") -> Answers:
        return Answers.approving(questions)

    outcome = await rough.run("ask", turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text)["action"] == "decline"


async def test_a_call_that_wants_a_visit_first_is_made_again_after_it(rough: "World"):
    urls: list[object] = []

    async def ask(questions: "Sequence[Question]") -> Answers:
        urls.extend(question.arguments["url"] for question in questions)
        return Answers.approving(questions)

    outcome = await rough.run("visit", turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert urls == ["https://pay.example/1"]


async def test_permissions_hold_for_a_servers_tools_too(open_rough: "OpenRough"):
    async with open_rough(policy=ByMode("default")) as world:
        outcome = await world.run("look")
        assert isinstance(outcome, Interrupted)
    async with open_rough(policy=ByMode("default"), trusted=True) as world:
        assert isinstance(await world.run("look"), Completed)
        assert isinstance(await world.run("echo"), Interrupted)


async def test_a_server_does_not_inherit_our_secrets(open_rough: "OpenRough", monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CALLWRIGHT_TEST_KEY", "hush")
    async with open_rough() as world:
        outcome = await world.run("environment")
    assert isinstance(outcome, Completed)
    inherited = json.loads(outcome.text)
    assert "PATH" in inherited
    assert "CALLWRIGHT_TEST_KEY" not in inherited
