"""Questions and answers are on record before anything waits, also if the user is asked on the spot."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.forked import run_script

from callwright import (
    Agent,
    Annotations,
    Answers,
    ApprovalRequired,
    Approve,
    Decline,
    Effect,
    Executor,
    Question,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    tool,
)
from callwright.agent import Done, Handover, Paused
from callwright.core.errors import Unanswered
from callwright.core.messages import AssistantMessage
from callwright.sessions import MemoryStore, SessionError, SessionStore, record_answers
from callwright.sessions.records import Answered, Asked, Began, Record, Said
from callwright.sessions.sqlite import SqliteHold
from callwright.testing.fakes import Line, ScriptedProvider

VICTIM = Path(__file__).with_name("asking_victim.py")
CHARGE = ToolCall("c1", "charge", {"n": 7})


def registry(folder: Path) -> Registry:
    @tool
    async def charge(n: int) -> str:
        """Charge once."""
        with (folder / "ledger").open("a", encoding="utf-8") as ledger:
            ledger.write(f"{n}\n")
        return "charged"

    return Registry(charge)


def charged(folder: Path) -> int:
    ledger = folder / "ledger"
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


async def kill(folder: Path, at: str) -> None:
    ended = await asyncio.to_thread(run_script, VICTIM, str(folder), at)
    assert ended.returncode == -9, ended.stderr


def agent_in(folder: Path, store: SessionStore, *script: Line, **more: Any) -> Agent:
    return Agent(ScriptedProvider(*script), executor=Executor(registry(folder)), sessions=store, **more)


async def test_killed_at_a_question_asks_it_again(tmp_path: Path) -> None:
    await kill(tmp_path, "question")
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = agent_in(tmp_path, store, "done")
        paused = await agent.resume("s")
        assert isinstance(paused, Paused) and paused.questions[0].arguments == {"n": 7}
        assert charged(tmp_path) == 0
        answers = Answers.approving(paused.questions)
        assert isinstance(await agent.resume("s", answers), Done) and charged(tmp_path) == 1
        assert isinstance(await agent.resume("s", answers), Done) and charged(tmp_path) == 1


async def test_question_of_a_killed_process_can_be_answered(tmp_path: Path) -> None:
    """The question on record is the one that is answered, without asking again."""
    await kill(tmp_path, "question")
    async with SqliteStore(tmp_path / "s.db") as store:
        (asked,) = [record for record in await store.read("s") if isinstance(record, Asked)]
        result = await agent_in(tmp_path, store, "done").resume("s", Answers.approving(asked.questions))
    assert isinstance(result, Done) and charged(tmp_path) == 1


async def test_answer_counts_once_after_a_kill(tmp_path: Path) -> None:
    await kill(tmp_path, "answer")
    async with SqliteStore(tmp_path / "s.db") as store:
        records = await store.read("s")
        assert [type(record) for record in records] == [Said, Said, Asked, Answered]
        agent = agent_in(tmp_path, store, "done")
        assert isinstance(await agent.resume("s"), Done), "the answer on record is not asked for again"
        assert charged(tmp_path) == 1
        assert isinstance(await agent.resume("s"), Done) and charged(tmp_path) == 1


@pytest.mark.parametrize("make", [MemoryStore, None])
async def test_record_of_a_turn_that_asked_on_the_spot(tmp_path: Path, make: Any) -> None:
    store: SessionStore = MemoryStore() if make else SqliteStore(tmp_path / "s.db")
    seen: list[list[Record]] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        seen.append(list(await store.read("s")))
        return Answers({question.id: Approve({"n": 8}, by="ada") for question in questions})

    result = await agent_in(tmp_path, store, CHARGE, "done", ask=ask).run("go", session="s")
    assert isinstance(result, Done)
    before = seen[0]
    assert isinstance(before[1], Said) and isinstance(before[1].message, AssistantMessage)
    assert isinstance(before[2], Asked), "the question is on record while the user is asked"
    replies = [reply for record in await store.read("s") if isinstance(record, Answered) for reply in record.replies]
    answers = [record.replies for record in await store.read("s") if isinstance(record, Answered)]
    assert list(answers[0].values()) == [Approve({"n": 8}, by="ada")] and replies
    if isinstance(store, SqliteStore):
        kinds = [type(record) for record in await store.read("s")]
        assert kinds.index(Answered) < kinds.index(Began)
        store.close()


async def test_first_answer_wins(tmp_path: Path) -> None:
    await kill(tmp_path, "question")
    async with SqliteStore(tmp_path / "s.db") as store:
        (asked,) = [record for record in await store.read("s") if isinstance(record, Asked)]
        hold = await store.hold("s")
        await hold.append(Answered({asked.questions[0].id: Decline("no")}))
        await hold.release()
        await agent_in(tmp_path, store, "done").resume("s", Answers.approving(asked.questions))
    assert charged(tmp_path) == 0


@pytest.mark.parametrize("durable", [True, False])
async def test_user_who_left_is_asked_again(tmp_path: Path, durable: bool) -> None:
    store: SessionStore = SqliteStore(tmp_path / "s.db") if durable else MemoryStore()

    async def leave(questions: Sequence[Question]) -> Answers:
        raise Unanswered("the window was closed")

    agent = agent_in(tmp_path, store, CHARGE, "done", ask=leave)
    paused = await agent.run("go", session="s")
    assert isinstance(paused, Paused) and charged(tmp_path) == 0
    assert sum(isinstance(record, Asked) for record in await store.read("s")) == 1
    agent.ask = None
    assert isinstance(await agent.resume("s", Answers.approving(paused.questions)), Done)
    assert charged(tmp_path) == 1
    if isinstance(store, SqliteStore):
        store.close()


@pytest.mark.parametrize("durable", [True, False])
async def test_tool_that_asks_after_an_approval_goes_on_from_the_record(tmp_path: Path, durable: bool) -> None:
    ledger = tmp_path / "ledger"

    @tool
    async def deploy(place: str, context: ToolContext) -> str:
        """Deploy."""
        with ledger.open("a", encoding="utf-8") as file:
            file.write(f"{context.idempotency_key}\n")
        if context.answer is None:
            raise ApprovalRequired("this changes the running service")
        return f"deployed to {place}"

    def agent(*script: Line) -> Agent:
        return Agent(ScriptedProvider(*script), executor=Executor(Registry(deploy)), sessions=store)

    store = SqliteStore(tmp_path / "s.db") if durable else MemoryStore()
    result = await agent([ToolCall("c", "deploy", {"place": "production"})]).run("go", session="s")
    for reason in ("it changes something", "this changes the running service"):
        assert isinstance(result, Paused) and [question.reason for question in result.questions] == [reason]
        result = await agent("done").resume("s", Answers.approving(result.questions))
    keys = ledger.read_text().splitlines()
    assert isinstance(result, Done) and len(keys) == 2 and len(set(keys)) == 1


@pytest.mark.parametrize("count", [1, 2])
async def test_answer_on_record_counts_after_the_start_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    append, failing = SqliteHold.append, [True]

    async def lose(hold: SqliteHold, *records: Record) -> None:
        if failing and any(isinstance(record, Began) for record in records):
            failing.clear()
            raise SessionError("the database is away for a moment")
        await append(hold, *records)

    monkeypatch.setattr(SqliteHold, "append", lose)
    async with SqliteStore(tmp_path / "s.db") as store:
        calls = [ToolCall(f"c{n}", "charge", {"n": n}) for n in range(count)]
        agent = agent_in(tmp_path, store, calls, "done")
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused)
        await record_answers(store, "s", Answers.approving(paused.questions))
        with pytest.raises(SessionError, match="away for a moment"):
            await agent.resume("s")
        assert charged(tmp_path) == 0
        assert isinstance(await agent.resume("s"), Done) and charged(tmp_path) == count


async def test_approved_call_is_repeated_without_a_question_by_the_process_that_gave_it_up(tmp_path: Path) -> None:
    began = asyncio.Event()

    @tool(annotations=Annotations(Effect.WRITE, idempotent=True))
    async def send() -> str:
        """Send; the first time for ever."""
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()
        return "sent"

    async with SqliteStore(tmp_path / "s.db") as store:
        script = (ToolCall("c", "send", {}), "done")
        agent = Agent(ScriptedProvider(*script), executor=Executor(Registry(send)), sessions=store)
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused)
        handover = Handover()
        running = asyncio.ensure_future(agent.resume("s", Answers.approving(paused.questions), handover=handover))
        await began.wait()
        handover.give_up()
        running.cancel()
        await asyncio.wait([running])
        assert isinstance(await agent.resume("s"), Done)
