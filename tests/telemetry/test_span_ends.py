"""Every started span ends, whatever happens to the run or the exporter."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from callwright import (
    Effect,
    Executor,
    Interrupted,
    Limits,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    Transient,
    tool,
)
from callwright.agent import Agent, Done, Requests, RunLimits
from callwright.core.content import Text
from callwright.core.errors import ApprovalRequired
from callwright.core.events import CallBegan, CallEnded, Event
from callwright.core.messages import AssistantMessage, Usage
from callwright.policy import ByMode
from callwright.providers import pricing
from callwright.providers.base import ModelRequest, ProviderError
from callwright.retry import RetryPolicy
from callwright.telemetry import Telemetry
from callwright.telemetry.spans import CurrentSpan
from callwright.testing import FakeClock
from callwright.testing.fakes import BrokenOff, Line, ScriptedProvider


class Ledger(SpanProcessor):
    """Counts what started and what ended."""

    def __init__(self) -> None:
        self.open: dict[int, str] = {}
        self.ended = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        context = span.get_span_context()
        assert context is not None
        self.open[context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        del self.open[span.context.span_id]
        self.ended += 1


@tool(effect=Effect.READ)
async def step(times: int = 1) -> str:
    """Give way a few times."""
    for _ in range(times):
        await asyncio.sleep(0)
    return "ok"


@tool(effect=Effect.READ)
async def refuse() -> str:
    """Say no."""
    raise ToolFailed("no")


@tool(effect=Effect.READ)
async def burst() -> str:
    """Break."""
    raise SystemExit(3)


@tool(effect=Effect.READ)
async def moody() -> str:
    """Fail for a while."""
    raise Transient("busy")


@tool(effect=Effect.READ, limits=Limits(seconds=0.001))
async def late() -> str:
    """Take too long."""
    await asyncio.sleep(1)
    return "ok"


@tool(effect=Effect.READ)
def threaded() -> str:
    """Work in a thread."""
    return "ok"


@tool
async def ask() -> str:
    """Need a person's word."""
    return "ok"


@tool(effect=Effect.READ)
async def nest(context: ToolContext) -> str:
    """Call other tools."""
    outcomes = await context.execute(ToolCall("1", "step"), ToolCall("2", "refuse"), ToolCall("3", "ask"))
    return str(len(outcomes))


TOOLS = (step, refuse, burst, moody, late, threaded, ask, nest)
names = st.sampled_from([*(made.name for made in TOOLS), "unknown"])
calls = st.lists(names, min_size=1, max_size=4).map(
    lambda drawn: [ToolCall(str(place), name) for place, name in enumerate(drawn)]
)
failures = st.sampled_from(["transient", "auth"]).flatmap(
    lambda fault: st.sampled_from(
        [ProviderError("no", fault=fault), BrokenOff("he", ProviderError("no", fault=fault))]  # type: ignore[arg-type] - a fault
    )
)
lines: st.SearchStrategy[Line] = st.one_of(calls, calls, failures, st.just("done"))


@settings(max_examples=150, deadline=None)
@given(script=st.lists(lines, max_size=5), stop_after=st.none() | st.integers(0, 25), durable=st.booleans())
def test_every_started_span_ends(script: list[Line], stop_after: int | None, durable: bool) -> None:
    ledger = Ledger()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ledger)

    async def scenario() -> None:
        clock = FakeClock()
        executor = Executor(
            Registry(*TOOLS), ByMode("default"), observe=Telemetry(tracer_provider=provider), clock=clock
        )
        requests = Requests(retry=RetryPolicy(max_attempts=2), clock=clock)
        agent = Agent(ScriptedProvider(*script), executor=executor, requests=requests, limits=RunLimits(turns=4))
        run = asyncio.ensure_future(agent.run("go", session="s" if durable else None))
        if stop_after is not None:
            for _ in range(stop_after):
                await asyncio.sleep(0)
            run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(scenario())
    assert ledger.open == {}
    provider.shutdown()


