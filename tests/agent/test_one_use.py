"""One answer runs a call once, whichever of several processes with one store comes first."""

import asyncio
from pathlib import Path

import pytest
from tests.agent.answering_process import CALL, make_agent, pause
from tests.forked import start_script

from callwright import Answers, SqliteStore
from callwright.agent import Done, Paused
from callwright.sessions import SessionBusy

PROCESS = Path(__file__).with_name("answering_process.py")


def race(folder: Path, *how: str) -> list[str]:
    """Start the processes, let them go at once, and return how each ended."""
    running = [start_script(PROCESS, str(folder), each) for each in how]
    (folder / "go").touch()
    return [process.wait().stdout.strip() for process in running]


def charged(folder: Path) -> int:
    return len((folder / "ledger").read_text().splitlines())


@pytest.mark.parametrize("processes", [2, pytest.param(6, marks=pytest.mark.slow)])
async def test_processes_with_one_answer_run_the_call_once(tmp_path: Path, processes: int) -> None:
    await pause(tmp_path)
    ended = await asyncio.to_thread(race, tmp_path, *["live"] * processes)
    assert ended == ["Done"] * processes and charged(tmp_path) == 1


@pytest.mark.slow
async def test_answer_of_a_killed_process_is_used(tmp_path: Path) -> None:
    await pause(tmp_path)
    (tmp_path / "die").touch()
    assert await asyncio.to_thread(race, tmp_path, "live") == [""]
    (tmp_path / "die").unlink()
    assert await asyncio.to_thread(race, tmp_path, "live", "live") == ["Done", "Done"]
    assert charged(tmp_path) == 1  # the model reads that the outcome is unknown


@pytest.mark.slow
async def test_answer_does_not_count_for_the_same_call_made_again(tmp_path: Path) -> None:
    await pause(tmp_path)
    ended = await asyncio.to_thread(race, tmp_path, "repeat", "repeat")
    assert ended == ["Paused", "Paused"] and charged(tmp_path) == 1


async def test_agents_of_one_process_with_one_answer_run_the_call_once(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as one, SqliteStore(tmp_path / "." / "s.db") as other:
        paused = await make_agent(tmp_path, one, CALL).run("go", session="s")
        assert isinstance(paused, Paused)
        answers = Answers.approving(paused.questions)
        agents = [make_agent(tmp_path, store, "done", "done") for store in (one, other) for _ in range(4)]
        results = await asyncio.gather(*(agent.resume("s", answers) for agent in agents), return_exceptions=True)
        assert [type(result) for result in results].count(Done) == 1
        assert all(isinstance(result, (Done, SessionBusy)) for result in results)
        for agent in agents:
            assert not isinstance(await agent.resume("s", answers), Paused)
    assert charged(tmp_path) == 1
