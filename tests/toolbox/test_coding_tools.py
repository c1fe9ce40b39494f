"""`coding_tools`: the tools of a coding agent together."""

from pathlib import Path

import pytest
from tests.toolbox.calling import make_tree

from callwright import Completed, Effect, Executor, Failed, Registry
from callwright.core.errors import Unsafe
from callwright.core.json import JsonObject
from callwright.policy import AllowEverything
from callwright.system.paths import Workspace
from callwright.toolbox import Delete, Glob, Grep, List, Move, coding_tools


def test_tools_have_expected_effects(tmp_path: Path):
    effects = {tool.spec.name: tool.spec.annotations.effect for tool in coding_tools(tmp_path)}
    assert effects == {
        "read": Effect.READ,
        "glob": Effect.READ,
        "grep": Effect.READ,
        "write": Effect.WRITE,
        "edit": Effect.WRITE,
        "bash": Effect.DESTROY,
        "bash_output": Effect.READ,
        "bash_kill": Effect.READ,
    }


def test_names_and_aliases_are_unique(tmp_path: Path):
    names = [name for tool in coding_tools(tmp_path) for name in (tool.spec.name, *tool.spec.aliases)]
    assert len(names) == len(set(names))
    Registry(*coding_tools(Workspace(tmp_path)), strict=True)


async def test_written_file_is_seen_by_other_tools(tmp_path: Path):
    executor = Executor(Registry(*coding_tools(tmp_path)), policies=AllowEverything())
    await executor.run("write", {"path": "a/test.txt", "content": "hello from agent\n"})
    seen = [
        await executor.run("read", {"path": "a/test.txt"}),
        await executor.run("grep", {"pattern": "from", "mode": "content"}),
        await executor.run("glob", {"pattern": "**/*.txt"}),
        await executor.run("bash", {"command": "cat a/test.txt"}),
    ]
    assert all(isinstance(outcome, Completed) for outcome in seen)
    assert seen[0].text == "1\thello from agent\n"  # type: ignore[union-attr] # pyright: ignore[reportAttributeAccessIssue] - completed


async def test_background_jobs_can_be_read_and_stopped(tmp_path: Path):
    executor = Executor(Registry(*coding_tools(tmp_path)), policies=AllowEverything())
    texts: list[str] = []
    for name, arguments in (
        ("bash", {"command": "echo one", "background": True}),
        ("bash", {"command": "exec sleep 600", "background": True}),
        ("bash_output", {"id": "1", "wait_seconds": 60}),
        ("bash_kill", {"id": "2"}),
    ):
        outcome = await executor.run(name, arguments)
        assert isinstance(outcome, Completed), outcome
        texts.append(outcome.text)
    assert texts[2].startswith("one\n") and "stopped" in texts[3]


async def test_job_tools_need_no_approval(tmp_path: Path):
    executor = Executor(Registry(*coding_tools(tmp_path)))
    for name in ("bash_output", "bash_kill"):
        outcome = await executor.run(name, {"id": "7"})
        assert isinstance(outcome, Failed) and "no job was started" in outcome.text


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Delete, {"path": "a/f"}),
        (Move, {"source": "a/f", "destination": "got"}),
        (Move, {"source": "mine", "destination": "a/g"}),
        (List, {"path": "a"}),
        (Glob, {"pattern": "*", "path": "a"}),
        (Glob, {"pattern": "a/*"}),
        (Grep, {"pattern": "secret", "path": "a"}),
    ],
)
async def test_folder_swapped_for_a_link_after_the_check_is_not_used(
    tmp_path: Path, kind: type[Delete | Move | List | Glob | Grep], arguments: JsonObject
):
    make_tree(tmp_path, {"root/a/f": "harmless", "root/mine": "mine", "other/f": "secret"})
    invocation = kind(Workspace(tmp_path / "root", outside="ask")).bind(arguments)
    invocation.accesses()
    (tmp_path / "root" / "a").rename(tmp_path / "aside")
    (tmp_path / "root" / "a").symlink_to(tmp_path / "other")
    with pytest.raises(Unsafe, match="when it was checked"):
        await invocation.run(None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - refused before it is used
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["f"]
