"""The SQLite store under faults: full, locked, damaged, older, newer, closed, cancelled."""

import asyncio
import os
import resource
import sqlite3
import stat
import warnings
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.conftest import said

from callwright.core.calls import Approve, Completed, Decline, Question, ToolCall
from callwright.core.content import Image, Output, Text
from callwright.core.errors import UsageError
from callwright.core.json import hash_text
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.hooks.builtin import Redact
from callwright.sessions import MemoryStore, SessionError, SqliteStore, export_jsonl
from callwright.sessions.base import SessionMissing
from callwright.sessions.records import Answered, Asked, Began, Ended, Said, sum_usage
from callwright.sessions.sqlite_io import SessionFile
from callwright.sessions.waiting import read_questions


async def filled(path: Path, *texts: str) -> None:
    async with SqliteStore(path) as store:
        hold = await store.hold("s")
        await hold.append(*(said(text) for text in texts))
        await hold.release()


async def texts_in(path: Path) -> list[object]:
    async with SqliteStore(path) as store:
        return [record.message for record in await store.read("s") if isinstance(record, Said)]


async def test_file_is_private_and_created_on_first_use(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s.db"
    SqliteStore(path).close()
    assert not path.exists()
    await filled(path, "hi")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("foreign", ["a\0b", "a\udc80"])
async def test_output_that_cannot_exist_is_missing(tmp_path: Path, foreign: str) -> None:
    await filled(tmp_path / "s.db", "hi")
    async with SqliteStore(tmp_path / "s.db") as store:
        assert await store.read_output("s", foreign) is None


async def test_full_disk_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await filled(path, "kept")
    async with SqliteStore(path) as store:
        hold = await store.hold("s")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))  # no file may grow any more
        try:
            with pytest.raises(SessionError, match=r"disk.*intact"):
                await hold.append(said("x" * 500_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await hold.append(said("small"))
        await hold.release()
    assert await texts_in(path) == [UserMessage("kept"), UserMessage("small")]


async def test_locked_file_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await filled(path, "kept")
    other = sqlite3.connect(path, isolation_level=None)
    async with SqliteStore(path, wait_seconds=0.02) as store:
        hold = await store.hold("s")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SessionError, match="locked"):
            await hold.append(said("not now"))
        other.execute("ROLLBACK")
        await hold.append(said("now"))
        await hold.release()
    other.close()
    assert await texts_in(path) == [UserMessage("kept"), UserMessage("now")]


@pytest.mark.parametrize("size", [0.0, 0.3, 0.9])
async def test_damaged_or_foreign_file_is_rejected_unchanged(tmp_path: Path, size: float) -> None:
    path = tmp_path / "s.db"
    await filled(path, *(f"text {n} " * 100 for n in range(100)))
    whole = path.read_bytes()
    damaged = whole[: int(len(whole) * size)] if size else b"these are my own notes, not a database\n" * 50
    path.write_bytes(damaged)
    async with SqliteStore(path) as store:
        with pytest.raises(SessionError, match=r"damaged.*; restore a backup, or move it away"):
            await store.read("s")
        with pytest.raises(SessionError, match=r"damaged.*; restore a backup, or move it away"):
            await (await store.hold("s")).append(said("more"))
    assert path.read_bytes() == damaged


async def test_older_file_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    old = sqlite3.connect(path)
    old.executescript(
        """
        CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
                               created_at REAL NOT NULL);
        CREATE TABLE records (session INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL,
                              PRIMARY KEY (session, position)) WITHOUT ROWID;
        INSERT INTO sessions VALUES (1, 's', 'old', 0);
        INSERT INTO records VALUES (1, 0, '{"kind":"user","content":"from long ago"}');
        PRAGMA user_version = 1;
        """
    )
    old.close()
    assert await texts_in(path) == [UserMessage("from long ago")]
    await filled(path, "and now")
    assert await texts_in(path) == [UserMessage("from long ago"), UserMessage("and now")]


async def test_file_of_later_version_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await filled(path, "kept")
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    async with SqliteStore(path) as store:
        with pytest.raises(SessionError, match="later version"):
            await store.read("s")


async def test_concurrent_writers_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await filled(path, "kept")
    async with SqliteStore(path) as store:
        hold = await store.hold("s")
        intruder = sqlite3.connect(path)
        intruder.execute("INSERT INTO records (session, position, body) VALUES (1, 1, ?)", ('{"kind":"x"}',))
        intruder.commit()
        intruder.close()
        with pytest.raises(SessionError, match="another process; nothing was added"):
            await hold.append(said("mine"))
        await hold.release()


async def test_question_that_is_stored_at_the_second_try_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    asked = Asked((Question("c1", "x", {}, "d", "Allow x?"),))
    async with SqliteStore(path, wait_seconds=0) as store:
        hold = await store.hold("s")
        await hold.append(said("go"))
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(SessionError, match="locked"):
            await hold.append(asked)
        blocker.execute("ROLLBACK")
        blocker.close()
        await hold.append(asked)
        await hold.release()
        assert [entry.session_id for entry in await store.list(waiting=True)] == ["s"]


async def test_lock_ends_also_if_its_file_cannot_be_removed(tmp_path: Path) -> None:
    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(f"{path} is in use")  # as on Windows, always

    async with SqliteStore(tmp_path / "s.db") as store:
        hold = await store.hold("s")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Path, "unlink", refuse)
            await hold.release()
        await (await store.hold("s")).release()


