"""Both stores pass the conformance check."""

from pathlib import Path

from callwright import Failed, ToolCall, Transient
from callwright.core.messages import ToolMessage
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.records import Said
from callwright.testing.stores import check_store


async def test_memory_store_passes_check_store() -> None:
    await check_store(MemoryStore())


async def test_stored_error_keeps_all_its_fields(tmp_path: Path) -> None:
    failed = Failed(ToolCall("1", "x"), Transient("later"))
    async with SqliteStore(tmp_path / "sessions.db") as store:
        hold = await store.hold("s")
        await hold.append(Said(ToolMessage((failed,))))
        (record,) = await store.read("s")
        await hold.release()
    assert isinstance(record, Said) and isinstance(record.message, ToolMessage)
    (again,) = record.message.outcomes
    assert isinstance(again, Failed) and isinstance(again.error, Transient) and again.error.retry_after is None


async def test_sqlite_store_passes_check_store(tmp_path: Path) -> None:
    opened: list[SqliteStore] = []

    def make() -> SqliteStore:
        opened.append(SqliteStore(tmp_path / "folder" / "sessions.db"))
        return opened[-1]

    await check_store(make)
    for store in opened:
        store.close()
