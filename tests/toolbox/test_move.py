"""The move tool on real files."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests.toolbox.calling import as_other_user, call, make_tree

from callwright import Completed, Executor, Failed, Registry
from callwright.core.access import WritePath
from callwright.core.errors import ToolFailed, Unsafe
from callwright.policy import AllowEverything
from callwright.toolbox import Edit, Read
from callwright.toolbox.move import Move


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_move_creates_missing_folders(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "text"})
    assert await call(Move(tmp_path), source="a", destination="x/y/b") == "Moved a to x/y/b"
    assert (tmp_path / "x" / "y" / "b").read_text() == "text"
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("source", "destination"), [("old/a", "b"), ("old", "new/place")])
async def test_file_that_was_read_counts_as_read_where_it_was_moved_to(tmp_path: Path, source: str, destination: str):
    make_tree(tmp_path, {"old/a": "one\n"})
    executor = Executor(Registry(Read(tmp_path), Edit(tmp_path), Move(tmp_path)), AllowEverything())
    await executor.run("read", {"path": "old/a"})
    await executor.run("move", {"source": source, "destination": destination})
    path = destination if source == "old/a" else f"{destination}/a"
    edit = {"path": path, "old_string": "one", "new_string": "two"}
    assert isinstance(await executor.run("edit", edit), Completed)
    make_tree(tmp_path, {"old/a": "one\n"})  # another file by the old name was not read
    assert isinstance(await executor.run("edit", {**edit, "path": "old/a"}), Failed)


async def test_folder_and_link_are_moved(tmp_path: Path) -> None:
    make_tree(tmp_path, {"old/a": "text"})
    (tmp_path / "link").symlink_to("old/a")
    await call(Move(tmp_path), source="old", destination="new")
    await call(Move(tmp_path), source="link", destination="other")
    assert (tmp_path / "new" / "a").read_text() == "text"
    assert os.fspath((tmp_path / "other").readlink()) == "old/a"


@pytest.mark.parametrize("given", ["archive/", "archive/."])
async def test_file_does_not_take_the_name_of_a_folder(tmp_path: Path, given: str) -> None:
    make_tree(tmp_path, {"a": "new", "archive": "old", "folder/b": ""})
    (tmp_path / "link").symlink_to("folder")
    for source in ("a", "link"):
        with pytest.raises(ToolFailed, match=f"names a folder.*'archive/{source}'"):
            await call(Move(tmp_path), source=source, destination=given, overwrite=True)
    assert (tmp_path / "archive").read_text() == "old"
    await call(Move(tmp_path), source="folder", destination="other/")
    assert names_in(tmp_path / "other") == ["b"]


async def test_overwrite_is_required_to_replace(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "new", "b": "old", "folder/c": ""})
    with pytest.raises(ToolFailed, match="already exists; set overwrite"):
        await call(Move(tmp_path), source="a", destination="b")
    with pytest.raises(ToolFailed, match="already exists; give another path"):
        await call(Move(tmp_path), source="a", destination="folder", overwrite=True)
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new", "old")
    await call(Move(tmp_path), source="a", destination="b", overwrite=True)
    assert (tmp_path / "b").read_text() == "new"


@pytest.mark.parametrize("other", ["b", "folder/a"])
async def test_hard_link_is_moved_over_another_of_the_same_file(tmp_path: Path, other: str) -> None:
    make_tree(tmp_path, {"a": "text", "folder/x": ""})
    (tmp_path / other).hardlink_to(tmp_path / "a")
    with pytest.raises(ToolFailed, match="already exists; set overwrite"):
        await call(Move(tmp_path), source="a", destination=other)
    await call(Move(tmp_path), source="a", destination=other, overwrite=True)
    assert not (tmp_path / "a").exists()
    assert (tmp_path / other).read_text() == "text"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
async def test_file_that_may_not_be_linked_is_moved() -> None:
    with tempfile.TemporaryDirectory() as place:  # the folders of pytest are closed to other users
        folder = Path(place)
        folder.chmod(0o777)
        make_tree(folder, {"a": "text", "b": "kept", "x": ""})
        await call(Move(folder), source="x", destination="y")  # imports what it needs
        with as_other_user():
            with suppress(PermissionError):
                (folder / "linked").hardlink_to(folder / "a")
                pytest.skip("this system lets users make links to the files of others")
            with pytest.raises(ToolFailed, match="already exists; set overwrite"):
                await call(Move(folder), source="a", destination="b")
            await call(Move(folder), source="a", destination="c")
        assert sorted(names_in(folder)) == ["b", "c", "y"]


async def test_file_that_may_not_be_removed_is_not_moved_by_half() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_tree(folder, {"fixed/a": "text", "x": ""})
        await call(Move(folder), source="x", destination="y")
        (folder / "fixed/a").chmod(0o666)
        (folder / "fixed").chmod(0o555)
        folder.chmod(0o777)
        with as_other_user(), pytest.raises(ToolFailed, match="Permission denied"):
            await call(Move(folder), source="fixed/a", destination="b")
        (folder / "fixed").chmod(0o755)
        assert sorted(names_in(folder)) == ["fixed", "y"]


async def test_folder_never_replaces_an_entry(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/x": "", "b": "kept"})
    with pytest.raises(ToolFailed, match="already exists"):
        await call(Move(tmp_path), source="a", destination="b")
    assert (tmp_path / "b").read_text() == "kept"


async def test_missing_source_creates_no_folders(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="does not exist"):
        await call(Move(tmp_path), source="a", destination="x/b")
    assert names_in(tmp_path) == []


async def test_folder_does_not_move_into_itself(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a/b": ""})
    with pytest.raises(ToolFailed, match="or inside it"):
        await call(Move(tmp_path), source="a", destination="a/c")


@pytest.mark.parametrize(("source", "destination"), [("a", "../b"), ("../out", "b"), ("a", "link/b"), ("link/o", "b")])
async def test_move_stays_inside_the_workspace(tmp_path: Path, source: str, destination: str) -> None:
    make_tree(tmp_path, {"in/a": "text", "out/o": "kept"})
    (tmp_path / "in" / "link").symlink_to("../out")
    with pytest.raises(Unsafe):
        await call(Move(tmp_path / "in"), source=source, destination=destination)
    assert (tmp_path / "in" / "a").exists()
    assert names_in(tmp_path / "out") == ["o"]


async def test_workspace_itself_is_not_moved(tmp_path: Path) -> None:
    with pytest.raises(Unsafe, match="workspace"):
        await call(Move(tmp_path), source=".", destination="a")


def test_both_paths_are_declared(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    accesses = Move(tmp_path).bind({"source": "a", "destination": "x/b"}).accesses()
    assert accesses == [WritePath(str(root / "a")), WritePath(str(root / "x" / "b"))]
