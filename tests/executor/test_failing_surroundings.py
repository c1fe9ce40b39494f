"""A full disk, broken settings, forks, and cancellations while a hook is waited for."""

import asyncio
import gc
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS

from callwright import (
    Agent,
    Answers,
    Approve,
    Completed,
    Effect,
    Executor,
    Failed,
    Limits,
    Outcome,
    Policy,
    Question,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    Turn,
    UsageError,
    tool,
)
from callwright.agent import Done, RunLimits, Stopped
from callwright.clip import Outputs
from callwright.core.access import Access, Ask, Decision
from callwright.core.decisions import digest_of
from callwright.core.events import BatchBegan
from callwright.hooks import Hook, PendingCall
from callwright.policy import AllowEverything, Policies, Subject
from callwright.testing import ScriptedProvider
from callwright.tool.base import Cancellation


@tool(effect=Effect.READ, limits=Limits(output_chars=400))
async def talk() -> str:
    """Say a lot."""
    return "word " * 1_000


async def test_output_that_cannot_be_kept_is_cut_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    executor = Executor(Registry(talk), AllowEverything(), outputs=Outputs(tmp_path / "file" / "folder"))
    provider = ScriptedProvider([ToolCall("1", "talk"), ToolCall("2", "talk")], ToolCall("3", "talk"), "done")
    with caplog.at_level(logging.WARNING, "callwright"):
        assert isinstance(await Agent(provider, executor=executor).run("go"), Done)
    outcome = await executor.run("talk")
    assert isinstance(outcome, Completed) and len(outcome.text) <= 400 and "could not be kept" in outcome.text
    assert "could not be kept" in caplog.text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_half_written_output_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def open_full(path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        real = real_open(path, flags, mode, **rest)
        if str(path).startswith(str(tmp_path)):
            full = real_open("/dev/full", os.O_WRONLY)
            os.dup2(full, real)
            os.close(full)
        return real

    monkeypatch.setattr(os, "open", open_full)
    executor = Executor(Registry(talk), AllowEverything(), outputs=Outputs(tmp_path))
    outcome = await executor.run("talk")
    assert isinstance(outcome, Completed) and "could not be kept" in outcome.text and not list(tmp_path.iterdir())


class BrokenSettings(Policy):
    """Asks, and cannot save an approval."""

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return Ask("everything is asked")

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> Any:
        raise OSError("the settings are not JSON")

    def restore(self, question: Question, answer: Approve, *, session: str) -> Any:
        raise OSError("the settings are not JSON")


async def test_approval_that_cannot_be_saved_counts_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "done"

    async def ask(questions: Sequence[Question]) -> Answers:
        return Answers({question.id: Approve(scope="always") for question in questions})

    executor = Executor(Registry(work), Policies(BrokenSettings()))
    provider = ScriptedProvider(ToolCall("1", "work"), "one", "two")
    store = SqliteStore(tmp_path / "sessions.db")
    agent = Agent(provider, executor=executor, ask=ask, sessions=store)
    with caplog.at_level(logging.WARNING, "callwright"):
        assert isinstance(await agent.run("go", session="s"), Done)
        assert isinstance(await agent.run("on", session="s"), Done)
    store.close()
    assert ran == ["work"] and "could not be remembered" in caplog.text and "could not be restored" in caplog.text


class Waiting(Hook):
    """Waits for ever at one point."""

    def __init__(self, place: str, reached: asyncio.Event) -> None:
        self._place = place
        self._reached = reached

    async def before(self, pending: PendingCall) -> None:
        await self._wait("before")

    async def after(self, pending: PendingCall, outcome: Outcome) -> None:
        await self._wait("after")

    async def _wait(self, place: str) -> None:
        if place == self._place:
            self._reached.set()
            await asyncio.Event().wait()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("place", ["before", "after"])
async def test_cancellation_ends_a_turn_that_waits_for_a_hook(place: str, count: int) -> None:
    stop, reached = Cancellation(), asyncio.Event()
    executor = Executor(Registry(talk), AllowEverything(), hooks=[Waiting(place, reached)])
    calls = [ToolCall(str(number), "talk") for number in range(count)]
    running = asyncio.ensure_future(executor.execute(calls, turn=Turn(cancellation=stop)))
    await reached.wait()
    stop.cancel()
    done, _ = await asyncio.wait([running], timeout=LONG_SECONDS)
    assert done
    outcomes = running.result()
    assert len(outcomes) == count
    for outcome in outcomes:
        assert isinstance(outcome, Failed) and outcome.error.code == "cancelled"
        assert outcome.started is (place == "after")


@pytest.mark.parametrize("place", ["before", "after"])
async def test_time_limit_of_the_run_holds_while_a_hook_is_waited_for(place: str) -> None:
    executor = Executor(Registry(talk), AllowEverything(), hooks=[Waiting(place, asyncio.Event())])
    agent = Agent(ScriptedProvider(ToolCall("1", "talk"), "done"), executor=executor, limits=RunLimits(seconds=0.05))
    running = asyncio.ensure_future(agent.run("go"))
    done, _ = await asyncio.wait([running], timeout=LONG_SECONDS)
    assert done
    result = running.result()
    assert isinstance(result, Stopped) and result.kind == "seconds"


async def test_execute_without_calls_is_a_usage_error() -> None:
    raised: list[BaseException] = []

    @tool(effect=Effect.READ)
    async def none(context: ToolContext) -> str:
        """Call nothing, and something that is not a call."""
        for wrong in ((), ("look",)):
            try:
                await context.execute(*wrong)  # type: ignore[arg-type]
            except UsageError as error:
                raised.append(error)
        return "done"

    assert isinstance(await Executor(Registry(none), AllowEverything()).run("none"), Completed)
    assert len(raised) == 2


_SET_DIGEST = """
from callwright import tool
from callwright.core.calls import digest_of
@tool
async def mark(labels: set[str], nested: dict[str, frozenset[str]]) -> str:
    '''Mark.'''
    return ""
bound = mark.bind({"labels": ["a", "b", "c", "d", "e"], "nested": {"x": ["1", "2", "3"]}})
print(digest_of("mark", bound.arguments, ()))
"""


@pytest.mark.slow
def test_digest_of_sets_is_the_same_in_every_process() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", _SET_DIGEST],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(digests) == 1 and digests != {""}


_FORK = """
import gc, os, sys, threading, time
from callwright import Effect, Executor, Limits, Registry, tool
from callwright.policy import AllowEverything

@tool(effect=Effect.READ, limits=Limits(concurrency=1, output_chars=400))
def work() -> str:
    '''Run in a thread.'''
    return "word " * 1000

@tool(effect=Effect.READ, limits=Limits(concurrency=1))
def slow() -> str:
    '''Run for long in a thread.'''
    begun.set()
    release.wait(60)
    return "slow"

begun, release = threading.Event(), threading.Event()
executor = Executor(Registry(work, slow), AllowEverything())
first = executor.run_sync("work")
path = first.text.split("the whole is in ")[1].split("]")[0]
threading.Thread(target=executor.run_sync, args=("slow",), daemon=True).start()
begun.wait(60)
child = os.fork()
if child == 0:
    outcome = executor.run_sync("work")
    release.set()
    second = executor.run_sync("slow")
    del executor
    gc.collect()
    sys.exit(0 if type(outcome).__name__ == type(second).__name__ == "Completed" else 1)
_, status = os.waitpid(child, 0)
release.set()
print(os.waitstatus_to_exitcode(status), os.path.exists(path), type(executor.run_sync("work")).__name__)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_process_runs_sync_tools_and_keeps_the_parents_outputs() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORK], capture_output=True, text=True, timeout=LONG_SECONDS, check=False
    )
    assert done.stdout.split() == ["0", "True", "Completed"], done.stderr


def test_outputs_are_removed_with_their_owner() -> None:
    outputs = Outputs()
    outputs.keep("text")
    folder = outputs.folder
    del outputs
    gc.collect()
    assert not folder.exists()


class _Full(Exception):
    """The journal cannot be written."""


@pytest.mark.parametrize("concurrency", [None, 4], ids=["fast path", "long way"])
async def test_call_starts_once_its_start_is_in_the_journal(concurrency: int | None) -> None:
    ran: list[str] = []

    @tool(effect=Effect.READ, limits=Limits(concurrency=concurrency))
    async def look(name: str, deep: bool = False) -> str:
        """Look."""
        ran.append(name)
        return name

    executor = Executor(Registry(look), AllowEverything())
    await executor.execute([ToolCall("c0", "look", '{"name":"known"}')])  # the first call goes the long way
    may_end, began = asyncio.Event(), asyncio.Queue[BatchBegan]()

    async def wait(batch: BatchBegan) -> None:
        began.put_nowait(batch)
        await may_end.wait()

    async def fail(batch: BatchBegan) -> None:
        raise _Full

    def start(name: str, journal: Callable[[BatchBegan], Awaitable[None]]) -> asyncio.Task[list[Outcome]]:
        call = ToolCall("c1", "look", {"name": name})
        return asyncio.create_task(executor.execute([call], turn=Turn("s", "t", journal=journal)))

    with pytest.raises(_Full):
        await start("unrecorded", fail)
    stopped = start("stopped", wait)
    await began.get()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    going_on = start("recorded", wait)
    batch = await began.get()
    assert ran == ["known"]
    may_end.set()
    assert [outcome.text for outcome in await going_on] == ["recorded"] and ran == ["known", "recorded"]
    assert list(batch.digests) == [digest_of("look", {"name": "recorded", "deep": False}, (), session_id="s")]
    assert batch.session_id == "s" and batch.turn_id == "t"
