"""Deadlines, cancellation, the fast path and nested calls."""

import asyncio
import os
import threading
import time
from contextlib import suppress

import pytest
from tests.waiting import LONG_SECONDS, LoopClock, until, until_so

from callwright import (
    Completed,
    Effect,
    Executor,
    Failed,
    Limits,
    Outcome,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    Transient,
    Turn,
    TurnCancelled,
    tool,
)
from callwright.executor import TurnLimits
from callwright.policy import AllowEverything
from callwright.testing import FakeClock, Recorder, ScriptedHook
from callwright.tool.base import Cancellation

SHORT = Limits(seconds=0.02)


@tool(effect=Effect.READ, limits=SHORT)
async def hang() -> str:
    """Wait for ever."""
    await asyncio.sleep(60)
    return "late"


release, finished = threading.Event(), threading.Event()


@tool(effect=Effect.READ, limits=SHORT)
def block() -> str:
    """Block a thread."""
    release.wait(30)
    finished.set()
    return "late"


@tool(effect=Effect.READ, limits=Limits(seconds=0.4), isolation="process")
def block_process(marker: str) -> str:
    """Block a process that has a child."""
    import subprocess

    child = subprocess.Popen(["sleep", "60"])
    from pathlib import Path

    Path(marker).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(60)
    return "late"


@tool(effect=Effect.READ, isolation="process")
def double(number: int) -> int:
    """Double a number in a process of its own."""
    return number * 2


def outcomes_behind(error: BaseException) -> list[Outcome]:
    cancelled = TurnCancelled.find(error)
    assert cancelled is not None and type(error) is asyncio.CancelledError
    return cancelled.outcomes


async def test_async_tool_is_stopped_at_its_time_limit() -> None:
    outcome = await Executor(Registry(hang)).run("hang")
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "timed_out"
    assert outcome.started
    assert "0.02 s" in outcome.text and "may have had an effect" in outcome.text


async def test_sync_tool_is_abandoned_at_its_time_limit() -> None:
    outcome = await Executor(Registry(block)).run("block")
    assert not finished.is_set(), "the call did not wait for the thread"
    release.set()
    assert isinstance(outcome, Failed) and outcome.error.code == "timed_out" and outcome.started


async def test_caller_continues_after_a_timeout() -> None:
    executor = Executor(Registry(hang))
    await executor.run("hang")
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    await asyncio.sleep(0)


