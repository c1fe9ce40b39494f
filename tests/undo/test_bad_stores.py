"""An undo store that is full, damaged or from a later version blocks no work and never restores half of a turn."""

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from tests.forked import run_script
from tests.undo.trees import Workbench, picture

from callwright.system.private_files import make_private
from callwright.system.sandbox.bubblewrap import find_problem
from callwright.system.undo.change_sets import ChangeHistory
from callwright.system.undo.kept_content import UndoError, UndoLimits
from callwright.system.undo.undo_store import UndoStore

HERE = Path(__file__).parent


async def changed_bench(folder: Path) -> Workbench:
    """A workspace in which one turn changed, created, moved and removed something."""
    bench = Workbench(folder)
    (bench.root / "old").mkdir()
    for name in ("a", "b", "old/c", "old/d"):
        (bench.root / name).write_text(f"content of {name}\n")
    bench.begin_turn()
    assert await bench.call("write", path="a", content="new\n", overwrite=True)
    assert await bench.call("write", path="x/y/z", content="created\n")
    assert await bench.call("delete", path="b")
    assert await bench.call("move", source="old", destination="moved")
    return bench


def contents(bench: Workbench) -> list[Path]:
    return sorted(bench.kept.glob("*/contents/*"))


def refuse(bench: Workbench, match: str, after: int = 0) -> None:
    before = picture(bench.root)
    with pytest.raises(UndoError, match=match):
        bench.undo(after)
    assert picture(bench.root) == before
    assert not [*bench.root.parent.rglob(".callwright-undo-*")]


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
async def test_damaged_content_restores_nothing(tmp_path: Path, damage: str):
    bench = await changed_bench(tmp_path)
    for name in ("a", "b"):  # each by itself: whichever it is, the others are not restored either
        data = f"content of {name}\n".encode()
        (content,) = (path for path in contents(bench) if path.read_bytes() == data)
        match damage:
            case "gone":
                content.unlink()
            case "cut":
                content.write_bytes(data[:-1])
            case _:
                content.write_bytes(data[:-1] + b"?")
        bench.restart()
        refuse(bench, "missing|damaged")
        content.write_bytes(data)
    bench.undo(0)
    assert (bench.root / "b").read_text() == "content of b\n"


async def test_damaged_journal_restores_nothing_and_work_goes_on(tmp_path: Path):
    bench = await changed_bench(tmp_path)
    (journal,) = bench.kept.glob("*/journal")
    log_id = bench.log.log_id
    text = bench.log.folder.joinpath("journal").read_bytes()
    journal.write_bytes(text.replace(b'"before"', b'"befora"', 1))
    bench.restart()
    assert not bench.log.covers(log_id) and not bench.log.covers("")
    assert bench.log.plan_undo(0).restorations == ()
    bench.begin_turn()
    first = picture(bench.root)
    assert await bench.call("write", path="a", content="after the damage\n", overwrite=True)
    bench.undo(0)
    assert picture(bench.root) == first


@pytest.mark.parametrize("cut", range(1, 60, 7))
async def test_torn_last_line_is_left_out(tmp_path: Path, cut: int):
    bench = await changed_bench(tmp_path)
    (journal,) = bench.kept.glob("*/journal")
    journal.write_bytes(journal.read_bytes()[:-cut])
    bench.restart()
    plan = bench.log.plan_undo(0)  # the last state is not known, so that the move counts as another program's
    assert any("moved" in path for path in plan.conflicts)
    bench.begin_turn()
    assert await bench.call("write", path="n", content="n")
    bench.restart()
    assert bench.log.history.last == 2


async def test_later_version_is_neither_read_nor_written(tmp_path: Path):
    bench = await changed_bench(tmp_path)
    (journal,) = bench.kept.glob("*/journal")
    head = b'{"format":2,"log":"x"}'
    text = b"%08x %s\n%s" % (zlib.crc32(head), head, journal.read_bytes().partition(b"\n")[2])
    journal.write_bytes(text)
    bench.restart()
    bench.begin_turn()
    assert await bench.call("write", path="a", content="more\n", overwrite=True)
    assert await bench.call("bash", command="echo line >> a")
    assert journal.read_bytes() == text
    refuse(bench, "later version")


