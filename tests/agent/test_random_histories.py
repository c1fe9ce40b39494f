"""Random scripts and user actions: every request has a history with one outcome per call."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.agent.histories import find_history_faults

from callwright import Answers, Effect, Executor, Registry, ToolCall, ToolContext, ToolFailed, tool
from callwright.agent import Agent, Compaction, Paused, Requests, RunLimits
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Stop, ToolMessage
from callwright.hooks.base import Halt
from callwright.providers.base import ModelRequest, ProviderError, ProviderFault
from callwright.sessions import MemoryStore, SessionError, SessionStore, SqliteStore
from callwright.testing import FakeClock, ScriptedHook
from callwright.testing.fakes import BrokenOff, Line, ScriptedProvider
from callwright.tool.base import Cancellation


@tool(effect=Effect.READ)
async def look(n: int = 0) -> str:
    """Look at something."""
    await asyncio.sleep(0)
    return "x" * n


@tool
async def change(n: int = 0) -> str:
    """Change something; asks first."""
    return "changed"


@tool(effect=Effect.READ)
async def fail() -> str:
    """Fail."""
    raise ToolFailed("no")


@tool(effect=Effect.READ)
async def hang() -> str:
    """Wait for ever."""
    await asyncio.sleep(60)
    return "late"


@tool(effect=Effect.READ)
async def nest(context: ToolContext) -> str:
    """Call another tool under the same id."""
    outcomes = await context.execute(ToolCall(context.call_id, "look", {}))
    return str(len(outcomes))


NAMES = ["look", "look", "change", "fail", "hang", "nest", "missing", "halt"]
calls = st.builds(
    ToolCall,
    st.sampled_from(["a", "b", "c", ""]),
    st.sampled_from(NAMES),
    st.sampled_from(["{}", '{"n": 3000}', '{"n": "x"}', "{", '{"n": 1}']),
)
STOPS: list[Stop] = ["length", "paused", "refusal", "end", "calls"]
FAULTS: list[ProviderFault] = ["transient", "invalid", "too_large"]


def spoken(made: list[ToolCall], stop: Stop) -> AssistantMessage:
    return AssistantMessage((Text("t"), *made), stop)


lines = st.one_of(
    st.just("text"),
    st.lists(calls, min_size=1, max_size=4),
    st.builds(spoken, st.lists(calls, max_size=3), st.sampled_from(STOPS)),
    st.builds(ProviderError, st.just("e"), fault=st.sampled_from(FAULTS)),
    st.just(BrokenOff("half", ConnectionResetError("cut"))),
)
moves = st.lists(
    st.sampled_from(["run", "resume", "approve", "decline", "cancel", "switch", "restart", "leave"]),
    min_size=1,
    max_size=8,
)


class Drama:
    """An agent under a random script and a random user."""

    def __init__(self, script: Sequence[Any], store: SessionStore, path: Path | None) -> None:
        self.script = list(script)
        self.store = store
        self.path = path
        self.paused: Paused | None = None
        self.requests = 0
        self.agent = self._agent()

    def _agent(self) -> Agent:
        hook = ScriptedHook(lambda pending: Halt("enough") if pending.call.name == "halt" else None)
        registry = Registry(look, change, fail, hang, nest)
        return Agent(
            ScriptedProvider.answering(self._reply),
            registry,
            executor=Executor(registry, hooks=[hook]),
            sessions=self.store,
            limits=RunLimits(turns=4),
            compaction=Compaction(at_tokens=1500, keep_tokens=200),
            requests=Requests(clock=FakeClock()),
        )

    def _reply(self, request: ModelRequest) -> Line:
        assert find_history_faults(request.messages) == [], request.messages
        assert not isinstance(request.messages[0], ToolMessage)
        self.requests += 1
        return self.script.pop(0) if self.script else "done"

    async def play(self, move: str) -> None:
        if move == "restart" and self.path is not None:
            assert isinstance(self.store, SqliteStore)
            self.store.close()
            self.store = SqliteStore(self.path)
            self.agent, self.paused = self._agent(), None
            return
        requests = self.requests
        result = await self._do(move)
        self.paused = result if isinstance(result, Paused) else None
        if isinstance(result, asyncio.CancelledError) and not await self.store.list():
            await self.check_unrecorded(requests)
            return
        assert find_history_faults(await self.agent.messages("s")) == []

    async def check_unrecorded(self, requests: int) -> None:
        """Cancelled before its first record, as on a busy machine: the run has left nothing and asked nothing."""
        assert self.requests == requests
        with pytest.raises(SessionError, match="no session"):
            await self.store.read("s")
        hold = await self.store.hold("s")  # the cancelled run does not hold it any more
        assert list(hold.records) == []
        await hold.release()

    async def _do(self, move: str) -> object:
        answers = Answers()
        for question in self.paused.questions if self.paused else ():
            answers.approve(question) if move == "approve" else answers.decline(question)
        known = bool(await self.store.list())
        if move in ("resume", "approve", "decline") and known:
            return await self._soon(self.agent.resume("s", None if move == "resume" else answers), Cancellation())
        if move == "leave":
            async with aclosing(self.agent.stream("go", session="s")) as events:
                async for _ in events:
                    return None
        switch = Cancellation()
        run = self.agent.run("go", session="s", cancellation=switch if move == "switch" else None)
        return await self._soon(run, switch if move == "switch" else Cancellation())

    async def _soon(self, run: Any, switch: Cancellation) -> object:
        """Let it run a little, then end it one way or the other, so that nothing hangs."""
        task: asyncio.Future[object] = asyncio.ensure_future(run)
        await asyncio.wait([task], timeout=0.02)
        switch.cancel()
        await asyncio.sleep(0.001)
        if not task.done():
            task.cancel()
        result: object = (await asyncio.gather(task, return_exceptions=True))[0]
        assert not isinstance(result, Exception), result
        return result


async def perform(script: Sequence[Any], todo: Sequence[str], path: Path | None) -> None:
    drama = Drama(script, MemoryStore() if path is None else SqliteStore(path), path)
    for move in todo:
        await drama.play(move)
    drama.script = []
    await drama.play("run")
    if isinstance(drama.store, SqliteStore):
        drama.store.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(lines, max_size=10), moves)
def test_memory_history_is_always_valid(script: list[Any], todo: list[str]) -> None:
    asyncio.run(perform(script, todo, None))


@settings(max_examples=15, deadline=None)
@given(st.lists(lines, max_size=8), moves)
def test_stored_history_is_always_valid(script: list[Any], todo: list[str]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(perform(script, todo, Path(folder) / "s.db"))


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "sqlite"])
async def test_run_cancelled_at_once_leaves_no_session(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "s.db" if durable else None
    drama = Drama(["never asked"], MemoryStore() if path is None else SqliteStore(path), path)
    task = asyncio.ensure_future(drama.agent.run("go", session="s"))
    await asyncio.sleep(0)
    if task.cancel():  # in memory it may have ended: nothing in this run has to wait
        with pytest.raises(asyncio.CancelledError):
            await task
    if await drama.store.list():  # it got further in its first step: then what it stored is whole
        assert find_history_faults(await drama.agent.messages("s")) == []
    else:
        await drama.check_unrecorded(0)
    if isinstance(drama.store, SqliteStore):
        drama.store.close()
