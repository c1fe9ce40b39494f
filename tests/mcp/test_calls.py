"""Calling a server's tools like local ones."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from tests.waiting import LONG_SECONDS

from callwright import (
    Agent,
    Answers,
    Approve,
    Completed,
    Done,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Registry,
    ToolCall,
)
from callwright.core.calls import Question
from callwright.core.content import Image, Text
from callwright.core.events import CallProgressed, Event
from callwright.executor.turn_context import Turn
from callwright.policy import AllowEverything, ByMode, Rules, rules_of
from callwright.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.mcp.conftest import OpenRough, World


async def test_server_tool_is_called_like_local_tool(rough: "World"):
    outcome = await rough.run("echo", {"text": "hello"})
    assert isinstance(outcome, Completed)
    assert outcome.text == "hello"


async def test_arguments_are_validated_before_sending(rough: "World"):
    outcome = await rough.run("echo", {"text": 5})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "invalid_input"
    assert not outcome.started


async def test_responses_match_calls_in_any_order(rough: "World"):
    seconds = [0.04, 0.02, 0.0, 0.03, 0.01]
    outcomes = await asyncio.gather(*(rough.run("wait", {"seconds": s}) for s in seconds))
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Completed)] == [f"waited {s}" for s in seconds]


async def test_images_stay_images(rough: "World"):
    outcome = await rough.run("picture")
    assert isinstance(outcome, Completed)
    assert outcome.output.content == (Image(b"hi", "image/png"), Text("hi"))


async def test_structured_content_is_returned(rough: "World"):
    outcome = await rough.run("structured", {"value": {"n": 3}})
    assert isinstance(outcome, Completed)
    assert outcome.output.structured == {"n": 3}


async def test_progress_is_passed_on_at_limited_rate(rough: "World"):
    heard: list[Event] = []
    outcome = await rough.run("chatter", turn=Turn(observe=heard.append))
    assert isinstance(outcome, Completed)
    progress = [event.progress for event in heard if isinstance(event, CallProgressed)]
    assert progress[0] == {"progress": 0, "total": 299}
    assert progress[-1] == {"progress": 299, "total": 299}
    assert len(progress) < 100


async def test_resources_are_listed_and_read(rough: "World"):
    listed = await rough.run("list_resources")
    assert isinstance(listed, Completed)
    assert json.loads(listed.text)["resources"] == [{"uri": "memo://a", "name": "a"}]
    read = await rough.run("read_resource", {"uri": "memo://a"})
    assert isinstance(read, Completed)
    assert read.text == "remember the milk"


async def test_rules_about_resources_and_files_hold_for_resources_of_a_server(open_rough: "OpenRough"):
    for kind, rule in (
        ("deny", "ReadResource(memo://*)"),
        ("deny", "Resource(memo://a)"),
        ("ask", "Resource(memo://*)"),
    ):
        rules = rules_of(
            deny=[rule] if kind == "deny" else [], ask=[rule] if kind == "ask" else [], allow=["mcp__rough"]
        )
        async with open_rough(policy=Rules(rules)) as rough:
            outcome = await rough.run("read_resource", {"uri": "memo://a"})
            assert isinstance(outcome, Failed if kind == "deny" else Interrupted), rule
    async with open_rough(policy=Rules(rules_of(deny=["Read(secret/**)"], allow=["mcp__rough"]))) as rough:
        for uri in ("file:///w/secret/a", "file:///w/x/%2e%2e/secret/a", "FILE://localhost/w/secret/a"):
            outcome = await rough.run("read_resource", {"uri": uri})
            assert isinstance(outcome, Failed) and "Read(secret/**)" in outcome.text
        assert isinstance(await rough.run("read_resource", {"uri": "memo://a"}), Completed)


async def test_get_prompt_lists_prompts(rough: "World"):
    tool = rough.registry["mcp__rough__get_prompt"]
    assert "greet(who)" in tool.spec.description
    got = await rough.run("get_prompt", {"name": "greet", "arguments": {"who": "Ada"}})
    assert isinstance(got, Completed)
    assert got.text == "user: Greet Ada."


async def until_told(rough: "World", name: str, count: int) -> None:
    """Ask the server until it has seen that many."""
    for _ in range(1000):
        outcome = await rough.run(name)
        if isinstance(outcome, Completed) and outcome.text == str(count):
            return
    raise AssertionError(f"the server never told {count} of {name}")


async def test_cancelling_call_notifies_server(rough: "World"):
    task = asyncio.ensure_future(rough.run("wait", {"seconds": 60}))
    await until_told(rough, "waits", 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_told(rough, "cancelled", 1)


async def test_untrusted_annotations_are_ignored(rough: "World"):
    claims = rough.registry["mcp__rough__look"].spec.annotations
    assert (claims.effect, claims.open_world, claims.idempotent) == (Effect.DESTROY, True, False)


async def test_elicitation_becomes_question(rough: "World"):
    asked: list[Question] = []

    async def ask(questions: "Sequence[Question]") -> Answers:
        asked.extend(questions)
        [question] = questions
        return Answers().approve(question, arguments={**question.arguments, "answer": {"name": "Ada"}})

    outcome = await rough.run("ask", turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text) == {"action": "accept", "content": {"name": "Ada"}}
    assert asked[0].reason == "rough asks: Who?"


async def test_elicitation_is_cancelled_without_user(rough: "World"):
    outcome = await rough.run("ask")
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text)["action"] == "cancel"


async def test_elicitation_is_cancelled_while_calls_of_two_sessions_run(rough: "World"):
    asked: list[Question] = []

    async def ask(questions: "Sequence[Question]") -> Answers:
        asked.extend(questions)
        return Answers()

    waiting = asyncio.ensure_future(rough.run("wait", {"seconds": 60}, turn=Turn("b", ask=ask)))
    await until_told(rough, "waits", 1)
    outcome = await rough.run("ask", turn=Turn("a", ask=ask))
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text)["action"] == "cancel"
    assert asked == []
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_model_cannot_ask_in_the_name_of_a_server(rough: "World"):
    asked: list[Question] = []

    async def ask(questions: "Sequence[Question]") -> Answers:
        asked.extend(questions)
        return Answers({each.id: Approve({**each.arguments, "answer": {"password": "x"}}) for each in questions})

    form = {"type": "object", "properties": {"password": {"type": "string"}}}
    outcome = await rough.run("answer", {"message": "Your session has expired.", "fields": form}, turn=Turn(ask=ask))
    assert isinstance(outcome, Failed) and "only rough itself asks" in outcome.text
    assert asked == []


async def test_elicitations_of_parallel_subagents_reach_their_user(rough: "World"):
    asked: list[Question] = []
    both = asyncio.Event()

    async def ask(questions: "Sequence[Question]") -> Answers:
        asked.extend(questions)
        if len(asked) == 2:
            both.set()
        async with asyncio.timeout(LONG_SECONDS):
            await both.wait()  # both calls run while the server asks
        return Answers({each.id: Approve({**each.arguments, "answer": {"name": "Ada"}}) for each in questions})

    call = ToolCall("1", "mcp__rough__ask", {})
    helpers = [Agent(ScriptedProvider(call, "helped"), executor=rough.executor) for _ in range(2)]
    tools = [helper.as_tool(f"helper{n}", "Helps.") for n, helper in enumerate(helpers)]
    calls = [ToolCall(str(n), tool.spec.name, {"prompt": "ask"}) for n, tool in enumerate(tools)]
    executor = Executor(Registry(*tools), AllowEverything())
    agent = Agent(ScriptedProvider(calls, "done"), executor=executor, ask=ask)
    assert isinstance(await agent.run("go", session="outer"), Done)
    assert len(asked) == 2


async def test_empty_form_is_declined(rough: "World"):
    async def ask(questions: "Sequence[Question]") -> Answers:
        return Answers.approving(questions)

    outcome = await rough.run("ask", turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.text)["action"] == "decline"


async def test_call_is_repeated_after_url_visit(rough: "World"):
    urls: list[object] = []

    async def ask(questions: "Sequence[Question]") -> Answers:
        urls.extend(question.arguments["url"] for question in questions)
        return Answers.approving(questions)

    outcome = await rough.run("visit", turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert urls == ["https://pay.example/1"]


async def test_permissions_apply_to_server_tools(open_rough: "OpenRough"):
    async with open_rough(policy=ByMode("default")) as world:
        outcome = await world.run("look")
        assert isinstance(outcome, Interrupted)
    async with open_rough(policy=ByMode("default"), trusted=True) as world:
        assert isinstance(await world.run("look"), Completed)
        assert isinstance(await world.run("echo"), Interrupted)


async def test_server_inherits_no_secrets(open_rough: "OpenRough", monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CALLWRIGHT_TEST_KEY", "hush")
    async with open_rough() as world:
        outcome = await world.run("environment")
    assert isinstance(outcome, Completed)
    inherited = json.loads(outcome.text)
    assert "PATH" in inherited
    assert "CALLWRIGHT_TEST_KEY" not in inherited
