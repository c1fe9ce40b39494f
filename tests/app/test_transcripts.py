"""Session transcripts for hooks."""

from pathlib import Path

from callwright.app.transcripts import TranscriptFiles
from callwright.core.messages import UserMessage
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.records import Said


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


async def test_no_transcript_without_a_durable_store() -> None:
    assert await TranscriptFiles(MemoryStore())("s", whole=True) == ""
