"""What many sessions append at the same time shares a commit, and one that fails disturbs no other."""

import asyncio
import resource
import sqlite3
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.sessions.conftest import said

from callwright.core.messages import UserMessage
from callwright.sessions import SessionBusy, SessionError, SqliteStore
from callwright.sessions.records import Said
from callwright.sessions.sqlite import SqliteHold
from callwright.sessions.sqlite_io import SessionFile
from callwright.sessions.sqlite_shared import Action


async def texts(store: SqliteStore, session_id: str) -> list[object]:
    return [record.message for record in await store.read(session_id) if isinstance(record, Said)]


def say(*words: str) -> list[object]:
    return [UserMessage(word) for word in words]


@asynccontextmanager
async def stopped_writer(store: SqliteStore) -> AsyncGenerator[list[bool]]:
    """Let jobs gather while the writing thread waits; gives the commits that follow, true for one with fsync."""
    stands, goes_on, commits = asyncio.Event(), threading.Event(), list[bool]()
    loop = asyncio.get_running_loop()

    def watch(file: SessionFile) -> None:
        transaction = file.transaction

        def counted(*, synced: bool = True) -> object:
            commits.append(synced)
            return transaction(synced=synced)

        file.transaction = counted  # type: ignore[method-assign, assignment] - the commits are what is counted
        loop.call_soon_threadsafe(stands.set)
        goes_on.wait(60)

    watching = asyncio.create_task(store.run(watch))
    await stands.wait()
    try:
        yield commits
    finally:
        goes_on.set()
        await watching


async def hold_all(store: SqliteStore, count: int) -> list[SqliteHold]:
    return [await store.hold(f"s{number}") for number in range(count)]


async def append_all(
    store: SqliteStore, holds: Sequence[SqliteHold], text: str
) -> tuple[list[BaseException | None], list[bool]]:
    async with stopped_writer(store) as commits:
        tasks = [asyncio.create_task(hold.append(said(text), said(f"{text} again"))) for hold in holds]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in tasks), "nothing may be confirmed before it is stored"
    return list(await asyncio.gather(*tasks, return_exceptions=True)), commits


