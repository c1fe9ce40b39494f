"""Turns in memory: kept as messages while an agent runs, read as the records that any other store has."""

from pathlib import Path

import pytest

from callwright import Executor, Registry, tool
from callwright.agent import Agent, Done
from callwright.core.calls import ToolCall
from callwright.core.messages import AssistantMessage, ToolMessage
from callwright.policy import AllowEverything
from callwright.sessions import MemoryStore, SessionBusy, SqliteStore
from callwright.sessions.base import SessionStore
from callwright.sessions.memory import MemoryHold
from callwright.sessions.records import Began, Record, Said
from callwright.testing import ScriptedProvider


async def run_three_turns(store: SessionStore, session: str = "s") -> list[Record]:
    """Run two turns with a call and one without; return the records, less those that only durable stores have."""

    @tool
    async def double(number: int) -> str:
        """Double a number."""
        return str(2 * number)

    calls = [ToolCall("a", "double", {"number": 1}), ToolCall("b", "double", {"number": 2})]
    agent = Agent(
        ScriptedProvider([calls[0]], [calls[1]], "done"),
        executor=Executor(Registry(double), AllowEverything()),
        sessions=store,
    )
    assert isinstance(await agent.run("go", session=session), Done)
    return [record for record in await store.read(session) if not isinstance(record, Began)]


def strip_run(records: list[Record]) -> list[object]:
    """Return the messages of records and the numbers of their turns, without the id of the run and the times."""
    shown: list[object] = []
    for record in records:
        assert isinstance(record, Said)
        message = record.message
        texts = [o.text for o in message.outcomes] if isinstance(message, ToolMessage) else message
        shown.append((texts, record.turn_id.rpartition("-")[2], record.key))
    return shown


async def test_turns_are_read_as_the_records_of_a_durable_store(tmp_path: Path) -> None:
    in_memory = await run_three_turns(MemoryStore())
    async with SqliteStore(tmp_path / "s.db") as store:
        assert strip_run(in_memory) == strip_run(await run_three_turns(store))
    assert [type(record.message).__name__ for record in in_memory if isinstance(record, Said)] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "AssistantMessage",
        "ToolMessage",
        "AssistantMessage",
    ]


async def test_every_way_to_read_counts_turns_as_two_records() -> None:
    store = MemoryStore()
    records = await run_three_turns(store)
    assert [item.position for item in await store.read_from("s", 1, limit=3)] == [1, 2, 3]
    assert [item.record for item in await store.read_from("s")] == records
    await run_three_turns(store, "other")
    (entry,) = [entry for entry in await store.list() if entry.session_id == "other"]
    assert entry.records == 6
    await run_three_turns(store, "third")
    await store.fork("third", "fork")
    assert list(await store.read("fork")) == list(await store.read("third"))


async def test_turn_after_a_takeover_is_refused() -> None:
    store = MemoryStore()
    hold = await store.hold("s", owner="worker")
    later = await store.hold("s", owner="worker")
    message, outcomes = AssistantMessage((ToolCall("a", "double"),)), ToolMessage(())
    assert not hold.keep_turn(message, "t", outcomes) and later.keep_turn(message, "t", outcomes)
    assert list(await store.read("s")) == [Said(message, "t"), Said(outcomes)]


class WorkerStore(MemoryStore):
    """A store whose sessions all belong to one worker, which may take them over from itself."""

    async def hold(self, session_id: str, *, owner: str = "") -> MemoryHold:
        return await super().hold(session_id, owner=owner or "worker")


async def test_agent_whose_session_is_taken_over_ends() -> None:
    store = WorkerStore()

    @tool
    async def lose() -> str:
        """Let another run take the session over."""
        await store.hold("s")
        return "lost"

    executor = Executor(Registry(lose), AllowEverything())
    agent = Agent(ScriptedProvider([ToolCall("a", "lose", {})], "done"), executor=executor, sessions=store)
    with pytest.raises(SessionBusy, match="taken over"):
        await agent.run("go", session="s")
    assert [type(record) for record in await store.read("s")] == [Said]
