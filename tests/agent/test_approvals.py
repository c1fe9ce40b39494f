"""Approval pauses of an agent, resumed in the same process, in another one, or not at all."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.agent.histories import find_history_faults

from callwright import Answers, Approve, Completed, Effect, Failed, Question, Registry, ToolCall, tool
from callwright.agent import Agent, Done, Paused, Stopped
from callwright.core.errors import UsageError
from callwright.core.events import QuestionsRaised
from callwright.core.messages import ToolMessage, UserMessage
from callwright.providers.base import ModelRequest, ProviderError
from callwright.sessions import MemoryStore, SessionBusy, SessionError, SqliteStore
from callwright.testing.fakes import ScriptedProvider

paid: list[int] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    paid.clear()


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return f"paid {amount}"


@tool(effect=Effect.READ)
async def balance() -> int:
    """Tell the balance."""
    return 100


def paying(call_id: str, amount: int) -> ToolCall:
    return ToolCall(call_id, "pay", {"amount": amount})


def outcomes_of(message: object) -> Sequence[Completed | Failed]:
    assert isinstance(message, ToolMessage)
    return message.outcomes


async def test_question_pauses_run_and_answer_finishes_it() -> None:
    with ScriptedProvider([paying("1", 5), ToolCall("2", "balance"), paying("3", 7)], "done") as provider:
        agent = Agent(provider, [pay, balance])
        paused = await agent.run("pay", session="s")
        assert isinstance(paused, Paused) and [q.call_id for q in paused.questions] == ["1", "3"]
        assert paid == []
        first, second = paused.questions
        result = await agent.resume("s", Answers().approve(first).decline(second, "too much"))
    assert isinstance(result, Done)
    assert paid == [5]
    told = outcomes_of(provider.requests[-1].messages[-1])
    assert [type(outcome) for outcome in told] == [Completed, Completed, Failed]


async def test_unnamed_session_resumes_by_its_generated_id() -> None:
    agent = Agent(ScriptedProvider(paying("1", 5), "done"), [pay])
    paused = await agent.run("pay")
    assert isinstance(paused, Paused)
    assert isinstance(await agent.resume(paused.session_id, Answers.approving(paused.questions)), Done)
    assert paid == [5]


async def test_resume_without_answers_asks_again_keeps_partial_ones() -> None:
    agent = Agent(ScriptedProvider([paying("1", 5), paying("2", 7)], "done"), [pay])
    paused = await agent.run("pay", session="s")
    assert isinstance(paused, Paused)
    again = await agent.resume("s", Answers().approve(paused.questions[0]))
    assert isinstance(again, Paused) and [q.call_id for q in again.questions] == ["2"]
    assert isinstance(await agent.resume("s", Answers.approving(again.questions)), Done)
    assert paid == [5, 7]


async def test_new_prompt_closes_open_questions_without_running() -> None:
    with ScriptedProvider([paying("1", 5), ToolCall("2", "balance")], "as you wish") as provider:
        agent = Agent(provider, [pay, balance])
        paused = await agent.run("pay", session="s")
        assert isinstance(paused, Paused)
        assert isinstance(await agent.run("never mind", session="s"), Done)
    messages = provider.requests[-1].messages
    assert find_history_faults(messages) == []
    told = outcomes_of(messages[2])
    assert all(isinstance(o, Failed) and o.error.code == "cancelled" and not o.started for o in told)
    assert isinstance(await agent.resume("s", Answers.approving(paused.questions)), Done)
    assert paid == []


async def test_answers_and_a_prompt_in_one_call() -> None:
    with ScriptedProvider([paying("1", 5), paying("2", 7)], "noted") as provider:
        agent = Agent(provider, [pay])
        paused = await agent.run("pay", session="s")
        assert isinstance(paused, Paused)
        first, second = paused.questions
        answers = Answers().approve(first).decline(second, "too much")
        done = await agent.resume("s", answers, prompt="and tell me the sum")
        assert isinstance(done, Done) and done.text == "noted" and paid == [5]
        last = provider.requests[-1].messages
        assert [type(message).__name__ for message in last[-2:]] == ["ToolMessage", "UserMessage"]
        assert [type(outcome).__name__ for outcome in outcomes_of(last[-2])] == ["Completed", "Failed"]
        assert not find_history_faults(last)
        with pytest.raises(UsageError, match="no question of session 's' is pending"):
            await agent.resume("s", answers, prompt="again")


async def test_a_prompt_waits_while_questions_stay_open() -> None:
    with ScriptedProvider([paying("1", 5), paying("2", 7)], "noted") as provider:
        agent = Agent(provider, [pay])
        paused = await agent.run("pay", session="s")
        assert isinstance(paused, Paused)
        half = await agent.resume("s", Answers().approve(paused.questions[0]), prompt="hurry")
        assert isinstance(half, Paused) and paid == []
        rest = Answers().approve(half.questions[-1])
        events = [event async for event in agent.stream("hurry", session="s", answers=rest)]
        assert isinstance(events[-1], Done) and sorted(paid) == [5, 7]
        assert [message.content for message in await agent.messages("s") if isinstance(message, UserMessage)] == [
            "pay",
            "hurry",
        ]


async def test_approval_survives_restart_and_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        paused = await Agent(ScriptedProvider(paying("1", 5)), [pay], sessions=store).run("pay", session="s")
    assert isinstance(paused, Paused)
    answers = Answers.approving(paused.questions)
    async with SqliteStore(path) as store:  # a new process would look like this
        agent = Agent(ScriptedProvider("done"), [pay], sessions=store)
        assert isinstance(await agent.resume("s", answers), Done)
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedProvider(paying("1", 5)), [pay], sessions=store)
        assert isinstance(await agent.run("again", session="s"), Paused)
        assert isinstance(await agent.resume("s", answers), Paused)
    assert paid == [5]


async def test_ask_callback_answers_during_the_run() -> None:
    async def ask(questions: Sequence[Question]) -> Answers:
        return Answers.approving(questions)

    agent = Agent(ScriptedProvider(paying("1", 5), "done"), Registry(pay), ask=ask)
    events = [event async for event in agent.stream("pay")]
    assert any(isinstance(event, QuestionsRaised) for event in events)
    assert isinstance(events[-1], Done) and paid == [5]


async def test_resume_of_missing_session_is_an_error() -> None:
    with pytest.raises(SessionError, match="no session 'nowhere'"):
        await Agent(ScriptedProvider(), sessions=MemoryStore()).resume("nowhere")


async def test_paused_turn_is_hidden_from_model_until_closed() -> None:
    def reply(request: ModelRequest) -> str | ToolCall:
        assert find_history_faults(request.messages) == []
        return paying("1", len(request.messages))

    agent = Agent(ScriptedProvider.answering(reply), [pay])
    for _ in range(3):
        assert isinstance(await agent.run("pay", session="s"), Paused)
    assert find_history_faults(await agent.messages("s")) == []


async def test_unnamed_session_is_gone_once_it_has_an_answer() -> None:
    call = ToolCall("c", "pay", {"amount": 1})
    agent = Agent(ScriptedProvider(call, call, "done"), [pay])  # with a store of its own
    paused = await agent.run("go")
    assert isinstance(paused, Paused)
    again = await agent.resume(paused.session_id, Answers({paused.questions[0].id: Approve()}))
    assert isinstance(again, Paused) and await agent.sessions.find(paused.session_id)
    done = await agent.resume(paused.session_id, Answers({again.questions[0].id: Approve()}))
    assert isinstance(done, Done) and paid == [1, 1] and not await agent.sessions.list()


async def test_unnamed_session_stays_for_another_try() -> None:
    broken = ProviderError("no such model", fault="invalid")
    agent = Agent(ScriptedProvider(paying("1", 5), broken, "done"), [pay])
    paused = await agent.run("go")
    assert isinstance(paused, Paused)
    answers = Answers.approving(paused.questions)
    hold = await agent.sessions.hold(paused.session_id)  # as another resume has it
    with pytest.raises(SessionBusy):
        await agent.resume(paused.session_id, answers)
    await hold.release()
    assert isinstance(await agent.resume(paused.session_id, answers), Stopped)
    assert isinstance(await agent.resume(paused.session_id), Done)
    assert paid == [5] and not await agent.sessions.list()


async def test_named_session_stays_after_its_answer() -> None:
    agent = Agent(ScriptedProvider(ToolCall("c", "pay", {"amount": 1}), "done"), [pay])
    paused = await agent.run("go", session="s")
    assert isinstance(paused, Paused)
    assert isinstance(await agent.resume("s", Answers({paused.questions[0].id: Approve()})), Done)
    assert len(await agent.messages("s")) == 4
