"""The delete tool on real files."""

import os
from pathlib import Path

import pytest
from tests.toolbox.calling import call, make_tree

from callwright.core.access import DeletePath
from callwright.core.errors import ToolFailed, Unsafe
from callwright.core.spec import Effect
from callwright.toolbox.delete import Delete


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_it_is_destructive_deferred_and_found_by_its_other_names() -> None:
    spec = Delete.contract().spec
    assert spec.annotations.effect is Effect.DESTROY
    assert spec.deferred
    assert {"remove_file", "delete_file"} <= set(spec.aliases)
    assert spec.search_hint == "remove file rm"


async def test_a_file_and_an_empty_folder_are_removed(tmp_path: Path) -> None:
    make_tree(tmp_path, {"sub/a": ""})
    assert await call(Delete(tmp_path), path="sub/a") == "Deleted sub/a"
    assert await call(Delete(tmp_path), path="sub/") == "Deleted folder sub/"
    assert names_in(tmp_path) == []


async def test_a_full_folder_needs_to_be_meant(tmp_path: Path) -> None:
    make_tree(tmp_path, {"sub/deep/a": ""})
    with pytest.raises(ToolFailed, match="not empty; recursive=true"):
        await call(Delete(tmp_path), path="sub")
    await call(Delete(tmp_path), path="sub", recursive=True)
    assert not (tmp_path / "sub").exists()


async def test_of_a_link_only_the_link_goes(tmp_path: Path) -> None:
    make_tree(tmp_path, {"outside/a": "kept", "in/b": ""})
    (tmp_path / "in" / "link").symlink_to("../outside")
    await call(Delete(tmp_path / "in"), path="link", recursive=True)
    assert names_in(tmp_path / "in") == ["b"]
    assert (tmp_path / "outside" / "a").read_text() == "kept"


@pytest.mark.parametrize("path", ["link/a", "../outside/a", "{tmp}/outside/a", "sub/../../outside/a"])
async def test_nothing_outside_is_removed(tmp_path: Path, path: str) -> None:
    make_tree(tmp_path, {"outside/a": "kept", "in/sub/b": ""})
    (tmp_path / "in" / "link").symlink_to("../outside")
    with pytest.raises(Unsafe):
        await call(Delete(tmp_path / "in"), path=path.replace("{tmp}", str(tmp_path)))
    assert (tmp_path / "outside" / "a").read_text() == "kept"


@pytest.mark.parametrize("path", [".", "./", "sub/..", "{tmp}/in", "..", "/", "../in"])
async def test_the_workspace_itself_is_never_removed(tmp_path: Path, path: str) -> None:
    make_tree(tmp_path, {"in/sub/b": ""})
    with pytest.raises(Unsafe, match="workspace"):
        await call(Delete(tmp_path / "in"), path=path.replace("{tmp}", str(tmp_path)), recursive=True)
    assert (tmp_path / "in" / "sub" / "b").exists()


async def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="does not exist"):
        await call(Delete(tmp_path), path="a")


def test_the_access_is_the_entry_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hosts")
    root = Path(os.path.realpath(tmp_path))
    assert Delete(tmp_path).bind({"path": "link"}).accesses() == [DeletePath(str(root / "link"))]
