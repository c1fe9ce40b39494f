"""Spans: names, attributes, parents and ends."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from callwright import (
    Answers,
    Effect,
    Executor,
    Limits,
    Outcome,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    Transient,
    Turn,
    UsageError,
    tool,
)
from callwright.agent import Agent, Done, Paused, Requests, RunLimits, Stopped
from callwright.core.calls import Completed, Interrupted
from callwright.core.content import Output, Text
from callwright.core.errors import ApprovalRequired
from callwright.core.events import BatchBegan, CallBegan, CallEnded
from callwright.core.messages import AssistantMessage, Usage
from callwright.core.run_events import RunBegan, RunEnded
from callwright.hooks.base import Answer, Hook, PendingCall
from callwright.policy import AllowEverything, ByMode
from callwright.providers.base import ModelEvent, ModelRequest, ProviderError, TextDelta
from callwright.retry import RetryPolicy
from callwright.sessions import SqliteStore
from callwright.telemetry import log_to
from callwright.testing import FakeClock, Flaky, ScriptedHook
from callwright.testing.fakes import BrokenOff, ScriptedProvider
from callwright.tool.base import Cancellation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.telemetry.conftest import Collected


@tool(effect=Effect.READ)
async def look(place: str) -> str:
    """Look at a place."""
    return f"nothing new at {place}"


@tool
async def note(text: str) -> str:
    """Write something down."""
    return "noted"


@tool(effect=Effect.READ, limits=Limits(seconds=0.02))
async def hang() -> str:
    """Wait for ever."""
    await asyncio.sleep(60)
    return "late"


@tool(effect=Effect.READ)
async def fail() -> str:
    """Say no."""
    raise ToolFailed("the secret drawer is stuck")


@tool(effect=Effect.READ)
async def crash() -> str:
    """Break."""
    raise ZeroDivisionError("division by zero")


LOOK = ToolCall("look-1", "look", {"place": "home"})


def agent_of(collected: "Collected", *script: object, tools: tuple[object, ...] = (look, note, hang, fail)) -> Agent:
    executor = Executor(Registry(*tools), AllowEverything(), observe=collected.telemetry, clock=FakeClock())  # type: ignore[arg-type] - tools
    provider = ScriptedProvider(*script, model="claude-sonnet-5")  # type: ignore[arg-type] - lines
    retry = RetryPolicy(max_attempts=3)
    return Agent(provider, executor=executor, name="helper", requests=Requests(retry=retry, clock=FakeClock()))


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_run_span_contains_requests_and_calls(collected: "Collected") -> None:
    await agent_of(collected, LOOK, "done").run("go", session="s")
    tree = [(span.name, span.kind) for span in collected.spans]
    assert tree == [
        ("chat claude-sonnet-5", SpanKind.CLIENT),
        ("execute_tool look", SpanKind.INTERNAL),
        ("chat claude-sonnet-5", SpanKind.CLIENT),
        ("invoke_agent helper", SpanKind.INTERNAL),
    ]
    assert {name: parent for name, parent in collected.tree.items() if parent != "invoke_agent helper"} == {
        "invoke_agent helper": ""
    }


async def test_request_span_has_request_and_usage_attributes(collected: "Collected") -> None:
    usage = Usage(100, 20, cache_read_tokens=30, cache_write_tokens=7)
    said = AssistantMessage((Text("hi"),), usage=usage, model="claude-sonnet-5-20260101")
    await agent_of(collected, said).run("go", session="s")
    found = attributes(collected.span("chat claude-sonnet-5"))
    assert isinstance(found.pop("gen_ai.response.time_to_first_chunk"), float)
    assert found.pop("callwright.cost_usd") == pytest.approx((100 * 2 + 20 * 10 + 30 * 0.2 + 7 * 2.5) / 1e6)
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": 8192,
        "gen_ai.response.model": "claude-sonnet-5-20260101",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 137,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_creation.input_tokens": 7,
    }


async def test_run_span_has_agent_and_usage_attributes(collected: "Collected") -> None:
    first = AssistantMessage((LOOK,), "calls", Usage(10, 1))
    await agent_of(collected, first, AssistantMessage((Text("hi"),), usage=Usage(20, 2))).run("go", session="s")
    found = attributes(collected.span("invoke_agent helper"))
    assert found == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 3,
        "callwright.cost_usd": pytest.approx((30 * 2 + 3 * 10) / 1e6),
        "callwright.ended": "done",
        "callwright.turns": 2,
    }


async def test_run_span_has_the_cost_of_inner_agents_and_its_own(collected: "Collected") -> None:
    said = AssistantMessage((Text("hi"),), usage=Usage(1_000_000, 0), model="gpt-5")
    executor = Executor(Registry(), AllowEverything(), observe=collected.telemetry)
    inner = Agent(ScriptedProvider(said, model="gpt-5"), executor=executor, name="inner")
    first = AssistantMessage((ToolCall("1", "ask", {"prompt": "go"}),), "calls", Usage(100_000, 0), "claude-sonnet-5")
    unknown = AssistantMessage((Text("done"),), usage=Usage(200_000, 0), model="claude-of-ours")
    await agent_of(collected, first, unknown, tools=(inner.as_tool("ask", "Ask it."),)).run("go", session="s")
    own = 300_000 * 2 / 1e6  # a model without a known price at that of the run's
    assert attributes(collected.span("invoke_agent inner"))["callwright.cost_usd"] == pytest.approx(1.25)
    assert attributes(collected.span("invoke_agent helper"))["callwright.cost_usd"] == pytest.approx(own + 1.25)


async def test_call_span_has_tool_and_attempts(collected: "Collected") -> None:
    await agent_of(collected, LOOK, "done").run("go", session="s")
    found = attributes(collected.span("execute_tool look"))
    assert found.pop("callwright.turn.id")
    assert found == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "look-1",
        "gen_ai.conversation.id": "s",
        "callwright.started": True,
        "callwright.attempts": 1,
    }
    assert collected.span("execute_tool look").status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("call", "code", "started"),
    [
        (ToolCall("1", "fail"), "tool_failed", True),
        (ToolCall("1", "crash"), "crashed", True),
        (ToolCall("1", "hang"), "timed_out", True),
        (ToolCall("1", "look", {"place": 5}), "invalid_input", False),
        (ToolCall("1", "lok"), "not_found", False),
        (ToolCall("1", "note", {"text": "x"}), "denied", False),
    ],
)
async def test_failed_call_span_has_the_error_code(
    collected: "Collected", call: ToolCall, code: str, started: bool
) -> None:
    tools = Registry(look, note, fail, crash, hang)
    executor = Executor(tools, ByMode("plan"), observe=collected.telemetry, retry=RetryPolicy(max_attempts=1))
    await executor.execute([call])
    (span,) = collected.spans
    found = attributes(span)
    assert (found["error.type"], found["callwright.started"]) == (code, started)
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None  # a tool's own words are content
    assert [dict(event.attributes or {}) for event in span.events] == (
        [{"exception.type": "ZeroDivisionError"}] if code == "crashed" else []
    )


async def test_cached_answer_span_is_not_started(collected: "Collected") -> None:
    executor = Executor(Registry(look), hooks=[ScriptedHook(Answer("from before"))], observe=collected.telemetry)
    await executor.execute([LOOK])
    assert attributes(collected.span("execute_tool look"))["callwright.started"] is False
    assert collected.points("gen_ai.execute_tool.duration") == []


async def test_tool_retries_are_span_events(collected: "Collected") -> None:
    flaky = Flaky(Transient("busy", retry_after=2), Transient("busy"))
    await Executor(Registry(flaky), observe=collected.telemetry, clock=FakeClock()).run("flaky")
    (span,) = collected.spans
    retries = [dict(event.attributes or {}) for event in span.events if event.name == "retry"]
    assert [(one["error.type"], one["callwright.attempts"]) for one in retries] == [("transient", 1), ("transient", 2)]
    assert retries[0]["callwright.delay_seconds"] == 2
    assert attributes(span)["callwright.attempts"] == 3
    assert span.status.status_code is StatusCode.UNSET


async def test_request_retries_are_span_events(collected: "Collected") -> None:
    broken = BrokenOff("he", ProviderError("the stream broke off", fault="transient"))
    await agent_of(collected, ProviderError("overloaded", fault="transient"), broken, "hello").run("go")
    span = collected.span("chat claude-sonnet-5")
    assert [(event.name, (event.attributes or {})["error.type"]) for event in span.events] == [
        ("retry", "transient"),
        ("retry", "transient"),
    ]
    assert span.status.status_code is StatusCode.UNSET


async def test_failed_request_marks_its_run_as_error(collected: "Collected") -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    result = await agent_of(collected, BrokenOff("he", ProviderError(f"bad key {key}", fault="auth"))).run("go")
    assert isinstance(result, Stopped)
    chat, run = collected.spans
    assert attributes(chat)["error.type"] == "auth"
    assert chat.status.description == "bad key [redacted]"
    assert (run.status.status_code, attributes(run)["error.type"]) == (StatusCode.ERROR, "provider")
    assert attributes(run)["callwright.ended"] == "stopped"


async def test_paused_run_is_no_error_and_resumes_in_new_span(collected: "Collected", tmp_path: "Path") -> None:
    executor = Executor(Registry(note), observe=collected.telemetry)
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(ScriptedProvider(ToolCall("n", "note", {"text": "x"}), "done"), executor=executor, sessions=store)
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused)
        (run,) = [span for span in collected.spans if span.name == "invoke_agent"]
        assert (run.status.status_code, attributes(run)["callwright.ended"]) == (StatusCode.UNSET, "paused")
        (question,) = run.events
        assert dict(question.attributes or {}) == {
            "gen_ai.tool.name": "note",
            "gen_ai.tool.call.id": "n",
            "callwright.question.kind": "approval",
        }
        assert not [span for span in collected.spans if span.name.startswith("execute_tool")]
        assert isinstance(await agent.resume("s", Answers.approving(paused.questions)), Done)
    assert attributes(collected.span("execute_tool note"))["callwright.started"] is True
    first, second = [span for span in collected.spans if span.name == "invoke_agent"]
    assert attributes(first)["gen_ai.conversation.id"] == attributes(second)["gen_ai.conversation.id"] == "s"


async def test_calls_of_one_message_are_sibling_spans(collected: "Collected") -> None:
    calls = [ToolCall(str(place), "look", {"place": str(place)}) for place in range(5)]
    await agent_of(collected, calls, "done").run("go")
    found = [span for span in collected.spans if span.name == "execute_tool look"]
    run = collected.span("invoke_agent helper").context
    assert run is not None
    assert [span.parent.span_id if span.parent else 0 for span in found] == [run.span_id] * 5
    assert sorted(str(attributes(span)["gen_ai.tool.call.id"]) for span in found) == ["0", "1", "2", "3", "4"]


async def test_spans_of_a_tool_are_inside_its_call(collected: "Collected") -> None:
    tracer = collected.tracers.get_tracer("tool")

    @tool(effect=Effect.READ)
    async def inline() -> str:
        """In the loop."""
        with tracer.start_as_current_span("inner inline"):
            await asyncio.sleep(0)
        return "ok"

    @tool(effect=Effect.READ)
    def threaded() -> str:
        """In a worker thread."""
        with tracer.start_as_current_span("inner threaded"):
            return "ok"

    @tool(effect=Effect.READ)
    async def spread() -> str:
        """In a task."""

        async def part() -> None:
            tracer.start_span("inner spread").end()

        await asyncio.create_task(part())
        return "ok"

    calls = [ToolCall("1", "inline"), ToolCall("2", "threaded"), ToolCall("3", "spread")]
    await agent_of(collected, calls, *calls, "done", tools=(inline, threaded, spread)).run("go")
    inner = {(name, parent) for name, parent in collected.tree.items() if name.startswith("inner")}
    assert inner == {(f"inner {name}", f"execute_tool {name}") for name in ("inline", "threaded", "spread")}
    assert not trace.get_current_span().get_span_context().is_valid


async def test_unclosed_tool_span_does_not_adopt_later_spans(collected: "Collected") -> None:
    from opentelemetry.context import attach

    @tool(effect=Effect.READ)
    async def leaky() -> str:
        """Attach a context and forget it."""
        attach(trace.set_span_in_context(collected.tracers.get_tracer("tool").start_span("forgotten")))
        return "ok"

    await agent_of(collected, ToolCall("1", "leaky"), "done", tools=(leaky,)).run("go")
    assert collected.tree["chat claude-sonnet-5"] == "invoke_agent helper"


async def test_inner_calls_are_inside_the_tool_span(collected: "Collected") -> None:
    @tool(effect=Effect.READ)
    async def survey(context: ToolContext) -> str:
        """Look at two places."""
        calls = [ToolCall(LOOK.id, "look", {"place": place}) for place in "ab"]
        return str(len(await context.execute(*calls)))

    await agent_of(collected, ToolCall(LOOK.id, "survey"), "done", tools=(survey, look)).run("go")
    assert collected.tree["execute_tool look"] == "execute_tool survey"
    assert collected.tree["execute_tool survey"] == "invoke_agent helper"
    assert len([span for span in collected.spans if span.name == "execute_tool look"]) == 2


@pytest.mark.parametrize("watched", ["outer", "inner", "both"])
async def test_inner_agent_span_is_inside_its_call_once(collected: "Collected", watched: str) -> None:
    inside = (collected.observer(),) if watched != "outer" else ()
    around = (collected.observer(),) if watched != "inner" else ()
    inner = Agent(
        ScriptedProvider(LOOK, "found", model="small"),
        executor=Executor(Registry(look), AllowEverything(), observe=inside),
    )
    registry = Registry(inner.as_tool("scout", "Go and see."))
    outer = Agent(
        ScriptedProvider(ToolCall("1", "scout", {"prompt": "go"}), "done", model="large"),
        executor=Executor(registry, AllowEverything(), observe=around),
        name="boss",
    )
    assert isinstance(await outer.run("go"), Done)
    own = {"chat small": "invoke_agent scout", "execute_tool look": "invoke_agent scout"}
    if watched == "inner":
        assert collected.tree == {"invoke_agent scout": "", **own}
        return
    assert collected.tree == {
        "invoke_agent boss": "",
        "chat large": "invoke_agent boss",
        "execute_tool scout": "invoke_agent boss",
        "invoke_agent scout": "execute_tool scout",
        **own,
    }
    assert len(collected.spans) == 8


async def test_cancelled_run_ends_all_spans(collected: "Collected") -> None:
    started = asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.sleep(60)
        return "late"

    calls = [ToolCall("1", "wait"), ToolCall("2", "wait")]
    task = asyncio.ensure_future(agent_of(collected, calls, tools=(wait,)).run("go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    *calls_ended, run = [span for span in collected.spans if not span.name.startswith("chat")]
    assert [attributes(span)["error.type"] for span in calls_ended] == ["cancelled", "cancelled"]
    assert attributes(run)["callwright.ended"] == "cancelled"
    assert run.status.status_code is StatusCode.ERROR
    assert collected.tree["execute_tool wait"] == "invoke_agent helper"


async def test_cancellation_ends_request_span_as_cancelled(collected: "Collected") -> None:
    stop = Cancellation()

    async def never() -> None:
        await asyncio.sleep(0)
        stop.cancel("enough")

    class Silent:
        model = "m"

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            await asyncio.sleep(60)
            yield TextDelta("late")

    agent = Agent(Silent(), executor=Executor(Registry(), observe=collected.telemetry))
    stopping = asyncio.ensure_future(never())
    result = await agent.run("go", cancellation=stop)
    await stopping
    assert isinstance(result, Stopped) and result.kind == "cancelled"
    assert [attributes(span)["error.type"] for span in collected.spans] == ["cancelled", "cancelled"]


async def test_cancelled_call_restores_the_callers_span(collected: "Collected") -> None:
    begun, seen = asyncio.Event(), list[trace.Span]()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.sleep(3600)
        return "late"

    executor = Executor(Registry(wait), observe=collected.telemetry)

    async def caller() -> None:
        with collected.tracers.get_tracer("program").start_as_current_span("caller") as around:
            try:
                await executor.run("wait", turn=Turn(session_id="s"))
            except asyncio.CancelledError:
                seen.extend((around, trace.get_current_span()))

    task = asyncio.ensure_future(caller())
    await begun.wait()
    task.cancel()
    await task
    assert seen[0] is seen[1]
    assert collected.tree["execute_tool wait"] == "caller"


async def test_limit_is_the_error_of_the_run_span(collected: "Collected") -> None:
    agent = Agent(
        ScriptedProvider(LOOK),
        executor=Executor(Registry(look), observe=collected.telemetry),
        limits=RunLimits(turns=1),
    )
    await agent.run("go")
    assert attributes(collected.span("invoke_agent"))["error.type"] == "turns"


async def test_same_call_object_in_parallel_runs_stays_separate(collected: "Collected") -> None:
    @tool(effect=Effect.READ)
    async def pause() -> str:
        """Let others in between."""
        for _ in range(3):
            await asyncio.sleep(0)
        return "ok"

    shared = ToolCall("1", "pause")
    agents = [agent_of(collected, shared, shared, "done", tools=(pause,)) for _ in range(5)]
    await asyncio.gather(*(agent.run("go", session=str(place)) for place, agent in enumerate(agents)))
    runs = {span.context.span_id: span for span in collected.spans if span.name.startswith("invoke") and span.context}
    calls = [span for span in collected.spans if span.name == "execute_tool pause"]
    assert len(calls) == 10
    for call in calls:
        assert call.parent is not None
        mine = runs[call.parent.span_id]
        assert attributes(mine)["gen_ai.conversation.id"] == attributes(call)["gen_ai.conversation.id"]


async def test_runs_of_one_session_name_end_their_own_calls_only(collected: "Collected") -> None:
    """Agents with stores of their own may run sessions of one name at once."""
    ended = asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait until the other run has ended."""
        await ended.wait()
        return "ok"

    waiting = asyncio.ensure_future(
        agent_of(collected, ToolCall("1", "wait"), "done", tools=(wait,)).run("go", session="s")
    )
    await agent_of(collected, LOOK, "done").run("go", session="s")
    ended.set()
    await waiting
    call = collected.span("execute_tool wait")
    assert call.status.is_unset and "error.type" not in attributes(call)
    parents = {span.name: span.parent for span in collected.spans}
    assert parents["chat claude-sonnet-5"] == call.parent, "the request after the call is not inside it"
    counted = {about["gen_ai.tool.name"]: point.value for about, point in collected.points("callwright.tool.calls")}
    assert counted == {"look": 1, "wait": 1}