@pytest.mark.slow
@pytest.mark.skipif(bool(find_problem()), reason="commands cannot be confined here")
def test_full_disk_blocks_no_work_and_restores_nothing(tmp_path: Path):
    workspace, kept = tmp_path / "workspace", tmp_path / "kept"
    workspace.mkdir()
    kept.mkdir()
    for number in range(15):
        (workspace / str(number)).write_text("x" * 8000 + str(number))
    bwrap = shutil.which("bwrap") or "bwrap"
    tiny = (bwrap, "--dev-bind", "/", "/", "--size", str(64 * 1024), "--tmpfs", str(kept))
    ended = subprocess.run(
        (*tiny, sys.executable, str(HERE / "full_disk.py"), str(workspace), str(kept)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["completed"] == 30 and told["reports"]
    assert told["last_undone"]  # with room again, it is recorded again
    assert told["kept"] and "not kept" in told["refused"]  # of the turns before, nothing was restored
    assert all((workspace / str(number)).read_text() == "new" for number in range(15))


def undo_killed_after(bench: Workbench, steps: int) -> bool:
    return run_script(HERE / "victim.py", str(bench.kept), str(steps)).returncode == 9


@pytest.mark.parametrize("steps", [1, 5, 9])
async def test_killed_undo_is_taken_back(tmp_path: Path, steps: int):
    bench = await changed_bench(tmp_path)
    before = picture(bench.root)
    assert await asyncio.to_thread(undo_killed_after, bench, steps)
    take_back(bench)
    assert picture(bench.root) == before
    bench.undo(0)
    assert (bench.root / "b").read_text() == "content of b\n" and not (bench.root / "moved").exists()


@pytest.mark.slow
def test_undo_killed_at_any_step_is_taken_back(tmp_path: Path):
    bench = asyncio.run(changed_bench(tmp_path))
    before, steps = picture(bench.root), 0
    while undo_killed_after(bench, steps):
        take_back(bench)
        assert picture(bench.root) == before, steps
        steps += 1
    assert steps > 10
    assert (bench.root / "b").read_text() == "content of b\n" and not (bench.root / "moved").exists()


def take_back(bench: Workbench) -> None:
    make_private(bench.kept)  # as every start of the command does
    bench.restart()
    assert not [*bench.root.parent.rglob(".callwright-undo-*")]


async def test_failed_step_takes_the_others_back(tmp_path: Path):
    bench = await changed_bench(tmp_path)
    (bench.root / "b").mkdir()  # where a file has to go
    (bench.root / "b" / "foreign").write_text("mine\n")
    before = picture(bench.root)
    plan = bench.log.plan_undo(0)
    assert plan.conflicts == (str(bench.root / "b"),)
    with pytest.raises(UndoError, match=r"nothing was restored: .*/b: Directory not empty"):
        bench.log.apply(plan)
    assert picture(bench.root) == before
    shutil.rmtree(bench.root / "b")
    bench.undo(0)


async def test_link_in_place_of_a_folder_is_not_followed(tmp_path: Path):
    bench = await changed_bench(tmp_path)
    outside = tmp_path / "outside"
    (outside / "y").mkdir(parents=True)
    (outside / "y" / "z").write_text("created\n")  # even the content is the expected one
    shutil.rmtree(bench.root / "x")
    (bench.root / "x").symlink_to(outside)
    before = picture(outside)
    plan = bench.log.plan_undo(0)
    assert str(bench.root / "x") in plan.conflicts
    bench.log.apply(plan)
    assert picture(outside) == before
    assert not (bench.root / "x").is_symlink() and (bench.root / "b").exists()


async def test_link_above_a_restored_file_restores_nothing(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / "d").mkdir()
    (bench.root / "d" / "f").write_text("old\n")
    bench.begin_turn()
    assert await bench.call("write", path="d/f", content="new\n", overwrite=True)
    outside = tmp_path / "outside"
    (bench.root / "d").rename(outside)
    (bench.root / "d").symlink_to(outside)
    with pytest.raises(UndoError, match="nothing was restored"):
        bench.log.apply(bench.log.plan_undo(0))
    assert picture(outside)["f"][2] == b"new\n"


async def test_link_in_place_of_a_file_is_replaced_not_written_through(tmp_path: Path):
    bench = await changed_bench(tmp_path)
    target = tmp_path / "target"
    target.write_text("precious\n")
    (bench.root / "a").unlink()
    (bench.root / "a").symlink_to(target)
    plan = bench.log.plan_undo(0)
    assert plan.conflicts == (str(bench.root / "a"),)
    bench.log.apply(plan)
    assert target.read_text() == "precious\n" and (bench.root / "a").read_text() == "content of a\n"


async def test_large_file_is_not_kept_and_the_turn_not_undone(tmp_path: Path):
    bench = Workbench(tmp_path)
    reports: list[str] = []
    bench.store = UndoStore(bench.kept, limits=UndoLimits(file_bytes=1000), report=reports.append)
    bench.recorder = bench.store.recorder("session")
    bench.executor.state.put(bench.recorder)
    (bench.root / "large").write_text("x" * 2000)
    (bench.root / "small").write_text("old\n")
    bench.begin_turn()
    assert await bench.call("write", path="small", content="new\n", overwrite=True)
    bench.begin_turn()
    assert await bench.call("write", path="small", content="newer\n", overwrite=True)
    assert await bench.call("bash", command="truncate -s 0 large")
    assert len(reports) == 1 and "large" in reports[0]
    refuse(bench, "not kept", after=1)
    refuse(bench, "not kept")


async def test_new_large_file_that_stops_an_undo_is_named(tmp_path: Path):
    bench = Workbench(tmp_path)
    bench.store = UndoStore(bench.kept, limits=UndoLimits(file_bytes=1000))
    bench.recorder = bench.store.recorder("session")
    bench.executor.state.put(bench.recorder)
    (bench.root / "small").write_text("old\n")
    bench.begin_turn()
    assert await bench.call("bash", command="truncate -s 2000 large; echo new > small")
    with pytest.raises(
        UndoError, match=r"/large cannot be kept for a redo: it is larger .*; move it away and try again"
    ):
        bench.undo(0)
    assert (bench.root / "small").read_text() == "new\n"
    (bench.root / "large").unlink()
    bench.undo(0)
    assert (bench.root / "small").read_text() == "old\n"


async def test_oldest_turns_are_forgotten_first(tmp_path: Path):
    bench = Workbench(tmp_path)
    bench.store = UndoStore(bench.kept, limits=UndoLimits(total_bytes=100_000))
    bench.recorder = bench.store.recorder("session")
    bench.executor.state.put(bench.recorder)
    for number in range(30):
        bench.begin_turn()
        await bench.call("write", path="file", content=f"{number:05}" * 2000, overwrite=True)
    assert sum(path.stat().st_size for path in contents(bench)) <= 100_000
    assert bench.log.history.forgotten > 0
    refuse(bench, "not kept any more")
    bench.undo(27)
    assert (bench.root / "file").read_text() == "00026" * 2000


def test_many_turns_are_forgotten_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = UndoStore(tmp_path / "kept", limits=UndoLimits(total_bytes=100_000)).open("session")
    file = tmp_path / "file"
    for number in range(200):
        log.begin_turn()
        file.write_text(f"{number:05}" * 70)
        log.keep_after(log.keep_before([file]))
    looks = 0
    needed = ChangeHistory.needed_contents

    def count(history: ChangeHistory, after: int = 0) -> set[str]:
        nonlocal looks
        looks += 1
        return needed(history, after)

    monkeypatch.setattr(ChangeHistory, "needed_contents", count)
    log.begin_turn()
    file.write_text("x" * 29_000)
    log.keep_after(log.keep_before([file]))
    left = [number for number in range(1, 201) if number > log.history.forgotten]
    assert list(log.history.sets) == [*left, 201]
    assert 350 * len(left) + 29_000 <= 50_000 < 350 * (len(left) + 1) + 29_000  # no turn too many
    assert looks < 12


async def test_old_sessions_are_forgotten_on_start(tmp_path: Path):
    bench = await changed_bench(tmp_path)
    (journal,) = bench.kept.glob("*/journal")
    long_ago = journal.stat().st_mtime - 31 * 86_400
    os.utime(journal, (long_ago, long_ago))
    bench.restart()
    assert not contents(bench) and not journal.exists()
    assert not bench.log.covers("")  # a later journal does not pass for the first
    bench.begin_turn()
    assert await bench.call("write", path="q", content="q")
    assert not bench.log.covers("")


async def test_nothing_behind_a_link_is_kept_with_it(tmp_path: Path):
    bench = Workbench(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").touch()
    (bench.root / "link").symlink_to(tmp_path / "outside")
    bench.begin_turn()
    assert await bench.call("delete", path="link")
    assert bench.log.history.sets[1].changes.keys() == {str(bench.root / "link")}
    bench.undo(0)
    assert (bench.root / "link").readlink() == tmp_path / "outside"


async def test_folder_with_a_file_of_the_user_stays(tmp_path: Path):
    bench = Workbench(tmp_path)
    bench.begin_turn()
    assert await bench.call("write", path="made/by/agent", content="x")
    (bench.root / "made/by/user").write_text("theirs")
    _, left = bench.log.apply(bench.log.plan_undo(0))
    assert left == [str(bench.root / "made/by"), str(bench.root / "made")]
    assert picture(bench.root).keys() == {"made", "made/by", "made/by/user"}


@pytest.mark.parametrize("taken", [False, True])
async def test_undo_works_without_hard_links_and_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("old")
    bench.begin_turn()
    assert await bench.call("delete", path="a")

    def refuse(*_: object, **__: object) -> None:
        if taken:
            (bench.root / "a").write_text("of another program")
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    if taken:
        with pytest.raises(UndoError, match="nothing was restored"):
            bench.undo(0)
    else:
        bench.undo(0)
    assert (bench.root / "a").read_text() == ("of another program" if taken else "old")
