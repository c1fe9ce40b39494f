"""The stream of a run's events: bounded for slow readers, and cancelled as any coroutine."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until

from callwright import Agent, Effect, Executor, Registry, ToolCall, ToolContext, tool
from callwright.agent import Done
from callwright.agent.event_stream import stream_events
from callwright.agent.transcript import Emit
from callwright.core.content import Text
from callwright.core.events import CallProgressed
from callwright.core.messages import AssistantMessage
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.sessions import SessionError
from callwright.testing.fakes import ScriptedProvider


class Chatty:
    """Streams its answer in many pieces."""

    model = "chatty"
    told = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for _ in range(30_000):
            yield ThinkingDelta("hm ")
        for number in range(30_000):
            yield TextDelta(f"{number} ")
        for name in ("a", "b"):
            for _ in range(1000):
                yield CallDelta(name, "x", "{")
        self.told = True
        yield MessageDone(AssistantMessage((Text("done"),)))


async def test_slow_reader_gets_everything_in_few_events() -> None:
    model = Chatty()
    stream = Agent(model, []).stream("go")
    first = await anext(stream)
    await until(lambda: model.told)  # the run does not wait for its reader
    events = [first, *[event async for event in stream]]
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "".join(f"{number} " for number in range(30_000))
    thoughts = [event.text for event in events if isinstance(event, ThinkingDelta)]
    assert "".join(thoughts) == "hm " * 30_000
    calls = [(event.call_id, event.arguments) for event in events if isinstance(event, CallDelta)]
    for name in ("a", "b"):
        assert "".join(arguments for call_id, arguments in calls if call_id == name) == "{" * 1000
    assert len(events) < 1000
    assert isinstance(events[-1], Done)


@tool(effect=Effect.READ)
async def busy(context: ToolContext) -> str:
    """Report often."""
    for number in range(20_000):
        context.report(number)
    return "ready"


async def test_slow_reader_gets_the_last_progress_report() -> None:
    model = ScriptedProvider(ToolCall("1", "busy"), "done")
    stream = Agent(model, executor=Executor(Registry(busy))).stream("go")
    first = await anext(stream)
    await until(lambda: len(model.requests) == 2)
    events = [first, *[event async for event in stream]]
    reports = [event.progress for event in events if isinstance(event, CallProgressed)]
    assert reports[-1] == 19_999 and len(reports) <= 1001
    assert isinstance(events[-1], Done)


async def test_cancellation_while_the_stream_closes_is_raised() -> None:
    started, closing = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def stubborn() -> str:
        """Take a while to stop."""
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            closing.set()
            await asyncio.sleep(0.05)
        return "late"

    model = ScriptedProvider(ToolCall("1", "stubborn"), "done")
    agent = Agent(model, executor=Executor(Registry(stubborn)))

    async def read() -> None:
        stream = agent.stream("go")
        await anext(stream)
        await started.wait()
        await stream.aclose()
        raise AssertionError("the cancellation was swallowed")

    reader = asyncio.create_task(read())
    await closing.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


async def test_run_that_failed_before_its_reader_left_is_not_reported() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))

    async def fail(emit: Emit) -> Done:
        emit(TextDelta("hello"))
        raise SessionError("the disk is full")

    stream = stream_events(fail)
    assert await anext(stream) == TextDelta("hello")
    await asyncio.sleep(0)
    await stream.aclose()
    gc.collect()
    assert not reported