class InterruptedId(str):
    """A session id at whose comparison another thread begins a call."""

    __slots__ = ("meanwhile",)
    meanwhile: Callable[[], None]

    def __eq__(self, other: object) -> bool:
        self.meanwhile()
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_run_ends_while_another_thread_begins_calls(collected: "Collected") -> None:
    session = InterruptedId("mine")
    session.meanwhile = lambda: collected.telemetry(BatchBegan((ToolCall("2", "look"),), (), "theirs"))
    began = RunBegan("mine")
    for event in (began, BatchBegan((LOOK,), (), session), CallBegan(LOOK), RunEnded(began, "failed")):
        collected.telemetry(event)
    assert [span.name for span in collected.spans] == ["execute_tool look", "invoke_agent"]


class Forging(Hook):
    """Puts an outcome of its own making in the place of every other."""

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome:
        return Completed(ToolCall(outcome.call.id, "other"), Output("made up"))


async def test_replaced_outcome_ends_the_original_span(collected: "Collected") -> None:
    executor = Executor(Registry(look), hooks=[Forging()], observe=collected.telemetry)
    await executor.execute([LOOK, ToolCall("2", "look", {"place": "away"})])
    assert [span.name for span in collected.spans] == ["execute_tool look"] * 2


async def test_observe_with_executor_is_rejected(collected: "Collected") -> None:
    agent = Agent(ScriptedProvider("hi"), [look], observe=collected.telemetry)
    assert isinstance(await agent.run("go"), Done)
    assert [span.name for span in collected.spans] == ["chat scripted", "invoke_agent"]
    with pytest.raises(UsageError, match="pass observe to the executor"):
        Agent(ScriptedProvider(), executor=Executor(Registry()), observe=collected.telemetry)