class Exporting(SpanExporter):
    """Fails at what it is for."""

    def export(self, spans: object) -> SpanExportResult:
        raise OSError("no route to the collector")


class Ending(SpanProcessor):
    """Fails whenever a span ends, without the SDK's protection."""

    def on_end(self, span: ReadableSpan) -> None:
        raise OSError("full")


@pytest.mark.parametrize("broken", [lambda: SimpleSpanProcessor(Exporting()), Ending])
async def test_broken_exporter_does_not_misplace_later_spans(
    broken: Callable[[], SpanProcessor], caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ledger)
    provider.add_span_processor(broken())
    executor = Executor(Registry(step, refuse), observe=Telemetry(tracer_provider=provider))
    agent = Agent(ScriptedProvider(ToolCall("1", "step"), ToolCall("2", "refuse"), "done"), executor=executor)
    with caplog.at_level(logging.CRITICAL):
        assert isinstance(await agent.run("go"), Done)
    assert ledger.open == {}
    assert ledger.ended == 6
    assert not trace.get_current_span().get_span_context().is_valid


async def test_spans_end_if_another_observer_blocks_the_end() -> None:
    """What another observer of the turn raises is the executor's trouble; the run's end closes what it left."""
    ledger = Ledger()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ledger)
    telemetry = Telemetry(tracer_provider=provider)

    def deaf(event: Event) -> None:
        if not isinstance(event, CallEnded):
            telemetry(event)

    received: list[type] = []
    executor = Executor(Registry(step), observe=[deaf, lambda event: received.append(type(event))])
    await Agent(ScriptedProvider(ToolCall("1", "step"), "done"), executor=executor).run("go")
    assert CallBegan in received
    assert ledger.open == {}
    assert not trace.get_current_span().get_span_context().is_valid


async def test_call_that_outlives_its_batch_ends_once() -> None:
    ledger = Ledger()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ledger)
    telemetry = Telemetry(tracer_provider=provider)
    told: list[Event] = []
    executor = Executor(Registry(step), observe=[telemetry, told.append])
    await executor.execute([ToolCall("1", "step")])
    telemetry(told[-1])
    assert ledger.ended == 1


def test_closed_span_is_not_current_afterwards() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    first = CurrentSpan(provider.get_tracer("test").start_span("first"))
    first.close()
    second = CurrentSpan(provider.get_tracer("test").start_span("second"))
    assert second.outer is None
    second.close()
    assert not trace.get_current_span().get_span_context().is_valid


async def test_interrupted_call_ends_its_span_without_an_error() -> None:
    ended: list[ReadableSpan] = []

    class Collect(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            ended.append(span)

    @tool(effect=Effect.READ)
    async def doubt() -> str:
        """Ask while it runs."""
        raise ApprovalRequired("really?")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Collect())
    executor = Executor(Registry(doubt), observe=Telemetry(tracer_provider=provider))
    (outcome,) = await executor.execute([ToolCall("1", "doubt")])
    assert isinstance(outcome, Interrupted)
    assert not trace.get_current_span().get_span_context().is_valid, "what follows is not inside it"
    (span,) = ended
    assert span.attributes is not None and span.attributes["callwright.outcome"] == "interrupted"
    assert span.status.is_unset and "error.type" not in span.attributes


async def test_request_ends_if_the_run_is_cancelled_while_its_price_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pricing, "_loaded", set[str]())  # as in a new process: the list is read in a thread
    ledger, tracers = Ledger(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(ledger)

    def answer(_: ModelRequest) -> AssistantMessage:
        asyncio.get_running_loop().call_soon(run.cancel)
        return AssistantMessage((Text("hi"),), usage=Usage(1, 1), model="claude-sonnet-5")

    agent = Agent(ScriptedProvider.answering(answer), observe=Telemetry(tracer_provider=tracers))
    run = asyncio.ensure_future(agent.run("go"))
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (ledger.open, ledger.ended) == ({}, 2)
