"""Undo of commands: what is compared, what is left out and said, and what of the user's repository stays as it is."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.undo.trees import Workbench, picture

from callwright.system.sandbox.bubblewrap import find_problem
from callwright.system.undo.kept_content import UndoError, UndoLimits
from callwright.system.undo.undo_store import UndoStore

pytestmark = pytest.mark.skipif(bool(find_problem()), reason="commands cannot be confined here")


def limit(bench: Workbench, **limits: int) -> None:
    bench.store = UndoStore(bench.kept, limits=UndoLimits(**limits))
    bench.recorder = bench.store.recorder("session")
    bench.executor.state.put(bench.recorder)


async def run(bench: Workbench, line: str) -> None:
    bench.begin_turn()
    await bench.call("bash", command=line)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_index_and_refs_of_the_user_stay(tmp_path: Path):
    bench = Workbench(tmp_path)
    git = ("git", "-C", str(bench.root), "-c", "user.name=a", "-c", "user.email=a@b")
    (bench.root / "a").write_text("committed\n")
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run((*git, *arguments), check=True)  # noqa: ASYNC221 - before the test begins
    (bench.root / "a").write_text("by the user\n")
    subprocess.run((*git, "add", "."), check=True)  # noqa: ASYNC221
    repository = picture(bench.root / ".git")
    await run(bench, "echo by the agent > a; mkdir -p b; echo new > b/c")
    assert picture(bench.root / ".git") == repository
    bench.undo(0)
    assert (bench.root / "a").read_text() == "by the user\n" and not (bench.root / "b").exists()
    assert picture(bench.root / ".git") == repository


async def test_ignored_folders_are_left_out_and_named(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / ".git").mkdir()
    (bench.root / ".gitignore").write_text("build/\n*.log\n")
    for name in ("build/out", "node_modules/x/y", "debug.log", "src/main"):
        (bench.root / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / name).write_text("old\n")
    await run(bench, "echo new | tee build/out node_modules/x/y debug.log src/main >/dev/null; rm -rf build")
    plan = bench.log.plan_undo(0)
    assert sorted(Path(path).name for path in plan.paths) == ["debug.log", "main"]
    assert plan.notes == (f"not restored: {bench.root}/build (a folder that is not kept)",)
    bench.undo(0)
    assert (bench.root / "debug.log").read_text() == "old\n"
    assert (bench.root / "node_modules/x/y").read_text() == "new\n"


async def test_ignored_folder_that_was_moved_blocks_the_undo(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / ".gitignore").write_text("build/\n")
    (bench.root / "build").mkdir()
    (bench.root / "build" / "only copy").write_text("precious\n")
    await run(bench, "mv build kept")
    with pytest.raises(UndoError, match="moved"):
        bench.undo(0)
    assert (bench.root / "kept" / "only copy").exists()


async def test_changed_ignore_rules_remove_nothing(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / ".gitignore").write_text("build/\n")
    for name in ("build/out", "src/main"):
        (bench.root / name).parent.mkdir()
        (bench.root / name).write_text("old\n")
    before = picture(bench.root)
    await run(bench, "echo src/ > .gitignore")
    assert bench.log.plan_undo(0).paths == (str(bench.root / ".gitignore"),)
    bench.undo(0)
    assert picture(bench.root) == before


async def test_reading_commands_keep_nothing(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("text\n")
    await run(bench, "cat a; ls -l; grep x a")
    assert not bench.kept.exists()


async def test_mode_of_a_file_that_got_a_second_name_is_undone(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("text\n")
    before = picture(bench.root)
    await run(bench, "ln a b; chmod 755 a")
    bench.undo(0)
    assert picture(bench.root) == before


async def test_quick_changes_of_the_same_size_are_seen(tmp_path: Path):
    bench = Workbench(tmp_path)
    for number in range(10):
        (bench.root / "a").write_text("one")  # within one step of the clock of the file system
        await run(bench, "printf two > a; touch -r /etc/hostname a")
        bench.undo(number)
        assert (bench.root / "a").read_text() == "one"


async def test_background_command_is_named(tmp_path: Path):
    bench = Workbench(tmp_path)
    bench.begin_turn()
    await bench.call("bash", command="sleep 0; cat a", background=True)
    assert not bench.kept.exists()  # it cannot change anything
    await bench.call("bash", command="touch a", background=True)
    assert "touch a" in bench.log.plan_undo(0).notes[0]


async def test_too_many_files_block_the_undo_not_the_command(tmp_path: Path):
    bench = Workbench(tmp_path)
    limit(bench, entries=20)
    for number in range(30):
        (bench.root / str(number)).write_text("old")
    await run(bench, "echo new > 3")
    assert (bench.root / "3").read_text() == "new\n"
    with pytest.raises(UndoError, match="too many"):
        bench.undo(0)


async def test_contents_beyond_the_room_block_only_what_they_concern(tmp_path: Path):
    bench = Workbench(tmp_path)
    limit(bench, total_bytes=10_000)
    for number in range(10):
        (bench.root / str(number)).write_text(f"{number}" * 1000)
    await asyncio.sleep(0.1)  # of a file that is not kept, a change is known by its times only
    await run(bench, "echo new > created")
    bench.undo(0)
    assert not (bench.root / "created").exists()
    await run(bench, "rm *")
    with pytest.raises(UndoError, match="not kept"):
        bench.undo(1)


@pytest.mark.parametrize("name", ["0_before", "z_after"])
async def test_large_file_takes_no_room_of_others(tmp_path: Path, name: str):
    bench = Workbench(tmp_path)
    limit(bench, total_bytes=10_000, file_bytes=4_000)
    (bench.root / name).write_bytes(bytes(9_000))
    (bench.root / "a").write_text("old\n")
    await asyncio.sleep(0.1)
    await run(bench, "echo new > a")
    bench.undo(0)
    assert (bench.root / "a").read_text() == "old\n"


async def test_huge_sparse_file_is_not_read(tmp_path: Path):
    bench = Workbench(tmp_path)
    await run(bench, "echo new > a; truncate -s 2T huge")  # reading it would take hours
    assert await bench.call("move", source="huge", destination="moved")
    await asyncio.sleep(0.1)
    await run(bench, "echo newer > a; truncate -s 3T other")
    assert bench.log.plan_undo(1).conflicts == ()
    with pytest.raises(UndoError, match="other cannot be kept for a redo"):
        bench.undo(1)
    with open(bench.root / "other", "r+b") as file:  # noqa: ASYNC230, PTH123 - a change by the user
        file.write(b"theirs")
    assert bench.log.plan_undo(1).conflicts == (str(bench.root / "other"),)
    (bench.root / "other").unlink()
    bench.undo(1)
    assert (bench.root / "a").read_text() == "new\n"


async def test_missing_room_is_named(tmp_path: Path):
    bench = Workbench(tmp_path)
    limit(bench, total_bytes=10_000)
    for number in range(10):
        (bench.root / str(number)).write_text(f"{number}" * 1000)
    await asyncio.sleep(0.1)
    await run(bench, "rm *")
    with pytest.raises(UndoError, match="no room is left"):
        bench.undo(0)


@pytest.mark.parametrize("first", ["write", "bash"])
async def test_change_of_the_user_before_a_command_of_the_same_turn_is_a_conflict(tmp_path: Path, first: str):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("original\n")
    (bench.root / "b").write_text("original\n")
    bench.begin_turn()
    if first == "write":
        await bench.call("write", path="a", content="by the agent\n", overwrite=True)
        await bench.call("write", path="b", content="by the agent\n", overwrite=True)
    else:
        await bench.call("bash", command="echo by the agent | tee a > b")
    (bench.root / "a").write_text("by the user\n")
    await bench.call("bash", command="echo more >> a; echo more >> b")
    assert bench.log.plan_undo(0).conflicts == (str(bench.root / "a"),)
    bench.restart()
    assert bench.log.plan_undo(0).conflicts == (str(bench.root / "a"),)


async def test_change_by_a_tool_while_a_command_runs_is_no_conflict(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / "a").write_text("original\n")
    bench.begin_turn()
    await bench.call("write", path="a", content="first\n", overwrite=True)
    async with bench.recorder.watching([str(bench.root)]):
        await bench.call("write", path="a", content="second\n", overwrite=True)
    bench.undo(0)
    assert (bench.root / "a").read_text() == "original\n"


async def test_masked_secrets_are_not_copied(tmp_path: Path):
    bench = Workbench(tmp_path)
    (bench.root / ".env").write_text("TOKEN=hunter2\n")
    (bench.root / "a").write_text("text\n")
    async with bench.recorder.watching([str(bench.root)]):
        (bench.root / "a").write_text("changed\n")
    kept = b"".join(path.read_bytes() for path in bench.kept.rglob("*") if path.is_file())
    assert b"hunter2" not in kept and b"text\n" in kept


async def test_own_files_in_the_workspace_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bench = Workbench(tmp_path)
    monkeypatch.setenv("CALLWRIGHT_HOME", str(bench.root / "home"))
    for name in ("home/trust.json", "kept/x", "sessions.db", "sessions.db-wal", "a"):
        (bench.root / name).parent.mkdir(exist_ok=True)
        (bench.root / name).write_text("old")
    bench.kept = bench.root / "kept"
    bench.restart()
    bench.log.scan.exclude(str(bench.root / "sessions.db"))
    await asyncio.sleep(0.1)
    await run(bench, "for file in home/trust.json kept/x sessions.db sessions.db-wal a; do echo new > $file; done")
    assert bench.log.plan_undo(0).paths == (str(bench.root / "a"),)


async def test_database_in_use_is_not_read(tmp_path: Path):
    bench = Workbench(tmp_path)
    connection = sqlite3.connect(bench.root / "shop.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE items (name TEXT)")
    await asyncio.sleep(0.1)
    connection.execute("BEGIN IMMEDIATE")
    await run(bench, "touch new")
    locked = "import sqlite3; sqlite3.connect('shop.db', timeout=0).execute('INSERT INTO items VALUES (1)')"
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", locked, cwd=bench.root, stderr=-3)
    assert await other.wait() == 1  # our lock still holds
    connection.close()
    bench.undo(0)
    assert not (bench.root / "new").exists()


async def test_command_that_is_cancelled_before_it_starts_leaves_its_turn_undoable(tmp_path: Path):
    bench = Workbench(tmp_path)
    for number in range(1000):  # so that keeping them takes a moment
        (bench.root / f"{number}").write_text(f"{number}\n")
    bench.begin_turn()
    await bench.call("write", path="0", content="new\n", overwrite=True)
    call = asyncio.ensure_future(bench.call("bash", command="echo more > 1"))
    while b'"watch"' not in (bench.log.folder / "journal").read_bytes():  # noqa: ASYNC110 - another thread writes the file
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})
    assert (bench.root / "1").read_text() == "1\n"
    later = UndoStore(bench.kept).open("session")
    assert later.plan_undo(0).paths == (str(bench.root / "0"),)
