"""Every class of slips, through the executor with the coding tools: repaired, refused with a next step, or no slip."""

from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.policy import AllowEverything
from callwright.sessions.message_encoding import decode_outcome, encode_outcome
from callwright.toolbox import Delete, List, Move, coding_tools

from .slip_classes import CLASSES, FILES, Accepted, Refused, Repaired, read_files, write_files


class Seen(Hook):
    """Remembers the calls it was shown, as they are judged."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def before(self, pending: PendingCall) -> None:
        self.calls.append((pending.spec.name, dict(pending.arguments)))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "project")


@pytest.mark.parametrize("title", CLASSES)
async def test_slip_class(title: str, project: Path):
    tool, arguments, wanted = CLASSES[title]
    seen = Seen()
    tools = (*coding_tools(project), List(project), Delete(project), Move(project))
    executor = Executor(Registry(*tools), AllowEverything(), hooks=[seen])
    if tool == "edit":
        await executor.run("read", {"path": "calc.py"})
        seen.calls.clear()
    outcome = await executor.run(tool, arguments)
    match wanted:
        case Repaired(name, fields, kinds, changes):
            assert isinstance(outcome, Completed), outcome
            assert tuple(repair.kind for repair in outcome.repairs) == kinds
            assert "(The call was repaired: " in outcome.text
            assert executor.stats[name].repairs == dict.fromkeys(kinds, 1)
            assert decode_outcome(encode_outcome(outcome)).repairs == outcome.repairs
        case Accepted(name, fields, changes):
            assert isinstance(outcome, Completed), outcome
            assert outcome.repairs == ()
        case Refused(says):
            assert isinstance(outcome, Failed), outcome
            assert all(text in outcome.text for text in says), outcome.text
            assert outcome.repairs == ()
            name, fields, changes = tool, {}, {}
        case _:
            raise AssertionError(wanted)
    if fields:
        assert seen.calls[-1][0] == name
        assert fields.items() <= seen.calls[-1][1].items(), seen.calls
    expected = {path: text for path, text in {**FILES, **changes}.items() if text}
    assert read_files(project) == expected


@pytest.mark.parametrize("title", [title for title, (*_, wanted) in CLASSES.items() if isinstance(wanted, Repaired)])
async def test_repair_is_only_offered_in_report_mode(title: str, project: Path):
    tool, arguments, _ = CLASSES[title]
    tools = (*coding_tools(project), List(project), Delete(project), Move(project))
    outcome = await Executor(Registry(*tools), AllowEverything(), repairs="report").run(tool, arguments)
    assert isinstance(outcome, Failed)
    assert "; send " in outcome.text or "send " in outcome.text
    assert read_files(project) == FILES


def test_there_are_at_least_as_many_classes_as_were_tried():
    assert len(CLASSES) >= 67
