"""The stores pass the conformance check, and stores that break a rule do not."""

from datetime import timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.broken_stores import Fault, LeaseStore
from tests.sessions.conftest import check_extremes, check_fork_into_held

from callwright import Completed, Failed, ToolCall, Transient
from callwright.core.content import Output
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.sessions import MemoryStore, SessionBusy, SqliteStore
from callwright.sessions.base import SessionMissing
from callwright.sessions.records import Said
from callwright.testing.stores import check_store


async def test_memory_store_passes_in_one_process() -> None:
    for made in (MemoryStore(), MemoryStore):
        (skipped,) = await check_store(made)
        assert skipped == "other processes: MemoryStore is not durable: its sessions are in one process only"


async def test_memory_store_reads_a_turn_as_its_records() -> None:
    store, call = MemoryStore(), ToolCall("1", "x")
    message, outcomes = AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output("y")),))
    prompt, asked = Said(UserMessage("go"), "", "key"), Said(message, "open")
    hold = await store.hold("s")
    await hold.append(prompt)
    await hold.append(Said(message, "turn-1"), Said(outcomes))
    await hold.append(Said(message, "turn-2"), Said(outcomes))
    await hold.append(asked)
    turns = [Said(message, "turn-1"), Said(outcomes), Said(message, "turn-2"), Said(outcomes)]
    assert list(await store.read("s")) == [prompt, *turns, asked]
    assert [(item.position, item.record) for item in await store.read_from("s", 2, limit=2)] == list(
        enumerate(turns, 1)
    )[1:3]
    await hold.release()
    await store.fork("s", "fork")
    later = await store.hold("fork")
    assert list(later.records) == [prompt, *turns]
    await later.append(Said(outcomes))
    assert list(await store.read("fork")) == [prompt, *turns, Said(outcomes)]


async def test_memory_session_taken_over_keeps_no_turn() -> None:
    store, call = MemoryStore(), ToolCall("1", "x")
    message, outcomes = AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output("y")),))
    stale = await store.hold("s", owner="worker")
    await (await store.hold("s", owner="worker")).append(Said(outcomes))
    with pytest.raises(SessionBusy):
        await stale.append(Said(message, "stale"), Said(outcomes))
    stale.keep_output("o", "stale")
    assert list(await store.read("s")) == [Said(outcomes)] and await store.read_output("s", "o") is None


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_session_exists_from_its_first_record_on(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    hold = await store.hold("s")
    for asked in (store.read("s"), store.read_from("s"), store.fork("s", "t"), store.rename("s", "t")):
        with pytest.raises(SessionMissing):
            await asked
    assert not await store.list() and not await store.search("", session=None)
    await hold.append(Said(UserMessage("go")))
    assert [entry.records for entry in await store.list()] == [1]
    assert [stored.position for stored in await store.read_from("s", -1, limit=1)] == [0]
    await hold.release()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_fork_into_an_id_that_is_held_fails(tmp_path: Path, kind: str) -> None:
    await check_fork_into_held(MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db"))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_stores_agree_on_extreme_limits_and_letters(tmp_path: Path, kind: str) -> None:
    await check_extremes(MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db"))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_find_returns_the_entry_of_the_list(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    hold = await store.hold("s")
    assert await store.find("s") is None, "it exists from its first record on"
    await hold.append(Said(UserMessage("go")), Said(UserMessage("on")))
    (entry,) = await store.list()
    assert await store.find("s") == entry and (entry.title, entry.records) == ("go", 2)
    for unknown in ("t", "", "\ud800", "\0"):
        assert await store.find(unknown) is None
    await hold.release()


async def test_check_catches_a_store_that_does_not_find_a_session() -> None:
    class Forgetful(MemoryStore):
        async def find(self, session_id: str) -> None:
            return None

    with pytest.raises(AssertionError, match=r"find\('check-.'\) must return what list\(\) has"):
        await check_store(Forgetful())


@pytest.mark.parametrize(
    ("given", "kept"), [(None, None), ([1], None), (Fraction(1, 2), 0.5), (timedelta(minutes=1), 60.0), ("30", 30.0)]
)
async def test_stored_error_keeps_all_its_fields(tmp_path: Path, given: Any, kept: float | None) -> None:
    failed = Failed(ToolCall("1", "x"), Transient("later", retry_after=given))
    async with SqliteStore(tmp_path / "sessions.db") as store:
        hold = await store.hold("s")
        await hold.append(Said(ToolMessage((failed,))))
        (record,) = await store.read("s")
        await hold.release()
    assert isinstance(record, Said) and isinstance(record.message, ToolMessage)
    (again,) = record.message.outcomes
    assert isinstance(again, Failed) and isinstance(again.error, Transient) and again.error.retry_after == kept


@pytest.mark.slow
async def test_sqlite_store_passes_in_several_processes(tmp_path: Path) -> None:
    opened: list[SqliteStore] = []

    def make() -> SqliteStore:
        opened.append(SqliteStore(tmp_path / "folder" / "sessions.db"))
        return opened[-1]

    assert await check_store(make) == ()
    for store in opened:
        store.close()


async def test_store_that_others_cannot_open_is_said_to_be_half_checked(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "sessions.db") as store:
        with pytest.warns(UserWarning, match="in one process: .* give a function that opens it"):
            (skipped,) = await check_store(store)
    assert "give a function" in skipped


@pytest.mark.slow
@pytest.mark.parametrize("still", [False, True])
async def test_store_with_leases_passes(tmp_path: Path, still: bool) -> None:
    assert await check_store(partial(LeaseStore, tmp_path, still=still)) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "still", "message"),
    [
        ("exclusive", False, "exclusive lease: while one process holds a session"),
        ("update", False, "lost update: two processes took turns; of 16 confirmed records"),
        ("durable", False, "durable append: a record whose append"),
        ("death", False, r"death of a holder: the session of a killed process must be free within 0\.2 s"),
        ("fencing", False, "fencing rule: .* as owner 'worker'"),
        ("stale", True, "fencing rule: .* while it stood still"),
        ("release", False, "fencing rule: a lost hold must not release"),
    ],
)
async def test_broken_rule_is_named(tmp_path: Path, fault: Fault, still: bool, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        await check_store(partial(LeaseStore, tmp_path, fault, still=still), takeover_seconds=0.2)
