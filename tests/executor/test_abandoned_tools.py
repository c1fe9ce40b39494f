"""Tools and hooks that ignore their cancellation: a grace period, then the turn goes on without them."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS, until, within

from callwright import (
    Agent,
    Completed,
    Effect,
    Executor,
    Failed,
    Limits,
    Outcome,
    Registry,
    ToolCall,
    ToolContext,
    Turn,
    TurnCancelled,
    tool,
)
from callwright.agent import Done
from callwright.core.events import CallAbandoned
from callwright.executor import TurnLimits
from callwright.executor.driver import Abandoned, drive
from callwright.hooks import Hook, PendingCall
from callwright.policy import AllowEverything
from callwright.testing import Recorder, ScriptedProvider
from callwright.tool.base import Cancellation

QUICK = TurnLimits(grace_seconds=0.05)  # with time enough to be abandoned in on a busy machine
SHORT = Limits(seconds=0.01)


async def swallow() -> None:
    """Ignore every cancellation."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


async def swallow_everything() -> None:
    """Ignore even being closed."""
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.sleep(3600)


async def clean_up_slowly() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(3600)


async def spin() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


ends: dict[Any, asyncio.Event] = {}
begun: list[str] = []


async def _child(end: asyncio.Event) -> None:
    while not end.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await end.wait()


async def await_stubborn_task() -> None:
    await asyncio.create_task(_child(ends["now"]))


async def gather_stubborn() -> None:
    await asyncio.gather(_child(ends["now"]), _child(ends["now"]))


async def group_stubborn() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_child(ends["now"]))


async def shield_stubborn() -> None:
    task = asyncio.ensure_future(_child(ends["now"]))
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)


STUBBORN: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (
    swallow,
    swallow_everything,
    clean_up_slowly,
    spin,
    await_stubborn_task,
    gather_stubborn,
    group_stubborn,
    shield_stubborn,
)
kinds = pytest.mark.parametrize("work", STUBBORN, ids=lambda work: work.__name__)


@pytest.fixture(autouse=True)
async def _children() -> Any:
    ends["now"] = asyncio.Event()
    begun.clear()
    yield
    ends["now"].set()


def make_tools(work: Callable[[], Coroutine[Any, Any, None]], limits: Limits = SHORT) -> Registry:
    @tool(effect=Effect.READ, limits=limits)
    async def stubborn() -> str:
        """Refuse to be stopped."""
        begun.append("stubborn")
        await work()
        return "late"

    @tool(effect=Effect.READ)
    async def quick() -> str:
        """Be quick."""
        return "quick"

    return Registry(stubborn, quick)


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(str(number), name) for number, name in enumerate(names)]


@kinds
async def test_turn_goes_on_after_the_deadline_and_grace(work: Any, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    executor = Executor(make_tools(work), observe=recorder, limits=QUICK)
    with caplog.at_level(logging.WARNING, "callwright"):
        late, fine = await within(executor.execute(calls("stubborn", "quick")))
    assert isinstance(late, Failed) and late.error.code == "timed_out" and late.started and "abandoned" in late.text
    assert isinstance(fine, Completed)
    abandoned = [event for event in recorder.events if isinstance(event, CallAbandoned)]
    assert [event.call.name for event in abandoned] == ["stubborn"]
    assert "stubborn ignored its cancellation" in caplog.text


@kinds
async def test_lone_call_is_abandoned_and_its_caller_goes_on(work: Any) -> None:
    executor = Executor(make_tools(work), AllowEverything(), limits=QUICK)
    for _ in range(3):  # the long way first, then the fast path
        outcome = await within(executor.run("stubborn"))
        assert isinstance(outcome, Failed) and outcome.error.code == "timed_out" and "abandoned" in outcome.text

    async def twice() -> int:
        await executor.run("stubborn")
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(0)
        return task.cancelling()

    assert await within(twice()) == 0


@kinds
@pytest.mark.parametrize("names", [("stubborn",), ("stubborn", "quick")], ids=["one", "two"])
async def test_cancelled_task_ends_although_its_tool_does_not(work: Any, names: tuple[str, ...]) -> None:
    executor = Executor(make_tools(work, Limits(seconds=600)), AllowEverything(), limits=QUICK)
    await within(executor.run("quick"))
    for _ in range(2):
        begun.clear()
        running = asyncio.ensure_future(executor.execute(calls(*names)))
        await until(lambda: begun)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=LONG_SECONDS)
        assert done and running.cancelled()
        with pytest.raises(asyncio.CancelledError) as caught:
            running.result()
        cancelled = TurnCancelled.find(caught.value)
        assert cancelled is not None and len(cancelled.outcomes) == len(names)
        late = cancelled.outcomes[0]
        assert isinstance(late, Failed) and late.error.code == "cancelled" and late.started and "abandoned" in late.text


@kinds
async def test_cancellation_returns_outcomes_in_time(work: Any) -> None:
    stop, recorder = Cancellation(), Recorder()
    registry = make_tools(work, Limits(seconds=600))
    executor = Executor(registry, AllowEverything(), observe=recorder, limits=QUICK)
    running = asyncio.ensure_future(executor.execute(calls("stubborn", "quick"), turn=Turn(cancellation=stop)))
    await until(lambda: begun and "CallEnded" in recorder.names)
    stop.cancel()
    done, _ = await asyncio.wait([running], timeout=LONG_SECONDS)
    assert done
    late, fine = running.result()
    assert isinstance(late, Failed) and late.error.code == "cancelled" and "abandoned" in late.text
    assert isinstance(fine, Completed)


