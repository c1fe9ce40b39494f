"""Neighbours of the slip classes, as data: each runs with its one reading, or is refused and changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.policy import AllowEverything
from callwright.toolbox import Delete, List, Move, coding_tools

from .slip_classes import FILES, read_files, write_files

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "slip_neighbours.jsonl").read_text().splitlines()
]
GROUP = 40


class LastCall(Hook):
    """Remembers the call it was shown last."""

    name = ""
    arguments: dict[str, Any]

    async def before(self, pending: PendingCall) -> None:
        self.name, self.arguments = pending.spec.name, dict(pending.arguments)


def test_there_are_many_neighbours():
    assert len(ROWS) >= 400
    assert sum("refused" in row for row in ROWS) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(ROWS), GROUP))
async def test_neighbour_has_one_reading_or_is_refused(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/root")  # the messages name it
    for number, row in enumerate(ROWS[start : start + GROUP], start + 1):
        root = write_files(tmp_path / str(number) / "project")
        last = LastCall()
        tools = (*coding_tools(root), List(root), Delete(root), Move(root))
        executor = Executor(Registry(*tools), AllowEverything(), hooks=[last])
        if row["tool"] == "edit":
            await executor.run("read", {"path": "calc.py"})
        outcome = await executor.run(row["tool"], row["arguments"])
        where = f"line {number}: {outcome.text}"
        if "refused" in row:
            assert isinstance(outcome, Failed), where
            assert row["refused"] in outcome.text, where
            assert read_files(root) == FILES, where
            continue
        assert isinstance(outcome, Completed), where
        assert [repair.kind for repair in outcome.repairs] == row["repairs"], where
        assert last.name == row["runs"], where
        assert row["with"].items() <= last.arguments.items(), where
        changed = {path: text for path, text in {**FILES, **row["changes"]}.items() if text is not None}
        assert read_files(root) == changed, where
