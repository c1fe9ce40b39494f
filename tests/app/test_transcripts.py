"""Session transcripts for hooks."""

import gc
from collections.abc import Sequence
from pathlib import Path

from callwright.app.transcripts import TranscriptFiles
from callwright.core.messages import UserMessage
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.base import StoredRecord
from callwright.sessions.records import Record, Said


async def test_transcript_is_written_and_appended(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "sessions.db") as store:
        written = TranscriptFiles(store)
        file = Path(await written("../odd id", whole=True))
        assert file.read_text() == "" and file.parent.stat().st_mode & 0o077 == 0
        hold = await store.hold("../odd id")
        for count in (1, 2, 3):
            await hold.append(Said(UserMessage(f"word {count}")))
            assert await written("../odd id", whole=True) == str(file)
            assert [line.count("word") for line in file.read_text().splitlines()] == [1] * count
        await hold.release()
        await store.delete("../odd id")
        assert Path(await written("../odd id", whole=True)).read_text() == ""


async def test_transcript_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "sessions.db") as store:
        hold = await store.hold("unwritable")
        await hold.append(Said(UserMessage("one")), Said(UserMessage("two")))
        written = TranscriptFiles(store)
        file = Path(await written("unwritable", whole=True))
        file.unlink()
        file.mkdir()
        assert await written("unwritable", whole=True) == ""
        file.rmdir()
        assert len(Path(await written("unwritable", whole=True)).read_text().splitlines()) == 2
        file.unlink()
        await hold.append(Said(UserMessage("three")))
        assert len(Path(await written("unwritable", whole=True)).read_text().splitlines()) == 3
        await hold.release()


async def test_only_new_records_are_read(tmp_path: Path) -> None:
    class Counting(SqliteStore):
        read_records = 0

        async def read_from(
            self, session_id: str, position: int = 0, *, limit: int | None = None
        ) -> Sequence[StoredRecord]:
            found = await super().read_from(session_id, position, limit=limit)
            self.read_records += len(found)
            return found

        async def read(self, session_id: str) -> Sequence[Record]:
            raise AssertionError("all records were read")

    store = Counting(tmp_path / "sessions.db")
    async with store:
        written, hold = TranscriptFiles(store), await store.hold("s")
        file = Path(await written("s", whole=True))
        for number in range(20):
            await hold.append(Said(UserMessage(f"word {number}")))
            await written("s", whole=True)
        await hold.release()
        assert len(file.read_text().splitlines()) == store.read_records == 20


async def test_transcripts_are_removed_with_their_writer(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "sessions.db") as store:
        hold = await store.hold("s")
        await hold.append(Said(UserMessage("one")))
        await hold.release()
        first, second = TranscriptFiles(store), TranscriptFiles(store)
        files = [Path(await each("s", whole=True)) for each in (first, second)]
        assert files[0] != files[1] and all(file.read_text() for file in files)
        del first
        gc.collect()
        assert not files[0].exists() and files[1].read_text()


async def test_no_transcript_without_a_durable_store() -> None:
    assert await TranscriptFiles(MemoryStore())("s", whole=True) == ""