async def test_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        hold = await store.hold("s")
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forking beside threads is what is tested
            child = os.fork()
        if not child:  # lives on, as a worker might
            os.close(write)
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        await hold.release()
        await (await store.hold("s")).release()
        os.close(write)
        os.waitpid(child, 0)  # noqa: ASYNC222 - it ends at once


async def test_cancelled_hold_does_not_leave_session_busy(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        for _ in range(20):
            taking = asyncio.create_task(store.hold("s"))
            await asyncio.sleep(0)
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
            await (await store.hold("s")).release()


@pytest.mark.parametrize("make", [MemoryStore, SqliteStore])
async def test_title_is_what_the_user_wrote(tmp_path: Path, make: Any) -> None:
    store = make() if make is MemoryStore else make(tmp_path / "s.db")
    parts = (Image(b"x", "image/png"), Text(" "), Text("what is this?"), Text("The user ran a command.\n$ ls"))
    hold = await store.hold("s")
    await hold.append(Said(UserMessage(parts)))
    await hold.release()
    assert [entry.title for entry in await store.list()] == ["what is this?"]
    if isinstance(store, SqliteStore):
        store.close()


async def test_secrets_are_redacted_before_writing(tmp_path: Path) -> None:
    path, secret = tmp_path / "s.db", "ghp_" + "a1B2" * 9
    call = ToolCall("1", "env", {"token": secret})
    async with SqliteStore(path, redact=Redact().clean) as store:
        hold = await store.hold("s")
        await hold.append(said(f"my token is {secret}"), Said(AssistantMessage((call,), "calls"), "t"))
        hold.note(Ended(Completed(call, Output(secret, {"key": [secret]}))))
        await hold.append(Said(ToolMessage((Completed(call, Output(secret)),))))
        await hold.release()
        exported = await export_jsonl(store, "s")
        listed = await store.list()
    assert "[redacted]" in exported and "[redacted]" in listed[0].title
    for file in tmp_path.glob("s.db*"):
        assert file.is_dir() or secret.encode() not in file.read_bytes()


async def test_secrets_that_only_their_field_tells_are_redacted_before_writing(tmp_path: Path) -> None:
    call = ToolCall("1", "log_in", {"user": "ann", "password": "hunter2"})
    async with SqliteStore(tmp_path / "s.db", redact=Redact()) as store:
        hold = await store.hold("s")
        await hold.append(said("log in"), Said(AssistantMessage((call,), "calls"), "t", "key-1"))
        await hold.append(Said(ToolMessage((Completed(call, Output("ok", {"api_key": "abcd1234efgh5678"})),))))
        await hold.release()
        records, exported = await store.read("s"), await export_jsonl(store, "s")
    stored = ToolCall("1", "log_in", {"user": "ann", "password": "[redacted]"})
    assert records[1] == Said(AssistantMessage((stored,), "calls"), "t", "key-1")
    assert "hunter2" not in exported and "abcd1234" not in exported


async def test_digests_of_calls_are_not_redacted(tmp_path: Path) -> None:
    began = Began({name: hash_text(name) for name in ("toolu_01AbCdWizGhJkLmNpQrStUv", "api_key")})
    answered = Answered({"api_key": Decline("no"), "password": Approve()})
    async with SqliteStore(tmp_path / "s.db", redact=Redact()) as store:
        hold = await store.hold("s")
        await hold.append(said("look"), began, answered)
        await hold.release()
        assert (await store.read("s"))[1:] == [began, answered]


async def test_what_cannot_redact_is_refused(tmp_path: Path) -> None:
    for wrong in (5, Redact):
        with pytest.raises(UsageError, match=r"expected Redact\(\) or a function of a text as redact, got "):
            SqliteStore(tmp_path / "s.db", redact=wrong)  # type: ignore[arg-type] - that it is refused is the point
    forgetful: Any = {"hello": "hello"}.get
    async with SqliteStore(tmp_path / "s.db", redact=forgetful) as store:
        hold = await store.hold("s")
        with pytest.raises(UsageError, match="redact must return a text, got None"):
            await hold.append(said("hello"))
        await hold.release()


async def test_title_that_a_user_gives_is_stored_as_any_text(tmp_path: Path) -> None:
    path, secret = tmp_path / "s.db", "ghp_" + "a1B2" * 9
    await filled(path, "hello")
    async with SqliteStore(path, redact=Redact().clean) as store:
        await store.rename("s", f"token {secret} \ud800")
        (listed,) = await store.list()
    assert listed.title == "token [redacted] ?"


async def test_id_that_is_not_unicode_is_that_of_no_session(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        for work in (store.read, store.delete, store.read_from):
            with pytest.raises(SessionMissing):
                await work("\udcff")
        assert await read_questions(store, "\udcff") == ()


async def test_session_deleted_meanwhile_is_not_taken_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, find = tmp_path / "s.db", getattr(SessionFile, "_key")  # noqa: B009 - it is private

    def find_and_give_its_key_away(file: SessionFile, session_id: str) -> int:
        key = int(find(file, session_id))
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path, timeout=0)) as other:
            other.execute("UPDATE sessions SET id = 'next' WHERE id = 's'")  # as if s had been deleted, and next made
            other.commit()
        return key

    async with SqliteStore(path) as store:
        hold = await store.hold("next")
        await hold.append(said("a secret"))
        await hold.release()
        for work in (
            lambda: store.read("s"),
            lambda: store.search("secret", session="s"),
            lambda: store.delete("s"),
            lambda: store.rename("s", "renamed"),
        ):
            with closing(sqlite3.connect(path)) as other:
                other.execute("UPDATE sessions SET id = 's' WHERE id = 'next'")
                other.commit()
            with monkeypatch.context() as patch:
                patch.setattr(SessionFile, "_key", find_and_give_its_key_away)
                with suppress(SessionMissing):
                    assert not await work()
            assert [entry.title for entry in await store.list() if entry.session_id == "next"] in ([], ["a secret"])
        assert len(await store.list()) == 1


