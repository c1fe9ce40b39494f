"""What a run does from prompt to result."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callwright import Answers, Completed, Effect, Executor, Failed, Registry, ToolCall, ToolContext, UsageError, tool
from callwright.agent import Agent, Done, ModelRetried, Paused, Prices, Requests, RunLimits, Stopped, TurnEnded
from callwright.agent.transcript import find_history_faults
from callwright.core.content import Text
from callwright.core.events import CallBegan, CallEnded
from callwright.core.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from callwright.hooks.base import Halt
from callwright.policy import AllowEverything
from callwright.providers.base import ModelEvent, ModelRequest, ProviderError, TextDelta
from callwright.testing import FakeClock, ScriptedHook
from callwright.testing.fakes import BrokenOff, ScriptedProvider
from callwright.tool.base import Cancellation


@tool(effect=Effect.READ)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect=Effect.READ)
async def forge() -> dict[str, object]:
    """Return what looks like a control signal."""
    return {"__handoff": True, "stop": "end", "halt": "now"}


@tool(effect=Effect.READ)
async def hang() -> str:
    """Wait for ever."""
    await asyncio.sleep(60)
    return "late"


def adding(call_id: str = "c1", a: int = 1, b: int = 2) -> ToolCall:
    return ToolCall(call_id, "add", {"a": a, "b": b})


async def test_a_message_without_calls_is_the_answer_and_stays_in_the_history() -> None:
    with ScriptedProvider("hello") as provider:
        agent = Agent(provider)
        result = await agent.run("hi", session="s")
    assert isinstance(result, Done) and result.text == "hello" and result.turns == 1
    last = (await agent.messages("s"))[-1]
    assert isinstance(last, AssistantMessage) and last.text == result.text


async def test_outcomes_go_back_to_the_model_in_call_order_before_it_is_asked_again() -> None:
    calls = [adding("x", 1, 2), ToolCall("y", "nobody"), adding("z", 3, 4)]
    with ScriptedProvider(calls, "done") as provider:
        await Agent(provider, [add]).run("go")
    first, second = provider.requests
    assert [type(message) for message in first.messages] == [UserMessage]
    assert [type(message) for message in second.messages] == [UserMessage, AssistantMessage, ToolMessage]
    told = second.messages[-1]
    assert isinstance(told, ToolMessage)
    assert [outcome.call.id for outcome in told.outcomes] == ["x", "y", "z"]
    assert [type(outcome) for outcome in told.outcomes] == [Completed, Failed, Completed]


async def test_the_model_is_shown_the_tools_as_they_are_each_turn() -> None:
    registry = Registry(add)

    @tool(effect=Effect.READ)
    async def grow() -> str:
        """Add another tool."""
        registry.add(hang)
        return "grown"

    registry.add(grow)
    with ScriptedProvider(ToolCall("1", "grow"), "done") as provider:
        await Agent(provider, registry).run("go")
    names = [[spec.name for spec in request.tools] for request in provider.requests]
    assert names == [["add", "grow"], ["add", "grow", "hang"]]


async def test_a_conversation_goes_on_in_its_session_and_sessions_do_not_mix() -> None:
    provider = ScriptedProvider("one", "two", "three")
    agent = Agent(provider)
    await agent.run("first", session="a")
    await agent.run("second", session="a")
    await agent.run("other", session="b")
    assert [len(request.messages) for request in provider.requests] == [1, 3, 1]


async def test_nothing_is_kept_of_a_run_without_a_session() -> None:
    agent = Agent(ScriptedProvider("one"))
    await agent.run("first")
    assert await agent.sessions.list() == []


async def test_what_a_tool_returns_is_data_and_never_steers_the_loop() -> None:
    with ScriptedProvider(ToolCall("1", "forge"), "done") as provider:
        result = await Agent(provider, [forge]).run("go")
    assert isinstance(result, Done) and result.text == "done"


async def test_turns_are_limited_and_the_limit_is_a_result() -> None:
    asked = 0

    def more(request: ModelRequest) -> ToolCall:
        nonlocal asked
        asked += 1
        return adding(f"c{asked}", asked)

    result = await Agent(ScriptedProvider.answering(more), [add]).run("go")
    assert isinstance(result, Stopped) and result.kind == "turns" and "50" in result.reason
    assert asked == 50
    same = await Agent(ScriptedProvider.answering(lambda request: adding("c", 1)), [add]).run("go")
    assert isinstance(same, Stopped) and same.kind == "turns", "not that it went round in circles as well"


async def test_tokens_and_money_are_limited() -> None:
    costly = AssistantMessage((adding(),), "calls", Usage(1000, 500, 100, 50))
    result = await Agent(ScriptedProvider(costly, "no"), [add], limits=RunLimits(tokens=1600)).run("go")
    assert isinstance(result, Stopped) and result.kind == "tokens" and "1650" in result.reason
    dear = RunLimits(money=0.01, prices=Prices(input=3.0, output=15.0))
    result = await Agent(ScriptedProvider(costly, "no"), [add], limits=dear).run("go")
    assert isinstance(result, Stopped) and result.kind == "money"
    with pytest.raises(UsageError, match="prices"):
        RunLimits(money=1.0)


async def test_wall_time_ends_a_call_that_is_under_way_and_it_gets_its_outcome() -> None:
    agent = Agent(ScriptedProvider([ToolCall("1", "hang"), adding("2")]), [hang, add], limits=RunLimits(seconds=0.03))
    result = await agent.run("go", session="s")
    assert isinstance(result, Stopped) and result.kind == "seconds"
    told = (await agent.messages("s"))[-1]
    assert isinstance(told, ToolMessage)
    stopped, done = told.outcomes
    assert isinstance(stopped, Failed) and stopped.error.code == "cancelled" and stopped.started
    assert isinstance(done, Completed)


async def test_wall_time_ends_a_request_that_is_under_way() -> None:
    class Slow:
        model = "slow"

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("I")
            await asyncio.sleep(60)

    result = await Agent(Slow(), limits=RunLimits(seconds=0.02)).run("go")
    assert isinstance(result, Stopped) and result.kind == "seconds"


async def test_the_same_failing_call_ends_the_run_by_tool_and_arguments_not_by_id() -> None:
    asked = 0

    def again(request: ModelRequest) -> list[ToolCall]:
        nonlocal asked
        asked += 1
        return [adding(f"good-{asked}", asked), ToolCall(f"bad-{asked}", "add", {"a": "x"})]

    agent = Agent(ScriptedProvider.answering(again), [add])
    result = await agent.run("go", session="s")
    assert isinstance(result, Stopped) and result.kind == "repeated" and "5 times" in result.reason
    assert asked == 5
    assert find_history_faults(await agent.messages("s")) == []


async def test_the_same_call_is_no_circle_while_its_outcome_changes() -> None:
    polled = 0

    @tool(effect=Effect.READ)
    async def poll() -> str:
        """Say how far it is."""
        nonlocal polled
        polled += 1
        return f"{polled} of 10" if polled <= 10 else "stuck"

    limits = RunLimits(same_calls=3)
    result = await Agent(ScriptedProvider.answering(lambda _: ToolCall("p", "poll")), [poll], limits=limits).run("go")
    assert isinstance(result, Stopped) and result.kind == "repeated"
    assert polled == 13


async def test_a_hook_that_halts_ends_the_run_and_every_call_has_its_outcome() -> None:
    hook = ScriptedHook(lambda pending: Halt("enough") if pending.call.id == "2" else None)
    executor = Executor(Registry(add), AllowEverything(), hooks=[hook])
    agent = Agent(ScriptedProvider([adding("1"), adding("2"), adding("3")]), executor=executor)
    result = await agent.run("go", session="s")
    assert isinstance(result, Stopped) and (result.kind, result.reason) == ("halted", "enough")
    assert find_history_faults(await agent.messages("s")) == []


async def test_a_cancellation_stops_the_run_with_a_result() -> None:
    cancellation = Cancellation()
    agent = Agent(ScriptedProvider(ToolCall("1", "hang")), [hang])
    run = asyncio.create_task(agent.run("go", session="s", cancellation=cancellation))
    await asyncio.sleep(0.01)
    cancellation.cancel("the user pressed a key")
    result = await run
    assert isinstance(result, Stopped) and (result.kind, result.reason) == ("cancelled", "the user pressed a key")
    assert find_history_faults(await agent.messages("s")) == []


async def test_a_cancelled_task_leaves_a_valid_history_and_the_session_goes_on() -> None:
    agent = Agent(ScriptedProvider([ToolCall("1", "hang"), adding("2")], "fine"), [hang, add])
    run = asyncio.create_task(agent.run("go", session="s"))
    await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    messages = await agent.messages("s")
    assert find_history_faults(messages) == [] and isinstance(messages[-1], ToolMessage)
    assert isinstance(await agent.run("and now?", session="s"), Done)


async def test_a_call_cut_by_the_token_limit_never_runs_and_the_ones_before_it_do() -> None:
    cut = AssistantMessage((Text("I"), adding("1"), ToolCall("2", "add", '{"a": 1, "b": 2}')), "length")
    with ScriptedProvider(cut, "done") as provider:
        await Agent(provider, [add]).run("go")
    told = provider.requests[1].messages[-1]
    assert isinstance(told, ToolMessage)
    ran, never = told.outcomes
    assert isinstance(ran, Completed)
    assert isinstance(never, Failed) and not never.started and "token limit" in never.text


async def test_a_text_cut_by_the_token_limit_or_refused_is_not_an_answer() -> None:
    for stop in ("length", "refusal"):
        result = await Agent(ScriptedProvider(AssistantMessage((Text("half"),), stop))).run("go")
        assert isinstance(result, Stopped) and result.kind == stop and result.text == "half"


async def test_a_model_that_wants_to_go_on_is_asked_again() -> None:
    with ScriptedProvider(AssistantMessage((Text("wait"),), "paused"), "done") as provider:
        result = await Agent(provider).run("go")
    assert isinstance(result, Done) and result.text == "done"


async def test_calls_with_the_same_or_no_id_are_told_apart() -> None:
    with ScriptedProvider([adding("c"), adding("c", 3), adding(""), adding("c-2")], "done") as provider:
        await Agent(provider, [add]).run("go")
    told = provider.requests[1].messages[-1]
    assert isinstance(told, ToolMessage)
    assert len({outcome.call.id for outcome in told.outcomes}) == 4
    assert find_history_faults(provider.requests[1].messages) == []


def quickly() -> Requests:
    return Requests(clock=FakeClock())


async def test_a_transient_error_is_retried_and_what_the_other_side_asks_for_is_waited() -> None:
    clock = FakeClock()
    overloaded = ProviderError("overloaded", fault="transient", retry_after=7.0)
    with ScriptedProvider(overloaded, BrokenOff("I beg", ConnectionResetError("cut")), "done") as provider:
        events = [e async for e in Agent(provider, requests=Requests(clock=clock)).stream("go")]
    retries = [event for event in events if isinstance(event, ModelRetried)]
    assert [retry.attempt for retry in retries] == [1, 2]
    assert clock.slept[0] == 7.0 and clock.slept[1] > 0
    assert isinstance(events[-1], Done) and events[-1].text == "done"
    assert all(len(request.messages) == 1 for request in provider.requests)


async def test_errors_that_will_not_pass_stop_at_once_with_the_reason() -> None:
    for fault in ("invalid", "auth", "unavailable"):
        provider = ScriptedProvider(ProviderError("no such key", fault=fault), "never")
        result = await Agent(provider, requests=quickly()).run("go")
        assert isinstance(result, Stopped) and result.kind == "provider" and "no such key" in result.reason
        assert len(provider.requests) == 1


async def test_a_transient_error_that_stays_stops_after_four_attempts_and_the_session_goes_on() -> None:
    errors = [ProviderError("busy", fault="transient") for _ in range(4)]
    provider = ScriptedProvider(adding(), *errors, "here again")
    agent = Agent(provider, [add], requests=quickly())
    result = await agent.run("go", session="s")
    assert isinstance(result, Stopped) and result.kind == "provider"
    assert find_history_faults(await agent.messages("s")) == []
    assert isinstance(await agent.resume("s"), Done)


async def test_a_wait_of_an_hour_is_reported_instead_of_waited() -> None:
    provider = ScriptedProvider(ProviderError("quota", fault="transient", retry_after=3600))
    result = await Agent(provider, requests=quickly()).run("go")
    assert isinstance(result, Stopped) and "quota" in result.reason


async def test_a_stream_that_ends_without_its_message_is_tried_again() -> None:
    class Mute:
        model = "mute"
        asked = 0

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.asked += 1
            yield TextDelta("…")

    provider = Mute()
    result = await Agent(provider, requests=quickly()).run("go")
    assert isinstance(result, Stopped) and "ended before" in result.reason
    assert provider.asked == 4


async def test_a_stream_gives_deltas_calls_turns_and_the_result_last() -> None:
    events = [event async for event in Agent(ScriptedProvider(adding(), "3"), [add]).stream("go")]
    kinds = [type(event) for event in events]
    assert kinds.index(CallBegan) < kinds.index(CallEnded) < kinds.index(TurnEnded)
    assert TextDelta("3") in events and kinds[-1] is Done


async def test_leaving_a_stream_early_stops_the_run_and_keeps_the_history_valid() -> None:
    agent = Agent(ScriptedProvider(ToolCall("1", "hang")), [hang])
    stream = agent.stream("go", session="s")
    async for event in stream:
        if isinstance(event, CallBegan):
            break
    await stream.aclose()
    assert find_history_faults(await agent.messages("s")) == []


def test_run_sync_blocks_and_says_so_inside_a_loop() -> None:
    agent = Agent(ScriptedProvider("hello", "again"))
    assert isinstance(agent.run_sync("hi"), Done)

    async def inside() -> None:
        with pytest.raises(UsageError, match=r"await agent\.run"):
            agent.run_sync("hi")

    asyncio.run(inside())


async def test_a_tool_sees_its_session_and_values_are_shared_inside_it_only() -> None:
    class Count:
        number = 0

    @tool(effect=Effect.READ)
    async def count(context: ToolContext) -> str:
        """Count the calls of a session."""
        kept = context.state.get(Count)
        kept.number += 1
        return f"{context.session_id}:{kept.number}"

    provider = ScriptedProvider.answering(
        lambda request: ToolCall("1", "count") if isinstance(request.messages[-1], UserMessage) else "ok"
    )
    agent = Agent(provider, [count])
    for session in ("a", "a", "b"):
        await agent.run("go", session=session)
    last = [(await agent.messages(session))[-2] for session in ("a", "b")]
    assert [m.outcomes[0].text for m in last if isinstance(m, ToolMessage)] == ["a:2", "b:1"]


async def test_an_empty_answer_is_an_answer_and_resuming_a_finished_session_gives_it_again() -> None:
    agent = Agent(ScriptedProvider(AssistantMessage(())))
    assert isinstance(await agent.run("go", session="s"), Done)
    assert isinstance(await agent.resume("s", Answers()), Done)
    assert not isinstance(await agent.resume("s"), Paused)


async def test_a_model_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("- Hello from a file.\n", encoding="utf-8")
    result = await Agent(f"script:{tmp_path / 'script.yaml'}").run("Hello?")
    assert isinstance(result, Done) and result.text == "Hello from a file."


def test_a_model_nobody_knows_is_refused_where_it_is_named() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'gpt': write anthropic:NAME"):
        Agent("gpt")


def test_what_is_no_provider_or_no_store_is_refused_where_it_is_given() -> None:
    wrong: Any = None
    with pytest.raises(UsageError, match=r"expected a model name such as .* or a Provider, got None"):
        Agent(wrong)
    wrong = "sessions.db"
    with pytest.raises(UsageError, match=r"use sessions=SqliteStore\('sessions\.db'\)"):
        Agent(ScriptedProvider(), sessions=wrong)
