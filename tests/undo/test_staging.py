"""The folder in which an undo prepares files: what is written to it, and what may happen to it meanwhile."""

import os
from pathlib import Path

import pytest
from tests.undo.trees import Workbench, picture

from callwright.core.errors import Unsafe
from callwright.system.undo import restore as restoring, staging
from callwright.system.undo.kept_content import ABSENT, ContentFolder, EntryState, UndoError, read_state
from callwright.system.undo.staging import Staging


@pytest.mark.parametrize("kind", ["file", "link"])
def test_nothing_is_written_through_a_link_in_place_of_staging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    kept = ContentFolder(tmp_path / "kept", 1 << 20)
    (tmp_path / "old").write_text("evil")
    target = read_state(tmp_path / "old", kept, 1 << 10) if kind == "file" else EntryState("link", "evil")
    (tmp_path / "outside").mkdir()
    name_for = Staging.name_for

    def replace_staging(self: Staging, path: str) -> str:
        name = name_for(self, path)
        Path(name).parent.rmdir()
        Path(name).parent.symlink_to("outside")
        return name

    monkeypatch.setattr(Staging, "name_for", replace_staging)
    wanted = [restoring.Restoration(str(tmp_path / "new"), ABSENT, target)]
    with pytest.raises(Unsafe):
        restoring.restore(wanted, kept, tmp_path, lambda _: None)
    assert not [*(tmp_path / "outside").iterdir()] and not (tmp_path / "new").exists()


def count_synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    synced: list[str] = []

    def sync_file(_: int) -> None:
        synced.append("file")

    def sync_all(_: int) -> None:
        synced.append("all")

    monkeypatch.setattr(os, "fsync", sync_file)
    monkeypatch.setattr(staging, "sync_file_system", sync_all)
    return synced


async def test_moved_files_are_moved_back_without_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bench = Workbench(tmp_path)
    (bench.root / "tree/inner").mkdir(parents=True)
    for name in ("one", "two", "inner/one", "inner/empty", "empty"):
        (bench.root / "tree" / name).write_text("" if "empty" in name else name)
    before = identities(bench.root / "tree")
    bench.begin_turn()
    assert await bench.call("move", source="tree", destination="moved")
    synced = count_synced(monkeypatch)
    restored = bench.undo(0)
    assert identities(bench.root / "tree") == before and not (bench.root / "moved").exists()
    bench.redo(restored)
    assert identities(bench.root / "moved") == before and not (bench.root / "tree").exists()
    assert not synced


def identities(root: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): (each.st_ino, each.st_mtime_ns) for path, each in found}


async def test_file_with_a_second_name_is_not_used_for_another(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("text")
    bench.begin_turn()
    assert await bench.call("delete", path="a")
    assert await bench.call("write", path="b", content="text")
    (tmp_path / "other").hardlink_to(bench.root / "b")
    bench.undo(0)
    assert (bench.root / "a").stat().st_nlink == 1 and not (bench.root / "a").samefile(tmp_path / "other")


async def test_moved_file_that_is_changed_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("text")
    bench.begin_turn()
    assert await bench.call("move", source="a", destination="b")
    rename = os.rename

    def write_before(*names: str, **folders: int) -> None:
        if (bench.root / "b").exists():
            (bench.root / "b").write_text("by another program")
        rename(*names, **folders)

    monkeypatch.setattr(os, "rename", write_before)
    with pytest.raises(UndoError, match=r"nothing was restored: .*/b is being changed by another program"):
        bench.undo(0)
    assert picture(bench.root).keys() == {"b"} and (bench.root / "b").read_text() == "by another program"


@pytest.mark.parametrize("at_once", [True, False])
async def test_many_files_wait_for_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool):
    bench = Workbench(tmp_path)
    (bench.root / "tree").mkdir()
    for number in range(7):
        (bench.root / "tree" / str(number)).write_text(str(number))
    before = picture(bench.root)
    bench.begin_turn()
    assert await bench.call("delete", path="tree", recursive=True)
    monkeypatch.setattr(staging, "_MOST_SYNCED_ALONE", 3)
    monkeypatch.setattr(staging, "SYNCS_FILE_SYSTEMS", at_once)
    synced = count_synced(monkeypatch)
    bench.undo(0)
    assert picture(bench.root) == before
    assert synced == (["file"] * 3 + ["all"] if at_once else ["file"] * 7)