async def test_deleted_conversation_is_erased_from_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await filled(path, "a very private sentence")
    async with SqliteStore(path) as store:
        await store.delete("s")
        for file in (path, path.with_name("s.db-wal")):
            assert b"very private" not in file.read_bytes()


async def test_deleted_conversation_is_erased_when_a_reader_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await filled(path, "kept")
    async with SqliteStore(path, wait_seconds=0.01) as store:
        hold = await store.hold("t")
        await hold.append(said("a very private sentence"))
        await hold.release()
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM records").fetchall()
        await store.delete("t")
        log = path.with_name("s.db-wal")
        assert b"very private" in log.read_bytes(), "the reader keeps the log from being emptied"
        reader.close()
        await store.list()
        assert b"very private" not in log.read_bytes() + path.read_bytes()


async def test_closed_store_raises(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    store.close()
    with pytest.raises(SessionError, match="closed"):
        await store.list()


async def test_usage_is_summed_over_a_session() -> None:
    from callwright.core.messages import Usage
    from callwright.sessions.records import Compacted, Spent

    records = [Said(AssistantMessage((), usage=Usage(1, 2, 3, 4))), said("x"), Compacted((), Usage(10, 20))]
    assert sum_usage([*records, Spent(Usage(100))]) == Usage(111, 22, 3, 4)
