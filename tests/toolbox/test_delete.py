"""The delete tool on real files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.toolbox.calling import call, make_tree

from callwright.core.access import DeletePath
from callwright.core.errors import ToolFailed, Unsafe
from callwright.core.spec import Effect
from callwright.system.paths import Outside, Workspace
from callwright.toolbox.delete import Delete


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_spec_is_destructive_and_deferred() -> None:
    spec = Delete.contract().spec
    assert spec.annotations.effect is Effect.DESTROY
    assert spec.deferred
    assert {"remove_file", "delete_file"} <= set(spec.aliases)
    assert spec.search_hint == "remove file rm"


async def test_file_and_empty_folder_are_deleted(tmp_path: Path) -> None:
    make_tree(tmp_path, {"sub/a": ""})
    assert await call(Delete(tmp_path), path="sub/a") == "Deleted sub/a"
    assert await call(Delete(tmp_path), path="sub/") == "Deleted folder sub/"
    assert names_in(tmp_path) == []


async def test_full_folder_needs_recursive(tmp_path: Path) -> None:
    make_tree(tmp_path, {"sub/deep/a": ""})
    with pytest.raises(ToolFailed, match="not empty; pass recursive=true"):
        await call(Delete(tmp_path), path="sub")
    await call(Delete(tmp_path), path="sub", recursive=True)
    assert not (tmp_path / "sub").exists()


async def test_delete_symlink_keeps_target(tmp_path: Path) -> None:
    make_tree(tmp_path, {"outside/a": "kept", "in/b": ""})
    (tmp_path / "in" / "link").symlink_to("../outside")
    await call(Delete(tmp_path / "in"), path="link", recursive=True)
    assert names_in(tmp_path / "in") == ["b"]
    assert (tmp_path / "outside" / "a").read_text() == "kept"


@pytest.mark.parametrize("path", ["link/a", "../outside/a", "{tmp}/outside/a", "sub/../../outside/a", "/"])
async def test_outside_path_is_not_deleted(tmp_path: Path, path: str) -> None:
    make_tree(tmp_path, {"outside/a": "kept", "in/sub/b": ""})
    (tmp_path / "in" / "link").symlink_to("../outside")
    with pytest.raises(Unsafe):
        await call(Delete(tmp_path / "in"), path=path.replace("{tmp}", str(tmp_path)))
    assert (tmp_path / "outside" / "a").read_text() == "kept"


@pytest.mark.parametrize("outside", ["refuse", "ask"])
@pytest.mark.parametrize("path", [".", "./", "sub/..", "{tmp}/in", "..", "../in", "../more"])
async def test_workspace_itself_is_not_deleted(tmp_path: Path, path: str, outside: Outside) -> None:
    make_tree(tmp_path, {"in/sub/b": "", "more/root/c": ""})
    workspace = Workspace(tmp_path / "in", tmp_path / "more" / "root", outside=outside)
    with pytest.raises(Unsafe, match="it contains the workspace"):
        await call(Delete(workspace), path=path.replace("{tmp}", str(tmp_path)), recursive=True)
    assert (tmp_path / "in" / "sub" / "b").exists() and (tmp_path / "more" / "root" / "c").exists()


async def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="does not exist"):
        await call(Delete(tmp_path), path="a")


def test_access_is_the_entry_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hosts")
    root = Path(os.path.realpath(tmp_path))
    assert Delete(tmp_path).bind({"path": "link"}).accesses() == [DeletePath(str(root / "link"))]


async def test_folders_nested_too_deep_are_explained(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 10):
        os.mkdir("deep", dir_fd=place)
        above, place = place, os.open("deep", os.O_RDONLY, dir_fd=place)
        os.close(above)
    os.close(place)
    try:
        await call(Delete(tmp_path), path="deep", recursive=True)
    except ToolFailed as error:  # newer Pythons delete it
        assert "nested too deep" in error.message or "Too many open files" in error.message
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "deep"], check=True)  # noqa: ASYNC221 - nothing else runs here