async def test_swallowed_cancellation_does_not_reach_the_caller() -> None:
    @tool(effect=Effect.READ, limits=SHORT)
    async def stubborn() -> str:
        """Refuse to be stopped."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "finished anyway"
        return "late"

    executor = Executor(Registry(stubborn))
    for _ in range(2):  # the long way first, then the short one
        outcome = await executor.run("stubborn")
        assert isinstance(outcome, Completed) and outcome.text == "finished anyway"
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0


async def test_fast_path_gives_the_same_outcomes() -> None:
    """Each call is made twice: the first grants the tool, the second may take the short way."""
    from callwright import Outcome

    attempts, clock = 0, LoopClock()

    @tool(effect=Effect.READ, limits=Limits(seconds=600, output_chars=200))
    async def moody(mood: str) -> object:
        """Behave as told."""
        nonlocal attempts
        attempts += 1
        match mood:
            case "fail":
                raise ToolFailed("no")
            case "crash":
                raise KeyError("lost")
            case "busy" if attempts % 2:
                raise Transient("busy")
            case "hang":
                await asyncio.sleep(0)  # on the fast path a time limit begins when the tool first waits
                clock.pass_seconds(601)
                await asyncio.Event().wait()
            case "data":
                return {"mood": mood}
            case "long":
                return "x" * 1_000
            case "odd":
                return object()
            case _:
                pass
        return mood

    def gist(outcome: Outcome) -> tuple[object, ...]:
        error = outcome.error.code if isinstance(outcome, Failed) else ""
        text = outcome.text if isinstance(outcome, (Completed, Failed)) else ""
        structured = outcome.output.structured if isinstance(outcome, Completed) else None
        comparable = text.split(" is in ")[0] if isinstance(outcome, Completed) else text.split(" at 0x")[0]
        return (
            type(outcome),
            comparable,
            structured,
            error,
            getattr(outcome, "attempts", 0),
            getattr(outcome, "started", None),
        )

    executor = Executor(Registry(moody), clock=FakeClock())
    recorded = Executor(Registry(moody), clock=FakeClock(), observe=Recorder())  # watched, so always the long way
    for mood in ("fine", "fail", "crash", "busy", "hang", "data", "long", "odd"):
        for arguments in ({"mood": mood}, f'{{"mood": "{mood}"}}', '{"mood": 5}'):
            attempts = 0
            short = gist(await executor.run("moody", arguments))
            attempts = 0
            assert short == gist(await recorded.run("moody", arguments)), mood
    assert executor.stats["moody"].outcomes == recorded.stats["moody"].outcomes


async def test_tool_removed_while_it_fails_has_an_outcome() -> None:
    registry = Registry()

    @tool(effect=Effect.READ)
    async def leaving(fail: bool) -> str:
        """Disappear, then fail."""
        if fail:
            registry.remove("leaving")
            raise ToolFailed("gone")
        return "here"

    registry.add(leaving)
    executor = Executor(registry)
    assert isinstance(await executor.run("leaving", {"fail": False}), Completed)
    outcome = await executor.run("leaving", {"fail": True})
    assert isinstance(outcome, Failed) and outcome.error.code == "tool_failed" and outcome.started


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 - a process, not a path
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_isolated_tool_is_killed_with_its_children(tmp_path: object) -> None:
    marker = f"{tmp_path}/pids"
    outcome = await Executor(Registry(block_process), AllowEverything()).run("block_process", {"marker": marker})
    assert isinstance(outcome, Failed) and outcome.error.code == "timed_out"
    from pathlib import Path

    if Path(marker).exists():  # on a very slow machine the limit passes before the child was started
        pids = [int(pid) for pid in Path(marker).read_text().split()]
        await until(lambda: not any(alive(pid) for pid in pids))


async def test_isolated_tool_returns_its_value() -> None:
    outcome = await Executor(Registry(double)).run("double", {"number": 21})
    assert isinstance(outcome, Completed) and outcome.text == "42"


async def test_cancelled_task_gives_every_call_an_outcome() -> None:
    started = asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.sleep(60)
        return "late"

    @tool(effect=Effect.READ)
    async def quick() -> str:
        """Be done at once."""
        return "done"

    executor = Executor(Registry(wait, quick), width=2)
    calls = [ToolCall("1", "quick"), ToolCall("2", "wait"), ToolCall("3", "wait"), ToolCall("4", "wait")]
    task = asyncio.create_task(executor.execute(calls))
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await task
    outcomes = outcomes_behind(stopped.value)
    assert [outcome.call.id for outcome in outcomes] == ["1", "2", "3", "4"]
    assert isinstance(outcomes[0], Completed)
    assert [o.error.code for o in outcomes[1:] if isinstance(o, Failed)] == ["cancelled"] * 3
    assert [o.started for o in outcomes[1:] if isinstance(o, Failed)] == [True, True, False]


async def test_cancelled_lone_call_has_an_outcome() -> None:
    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "late"

    recorder = Recorder()
    task = asyncio.create_task(Executor(Registry(wait), observe=recorder).run("wait"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await task
    assert len(outcomes_behind(stopped.value)) == 1
    assert recorder.names[-1] == "CallEnded"


async def test_cancellation_returns_every_outcome() -> None:
    cancellation = Cancellation()

    @tool(effect=Effect.READ)
    async def pull() -> str:
        """Stop everything."""
        cancellation.cancel("enough")
        await asyncio.sleep(60)
        return "late"

    turn = Turn(cancellation=cancellation)
    outcomes = await Executor(Registry(pull, hang), width=1).execute(
        [ToolCall("1", "pull"), ToolCall("2", "hang")], turn=turn
    )
    assert [o.started for o in outcomes if isinstance(o, Failed) and o.error.code == "cancelled"] == [True, False]
    again = await Executor(Registry(hang)).run("hang", turn=turn)
    assert isinstance(again, Failed) and again.error.code == "cancelled" and not again.started


async def test_tool_that_ignores_cancellation_is_left_behind() -> None:
    cancellation, end, begun = Cancellation(), asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def stubborn() -> str:
        """Refuse to be stopped."""
        begun.set()
        while not end.is_set():
            with suppress(asyncio.CancelledError):
                await end.wait()
        return "finished anyway"

    calls = [ToolCall("1", "stubborn"), ToolCall("2", "hang")]
    turn = Turn(cancellation=cancellation)
    recorder = Recorder()
    executor = Executor(Registry(stubborn, hang), observe=recorder, limits=TurnLimits(grace_seconds=0.02))
    running = asyncio.create_task(executor.execute(calls, turn=turn))
    await begun.wait()
    cancellation.cancel()
    outcomes = await asyncio.wait_for(running, LONG_SECONDS)
    assert [outcome.started for outcome in outcomes if isinstance(outcome, Failed)] == [True, True]
    end.set()
    for _ in range(5):  # its late return value is dropped
        await asyncio.sleep(0)
    assert recorder.names.count("CallEnded") == 2
    assert executor.stats["stubborn"].calls == 1


async def test_sync_tool_sees_its_cancellation() -> None:
    cancellation = Cancellation()
    seen = threading.Event()

    @tool(effect=Effect.READ)
    def poll(context: ToolContext) -> str:
        """Work until told to stop."""
        cancellation.cancel()
        until_so(lambda: context.cancelled)
        seen.set()
        return "stopped early"

    await Executor(Registry(poll)).run("poll", turn=Turn(cancellation=cancellation))
    assert await asyncio.to_thread(seen.wait, LONG_SECONDS)


async def test_nested_calls_share_policies_hooks_and_deadline() -> None:
    clock = LoopClock()

    @tool(effect=Effect.READ, limits=Limits(seconds=3600))
    async def inner(context: ToolContext) -> str:
        """Take longer than the outer call has."""
        deadlines.append(context.deadline)
        clock.pass_seconds(20)
        await asyncio.Event().wait()
        return "late"

    @tool(effect=Effect.WRITE)
    async def write() -> str:
        """Write something."""
        return "written"

    inside: list[object] = []
    deadlines: list[object] = []

    @tool(effect=Effect.READ, limits=Limits(seconds=20))
    async def outer(context: ToolContext) -> str:
        """Call others."""
        inside.extend(await context.execute(ToolCall("w", "write")))
        inside.append(context.deadline)
        inside.extend(await context.execute(ToolCall("i", "inner")))
        return "done"

    hook = ScriptedHook()
    outcome = await Executor(Registry(outer, inner, write), hooks=[hook]).run("outer")
    assert isinstance(outcome, Failed) and outcome.error.code == "timed_out"
    assert type(inside[0]).__name__ == "Interrupted"
    assert inside[1:] == deadlines, "the inner call has what is left of the outer one's time, and no more"
    assert [pending.spec.name for pending in hook.saw] == ["outer", "write", "inner"]


async def test_nested_calls_stop_at_the_depth_limit() -> None:
    depths: list[int] = []

    @tool(effect=Effect.READ)
    async def dig(context: ToolContext) -> str:
        """Call itself."""
        depths.append(context.depth)
        (outcome,) = await context.execute(ToolCall("deeper", "dig"))
        assert not isinstance(outcome, (list, tuple))
        return outcome.text if isinstance(outcome, (Completed, Failed)) else "asked"

    outcome = await Executor(Registry(dig)).run("dig")
    assert isinstance(outcome, Completed)
    assert "8 levels deep" in outcome.text
    assert depths == list(range(8))


async def test_limited_tool_that_calls_itself_fails() -> None:
    @tool(effect=Effect.READ, limits=Limits(concurrency=1))
    async def narrow(context: ToolContext) -> str:
        """Call itself."""
        (outcome,) = await context.execute(ToolCall("again", "narrow"))
        return outcome.text if isinstance(outcome, Failed) else "ran"

    outcome = await Executor(Registry(narrow)).run("narrow")
    assert isinstance(outcome, Completed)
    assert "would wait for itself" in outcome.text
