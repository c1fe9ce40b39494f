"""Two tools and an outside process change one file at once: the loser gets an error, and no line is lost."""

import asyncio
import multiprocessing
from pathlib import Path

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.policy import AllowEverything
from callwright.toolbox.edit.edit_tool import Edit
from callwright.toolbox.read import Read
from callwright.toolbox.write import Write


def _append(path: Path, log: Path, rounds: int) -> None:
    with log.open("ab", buffering=0) as done:
        for number in range(rounds):
            line = b"outside %d\n" % number
            with path.open("ab", buffering=0) as file:
                file.write(line)
            done.write(line)


async def _edit_for_ever(executor: Executor, path: Path, name: str, rounds: int) -> tuple[list[str], int]:
    """Insert a line per round after the first one; returns the lines the tool wrote, and its refusals."""
    written: list[str] = []
    refusals = 0
    for number in range(rounds):
        line = f"{name} {number}"
        seen = await executor.run("read", {"path": path.name})
        if name == "edit":
            arguments = {"path": path.name, "old_string": "first\n", "new_string": f"first\n{line}\n"}
        else:
            assert isinstance(seen, Completed)
            text = "".join(shown.partition("\t")[2] + "\n" for shown in seen.text.splitlines() if "\t" in shown)
            arguments = {"path": path.name, "content": text.replace("first\n", f"first\n{line}\n")}
        outcome = await executor.run(name, arguments)
        if isinstance(outcome, Completed):
            written.append(line)
        else:
            assert isinstance(outcome, Failed)
            refusals += 1
    return written, refusals


async def _race(folder: Path, rounds: int) -> None:
    path, log = folder / "f", folder.parent / f"{folder.name}-log"
    path.write_text("first\n")
    tools = Registry(Read(folder), Write(folder), Edit(folder))
    sessions = [Executor(tools, policies=AllowEverything()) for _ in range(2)]
    outside = multiprocessing.get_context("fork").Process(target=_append, args=(path, log, rounds))
    outside.start()
    results = await asyncio.gather(
        _edit_for_ever(sessions[0], path, "edit", rounds), _edit_for_ever(sessions[1], path, "write", rounds)
    )
    await asyncio.to_thread(outside.join)
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("outside")] == log.read_text().splitlines()
    for (written, refusals), name in zip(results, ("edit", "write"), strict=True):
        assert sorted(line for line in lines if line.startswith(name)) == sorted(written)
        assert len(written) + refusals == rounds


async def test_concurrent_edits_lose_no_line(tmp_path: Path):
    await _race(tmp_path, 30)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_long_race_loses_no_line(tmp_path: Path):
    await _race(tmp_path, 400)
