"""Limits of a run last from its prompt to its result, whatever interrupts it."""

from pathlib import Path

import pytest

from callwright import Answers, Executor, Registry, SqliteStore, ToolCall, tool
from callwright.agent import Agent, Compaction, Done, Paused, Prices, Requests, Result, RunLimits, Stopped
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Usage
from callwright.providers.base import ModelRequest
from callwright.testing.fakes import FakeClock, Line, ScriptedProvider


@tool
async def change(n: int) -> str:
    """Change something; asks first."""
    return f"changed {n}"


@tool
async def refuse(n: int) -> str:
    """Fail."""
    raise ValueError("never")


def endless(name: str, usage: Usage = Usage(100, 10)) -> ScriptedProvider:
    """Return a model that calls a tool again and again."""
    made = 0

    def reply(request: ModelRequest) -> Line:
        nonlocal made
        made += 1
        call = ToolCall(f"c{made}", name, {"n": 1 if name == "refuse" else made})
        return AssistantMessage((call,), "calls", usage, "small")

    return ScriptedProvider.answering(reply)


async def approve_until_stopped(path: Path, provider: ScriptedProvider, limits: RunLimits) -> tuple[Result, int]:
    """Approve each call in a new store, as another process would; return the result and the number of resumes."""
    result: Result | None = None
    for resumed in range(20):
        async with SqliteStore(path) as store:
            agent = Agent(provider, executor=Executor(Registry(change, refuse)), sessions=store, limits=limits)
            if result is None:
                result = await agent.run("go", session="s")
            else:
                result = await agent.resume("s", Answers.approving(result.questions))
        if not isinstance(result, Paused):
            return result, resumed
    raise AssertionError("the run never ended")


@pytest.mark.parametrize(
    ("limits", "name", "kind", "resumes"),
    [
        (RunLimits(turns=3), "change", "turns", 3),
        (RunLimits(calls=3), "change", "calls", 3),
        (RunLimits(tokens=300), "change", "tokens", 3),
        (RunLimits(money=0.0003, prices=Prices(1, 0)), "change", "money", 3),
        (RunLimits(money=0.0003, prices=Prices(10, 0), other_prices={"small": Prices(1, 0)}), "change", "money", 3),
        (RunLimits(same_failures=4), "refuse", "repeated", 4),
    ],
)
async def test_resuming_does_not_start_the_limits_again(
    tmp_path: Path, limits: RunLimits, name: str, kind: str, resumes: int
) -> None:
    result, resumed = await approve_until_stopped(tmp_path / "s.db", endless(name), limits)
    assert isinstance(result, Stopped) and result.kind == kind
    assert resumed == resumes
    assert result.usage.total == 0, "the result reports this part of the run"


async def test_reached_limit_starts_again_when_resumed(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        limits = RunLimits(turns=2, tokens=500)
        executor = Executor(Registry(change))
        agent = Agent(endless("change"), executor=executor, sessions=store, limits=limits)
        agent.ask = approve_all
        assert isinstance(first := await agent.run("go", session="s"), Stopped) and first.kind == "turns"
        assert isinstance(second := await agent.resume("s"), Stopped) and second.turns == 2
        third = await agent.resume("s")
        assert isinstance(third, Stopped) and third.kind == "tokens" and third.turns == 1
        assert isinstance(prompted := await agent.run("a new run", session="s"), Stopped) and prompted.turns == 2


async def test_reached_limit_of_calls_starts_again_when_resumed(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        executor, limits = Executor(Registry(change)), RunLimits(calls=2)
        agent = Agent(endless("change"), executor=executor, sessions=store, limits=limits, ask=approve_all)
        assert isinstance(first := await agent.run("go", session="s"), Stopped) and first.kind == "calls"
        assert isinstance(second := await agent.resume("s"), Stopped) and second.turns == 2


async def approve_all(questions: object) -> Answers:
    return Answers.approving(questions)  # type: ignore[arg-type] - the questions


async def test_resumed_session_is_not_compacted_again_and_again(tmp_path: Path) -> None:
    """The usage that was reported before a compaction must not count after it."""
    summaries = 0

    def reply(request: ModelRequest) -> Line:
        nonlocal summaries
        if "Summarise" in str(request.messages[-1]):
            summaries += 1
            return "short"
        return AssistantMessage((Text("done"),), "end", Usage(50_000, 10))

    for _ in range(4):
        async with SqliteStore(tmp_path / "s.db") as store:
            plan = Compaction(at_tokens=40_000, keep_tokens=10_000)
            agent = Agent(
                ScriptedProvider.answering(reply),
                [],
                sessions=store,
                compaction=plan,
                requests=Requests(clock=FakeClock()),
            )
            assert isinstance(await agent.run("a question", session="s"), Done)
            await agent.compact("s")
    assert summaries == 4
