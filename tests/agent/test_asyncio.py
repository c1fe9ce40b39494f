"""`asyncio.timeout`, `wait_for` and task groups around `agent.run` behave as around any coroutine."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from callwright import Agent, Effect, Executor, Registry, SqliteStore, ToolCall, tool
from callwright.agent import Done
from callwright.executor import TurnCancelled
from callwright.policy import AllowEverything
from callwright.testing import ScriptedProvider

started: list[Callable[[], None]] = []


@tool(effect=Effect.READ)
async def sleep() -> str:
    """Sleep for long."""
    for notify in started:
        notify()
    await asyncio.sleep(3600)
    return "slept"


def make_agent(count: int, store: SqliteStore) -> Agent:
    calls = [ToolCall(str(number), "sleep") for number in range(count)]
    executor = Executor(Registry(sleep), AllowEverything())
    return Agent(ScriptedProvider(calls, "done"), executor=executor, sessions=store)


@pytest.mark.parametrize("count", [1, 2])
async def test_timeout_around_a_run_is_a_timeout_error(count: int, tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = make_agent(count, store)
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(None) as limit:
                started[:] = [lambda: limit.reschedule(0)]  # when the tool has begun, not after some time
                await agent.run("go", session="s")
        started.clear()
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0
        cancelled = TurnCancelled.find(caught.value)
        assert cancelled is None or len(cancelled.outcomes) == count
        assert isinstance(await agent.resume("s"), Done), "every call of the cancelled run has its outcome"


@pytest.mark.parametrize("count", [1, 2])
async def test_wait_for_a_run_is_a_timeout_error(count: int, tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(make_agent(count, store).run("go"), 0.05)


@pytest.mark.parametrize("count", [1, 2])
async def test_task_group_ends_a_run_when_a_sibling_fails(count: int, tmp_path: Path) -> None:
    async def fail() -> None:
        await asyncio.sleep(0.05)
        raise ValueError("a sibling failed")

    async with SqliteStore(tmp_path / "s.db") as store:
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(make_agent(count, store).run("go"))
                group.create_task(fail())
    assert [type(error) for error in caught.value.exceptions] == [ValueError]


async def test_tool_that_swallows_its_cancellation_does_not_keep_the_run(tmp_path: Path) -> None:
    @tool(effect=Effect.READ)
    async def deaf() -> str:
        """End well in spite of a cancellation."""
        started[0]()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "finished anyway"
        return "late"

    provider = ScriptedProvider(ToolCall("1", "deaf"), "done")
    agent = Agent(provider, executor=Executor(Registry(deaf), AllowEverything()))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            started[:] = [lambda: limit.reschedule(0)]
            await agent.run("go")
    started.clear()
    assert len(provider.requests) == 1
