"""Paths with marks or a wrong folder: the one file that fits is used, and nothing is guessed."""

from pathlib import Path

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.policy import AllowEverything
from callwright.system.paths import Workspace
from callwright.toolbox import coding_tools
from callwright.toolbox._path_repairs import repair_path
from callwright.toolbox.delete import Delete
from callwright.toolbox.move import Move


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("calc.py", "src/pkg/deep.py", "a/twin.py", "b/twin.py", "@types/x.ts", "docs/my file.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    (tmp_path / "outside.py").write_text("outside")
    return root


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("`calc.py`", "calc.py"),
        ('"calc.py"', "calc.py"),
        ("'calc.py' ", "calc.py"),
        ("@calc.py", "calc.py"),
        ("calc.py:2", "calc.py"),
        ("calc.py:2:7", "calc.py"),
        ("calc.py:2-9", "calc.py"),
        ("calc.py#L2-L9", "calc.py"),
        ("@`calc.py:2`", "calc.py"),
        ("src\\pkg\\deep.py", "src/pkg/deep.py"),
        ("a/calc.py", "calc.py"),
        ("/calc.py", "calc.py"),
        ("project/calc.py", "calc.py"),
        ("/workspace/src/pkg/deep.py", "src/pkg/deep.py"),
        ("pkg/deep.py", "src/pkg/deep.py"),
        ("deep.py", "src/pkg/deep.py"),
        ("src/deep.py", "src/pkg/deep.py"),
        ("src/pkg/sub/deep.py", "src/pkg/deep.py"),
        ("twin.py", None),
        ("c/twin.py", None),
        ("calc.py", None),
        ("@types/x.ts", None),
        ("missing.py", None),
        ("../outside.py", None),
        ("`../outside.py`", None),
        ("/etc/calc.py", None),
        ("", None),
        ("a\0b", None),
    ],
)
def test_existing_path_is_found_where_one_fits(folder: Path, path: str, wanted: str | None):
    assert repair_path(path, Workspace(folder), "existing") == wanted


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("caf\u00e9.txt", "cafe\u0301.txt"),
        ("Shot at 1.05.00\u202fPM.png", "Shot at 1.05.00 PM.png"),
    ],
)
async def test_name_that_looks_the_same_is_the_file(folder: Path, name: str, written: str):
    (folder / name).write_text("x\n")
    executor = Executor(Registry(*coding_tools(folder)), AllowEverything())
    assert isinstance(await executor.run("read", {"path": written}), Completed)
    assert isinstance(await executor.run("write", {"path": written, "content": "x\ny\n"}), Completed)
    assert (folder / name).read_text() == "x\ny\n"
    assert len([*folder.iterdir()]) == 7  # no second file
    (folder / written).write_text("z\n")
    outcome = await executor.run("read", {"path": written})
    assert isinstance(outcome, Completed) and outcome.text.startswith("1\tz")


def test_url_is_read_as_a_path(folder: Path):
    assert repair_path(f"file://{folder}/calc.py", Workspace(folder), "existing") == f"{folder}/calc.py"
    assert repair_path(f"file://{folder}/docs/my%20file.md", Workspace(folder), "existing") == (
        f"{folder}/docs/my file.md"
    )


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("`new.py`", "new.py"),
        ("src\\new.py", "src/new.py"),
        ("new.py", None),
        ("@new.py", None),
        ("new.py:2", None),
        ("pkg/deep.py", None),
        ("@calc.py", "calc.py"),
    ],
)
def test_new_path_loses_only_certain_marks(folder: Path, path: str, wanted: str | None):
    assert repair_path(path, Workspace(folder), "new") == wanted


async def test_file_tools_use_the_repaired_path(folder: Path):
    tools = (*coding_tools(folder), Delete(folder), Move(folder))
    executor = Executor(Registry(*tools), policies=AllowEverything())
    read = await executor.run("read", {"path": "@calc.py"})
    assert isinstance(read, Completed)
    assert "path '@calc.py' read as 'calc.py'" in read.text
    assert isinstance(
        await executor.run("edit", {"path": "calc.py:1", "old": "# calc", "new": "# calculator"}), Completed
    )
    assert (folder / "calc.py").read_text() == "# calculator.py\n"
    assert isinstance(await executor.run("write", {"path": "`new.py`", "content": "x = 1\n"}), Completed)
    assert (folder / "new.py").read_text() == "x = 1\n"
    found = await executor.run("grep", {"pattern": "calculator", "path": "./project"})
    assert isinstance(found, Failed)  # a folder of the workspace's own name is not its root


async def test_delete_and_move_never_guess_a_folder(folder: Path):
    executor = Executor(Registry(Delete(folder), Move(folder)), policies=AllowEverything())
    assert isinstance(await executor.run("delete", {"path": "deep.py"}), Failed)
    assert isinstance(await executor.run("move", {"source": "deep.py", "destination": "x.py"}), Failed)
    assert (folder / "src/pkg/deep.py").exists()
    assert isinstance(await executor.run("delete", {"path": "`calc.py`"}), Completed)
    assert not (folder / "calc.py").exists()


async def test_empty_old_string_creates_the_named_file(folder: Path):
    executor = Executor(Registry(*coding_tools(folder)), policies=AllowEverything())
    outcome = await executor.run("edit", {"path": "deep.py", "old_string": "", "new_string": "x\n"})
    assert isinstance(outcome, Completed)
    assert (folder / "deep.py").read_text() == "x\n"
    assert (folder / "src/pkg/deep.py").read_text() == "# src/pkg/deep.py\n"
