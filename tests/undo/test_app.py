"""Undo in the app: sub-agents and skills, whose changes belong to the prompt that started them."""

from pathlib import Path
from typing import Any

import pytest

from callwright import ToolCall
from callwright.agent import UndoHistory
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.testing.fakes import ScriptedProvider

WRITE = ToolCall("w", "write", {"path": "made", "content": "new\n"})
LINE = ToolCall("l", "bash", {"command": "echo more >> kept; mkdir -p d"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "kept").write_text("old\n")
    return project


def make_app(project: Path, *script: Any, keep: bool = True, settings: str = "{}") -> App:
    locations = Locations.of(project, home=project.parent / "home")
    loaded = load_settings(locations, trusted=True, given=[settings])
    options = RunOptions(mode="bypass", keep=keep)
    return assemble(ScriptedProvider(*script), loaded, locations, options)


async def say_and_undo(app: App, project: Path, prompt: str) -> None:
    async with app:
        _ = [event async for event in app.agent.stream(prompt, session="s")]
        assert (project / "made").read_text() == "new\n" and (project / "kept").read_text() == "old\nmore\n"
        history = UndoHistory(app.agent.sessions, "s", app.agent.undo)
        await history.rewind()
        assert [path.name for path in project.iterdir() if path.name != ".callwright"] == ["kept"]
        assert (project / "kept").read_text() == "old\n"
        await history.redo()
        assert (project / "made").read_text() == "new\n" and (project / "d").is_dir()


@pytest.mark.parametrize("keep", [True, False], ids=["stored", "temporary"])
async def test_changes_of_a_prompt(project: Path, keep: bool):
    await say_and_undo(make_app(project, [WRITE], [LINE], "done", keep=keep), project, "go")


async def test_changes_of_a_task_agent(project: Path):
    agents = project.parent / "home" / "agents"
    agents.mkdir(parents=True)
    (agents / "maker.md").write_text("---\nname: maker\ndescription: Makes it.\n---\nMake it.\n")
    task = ToolCall("t", "task", {"agent": "maker", "prompt": "make it"})
    await say_and_undo(make_app(project, task, WRITE, LINE, "made it", "done"), project, "go")


async def test_changes_of_a_skill_that_the_user_calls(project: Path):
    skill = project / ".callwright" / "skills" / "make" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: make\ndescription: Makes it.\ncontext: fork\n---\nMake it.\n")
    await say_and_undo(make_app(project, WRITE, LINE, "made it", "done"), project, "/make")


async def test_limits_come_from_the_settings(project: Path):
    settings = '{"undo": {"megabytes": 2, "days": 3, "largestFileMegabytes": 1}}'
    app = make_app(project, "done", settings=settings)
    assert app.agent.undo is not None
    limits = app.agent.undo.limits
    assert (limits.total_bytes, limits.days, limits.file_bytes) == (2 << 20, 3, 1 << 20)
    app.close()
    off = make_app(project, "done", settings='{"undo": "off"}')
    assert off.agent.undo is None
    off.close()