async def test_appends_that_gather_share_one_commit(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        holds = await hold_all(store, 300)
        for text in ("first", "second"):
            results, commits = await append_all(store, holds, text)
            assert results == [None] * 300
            assert commits == [True]
        assert await texts(store, "s7") == say("first", "first again", "second", "second again")
        for hold in holds:
            await hold.release()
    async with SqliteStore(tmp_path / "s.db") as reopened:
        assert [len(await reopened.read(f"s{number}")) for number in range(300)] == [4] * 300


async def test_order_of_notes_and_appends_of_one_session_stays(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        hold = await store.hold("s")
        async with stopped_writer(store) as commits:
            first = asyncio.create_task(hold.append(said("1")))
            await asyncio.sleep(0)
            hold.note(said("2"))
            hold.keep_output("o", "a long output")
            second = asyncio.create_task(hold.append(said("3")))
            await asyncio.sleep(0)
        await asyncio.gather(first, second)
        assert commits == [True]
        assert await texts(store, "s") == say("1", "2", "3")
        assert await store.read_output("s", "o") == "a long output"
        await hold.release()


async def test_notes_alone_are_stored_without_fsync(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        hold = await store.hold("s")
        await hold.append(said("1"))
        async with stopped_writer(store) as commits:
            hold.note(said("2"))
            hold.note(said("3"))
        await hold.release()
        assert commits == [False]
        assert await texts(store, "s") == say("1", "2", "3")


async def test_one_session_that_cannot_be_written_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        holds = await hold_all(store, 20)
        assert (await append_all(store, holds, "first"))[0] == [None] * 20
        other = sqlite3.connect(path)
        with other:  # as a process that ignores the lease would
            other.execute("DELETE FROM records WHERE session = (SELECT key FROM sessions WHERE id = 's3')")
            other.execute("DELETE FROM sessions WHERE id = 's3'")
            other.execute(
                "INSERT INTO records (session, position, at, body) SELECT key, 2, 0, '{}' FROM sessions WHERE id = 's5'"
            )
        other.close()
        results, commits = await append_all(store, holds, "second")
        failed = [number for number, result in enumerate(results) if result is not None]
        assert failed == [3, 5]
        assert all("changed or deleted by another process" in str(results[number]) for number in failed)
        assert commits == [True]
        for number in set(range(20)) - {3, 5}:
            assert await texts(store, f"s{number}") == say("first", "first again", "second", "second again")
        assert (await append_all(store, [holds[4]], "third"))[0] == [None]


async def test_one_record_that_is_too_large_fails_alone(tmp_path: Path) -> None:
    def limit(file: SessionFile) -> None:
        with file.transaction() as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)  # a billion would take this test a minute

    async with SqliteStore(tmp_path / "s.db") as store:
        holds = await hold_all(store, 3)
        await asyncio.gather(*(hold.append(said("first")) for hold in holds))
        await store.run(limit)
        async with stopped_writer(store):
            holds[2].keep_output("o", "y" * 20_000)
            given = [hold.append(said("x" * 20_000 if hold is holds[1] else "second")) for hold in holds]
            adding = asyncio.gather(*given, return_exceptions=True)
            await asyncio.sleep(0)
        first, large, last = await adding
        assert first is last is None and isinstance(large, SessionError) and "too large" in str(large)
        await holds[1].append(said("second"))
        for number in range(3):
            assert await texts(store, f"s{number}") == say("first", "second")


async def test_a_lost_note_stops_what_follows_it_in_the_same_commit(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        hold, bystander = await hold_all(store, 2)
        await hold.append(said("1"))
        other = sqlite3.connect(path)
        with other:
            other.execute("INSERT INTO records (session, position, at, body) VALUES (1, 1, 0, '{}')")
        async with stopped_writer(store):
            hold.note(said("lost"))
            with_other = asyncio.create_task(bystander.append(said("hello")))
            with other:
                other.execute("DELETE FROM records WHERE position = 1")
                other.execute("INSERT INTO records (session, position, at, body) VALUES (1, 1, 0, '{}')")
            after = asyncio.create_task(hold.append(said("after")))
            await asyncio.sleep(0)
        other.close()
        await with_other
        with pytest.raises(SessionError, match="changed or deleted"):
            await after
        with pytest.raises(SessionError, match="changed or deleted"):
            await hold.append(said("later"))


async def test_an_output_that_cannot_be_kept_is_reported_and_disturbs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        hold, bystander = await hold_all(store, 2)
        await append_all(store, [hold, bystander], "first")
        other = sqlite3.connect(path)
        with other:
            other.execute("DELETE FROM sessions WHERE id = 's0'")
        other.close()
        async with stopped_writer(store):
            hold.keep_output("o", "whole")
            appending = asyncio.create_task(bystander.append(said("second")))
            await asyncio.sleep(0)
        await appending
        bystander.keep_output("o", "whole")
        assert await store.read_output("s1", "o") == "whole"
    (told,) = [record.getMessage() for record in caplog.records]
    assert "an output of session 's0' was not kept" in told and "deleted by another process" in told


async def test_a_commit_that_fails_is_told_to_all_and_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        holds = await hold_all(store, 10)
        assert (await append_all(store, holds, "first"))[0] == [None] * 10
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))  # no file may grow any more
        try:
            results, _ = await append_all(store, holds, "x" * 50_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert all("disk" in str(result) and "intact" in str(result) for result in results)
        assert (await append_all(store, holds, "second"))[0] == [None] * 10
        for number in range(10):
            assert await texts(store, f"s{number}") == say("first", "first again", "second", "second again")


async def test_cancelled_wait_does_not_undo_the_write_or_the_others(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        holds = await hold_all(store, 3)
        async with stopped_writer(store):
            tasks = [asyncio.create_task(hold.append(said("kept"))) for hold in holds]
            await asyncio.sleep(0.01)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
        await asyncio.gather(tasks[0], tasks[2])
        assert [await texts(store, f"s{number}") for number in range(3)] == [say("kept")] * 3


async def test_nothing_is_added_after_an_append_that_was_cancelled_and_lost(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        hold, other = await store.hold("s"), await store.hold("s1")
        await hold.append(said("1"))
        await other.append(said("1"))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
        try:
            appending = asyncio.create_task(hold.append(said("x" * 500_000)))
            await asyncio.sleep(0)
            appending.cancel()
            await asyncio.wait([appending])
            await store.run(lambda _: None)  # after the append
            told = asyncio.create_task(other.append(said("x" * 500_000)))
            await asyncio.sleep(0)
            other.note(said("was to follow it"))
            with pytest.raises(SessionError, match="disk"):
                await told
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        hold.note(said("2"))
        with pytest.raises(SessionError, match="disk"):
            await hold.append(said("3"))
        with pytest.raises(SessionError, match="disk"):
            await other.append(said("after the note"))
        await hold.release()
        assert await texts(store, "s") == say("1")
        assert await texts(store, "s1") == say("1")


async def test_release_twice_leaves_the_next_holder_alone(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        first = await store.hold("s")
        await first.release()
        second = await store.hold("s")
        await first.release()
        with pytest.raises(SessionBusy):
            await store.hold("s")
        await second.append(said("1"))
        await second.release()


async def test_session_taken_for_a_caller_that_is_cancelled_just_then_is_free(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        taken = threading.Event()
        taking = asyncio.create_task(store.hold("s"))
        await asyncio.sleep(0)
        store.submit(Action(lambda _: taken.set()))  # its turn comes when the result is on its way
        assert taken.wait(60)
        asyncio.get_running_loop().call_soon(taking.cancel)  # after the result has arrived, before the task goes on
        with pytest.raises(asyncio.CancelledError):
            await taking
        await (await store.hold("s")).release()


async def test_released_hold_writes_nothing_into_the_next_one(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        first = await store.hold("s")
        await first.append(said("1"))
        await first.release()
        first.note(said("late"))
        second = await store.hold("s")
        first.note(said("later"))
        with pytest.raises(SessionError, match="released"):
            await first.append(said("too late"))
        await second.append(said("2"))
        await second.release()
        assert await texts(store, "s") == say("1", "2")


async def test_session_that_is_held_when_its_store_closes_is_free_after_release(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    hold = await store.hold("s")
    hold.note(said("1"))
    store.close()
    async with SqliteStore(tmp_path / "s.db") as again:
        with pytest.raises(SessionBusy):
            await again.hold("s")
        await hold.release()
        await hold.release()
        taken = await again.hold("s")
        assert [*taken.records] == [said("1")]
        await taken.release()


async def test_a_job_after_closing_raises_and_never_hangs(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    hold = await store.hold("s")
    store.close()
    with pytest.raises(SessionError, match="closed"):
        await asyncio.wait_for(hold.append(said("1")), 60)
    with pytest.raises(SessionError, match="closed"):
        hold.note(said("2"))


async def test_hold_does_not_wait_for_a_long_job_after_it(tmp_path: Path) -> None:
    may_end = threading.Event()
    async with SqliteStore(tmp_path / "s.db") as store:
        async with stopped_writer(store):
            holding = [asyncio.create_task(store.hold(name)) for name in ("a", "b")]
            await asyncio.sleep(0)  # both are in the queue
            reading = asyncio.create_task(store.run(lambda _: may_end.wait(60)))
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(30):
                taken = await asyncio.gather(*holding)
            assert not reading.done()
        finally:
            may_end.set()
        assert await reading
        await asyncio.gather(*(hold.release() for hold in taken))
        again = await asyncio.gather(*(store.hold(name) for name in ("a", "b")))
        await asyncio.gather(*(hold.release() for hold in again))
