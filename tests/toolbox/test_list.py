"""The list tool on real folders."""

import os
import tempfile
from pathlib import Path

import pytest
from tests.toolbox.calling import as_other_user, call, make_tree

from callwright.core.errors import Crashed, ToolFailed, Unsafe
from callwright.system.paths import open_resolved
from callwright.toolbox.glob import Glob
from callwright.toolbox.grep import Grep
from callwright.toolbox.list import List


async def test_folders_come_first_and_links_show_target(tmp_path: Path) -> None:
    make_tree(tmp_path, {"b.txt": "", "a.txt": "", "sub/c": ""})
    (tmp_path / "link").symlink_to("a.txt")
    assert await call(List(tmp_path)) == "sub/\na.txt\nb.txt\nlink -> a.txt"


async def test_ignored_entries_are_counted(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "build/\n", "build/a": "", "b": ""})
    assert await call(List(tmp_path)) == ".gitignore\nb\n(1 ignored, not shown; ignored=true shows all)"
    assert await call(List(tmp_path), ignored=True) == "build/\n.gitignore\nb"


async def test_long_folder_is_paged(tmp_path: Path) -> None:
    make_tree(tmp_path, {str(number): "" for number in range(5)})
    assert await call(List(tmp_path), limit=2, offset=2) == "2\n3\n(entries 3 to 4 of 5; offset=4 for more)"
    assert await call(List(tmp_path), offset=7) == "no entries at offset 7: there are 5"


async def test_empty_folder_file_and_missing_path_differ(tmp_path: Path) -> None:
    make_tree(tmp_path, {"file": ""})
    (tmp_path / "empty").mkdir()
    assert await call(List(tmp_path), path="empty") == "empty is empty"
    with pytest.raises(ToolFailed, match="is a file"):
        await call(List(tmp_path), path="file")
    with pytest.raises(ToolFailed, match="did you mean empty"):
        await call(List(tmp_path), path="emty")
    with pytest.raises(ToolFailed, match="cannot be searched: File name too long"):
        await call(List(tmp_path), path="a" * 300)


async def test_denied_files_are_invisible_outside_refused(tmp_path: Path) -> None:
    make_tree(tmp_path, {"in/.env": "", "in/a": "", "out/b": ""})
    assert await call(List(tmp_path / "in", hidden=lambda path: path.name == ".env")) == "a"
    with pytest.raises(Unsafe):
        await call(List(tmp_path / "in"), path="../out")


async def test_folder_that_became_a_link_after_its_check_is_not_followed(tmp_path: Path) -> None:
    make_tree(tmp_path, {"in/sub/a": "", "out/secret": ""})

    def swap(path: Path) -> bool:  # as a command in the background can
        if not (tmp_path / "in" / "moved").exists():
            (tmp_path / "in" / "sub").rename(tmp_path / "in" / "moved")
            (tmp_path / "in" / "sub").symlink_to(tmp_path / "out")
        return False

    with pytest.raises(Unsafe, match="link that appeared"):
        await call(List(tmp_path / "in", hidden=swap), path="sub")


@pytest.mark.timeout(20)
async def test_folder_that_became_a_pipe_after_its_check_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, {"sub/a": ""})

    def swap(path: Path, flags: int) -> int:
        path.rename(tmp_path / "moved")
        os.mkfifo(path)
        return open_resolved(path, flags)

    monkeypatch.setattr("callwright.toolbox.list.open_resolved", swap)
    with pytest.raises(Crashed, match="Not a directory"):
        await call(List(tmp_path), path="sub")


@pytest.mark.parametrize("mode", [0, 0o111, 0o444])
async def test_what_may_not_be_read_is_no_empty_result(mode: int) -> None:
    with tempfile.TemporaryDirectory() as place:  # the folders of pytest are closed to other users
        folder = Path(place)
        make_tree(folder, {"closed/a": "text", "closed.txt": "text"})
        await call(List(folder))  # imports what it needs
        folder.chmod(0o755)
        (folder / "closed.txt").chmod(0)
        (folder / "closed").chmod(mode)
        with as_other_user():
            for tool, more in ((List(folder), {}), (Glob(folder), {"pattern": "*"}), (Grep(folder), {"pattern": "t"})):
                with pytest.raises(ToolFailed, match="cannot be searched: Permission denied"):
                    await call(tool, path="closed", **more)
            with pytest.raises(ToolFailed, match="cannot be searched: Permission denied"):
                await call(Grep(folder), path="closed.txt", pattern="text")
        (folder / "closed").chmod(0o755)
