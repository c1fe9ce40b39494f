"""Questions that a tool asks while it runs: the call is interrupted, and runs again with the answer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from callwright import (
    Annotations,
    Answers,
    ApprovalRequired,
    Approve,
    AuthRequired,
    Completed,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    Turn,
    TurnLimits,
    tool,
)
from callwright.agent import Agent, Done, Paused
from callwright.core.decisions import AnswersNeeded
from callwright.core.errors import Transient
from callwright.core.events import BatchBegan, QuestionsRaised
from callwright.hooks import Hook, PendingCall
from callwright.policy import AllowEverything, ByMode, ModeSwitch
from callwright.sessions import MemoryStore, SessionStore, SqliteStore
from callwright.testing import Recorder, ScriptedProvider
from callwright.testing.fakes import FakeClock

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@tool(effect=Effect.WRITE)
async def deploy(place: str, context: ToolContext) -> str:
    """Deploy; asks before the last step."""
    ran.append(f"prepare {place} {context.idempotency_key}")
    if context.answer is None:
        raise ApprovalRequired(f"{place} is in production")
    assert context.question is not None and context.question.reason == f"{place} is in production"
    ran.append(f"deploy {place} {context.answer.scope}")
    return f"deployed {place}"


@tool(effect=Effect.READ)
async def look() -> str:
    """Look."""
    ran.append("look")
    return "seen"


@tool(effect=Effect.WRITE)
async def note() -> str:
    """Write a note."""
    ran.append("note")
    return "noted"


CALL = ToolCall("1", "deploy", {"place": "a"})


def allowing(*tools: Any, **options: Any) -> Executor:
    return Executor(Registry(*tools or (deploy, look, note)), AllowEverything(), **options)


async def interrupted(executor: Executor, call: ToolCall = CALL) -> Question:
    (outcome,) = await executor.execute([call])
    assert isinstance(outcome, Interrupted)
    (question,) = outcome.questions
    return question


def keys() -> set[str]:
    return {line.split()[2] for line in ran if line.startswith("prepare")}


async def test_running_tool_interrupts_its_call_and_goes_on_with_the_answer() -> None:
    executor = allowing()
    question = await interrupted(executor)
    assert question.running and question.reason == "a is in production" and question.arguments == {"place": "a"}
    assert len(ran) == 1
    (outcome,) = await executor.execute([CALL], answers=Answers().approve(question, scope="session"))
    assert isinstance(outcome, Completed) and ran[-1] == "deploy a session" and len(keys()) == 1


async def test_declined_question_ends_the_call_without_another_run() -> None:
    executor = allowing()
    question = await interrupted(executor)
    (outcome,) = await executor.execute([CALL], answers=Answers().decline(question, "not today"))
    assert isinstance(outcome, Failed) and outcome.error.code == "denied" and "not today" in outcome.text
    assert outcome.started and len(ran) == 1


async def test_answer_to_a_running_question_counts_once() -> None:
    executor = allowing()
    answers = Answers.approving([await interrupted(executor)])
    first, second = [(await executor.execute([CALL], answers=answers))[0] for _ in range(2)]
    assert isinstance(first, Completed) and isinstance(second, Interrupted)
    assert [line for line in ran if line.startswith("deploy")] == ["deploy a once"]


async def test_answer_does_not_cover_another_question_or_call() -> None:
    executor = allowing()
    answers = Answers.approving([await interrupted(executor)])
    (other,) = await executor.execute([ToolCall("1", "deploy", {"place": "b"})], answers=answers)
    (elsewhere,) = await executor.execute([ToolCall("2", "deploy", {"place": "a"})], answers=answers)
    assert isinstance(other, Interrupted) and isinstance(elsewhere, Interrupted)
    assert not any(line.startswith("deploy") for line in ran)


async def test_approval_of_the_call_does_not_answer_the_running_question() -> None:
    executor = Executor(Registry(deploy))
    (first,) = await executor.execute([CALL])
    assert isinstance(first, Interrupted) and not first.questions[0].running and not ran
    (second,) = await executor.execute([CALL], answers=Answers.approving(first.questions))
    assert isinstance(second, Interrupted) and second.questions[0].running and len(ran) == 1
    (third,) = await executor.execute([CALL], answers=Answers.approving(second.questions))
    assert isinstance(third, Completed)  # the call itself is not asked about again


async def test_changed_policy_still_applies_to_a_resumed_call() -> None:
    class Stop(Hook):
        stopped = False

        def before(self, pending: PendingCall) -> Any:
            from callwright.hooks import Deny

            return Deny("closed") if self.stopped else None

    hook = Stop()
    executor = allowing(hooks=[hook])
    question = await interrupted(executor)
    hook.stopped = True
    (outcome,) = await executor.execute([CALL], answers=Answers.approving([question]))
    assert isinstance(outcome, Failed) and "closed" in outcome.text and len(ran) == 1


async def test_answer_to_a_running_question_does_not_answer_a_new_one_of_the_policies() -> None:
    mode = ModeSwitch("bypass")
    executor = Executor(Registry(deploy), ByMode(mode))
    question = await interrupted(executor)
    mode.mode = "default"
    (outcome,) = await executor.execute([CALL], answers=Answers.approving([question]))
    assert isinstance(outcome, Interrupted) and not outcome.questions[0].running and len(ran) == 1


async def test_arguments_cannot_be_edited_while_running() -> None:
    executor = allowing()
    question = await interrupted(executor)
    (outcome,) = await executor.execute([CALL], answers=Answers().approve(question, arguments={"place": "b"}))
    assert isinstance(outcome, Failed) and outcome.error.code == "denied" and len(ran) == 1


async def test_siblings_keep_their_outcomes() -> None:
    calls = [ToolCall("0", "note"), ToolCall("1", "look"), ToolCall("2", "deploy", {"place": "a"})]
    outcomes = await allowing().execute(calls)
    assert [type(outcome) for outcome in outcomes] == [Completed, Completed, Interrupted]


@pytest.mark.parametrize("width", [1, 16])
async def test_calls_behind_an_interrupted_one_wait_with_it(width: int) -> None:
    @tool(annotations=Annotations(Effect.READ, parallel=True))
    async def clock() -> str:
        """Tell the time."""
        ran.append("clock")
        return "noon"

    names = ("look", "note", "clock", "unknown", "note")
    calls = [CALL, *(ToolCall(str(index), name) for index, name in enumerate(names, 2))]
    executor = allowing(deploy, look, note, clock, limits=TurnLimits(width=width))
    outcomes = await executor.execute(calls)
    kinds = [Interrupted, Interrupted, Interrupted, Completed, Failed, Interrupted]
    assert [type(outcome) for outcome in outcomes] == kinds and len(ran) == 2
    (question,) = [
        question for outcome in outcomes if isinstance(outcome, Interrupted) for question in outcome.questions
    ]
    left = [outcome.call for outcome in outcomes if isinstance(outcome, Interrupted)]
    outcomes = await executor.execute(left, answers=Answers.approving([question]))
    assert [outcome.text for outcome in outcomes] == ["deployed a", "seen", "noted", "noted"]
    assert ran[-4:] == ["deploy a once", "look", "note", "note"]


@tool(effect=Effect.WRITE)
async def deploy_together(context: ToolContext) -> str:
    """Deploy in a task group, whose tasks ask."""

    async def deploy_to(place: str) -> None:
        if context.answer is None:
            raise ApprovalRequired(f"{place} is in production")
        ran.append(f"deploy {place}")

    async with asyncio.TaskGroup() as group:
        group.create_task(deploy_to("a"))
        group.create_task(deploy_to("b"))
    return "deployed"


@tool(effect=Effect.WRITE)
async def ask_together() -> str:
    """Ask from a task group, each time."""

    async def ask() -> None:
        raise ApprovalRequired("sure?")

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
    return "never"


@tool(effect=Effect.WRITE)
async def call_together(context: ToolContext) -> str:
    """Make calls in a task group, which are asked about."""

    async def make(place: str) -> None:
        (outcome,) = await context.execute(ToolCall(place, "deploy", {"place": place}))
        if isinstance(outcome, Interrupted):
            raise AnswersNeeded(outcome.questions)

    async with asyncio.TaskGroup() as group:
        for place in ("a", "b"):
            group.create_task(make(place))
    return "called"


async def test_task_of_a_tool_may_ask() -> None:
    executor = Executor(Registry(deploy_together, ask_together, call_together, deploy), AllowEverything())
    outcome = await executor.run("deploy_together")
    assert isinstance(outcome, Interrupted) and outcome.questions[0].reason == "a is in production" and not ran
    outcome = await executor.run("deploy_together", answers=Answers.approving(outcome.questions))
    assert isinstance(outcome, Completed) and ran == ["deploy a", "deploy b"]
    for _ in range(2):  # the second time on the fast path
        outcome = await executor.run("ask_together")
        assert isinstance(outcome, Interrupted) and outcome.questions[0].reason == "sure?"
    outcome = await executor.run("call_together")
    assert isinstance(outcome, Interrupted) and outcome.questions[0].reason == "a is in production"


async def test_approved_call_behind_an_interrupted_one_is_not_asked_about_again() -> None:
    """Without a record, too: the executor remembers what it has asked."""
    executor, asked = Executor(Registry(deploy)), list[str]()
    calls = [ToolCall(place, "deploy", {"place": place}) for place in ("a", "b")]
    answers = Answers()
    outcomes = await executor.execute(calls)
    while questions := [each for one in outcomes if isinstance(one, Interrupted) for each in one.questions]:
        asked += [f"{question.call_id}: {question.reason}" for question in questions]
        for question in questions:
            answers.approve(question)
        outcomes = await executor.execute(calls, answers=answers)
        calls = [call for call, one in zip(calls, outcomes, strict=True) if isinstance(one, Interrupted)]
        outcomes = [one for one in outcomes if isinstance(one, Interrupted)]
    assert asked == [
        "a: it changes something",
        "b: it changes something",
        "a: a is in production",
        "b: b is in production",
    ]
    again = await executor.execute([ToolCall("b", "deploy", {"place": "b"})], answers=answers)
    assert isinstance(again[0], Interrupted) and again[0].questions, "each answer counts once"


async def test_answer_for_a_call_behind_an_interrupted_one_is_not_lost() -> None:
    executor = Executor(Registry(deploy, note))  # asks about every write
    calls = [CALL, ToolCall("2", "note")]
    outcomes, asked = await executor.execute(calls), list[Question]()
    for _ in range(4):
        asked += [question for outcome in outcomes for question in getattr(outcome, "questions", ())]
        outcomes = await executor.execute(calls, answers=Answers.approving(asked))
        if Interrupted not in map(type, outcomes):
            break
    assert [outcome.text for outcome in outcomes] == ["deployed a", "noted"] and ran.count("note") == 1


@pytest.mark.parametrize("approve", [True, False])
async def test_user_is_asked_at_once_where_possible(approve: bool) -> None:
    async def ask(questions: Sequence[Question]) -> Answers:
        assert [question.reason for question in questions] == ["a is in production"]
        return Answers.approving(questions) if approve else Answers().decline(questions[0], "no")

    (outcome,) = await allowing().execute([CALL], turn=Turn(ask=ask))
    assert isinstance(outcome, Completed if approve else Failed) and outcome.attempts == 1
    assert len(ran) == (3 if approve else 1) and len(keys()) == 1


@pytest.mark.parametrize("reply", [None, {}, True, Answers()], ids=["None", "{}", "True", "Answers"])
async def test_unclear_reply_to_a_running_question_is_a_no(reply: Any) -> None:
    async def ask(questions: Sequence[Question]) -> Answers:
        return reply

    (outcome,) = await allowing().execute([CALL], turn=Turn(ask=ask))
    assert isinstance(outcome, Failed) and outcome.error.code == "denied" and len(ran) == 1


async def test_tool_that_asks_forever_fails() -> None:
    @tool(effect=Effect.READ)
    async def insist() -> str:
        """Ask again and again."""
        raise AuthRequired("the token is missing", url="https://example.org/sign-in")

    async def ask(questions: Sequence[Question]) -> Answers:
        return Answers.approving(questions)

    (outcome,) = await allowing(insist).execute([ToolCall("1", "insist")], turn=Turn(ask=ask))
    assert isinstance(outcome, Failed) and "the token is missing" in outcome.text


async def test_sign_in_question_has_its_address() -> None:
    signed_in: list[bool] = []

    @tool(effect=Effect.READ)
    def mail() -> str:
        """Read mail, in a thread."""
        if not signed_in:
            raise AuthRequired("sign in to the mail server", url="https://example.org/sign-in")
        return "no mail"

    executor = allowing(mail)
    await executor.run("mail")  # from now on the fast path is open
    outcome = await executor.run("mail")
    assert isinstance(outcome, Interrupted)
    (question,) = outcome.questions
    assert (question.kind, question.url) == ("auth", "https://example.org/sign-in")
    signed_in.append(True)
    assert isinstance(await executor.run("mail", answers=Answers.approving([question])), Completed)


async def test_observers_see_the_question_and_a_second_start() -> None:
    recorder = Recorder()
    executor = allowing(observe=recorder)
    question = await interrupted(executor)
    await executor.execute([CALL], answers=Answers.approving([question]))
    assert [event.questions for event in recorder.events if isinstance(event, QuestionsRaised)] == [(question,)]
    assert len([event for event in recorder.events if isinstance(event, BatchBegan)]) == 2


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionStore]:
    if request.param == "memory":
        yield MemoryStore()
        return
    async with SqliteStore(tmp_path / "sessions.db") as kept:
        yield kept


def agent_on(store: SessionStore, *script: Any) -> Agent:
    return Agent(ScriptedProvider(*script), executor=allowing(), sessions=store)


async def test_agent_pauses_and_resumes_only_the_interrupted_call(store: SessionStore) -> None:
    agent = agent_on(store, [ToolCall("0", "note"), CALL, ToolCall("2", "look")], "done")
    paused = await agent.run("go", session="s")
    assert isinstance(paused, Paused) and [question.call_id for question in paused.questions] == ["1"]
    later = agent_on(store, "done")  # another process would begin here
    assert isinstance(await later.resume("s", Answers.approving(paused.questions)), Done)
    assert ran.count("note") == 1 and ran[-2:] == ["deploy a once", "look"] and len(keys()) == 1
    told = (await later.messages("s"))[-2]
    assert [outcome.text for outcome in told.outcomes] == ["noted", "deployed a", "seen"]  # type: ignore[union-attr] - a ToolMessage


async def test_agent_resumed_without_an_answer_asks_again(store: SessionStore) -> None:
    agent = agent_on(store, [CALL, ToolCall("2", "note")], "done")
    paused = await agent.run("go", session="s")
    again = await agent.resume("s")
    assert isinstance(paused, Paused) and isinstance(again, Paused) and "note" not in ran
    assert isinstance(await agent.resume("s", Answers.approving(again.questions)), Done)
    assert [line for line in ran if not line.startswith("prepare")] == ["deploy a once", "note"]


async def test_answer_for_a_call_behind_an_interrupted_one_counts_later(store: SessionStore) -> None:
    agent = Agent(
        ScriptedProvider([CALL, ToolCall("2", "note")], "done"),
        executor=Executor(Registry(deploy, note)),  # asks about every write
        sessions=store,
    )
    asked: list[list[str]] = []
    result = await agent.run("go", session="s")
    while isinstance(result, Paused) and len(asked) < 5:
        asked.append([question.call_id for question in result.questions])
        result = await agent.resume("s", Answers.approving(result.questions))
    assert isinstance(result, Done) and asked == [["1", "2"], ["1"]]
    assert [line for line in ran if not line.startswith("prepare")] == ["deploy a once", "note"]


async def test_decline_reaches_the_model(store: SessionStore) -> None:
    agent = agent_on(store, CALL, "as you wish")
    paused = await agent.run("go", session="s")
    assert isinstance(paused, Paused)
    answers = Answers().decline(paused.questions[0], "not today")
    assert isinstance(await agent.resume("s", answers), Done)
    told = (await agent.messages("s"))[-2]
    assert "not today" in told.outcomes[0].text and len(ran) == 1  # type: ignore[union-attr] - a ToolMessage


async def test_agent_with_ask_goes_on_at_once(store: SessionStore) -> None:
    async def ask(questions: Sequence[Question]) -> Answers:
        return Answers({question.id: Approve() for question in questions})

    agent = Agent(ScriptedProvider(CALL, "done"), executor=allowing(), sessions=store, ask=ask)
    assert isinstance(await agent.run("go", session="s"), Done)
    assert ran[-1] == "deploy a once"


async def test_function_that_changes_its_arguments_can_be_approved() -> None:
    seen: list[list[str]] = []

    @tool(effect=Effect.WRITE)
    async def send(to: list[str], context: ToolContext) -> str:
        """Send."""
        seen.append(list(to))
        to.append("x")
        if context.answer is None:
            raise ApprovalRequired("sure?")
        return "sent"

    executor = allowing(send)
    call = ToolCall("1", "send", {"to": ["a"]})
    question = await interrupted(executor, call)
    assert question.arguments == {"to": ["a"]}
    (outcome,) = await executor.execute([call], answers=Answers.approving([question]))
    assert isinstance(outcome, Completed) and seen == [["a"], ["a"]]


@pytest.mark.parametrize("edited", [False, True])
async def test_retry_has_the_arguments_of_the_call(edited: bool) -> None:
    seen: list[list[str]] = []

    @tool(effect=Effect.WRITE)
    async def send(to: list[str]) -> str:
        """Send."""
        seen.append(list(to))
        to.clear()
        if len(seen) == 1:
            raise Transient("busy")
        return "sent"

    async def edit(questions: Sequence[Question]) -> Answers:
        answers = Answers()
        for question in questions:
            answers.approve(question, arguments={"to": ["b"]})
        return answers

    executor = Executor(Registry(send), None if edited else AllowEverything(), clock=FakeClock())
    (outcome,) = await executor.execute([ToolCall("1", "send", '{"to": ["a"]}')], turn=Turn(ask=edit))
    assert isinstance(outcome, Completed) and seen == ([["b"], ["b"]] if edited else [["a"], ["a"]])


@pytest.mark.parametrize("reason", [ValueError("not today"), ["not today"], 5, None])
async def test_reason_that_is_no_text_is_asked_as_text(reason: Any) -> None:
    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look, if allowed."""
        raise ApprovalRequired(reason)

    outcome = await Executor(Registry(look)).run("look")
    assert isinstance(outcome, Interrupted)
    assert outcome.questions[0].reason == str(reason)
