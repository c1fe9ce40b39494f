"""No confirmed record is lost: processes x stores x threads x names of one file."""

import asyncio
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.forked import start_script

from callwright.core.messages import UserMessage
from callwright.sessions import SessionBusy, SessionError, SessionHold, SqliteStore
from callwright.sessions.records import Said

WRITER = Path(__file__).with_name("writer.py")


def make_names(folder: Path) -> list[str]:
    """Return the names of one file: the file, a link to it, and a path through a linked folder."""
    real = folder / "real"
    real.mkdir()
    (folder / "linked").symlink_to(real)
    (folder / "link.db").symlink_to(real / "s.db")
    return [str(real / "s.db"), str(folder / "linked" / "s.db"), str(folder / "link.db")]


def run_writers(folder: Path, names: list[str], processes: int, threads: int, records: int) -> list[tuple[int, str]]:
    """Run the processes to their end; return their exit codes and what they printed as errors."""
    order = {"folder": str(folder), "paths": names, "threads": threads, "records": records}
    running = [start_script(WRITER, json.dumps({**order, "process": number})) for number in range(processes)]
    return [(ended.returncode, ended.stderr) for ended in [process.wait() for process in running]]


async def write_and_count(folder: Path, *, processes: int, threads: int, records: int) -> None:
    """Run the writers and compare the session file with their ledgers."""
    names = make_names(folder)
    assert await asyncio.to_thread(run_writers, folder, names, processes, threads, records) == [(0, "")] * processes
    async with SqliteStore(names[0]) as store:
        for number in range(processes):
            for thread in range(threads):
                await compare(store, folder, f"{number}-{thread}")


async def compare(store: SqliteStore, folder: Path, session: str) -> None:
    """Compare the records of a session with those that were confirmed."""
    confirmed = [f"{session} {line}" for line in (folder / f"{session}.ledger").read_text().splitlines()]
    messages = [record.message for record in await store.read(session) if isinstance(record, Said)]
    texts = [message.content for message in messages if isinstance(message, UserMessage)]
    assert [text for text in texts if text != f"{session} note"] == confirmed


async def test_one_writer_whatever_the_name_of_the_file(tmp_path: Path) -> None:
    stores = [SqliteStore(name) for name in make_names(tmp_path)]
    hold = await stores[0].hold("s")
    await hold.append(Said(UserMessage("first")))
    for store in stores[1:]:
        with pytest.raises(SessionBusy):
            await store.hold("s")
    await hold.release()
    for store in stores:
        async with store:
            again = await store.hold("s")
            await again.append(Said(UserMessage("more")))
            await again.release()
    async with SqliteStore(make_file_link(tmp_path)) as store:
        assert len(await store.read("s")) == 4


def make_file_link(folder: Path) -> Path:
    link = folder / "another.db"
    link.symlink_to(folder / "linked" / "s.db")
    return link


async def test_other_code_that_reads_the_files_does_not_free_a_session(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        hold = await store.hold("s")
        await hold.append(Said(UserMessage("first")))
        for file in (tmp_path / "s.db-locks").iterdir():
            file.read_bytes()
        ended = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", _HOLD, str(path)], capture_output=True, text=True, check=False
        )
        assert ended.stdout.strip() == "SessionBusy", ended.stderr
        await hold.release()


_HOLD = """
import asyncio, sys
from callwright.sessions import SqliteStore

async def main():
    async with SqliteStore(sys.argv[1]) as store:
        try:
            await store.hold("s")
        except Exception as error:
            print(type(error).__name__)

asyncio.run(main())
"""


@pytest.mark.parametrize("lost", ["s.db", "s.db-wal"])
async def test_record_is_not_confirmed_after_the_file_was_deleted(tmp_path: Path, lost: str) -> None:
    store = SqliteStore(tmp_path / "s.db")
    hold = await store.hold("s")
    await hold.append(Said(UserMessage("first")))
    (tmp_path / lost).unlink()
    with pytest.raises(SessionError, match="deleted or replaced"):
        await hold.append(Said(UserMessage("second")))
    with pytest.raises(SessionError, match="deleted or replaced"):
        await store.list()
    store.close()


async def test_store_works_after_fork(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    hold = await store.hold("parent")
    await hold.append(Said(UserMessage("first")))
    code = await asyncio.to_thread(in_child, store, hold)
    assert code == 0
    await hold.append(Said(UserMessage("last")))
    await hold.release()
    assert len(await store.read("parent")) == 2 and len(await store.read("child")) == 1
    store.close()


def in_child(store: SqliteStore, hold: SessionHold) -> int:
    """Fork a child that uses the inherited store; return its exit code."""

    async def use() -> None:
        own = await store.hold("child")
        await own.append(Said(UserMessage("from the child")))
        await own.release()
        with pytest.raises(SessionBusy):
            await store.hold("parent")
        with pytest.raises(SessionError, match="parent process"):
            await hold.append(Said(UserMessage("not mine")))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking beside threads is what is tested
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        asyncio.run(use())
        store.close()
    except BaseException:  # noqa: BLE001 - reported by the exit code
        os._exit(1)
    os._exit(0)


@pytest.mark.slow
async def test_stores_threads_and_processes_lose_no_record(tmp_path: Path) -> None:
    await write_and_count(tmp_path, processes=3, threads=3, records=25)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_stress_loses_no_record(tmp_path: Path) -> None:
    await write_and_count(tmp_path, processes=8, threads=6, records=250)
