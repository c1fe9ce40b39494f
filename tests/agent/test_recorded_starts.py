"""The start of each call is on record: after a crash, calls that never began are told as such."""

import asyncio
import resource
from contextlib import suppress
from pathlib import Path

import pytest
from tests.agent.batch_victim import registry
from tests.forked import run_script

from callwright import (
    Agent,
    Annotations,
    Completed,
    Executor,
    Failed,
    MemoryStore,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    tool,
)
from callwright.agent import Done
from callwright.core.messages import ToolMessage
from callwright.policy import AllowEverything
from callwright.sessions import SessionError
from callwright.sessions.memory import MemoryHold
from callwright.sessions.records import Began, Kept, Record, Said, Started
from callwright.testing.fakes import ScriptedProvider

VICTIM = Path(__file__).with_name("batch_victim.py")


async def test_calls_that_never_began_are_told_as_not_begun(tmp_path: Path) -> None:
    ended = await asyncio.to_thread(run_script, VICTIM, str(tmp_path))
    assert ended.returncode == -9, ended.stderr
    async with SqliteStore(tmp_path / "s.db") as store:
        executor = Executor(registry(tmp_path), AllowEverything())
        agent = Agent(ScriptedProvider("I see."), executor=executor, sessions=store)
        assert isinstance(await agent.resume("s"), Done)
        (told,) = [message for message in await agent.messages("s") if isinstance(message, ToolMessage)]
    first, second, third, fourth, fifth = told.outcomes
    assert isinstance(first, Completed)
    assert isinstance(second, Failed) and second.started and "may have had an effect" in second.text
    assert isinstance(third, Failed) and not third.started and "had not started" in third.text
    assert isinstance(fourth, Failed) and fourth.started
    assert isinstance(fifth, Completed), "a call that only reads is repeated"
    assert sorted((tmp_path / "ledger").read_text().split()) == ["first", "fourth", "second"]


@tool(annotations=Annotations(parallel=True))
async def together(n: int) -> str:
    """Run beside any other call."""
    return str(n)


@tool
async def alone(n: int) -> str:
    """Run by itself."""
    return str(n)


@pytest.mark.parametrize(("name", "commits"), [("together", 1), ("alone", 3)])
async def test_calls_that_start_together_share_one_record(tmp_path: Path, name: str, commits: int) -> None:
    calls = [ToolCall(f"c{n}", name, {"n": n}) for n in range(3)]
    async with SqliteStore(tmp_path / "s.db") as store:
        executor = Executor(Registry(together, alone), AllowEverything())
        await Agent(ScriptedProvider(calls, "done"), executor=executor, sessions=store).run("go", session="s")
        records = await store.read("s")
    starts = [record.call_ids for record in records if isinstance(record, Started)]
    assert len(starts) == commits and sorted(sum(starts, ())) == ["c0", "c1", "c2"]
    assert sum(isinstance(record, Began) for record in records) == 1


async def test_call_whose_start_cannot_be_stored_does_not_run(tmp_path: Path) -> None:
    ran: list[int] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    @tool
    async def fill(n: int) -> str:
        """Leave no room on the disk after the first call."""
        ran.append(n)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
        return "x"

    calls = [ToolCall(f"c{n}", "fill", {"n": n}) for n in range(3)]
    async with SqliteStore(tmp_path / "s.db") as store:
        executor = Executor(Registry(fill), AllowEverything())
        agent = Agent(ScriptedProvider(calls, "done"), executor=executor, sessions=store)
        try:
            with pytest.raises(SessionError):
                await agent.run("go", session="s")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert ran == [0]
        assert isinstance(await agent.resume("s"), Done)
        (told,) = [message for message in await agent.messages("s") if isinstance(message, ToolMessage)]
    assert [isinstance(outcome, Failed) and outcome.started for outcome in told.outcomes][1:] == [False, False]


async def test_notes_that_wait_share_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    append = MemoryHold.append

    async def count(hold: MemoryHold, *records: Record) -> None:
        written.append(sum(isinstance(record, Kept) for record in records))
        await append(hold, *records)

    monkeypatch.setattr(MemoryHold, "append", count)

    @tool(annotations=Annotations(idempotent=True))
    async def note(n: int, context: ToolContext) -> str:
        """Keep several notes at once."""
        await asyncio.gather(*(context.keep(number) for number in range(n)))
        return str(len(context.kept))

    executor = Executor(Registry(note), AllowEverything())
    store = MemoryStore()
    agent = Agent(ScriptedProvider([ToolCall("c", "note", {"n": 5})], "done"), executor=executor, sessions=store)
    assert isinstance(await agent.run("go", session="s"), Done)
    assert [notes for notes in written if notes] == [5]
    kept = [record.note for record in await store.read("s") if isinstance(record, Kept)]
    assert kept == [0, 1, 2, 3, 4]


async def test_note_after_the_end_of_a_call_is_not_stored() -> None:
    contexts: list[ToolContext] = []

    @tool(annotations=Annotations(idempotent=True))
    async def leave(context: ToolContext) -> str:
        """Leave something behind that goes on after the call."""
        contexts.append(context)
        return "done"

    store, executor = MemoryStore(), Executor(Registry(leave), AllowEverything())
    agent = Agent(ScriptedProvider([ToolCall("c", "leave", {})], "done"), executor=executor, sessions=store)
    assert isinstance(await agent.run("go", session="s"), Done)
    before = await store.read("s")
    await contexts[0].keep("late")
    assert await store.read("s") == before


async def test_nothing_follows_a_note_that_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    append = MemoryHold.append

    async def lose(hold: MemoryHold, *records: Record) -> None:
        if any(isinstance(record, Kept) for record in records):
            raise SessionError("the database is away for a moment")
        await append(hold, *records)

    monkeypatch.setattr(MemoryHold, "append", lose)

    @tool(annotations=Annotations(idempotent=True))
    async def note(context: ToolContext) -> str:
        """Keep a note, or go on without it."""
        with suppress(SessionError):
            await context.keep(1)
        return "done"

    store, executor = MemoryStore(), Executor(Registry(note), AllowEverything())
    agent = Agent(ScriptedProvider([ToolCall("c", "note", {})], "done"), executor=executor, sessions=store)
    with pytest.raises(SessionError, match="away for a moment"):
        await agent.run("go", session="s")
    assert not any(isinstance(item, Said) and isinstance(item.message, ToolMessage) for item in await store.read("s"))
