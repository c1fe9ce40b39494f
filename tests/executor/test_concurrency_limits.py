"""Concurrency limits: across event loops, threads, executors, inner agents, retries and replaced tools; no deadlock."""

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS, LoopClock, until, until_so, within

from callwright import (
    Agent,
    Annotations,
    Completed,
    Effect,
    Executor,
    Failed,
    Limits,
    Outcome,
    Registry,
    ToolCall,
    ToolContext,
    TurnCancelled,
    tool,
)
from callwright.core.events import CallProgressed, Event
from callwright.policy import AllowEverything
from callwright.retry import RetryPolicy
from callwright.testing import FakeClock, ScriptedProvider

ONE = Limits(concurrency=1, seconds=60)


class Gauge:
    """Counts how many run at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = self.total = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def make_tools(gauge: Gauge, limits: Limits = ONE) -> tuple[Any, Any]:
    @tool(effect=Effect.READ, limits=limits)
    async def wait() -> str:
        """Wait a little."""
        with gauge:
            await asyncio.sleep(0.002)
        return "done"

    @tool(effect=Effect.READ, limits=limits)
    def block() -> str:
        """Block a little."""
        with gauge:
            time.sleep(0.002)
        return "done"

    return wait, block


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("name", ["wait", "block"])
def test_limit_holds_across_event_loops_and_threads(name: str, limit: int) -> None:
    gauge = Gauge()
    executor = Executor(Registry(*make_tools(gauge, Limits(concurrency=limit))), AllowEverything())
    outcomes: list[Outcome] = []

    async def use() -> None:
        for _ in range(3):
            outcomes.extend(await executor.execute([ToolCall(str(n), name) for n in range(2)]))
            outcomes.append(await executor.run(name))

    threads = [threading.Thread(target=asyncio.run, args=(use(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_SECONDS)
    assert not any(thread.is_alive() for thread in threads)
    assert len(outcomes) == 36 and all(isinstance(outcome, Completed) for outcome in outcomes)
    assert gauge.most <= limit and gauge.total == 36


async def test_limit_holds_across_executors_of_one_tool() -> None:
    gauge = Gauge()
    wait, _ = make_tools(gauge)
    executors = [Executor(Registry(wait), AllowEverything()) for _ in range(3)]
    await within(asyncio.gather(*(executor.run("wait") for executor in executors for _ in range(3))))
    assert gauge.most == 1 and gauge.total == 9


async def test_limit_holds_across_inner_agents() -> None:
    gauge = Gauge()
    wait, _ = make_tools(gauge)
    inner = Agent(
        ScriptedProvider.answering(lambda request: "done" if len(request.messages) > 1 else ToolCall("i", "wait")),
        [wait],
    )
    helper = inner.as_tool("helper", "Help.")
    calls = [ToolCall("1", "wait"), *(ToolCall(f"h{n}", "helper", {"prompt": "go"}) for n in range(3))]
    outer = Agent(ScriptedProvider(calls, "done"), executor=Executor(Registry(wait, helper), AllowEverything()))
    await within(outer.run("go"))
    assert gauge.most == 1 and gauge.total == 4


async def test_replaced_tool_shares_the_limit_and_brings_its_own() -> None:
    gauge = Gauge()
    registry = Registry(make_tools(gauge)[0])
    executor = Executor(registry, AllowEverything())
    first = [asyncio.ensure_future(executor.run("wait")) for _ in range(3)]
    await asyncio.sleep(0)
    registry.add(make_tools(gauge)[0])
    second = [asyncio.ensure_future(executor.run("wait")) for _ in range(3)]
    await within(asyncio.gather(*first, *second))
    assert gauge.most == 1 and gauge.total == 6
    registry.add(make_tools(gauge, Limits(concurrency=3))[0])
    await within(asyncio.gather(*(executor.run("wait") for _ in range(9))))
    assert 1 < gauge.most <= 3


async def test_thread_left_behind_counts_until_it_ends() -> None:
    gauge, release, clock = Gauge(), threading.Event(), LoopClock()

    @tool(annotations=Annotations(Effect.READ, idempotent=True), limits=Limits(concurrency=1, seconds=600))
    def stuck() -> str:
        """Block until released."""
        with gauge:
            release.wait(60)
        return "done"

    executor = Executor(Registry(stuck), AllowEverything(), retry=RetryPolicy(max_attempts=3), clock=FakeClock())

    async def run_out_of_time() -> Outcome:
        running = asyncio.ensure_future(executor.run("stuck"))
        await until(lambda: gauge.now)
        while not running.done():  # each attempt has a time limit of its own
            clock.pass_seconds(601)
            await asyncio.sleep(0)
        return running.result()

    outcome = await run_out_of_time()
    assert isinstance(outcome, Failed) and gauge.most == 1, "the retry waited for the thread of the first attempt"
    assert "still runs" in outcome.text
    again = await run_out_of_time()
    assert isinstance(again, Failed) and "still runs" in again.text and gauge.total == 1
    release.set()
    while isinstance(third := await within(executor.run("stuck")), Failed):
        assert "still runs" in third.text  # the thread is on its way out
    assert isinstance(third, Completed) and gauge.most == 1


def make_nested(names: dict[str, str], limits: Limits = ONE) -> Registry:
    """Make tools that each call the tool named for them."""
    registry = Registry()
    for name, target in names.items():

        def define(name: str, target: str) -> None:
            @tool(name=name, effect=Effect.READ, limits=limits, aliases=[f"{name}_alias"])
            async def nested(context: ToolContext) -> str:
                """Call another tool."""
                await asyncio.sleep(0.005)
                if not target:
                    return "leaf"
                (outcome,) = await context.execute(ToolCall("in", target))
                return f"{type(outcome).__name__}: {outcome.text}"

            registry.add(nested)

        define(name, target)
    return registry


async def test_recursion_through_an_alias_is_refused() -> None:
    executor = Executor(make_nested({"x": "x_alias"}), AllowEverything())
    outcome = await within(executor.run("x_alias"))
    assert isinstance(outcome, Completed) and "would wait for itself" in outcome.text


async def test_calls_that_wait_for_each_other_are_refused() -> None:
    executor = Executor(make_nested({"x": "y", "y": "x"}), AllowEverything())
    for _ in range(3):
        outcomes = await within(executor.execute([ToolCall("1", "x"), ToolCall("2", "y_alias")]))
        assert all(isinstance(outcome, Completed) for outcome in outcomes)
        assert any("would wait for itself" in outcome.text for outcome in outcomes)


async def test_longer_cycles_and_higher_limits_end() -> None:
    executor = Executor(make_nested({"x": "y", "y": "z", "z": "x"}), AllowEverything())
    outcomes = await within(executor.execute([ToolCall(name, name) for name in "xyz"]))
    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    two = Executor(make_nested({"x": "y", "y": "x"}, Limits(concurrency=2)), AllowEverything())
    outcomes = await within(two.execute([ToolCall(f"{name}{n}", name) for name in "xy" for n in range(4)]))
    assert len(outcomes) == 8 and all(isinstance(outcome, Completed) for outcome in outcomes)


async def test_nested_calls_of_different_tools_are_not_refused() -> None:
    executor = Executor(make_nested({"x": "z", "y": "z", "z": ""}), AllowEverything())
    outcomes = await within(executor.execute([ToolCall(f"{name}{n}", name) for name in "xy" for n in range(5)]))
    assert [outcome.text for outcome in outcomes] == ["Completed: leaf"] * 10


async def test_recursion_through_an_inner_agent_is_refused() -> None:
    registry = Registry()
    inner = Agent(
        ScriptedProvider.answering(
            lambda request: "done" if len(request.messages) > 1 else ToolCall("i", "helper", {"prompt": "again"})
        ),
        registry,
    )
    registry.add(inner.as_tool("helper", "Help.", limits=ONE))
    outcome = await within(Executor(registry, AllowEverything()).run("helper", {"prompt": "go"}))
    assert isinstance(outcome, Completed)


async def test_waiting_call_can_be_cancelled_and_leaves_no_place_taken() -> None:
    gauge = Gauge()
    executor = Executor(Registry(*make_tools(gauge)), AllowEverything())
    running = [asyncio.ensure_future(executor.run("wait")) for _ in range(6)]
    await asyncio.sleep(0.001)
    for task in running[1::2]:
        task.cancel()
    await asyncio.wait(running, timeout=LONG_SECONDS)
    assert isinstance(await within(executor.run("wait")), Completed) and gauge.most == 1


def test_progress_from_a_thread_of_another_loop_arrives_on_the_turns_loop() -> None:
    seen: list[tuple[object, int]] = []

    def observe(event: Event) -> None:
        if isinstance(event, CallProgressed):
            seen.append((event.progress, threading.get_ident()))

    @tool(effect=Effect.READ)
    def report(context: ToolContext) -> str:
        """Report from an event loop of this thread."""

        async def inside() -> None:
            context.report("from a loop")

        context.report("from a thread")
        asyncio.run(inside())
        return "done"

    executor = Executor(Registry(report), AllowEverything(), observe=observe)
    here = threading.get_ident()
    for _ in range(2):
        assert isinstance(executor.run_sync("report"), Completed)
    assert seen == [("from a thread", here), ("from a loop", here)] * 2


def test_progress_after_the_loop_has_ended_is_dropped() -> None:
    release, done = threading.Event(), list[str]()

    @tool(effect=Effect.READ, limits=Limits(seconds=0.01))
    def late(context: ToolContext) -> str:
        """Report when nothing listens."""
        release.wait(60)
        context.report("late")
        done.append("ended")
        return "done"

    executor = Executor(Registry(late), AllowEverything(), observe=lambda event: None)
    assert isinstance(executor.run_sync("late"), Failed)
    release.set()
    assert until_so(lambda: done) == ["ended"]


def test_tools_called_from_a_loop_in_a_thread_keep_their_limit() -> None:
    gauge = Gauge()
    wait, _ = make_tools(gauge)

    @tool(effect=Effect.READ)
    def outer(context: ToolContext) -> int:
        """Call another tool from an event loop of this thread."""
        return len(asyncio.run(context.execute(ToolCall("1", "wait"), ToolCall("2", "wait"))))  # type: ignore[arg-type]

    executor = Executor(Registry(wait, outer), AllowEverything())
    outcomes = executor.execute_sync([ToolCall(str(n), "outer") for n in range(4)])
    assert [outcome.text for outcome in outcomes] == ["2"] * 4 and gauge.most == 1


def test_run_sync_does_not_keep_its_loop() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    @tool(effect=Effect.READ)
    def plain() -> str:
        """Run in a thread."""
        return "done"

    def observe(event: Event) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))

    executor = Executor(Registry(plain), AllowEverything(), observe=observe)
    for _ in range(5):
        executor.run_sync("plain")
    assert loops

    def are_gone() -> bool:
        gc.collect()
        return not any(loop() for loop in loops)

    until_so(are_gone)  # the thread may still be on its way out of the last call


@pytest.mark.parametrize("together", [True, False])
async def test_call_cancelled_before_it_has_a_place_has_not_started(together: bool) -> None:
    """A call of another turn has the only place."""
    began: list[str] = []

    @tool(effect=Effect.WRITE, limits=ONE)
    async def change(name: str) -> str:
        """Change something."""
        began.append(name)
        await asyncio.Event().wait()
        return "never"

    executor = Executor(Registry(change), AllowEverything())
    names = ("b", "c") if together else ("b",)
    first = asyncio.create_task(executor.run("change", {"name": "a"}))
    await until(lambda: began == ["a"])
    waiting = asyncio.create_task(executor.execute([ToolCall(name, "change", {"name": name}) for name in names]))
    for _ in range(5):
        await asyncio.sleep(0)
    started: list[bool] = []
    for task in (waiting, first):
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        cancelled = TurnCancelled.find(caught.value)
        assert cancelled is not None
        started += [outcome.started for outcome in cancelled.outcomes if isinstance(outcome, Failed)]
    assert began == ["a"] and started == [*(False for _ in names), True]
