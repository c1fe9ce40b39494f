"""kill -9 while a tool asks a question or calls other tools: resumed with the same key, and no effect twice."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.agent.inner_victim import make_registry
from tests.forked import run_script

from callwright import Agent, Answers, Executor, SqliteStore
from callwright.agent import Done, Paused
from callwright.core.messages import ToolMessage
from callwright.policy import AllowEverything
from callwright.testing import ScriptedProvider

VICTIM = Path(__file__).with_name("inner_victim.py")


async def kill(folder: Path, name: str, at: str) -> None:
    ended = await asyncio.to_thread(run_script, VICTIM, str(folder), name, env={**os.environ, "KILL_AT": at})
    assert ended.returncode == -9, ended.stderr


def lines(folder: Path, word: str) -> list[str]:
    return [line for line in (folder / "ledger").read_text().splitlines() if line.startswith(word)]


async def test_killed_at_a_running_question_goes_on_with_the_answer(tmp_path: Path) -> None:
    await kill(tmp_path, "pay", "asked")
    assert not lines(tmp_path, "paid")
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(
            ScriptedProvider("done"), executor=Executor(make_registry(tmp_path), AllowEverything()), sessions=store
        )
        paused = await agent.resume("s")
        assert isinstance(paused, Paused) and [question.running for question in paused.questions] == [True]
        answers = Answers.approving(paused.questions)
        assert isinstance(await agent.resume("s", answers), Done)
        assert isinstance(await agent.resume("s", answers), Done)
    assert lines(tmp_path, "paid") == ["paid 7"]
    assert len(set(lines(tmp_path, "key"))) == 1, "the key of the first run and of the one with the answer"


async def test_killed_after_the_answer_is_reported_as_unknown(tmp_path: Path) -> None:
    await kill(tmp_path, "pay", "answered")
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(
            ScriptedProvider("done"), executor=Executor(make_registry(tmp_path), AllowEverything()), sessions=store
        )
        assert isinstance(await agent.resume("s"), Done)
        message = (await agent.messages("s"))[2]
    assert isinstance(message, ToolMessage) and "may have had an effect" in message.outcomes[0].text
    assert not lines(tmp_path, "paid")


@pytest.mark.parametrize(
    ("at", "outcome"),
    [
        ("after 2", "Completed Completed Completed"),
        ("after 3", "Completed Completed Completed"),
        ("in write 1", "Failed Completed Completed"),
        ("in write 2", "Completed Failed Completed"),
    ],
)
async def test_writes_inside_a_repeated_read_are_not_repeated(tmp_path: Path, at: str, outcome: str) -> None:
    await kill(tmp_path, "survey", at)
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(
            ScriptedProvider("done"), executor=Executor(make_registry(tmp_path), AllowEverything()), sessions=store
        )
        assert isinstance(await agent.resume("s"), Done)
        message = (await agent.messages("s"))[2]
    assert isinstance(message, ToolMessage) and message.outcomes[0].text == outcome
    assert sorted(lines(tmp_path, "wrote")) == ["wrote 1", "wrote 1", "wrote 2"]
