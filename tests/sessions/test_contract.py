"""Both stores keep the one contract."""

from pathlib import Path

from toolwright.sessions import MemoryStore, SqliteStore
from toolwright.testing.stores import check_store


async def test_the_memory_store_keeps_the_contract() -> None:
    store = MemoryStore()
    await check_store(lambda: store)


async def test_the_sqlite_store_keeps_the_contract(tmp_path: Path) -> None:
    opened: list[SqliteStore] = []

    def make() -> SqliteStore:
        opened.append(SqliteStore(tmp_path / "folder" / "sessions.db"))
        return opened[-1]

    await check_store(make)
    for store in opened:
        store.close()
