"""Sessions that wait for a person, listed from a store and answered in it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callwright import Agent, Answers, Approve, Decline, Executor, Paused, Registry, ToolCall, UsageError, tool
from callwright.app.waiting_runs import answer_run, list_waiting_runs, open_run_store
from callwright.core.messages import ToolMessage, UserMessage
from callwright.executor import TurnLimits
from callwright.sessions import (
    MemoryStore,
    QuestionClosed,
    SessionBusy,
    SessionError,
    SessionStore,
    SqliteStore,
    list_waiting,
    record_answers,
)
from callwright.sessions.records import Answered, Asked, Kept, Record, Rewound, Said, count_settled_records
from callwright.sessions.waiting import find_answered
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line

paid: list[int] = []


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return f"paid {amount}"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SessionStore, None]:
    paid.clear()
    if request.param == "memory":
        yield MemoryStore()
        return
    async with SqliteStore(tmp_path / "s.db") as opened:
        yield opened


def make_agent(store: SessionStore, *lines: Line, question_seconds: float | None = 3600) -> Agent:
    executor = Executor(Registry(pay), limits=TurnLimits(question_seconds=question_seconds))
    return Agent(ScriptedProvider(*lines), executor=executor, sessions=store)


async def pause(store: SessionStore, *amounts: int, session: str = "s", seconds: float = 3600) -> Paused:
    calls = [ToolCall(f"c{amount}", "pay", {"amount": amount}) for amount in amounts]
    paused = await make_agent(store, calls, question_seconds=seconds).run("go", session=session)
    assert isinstance(paused, Paused)
    return paused


async def resume(store: SessionStore, session: str = "s") -> list[str]:
    agent = make_agent(store, "done")
    await agent.resume(session)
    messages = await agent.messages(session)
    return [outcome.text for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes]


async def test_answer_on_record_is_used_once(store: SessionStore) -> None:
    paused = await pause(store, 1)
    (run,) = await list_waiting(store)
    assert (run.session_id, run.title, run.questions) == ("s", "go", paused.questions) and run.updated_at > 0
    assert await record_answers(store, "s", Answers().approve(run.questions[0])) == paused.questions
    assert not await list_waiting(store) and not paid
    assert find_answered(await store.read("s")) == (paused.questions[0].id,)
    assert await resume(store) == ["paid 1"] and paid == [1]
    assert find_answered(await store.read("s")) == ()


async def test_first_answer_counts(store: SessionStore) -> None:
    (question,) = (await pause(store, 1)).questions
    await record_answers(store, "s", Answers({question.id: Decline("no", "ada")}))
    with pytest.raises(QuestionClosed, match="answered already: declined by ada"):
        await record_answers(store, "s", Answers().approve(question))
    assert "no" in (await resume(store))[0] and not paid


async def test_of_many_answers_at_once_one_counts(store: SessionStore) -> None:
    (question,) = (await pause(store, 1)).questions
    given = [Answers({question.id: Approve(by=str(n)) if n % 2 else Decline(by=str(n))}) for n in range(8)]
    ended = await asyncio.gather(*(record_answers(store, "s", each) for each in given), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in ended) == 1
    assert all(isinstance(each, (tuple, QuestionClosed)) for each in ended), ended
    answered = [record for record in await store.read("s") if isinstance(record, Answered)]
    assert len(answered) == 1
    await resume(store)
    assert len(paid) == isinstance(answered[0].replies[question.id], Approve)


async def test_strangers_answer_nothing(store: SessionStore) -> None:
    (mine,) = (await pause(store, 1)).questions
    (other,) = (await pause(store, 2, session="other")).questions
    forged: list[Any] = [
        other,  # of another run
        replace(mine, digest="0" * 64),  # shows another call
        replace(mine, call_id="c9"),
        replace(mine, expires_at=1),  # expired when it was shown
    ]
    for question in forged:
        with pytest.raises(QuestionClosed, match="does not wait for that question"):
            await record_answers(store, "s", Answers({question.id: Approve()}))
    for reply in (True, "yes", None, Approve):
        with pytest.raises(UsageError):
            await record_answers(store, "s", {mine.id: reply})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the point
    with pytest.raises(UsageError, match="at least one answer"):
        await record_answers(store, "s", Answers())
    with pytest.raises(SessionError, match="no session 'none'"):
        await record_answers(store, "none", Answers().approve(mine))
    assert {run.session_id for run in await list_waiting(store)} == {"s", "other"} and not paid


async def test_answer_for_all_or_none(store: SessionStore) -> None:
    first, second = (await pause(store, 1, 2)).questions
    with pytest.raises(QuestionClosed):
        await record_answers(store, "s", Answers({first.id: Approve(), "x": Approve()}))
    assert len((await list_waiting(store))[0].questions) == 2
    await record_answers(store, "s", Answers().decline(second))
    ((left,),) = [run.questions for run in await list_waiting(store)]
    assert left == first
    await record_answers(store, "s", Answers().approve(first))
    assert (await resume(store))[0] == "paid 1" and paid == [1]


@pytest.mark.slow
async def test_expired_question_takes_no_answer(store: SessionStore) -> None:
    (question,) = (await pause(store, 1, seconds=0.01)).questions
    while not question.is_expired():  # whole seconds  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    assert not await list_waiting(store)
    with pytest.raises(QuestionClosed, match="has expired"):
        await record_answers(store, "s", Answers().approve(question))


async def test_expired_questions_do_not_hide_one_that_waits(store: SessionStore) -> None:
    (question,) = (await pause(store, 1, session="waits")).questions
    for number in range(9):
        await append(store, Said(UserMessage("go")), Asked((replace(question, expires_at=1),)), session=f"s{number}")
    for limit in (1, 2, 20):
        assert [run.session_id for run in await list_waiting(store, limit=limit)] == ["waits"]
    await pause(store, 2, session="too")
    assert [run.session_id for run in await list_waiting(store, limit=1)] == ["too"]
    assert not await list_waiting(store, limit=0)


async def test_question_asked_again_takes_the_answer(store: SessionStore) -> None:
    (question,) = (await pause(store, 1)).questions
    again = await make_agent(store).resume("s")
    assert isinstance(again, Paused) and again.questions[0].id != question.id
    await record_answers(store, "s", Answers().approve(question))
    assert await resume(store) == ["paid 1"]


@pytest.mark.parametrize("asked_again", [False, True])
async def test_answer_sent_twice_does_not_approve_the_same_call_of_a_later_turn(
    store: SessionStore, asked_again: bool
) -> None:
    (question,) = (await pause(store, 1)).questions
    if asked_again:
        await make_agent(store).resume("s")
    await record_answers(store, "s", Answers().approve(question))
    later = await make_agent(store, ToolCall("c1", "pay", {"amount": 1})).resume("s")
    assert isinstance(later, Paused) and later.questions[0].matches(question.id) and paid == [1]
    with pytest.raises(QuestionClosed):
        await record_answers(store, "s", Answers().approve(question))
    assert await list_waiting(store)
    await record_answers(store, "s", Answers().approve(later.questions[0]))
    await resume(store)
    assert paid == [1, 1]


async def test_session_that_is_written_is_answered_there(store: SessionStore) -> None:
    (question,) = (await pause(store, 1)).questions
    hold = await store.hold("s")
    with pytest.raises(SessionBusy, match="answer its question there"):
        await record_answers(store, "s", Answers().approve(question), busy_seconds=0)
    waiting = asyncio.ensure_future(record_answers(store, "s", Answers().approve(question)))
    await asyncio.sleep(0)
    await hold.release()
    assert await waiting == (question,)


async def test_places_show_and_answer(store: SessionStore) -> None:
    (question,) = (await pause(store, 1)).questions
    (shown,) = await list_waiting_runs(store)
    assert (shown["session"], shown["title"]) == ("s", "go")
    (fields,) = shown["questions"]
    assert fields["id"] == question.id and fields["arguments"] == {"amount": 1}
    for wrong in ({"approved": "yes"}, {"approved": 1}, {}, {"approved": True, "more": 1}):
        with pytest.raises(UsageError):
            await answer_run(store, "s", question.id, wrong, place="the page")
    with pytest.raises(QuestionClosed):
        await answer_run(store, "s", "x", {"approved": True}, place="the page")
    await answer_run(store, "s", question.id, {"approved": True}, place="the page")
    with pytest.raises(QuestionClosed):
        await answer_run(store, "s", question.id, {"approved": True}, place="the page")
    (answered,) = [record for record in await store.read("s") if isinstance(record, Answered)]
    assert answered.replies[question.id].by.endswith("the page")
    assert await resume(store) == ["paid 1"]


async def test_store_is_opened_by_its_address(tmp_path: Path) -> None:
    for address, message in (("", "name the store"), (str(tmp_path / "x.db"), "no such file")):
        with pytest.raises(UsageError, match=message):
            async with open_run_store(address):
                pass
    assert not [*tmp_path.iterdir()]
    async with open_run_store(str(tmp_path / "x.db"), create=True) as store:
        assert not await list_waiting(store)


class TailStore(MemoryStore):
    """Counts the sessions that are read whole."""

    whole = 0

    async def read(self, session_id: str) -> Sequence[Record]:
        self.whole += 1
        return await super().read(session_id)


async def append(store: SessionStore, *records: Record, session: str = "s") -> None:
    hold = await store.hold(session)
    await hold.append(*records)
    await hold.release()


async def test_long_transcript_is_not_read_for_its_questions() -> None:
    store = TailStore()
    await append(store, *(Said(UserMessage("x" * 1000)) for _ in range(500)))
    (question,) = (await pause(store, 1)).questions
    store.whole = 0
    assert [run.questions for run in await list_waiting(store)] == [(question,)]
    assert store.whole == 0
    await append(store, *(Kept("c1", n) for n in range(100)))  # its message is far away now
    assert [run.questions for run in await list_waiting(store)] == [(question,)]
    assert store.whole == 1


async def test_rewound_questions_do_not_wait() -> None:
    store = MemoryStore()
    await append(store, *(Said(UserMessage(str(n))) for n in range(60)))
    position = len(await store.read("s"))
    await pause(store, 1)
    await append(store, Rewound(position))
    assert not await list_waiting(store)


async def test_fork_after_an_undo_of_files_leaves_the_open_turn() -> None:
    store = MemoryStore()
    await pause(store, 1)
    settled = count_settled_records(await store.read("s"))
    await append(store, Rewound(len(await store.read("s")), "files"))
    await store.fork("s", "t")
    assert len(await store.read("t")) == settled
    assert [run.session_id for run in await list_waiting(store)] == ["s"]


async def test_damaged_session_does_not_hide_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        await pause(store, 1, session="broken")
        await pause(store, 2, session="whole")
        with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
            query = "UPDATE records SET body = '{' WHERE position = 1 AND session = (SELECT min(session) FROM records)"
            assert connection.execute(query).rowcount == 1
        assert [run.session_id for run in await list_waiting(store)] == ["whole"]
    assert "session 'broken' is damaged" in caplog.text