async def test_call_that_waits_with_an_interrupted_one_ends(collected: "Collected") -> None:
    @tool
    async def ask(context: ToolContext) -> str:
        """Ask, then work."""
        if context.answer is None:
            raise ApprovalRequired("go on?")
        return "done"

    @tool
    async def follow() -> str:
        """Work after the first one."""
        return "done"

    ended: list[str] = []

    def take(event: object) -> None:
        if isinstance(event, CallEnded):
            ended.append(f"{event.call.id} {event.tool} {type(event.outcome).__name__}")

    lines = io.StringIO()
    log = log_to(lines)
    executor = Executor(Registry(ask, follow), AllowEverything(), observe=[collected.telemetry, log, take])
    calls = [ToolCall("1", "ask", {}), ToolCall("2", "follow", {})]
    waiting = await executor.execute(calls)
    assert ended == ["1 ask Interrupted", "2 follow Interrupted"]  # otherwise observers would keep the call for ever
    (question,) = [each for outcome in waiting if isinstance(outcome, Interrupted) for each in outcome.questions]
    await executor.execute(calls, answers=Answers().approve(question))
    assert ended[2:] == ["1 ask Completed", "2 follow Completed"]
    log.close()
    codes = [json.loads(line)["code"] for line in lines.getvalue().splitlines() if '"call ended"' in line]
    assert codes == ["interrupted", "interrupted", "completed", "completed"]
    assert [span.name for span in collected.spans] == ["execute_tool ask", "execute_tool ask", "execute_tool follow"]
