"""Deadlines, cancellation, the fast path and nested calls."""

import asyncio
import gc
import os
import pickle
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar

import pytest
from tests.executor.conftest import outcomes_behind
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
    tool,
)
from callwright.core.decisions import digest_of
from callwright.core.events import BatchBegan, CallEnded
from callwright.core.json import Json
from callwright.executor import TurnLimits
from callwright.hooks import Hook, PendingCall
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
    release.wait(LONG_SECONDS)
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
    """Each tool is called several times: the first call grants it, the next may take the short way."""
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

    class Look(Hook):
        def after(self, pending: PendingCall, outcome: Outcome) -> None:
            return None

    executor = Executor(Registry(moody), clock=FakeClock())
    events, long_events = Recorder(), Recorder()
    observed = Executor(Registry(moody), clock=FakeClock(), observe=events)
    hooked = Executor(Registry(moody), clock=FakeClock(), observe=long_events, hooks=Look())  # always the long way
    for mood in ("fine", "fail", "crash", "busy", "hang", "data", "long", "odd"):
        for arguments in ({"mood": mood}, f'{{"mood": "{mood}"}}', '{"mood": 5}'):
            gists: list[tuple[object, ...]] = []
            for each in (executor, observed, hooked):
                attempts = 0
                gists.append(gist(await each.run("moody", arguments)))
            assert gists[0] == gists[1] == gists[2], mood
            assert events.names == long_events.names
            ended, long_ended = events.events[-1], long_events.events[-1]
            assert isinstance(ended, CallEnded) and isinstance(long_ended, CallEnded)
            assert gist(ended.outcome) == gist(long_ended.outcome) == gists[0]
    assert executor.stats["moody"].outcomes == observed.stats["moody"].outcomes == hooked.stats["moody"].outcomes


async def test_observed_call_that_is_cancelled_ends_once_on_the_fast_path() -> None:
    begun = asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait(long: bool) -> str:
        """Wait if told to."""
        begun.set()
        if long:
            await asyncio.Event().wait()
        return "done"

    recorder = Recorder()
    executor = Executor(Registry(wait), observe=recorder)
    await executor.run("wait", {"long": False})  # from now on the fast path is open
    recorder.events.clear()
    begun.clear()
    task = asyncio.ensure_future(executor.run("wait", {"long": True}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.names == ["BatchBegan", "CallBegan", "CallEnded"]


async def test_digests_of_a_turn_are_those_of_its_arguments_however_late_they_are_read() -> None:
    @tool(effect=Effect.READ)
    async def sort(words: list[str], deep: dict[str, list[int]], strict: bool = True) -> str:
        """Sort words, in place."""
        words.append("z")
        deep["a"].clear()
        return ""

    given: dict[str, Json] = {"words": ["b", "a"], "deep": {"a": [1]}}
    recorder, read_at_once = Recorder(), list[list[str]]()

    def read(event: object) -> None:
        if isinstance(event, BatchBegan):
            read_at_once.append(list(event.digests))

    for observe in (recorder, read):
        executor = Executor(Registry(sort), observe=observe)
        for _ in range(3):  # the long way first, then the fast path
            await executor.run("sort", given, turn=Turn(session_id="s"))
        await executor.execute([ToolCall("1", "sort", given), ToolCall("2", "missing")], turn=Turn(session_id="s"))
    late = [list(event.digests) for event in recorder.events if isinstance(event, BatchBegan)]
    right = digest_of("sort", {**given, "strict": True}, (), session_id="s")
    assert late == read_at_once == [[right]] * 3 + [[right, digest_of("missing", {}, (), session_id="s")]]
    began = next(event for event in recorder.events if isinstance(event, BatchBegan))
    assert began.digests == (right,) and (right,) == began.digests and hash(began.digests) == hash((right,))
    assert pickle.loads(pickle.dumps(began.digests)) == (right,) and repr(began.digests) == repr((right,))


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


@pytest.mark.slow
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


@pytest.mark.parametrize("outside", [False, True], ids=["out of time", "task cancelled"])
async def test_sync_tool_sees_that_nothing_waits_for_it(outside: bool) -> None:
    began, seen = threading.Event(), threading.Event()

    @tool(effect=Effect.READ, seconds=LONG_SECONDS if outside else 0.05)
    def poll(context: ToolContext) -> str:
        """Work until told to stop."""
        began.set()
        until_so(lambda: context.cancelled)
        seen.set()
        return "stopped early"

    running = asyncio.ensure_future(Executor(Registry(poll)).run("poll"))
    assert await asyncio.to_thread(began.wait, LONG_SECONDS)
    if outside:
        running.cancel()
    with suppress(asyncio.CancelledError):
        outcome = await running
        assert isinstance(outcome, Failed) and outcome.error.code == "timed_out"
    assert await asyncio.to_thread(seen.wait, LONG_SECONDS)


async def test_generator_that_is_out_of_time_ends_at_its_next_value() -> None:
    ended = threading.Event()

    @tool(effect=Effect.READ, seconds=0.05)
    def tick() -> Iterator[str]:
        """Tick for ever."""
        try:
            while True:
                yield "tick"
                time.sleep(0.001)
        finally:
            ended.set()

    outcome = await Executor(Registry(tick)).run("tick")
    assert isinstance(outcome, Failed) and outcome.error.code == "timed_out"
    assert await asyncio.to_thread(ended.wait, LONG_SECONDS)


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


async def test_time_limit_does_not_keep_the_context_of_an_ended_call() -> None:
    class Request:
        pass

    current: ContextVar[Request] = ContextVar("current")

    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        await asyncio.sleep(0)
        return "seen"

    executor = Executor(Registry(look))

    async def handle() -> weakref.ref[Request]:
        request = Request()
        current.set(request)
        assert (await executor.run("look")).text == "seen"
        return weakref.ref(request)

    handled = await asyncio.create_task(handle())
    await asyncio.sleep(0)  # until then the loop itself keeps the task that ended
    gc.collect()
    assert handled() is None