@kinds
async def test_inner_call_is_abandoned_and_the_outer_tool_goes_on(work: Any) -> None:
    @tool(effect=Effect.READ)
    async def outer(context: ToolContext) -> str:
        """Call the stubborn one, and then work for longer than a grace period."""
        (inner,) = await context.execute(ToolCall("in", "stubborn"))
        await asyncio.sleep(0.04)
        return type(inner).__name__

    registry = make_tools(work)
    registry.add(outer)
    outcome = await within(Executor(registry, AllowEverything(), limits=QUICK).run("outer"))
    assert isinstance(outcome, Completed) and outcome.text == "Failed"


@kinds
async def test_agent_goes_on_and_can_be_cancelled(work: Any) -> None:
    executor = Executor(make_tools(work), AllowEverything(), limits=QUICK)
    provider = ScriptedProvider(calls("stubborn"), calls("stubborn", "quick"), "done")
    assert isinstance(await within(Agent(provider, executor=executor).run("go")), Done)
    patient = Executor(make_tools(work, Limits(seconds=600)), AllowEverything(), limits=QUICK)
    begun.clear()
    running = asyncio.ensure_future(Agent(ScriptedProvider(calls("stubborn"), "done"), executor=patient).run("go"))
    await until(lambda: begun)
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=LONG_SECONDS)
    assert done and running.cancelled()


def test_run_sync_ends_although_its_tool_does_not() -> None:
    executor = Executor(make_tools(swallow), AllowEverything(), limits=QUICK)
    outcome = executor.run_sync("stubborn")  # also the end of its event loop, which waits for all tasks
    assert isinstance(outcome, Failed) and outcome.error.code == "timed_out"


async def test_swallowed_cancellation_still_ends_the_caller() -> None:
    begun = asyncio.Event()

    @tool(effect=Effect.READ)
    async def deaf() -> str:
        """End well in spite of a cancellation."""
        try:
            begun.set()
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "finished anyway"
        return "late"

    executor = Executor(Registry(deaf), AllowEverything())
    for attempt in range(3):
        begun.clear()
        running = asyncio.ensure_future(executor.run("deaf"))
        await begun.wait()
        running.cancel()
        await asyncio.wait([running], timeout=LONG_SECONDS)
        with pytest.raises(asyncio.CancelledError) as caught:
            running.result()
        cancelled = TurnCancelled.find(caught.value)
        assert cancelled is not None, attempt
        assert [outcome.text for outcome in cancelled.outcomes] == ["finished anyway"]


async def test_tool_that_ends_within_the_grace_period_is_not_abandoned() -> None:
    @tool(effect=Effect.READ, limits=SHORT)
    async def tidy() -> str:
        """Clean up after a cancellation."""
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
        return "late"

    recorder = Recorder()
    executor = Executor(Registry(tidy), observe=recorder, limits=TurnLimits(grace_seconds=60))
    outcome = await within(executor.run("tidy"))
    assert isinstance(outcome, Failed) and outcome.error.code == "timed_out"
    assert not [event for event in recorder.events if isinstance(event, CallAbandoned)]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("place", ["before", "after"])
@kinds
async def test_stubborn_hook_is_abandoned(work: Any, place: str, count: int) -> None:
    class Stubborn(Hook):
        seconds = 0.01

        async def before(self, pending: PendingCall) -> None:
            if place == "before":
                await work()

        async def after(self, pending: PendingCall, outcome: Outcome) -> None:
            if place == "after":
                await work()

    executor = Executor(make_tools(swallow), AllowEverything(), hooks=[Stubborn()], limits=QUICK)
    outcomes = await within(executor.execute(calls(*["quick"] * count)))
    assert len(outcomes) == count and all(isinstance(outcome, Failed) for outcome in outcomes)


async def test_driven_coroutine_behaves_as_an_awaited_one() -> None:
    async def child() -> str:
        await asyncio.sleep(0)
        return "child"

    async def fail() -> str:
        await asyncio.sleep(0)
        raise KeyError("child")

    async def work() -> list[object]:
        task = asyncio.ensure_future(child())
        failing = asyncio.ensure_future(fail())
        cancelled = asyncio.ensure_future(asyncio.sleep(3600))
        cancelled.cancel()
        gathered: list[object] = list(await asyncio.gather(task, failing, cancelled, return_exceptions=True))
        try:
            await failing
        except KeyError:
            gathered.append("KeyError")
        try:
            async with asyncio.timeout(0.01):
                await asyncio.ensure_future(asyncio.sleep(3600))
        except TimeoutError:
            gathered.append("TimeoutError")
        return [
            await asyncio.wait_for(child(), LONG_SECONDS),
            asyncio.current_task() is here,
            *gathered[:1],
            *gathered[3:],
        ]

    here = asyncio.current_task()
    assert await drive(work(), 60) == ["child", True, "child", "KeyError", "TimeoutError"]
    future = asyncio.get_running_loop().create_future()
    future.set_result(7)
    assert await drive(future, 5) == 7
    with pytest.raises(RuntimeError, match="GeneratorExit"):
        await drive(_raise(GeneratorExit()), 5)
    with pytest.raises(asyncio.CancelledError) as caught:
        await drive(_raise(asyncio.CancelledError()), 5)
    assert not isinstance(caught.value, Abandoned)


async def _raise(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error
