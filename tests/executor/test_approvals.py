"""Approvals: questions, answers, patched arguments and sign-in."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import pytest
from tests.executor.conftest import outcomes_behind

from callwright import (
    Allow,
    Answers,
    ApprovalRequired,
    Approve,
    Arguments,
    Ask,
    AuthRequired,
    Completed,
    Deny,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Outcome,
    Policy,
    Question,
    ReadPath,
    Registry,
    ToolCall,
    ToolContext,
    Turn,
    TypedTool,
    WritePath,
    tool,
)
from callwright.core.access import Access, Decision, UseTool
from callwright.core.calls import Decline, GrantScope
from callwright.core.errors import Halted
from callwright.core.events import QuestionsRaised, QuestionsSettled
from callwright.executor import TurnLimits
from callwright.hooks import Answer, Halt, Hook, PendingCall, Verdict
from callwright.policy import ByMode, Subject
from callwright.testing import Recorder
from callwright.tool.base import Cancellation
from callwright.tool.typed import describe

paid: list[int] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    paid.clear()


@tool(effect=Effect.WRITE)
async def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return f"paid {amount}"


@tool(effect=Effect.READ)
async def balance() -> int:
    """Tell the balance."""
    return 100


class SaveArguments(Arguments):
    """Where and what."""

    path: str
    """Where to save."""
    content: str = ""
    """What to save."""


class Save(TypedTool[SaveArguments]):
    """Declares the path it writes."""

    spec = describe("save", "Save to a path.")

    def accesses(self, arguments: SaveArguments) -> Sequence[Access]:
        return [WritePath(arguments.path), ReadPath("/etc/hosts")]

    async def run(self, arguments: SaveArguments, context: ToolContext) -> str:
        return f"saved {arguments.path}"


def questions_of(outcomes: Sequence[object]) -> list[Question]:
    return [q for outcome in outcomes if isinstance(outcome, Interrupted) for q in outcome.questions]


async def test_one_question_interrupts_the_whole_batch() -> None:
    executor = Executor(Registry(pay, balance))
    calls = [ToolCall("1", "balance"), ToolCall("2", "pay", {"amount": 5}), ToolCall("3", "missing")]
    outcomes = await executor.execute(calls)
    assert all(isinstance(outcome, Interrupted) for outcome in outcomes)
    assert [question.call_id for question in questions_of(outcomes)] == ["2"]
    assert paid == []


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ("allow allow", Completed),
        ("allow ask", Interrupted),
        ("ask allow", Interrupted),
        ("allow deny", Failed),
        ("ask deny", Failed),
        ("deny ask", Failed),
        ("ask ask", Interrupted),
    ],
)
async def test_one_denied_access_beats_any_question(decisions: str, expected: type) -> None:
    words: dict[str, Decision] = {"allow": Allow(), "ask": Ask("unsure"), "deny": Deny("forbidden")}
    ran: list[str] = []

    class ByName(Policy):
        def judge(self, access: Access, subject: Subject) -> Decision | None:
            return words[PurePath(access.path).name] if isinstance(access, WritePath) else None

    @tool(accesses=lambda arguments: [WritePath(f"/{place}/{word}") for place, word in enumerate(decisions.split())])
    async def both() -> str:
        """Touch two things."""
        ran.append("both")
        return "done"

    [outcome] = await Executor(Registry(both), ByName()).execute([ToolCall("1", "both")])
    assert type(outcome) is expected and ran == (["both"] if expected is Completed else [])
    if isinstance(outcome, Interrupted):
        assert len(outcome.questions) == 1 and len(outcome.questions[0].accesses) == 2


async def test_declined_call_fails_alone() -> None:
    executor = Executor(Registry(pay, balance))
    calls = [ToolCall("1", "pay", {"amount": 5}), ToolCall("2", "pay", {"amount": 6}), ToolCall("3", "balance")]
    first, second = questions_of(await executor.execute(calls))
    outcomes = await executor.execute(calls, answers=Answers().approve(first).decline(second, "too much"))
    assert [type(outcome) for outcome in outcomes] == [Completed, Failed, Completed]
    assert "too much" in outcomes[1].text  # type: ignore[union-attr] - checked above
    assert paid == [5]


async def test_approval_does_not_cover_edited_arguments() -> None:
    executor = Executor(Registry(pay))
    asked = await executor.execute([ToolCall("1", "pay", {"amount": 5})])
    answers = Answers.approving(questions_of(asked))
    outcome = (await executor.execute([ToolCall("1", "pay", {"amount": 999})], answers=answers))[0]
    assert isinstance(outcome, Interrupted)
    assert paid == []


async def test_restored_answer_is_valid_once() -> None:
    executor = Executor(Registry(pay))
    call = ToolCall("1", "pay", {"amount": 5})
    (question,) = questions_of(await executor.execute([call]))
    assert isinstance((await executor.execute([call], answers=Answers({question.id: Approve()})))[0], Completed)
    assert isinstance((await executor.execute([call], answers=Answers({question.id: Approve()})))[0], Interrupted)
    assert paid == [5]


async def test_answer_is_not_valid_for_another_call() -> None:
    executor = Executor(Registry(pay))
    (question,) = questions_of(await executor.execute([ToolCall("1", "pay", {"amount": 5})]))
    outcome = (await executor.execute([ToolCall("2", "pay", {"amount": 5})], answers=Answers.approving([question])))[0]
    assert isinstance(outcome, Interrupted)


async def test_answer_is_not_valid_in_another_session() -> None:
    executor = Executor(Registry(pay))
    call = ToolCall("1", "pay", {"amount": 5})
    asked = await executor.execute([call], turn=Turn(session_id="a"))
    answers = Answers.approving(questions_of(asked))
    assert isinstance((await executor.execute([call], answers=answers, turn=Turn(session_id="b")))[0], Interrupted)
    assert isinstance((await executor.execute([call], answers=answers, turn=Turn(session_id="a")))[0], Completed)


async def test_answer_expires() -> None:
    executor = Executor(Registry(pay), limits=TurnLimits(question_seconds=100))
    call = ToolCall("1", "pay", {"amount": 5})
    (question,) = questions_of(await executor.execute([call]))
    assert not question.is_expired() and question.is_expired(time.time() + 200)
    expired = replace(question, expires_at=1)
    outcome = (await executor.execute([call], answers=Answers.approving([expired]), turn=Turn(asked=[expired])))[0]
    assert isinstance(outcome, Interrupted) and not paid


async def test_answer_survives_a_restart_if_the_question_is_on_record() -> None:
    call = ToolCall("1", "pay", {"amount": 5})
    (question,) = questions_of(await Executor(Registry(pay)).execute([call]))
    answers, later = Answers({question.id: Approve()}), Executor(Registry(pay))
    assert isinstance((await later.execute([call], answers=answers))[0], Interrupted)
    assert isinstance((await later.execute([call], answers=answers, turn=Turn(asked=[question])))[0], Completed)


async def test_call_ids_may_contain_dots() -> None:
    executor = Executor(Registry(pay))
    call = ToolCall("a.b.c", "pay", {"amount": 5})
    answers = Answers.approving(questions_of(await executor.execute([call])))
    assert isinstance((await executor.execute([call], answers=answers))[0], Completed)


class OneReason(Policy):
    """Asks about every write with the same words, so that only the access tells one from another."""

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return Ask("writes a file") if isinstance(access, WritePath) else Allow()


@pytest.mark.parametrize("policy", [ByMode(), OneReason()])
async def test_patched_arguments_that_touch_more_ask_again(policy: Policy) -> None:
    executor = Executor(Registry(Save()), policy)
    call = ToolCall("1", "save", {"path": "/tmp/a"})
    (question,) = questions_of(await executor.execute([call]))
    patched = Answers().approve(question, arguments={"path": "/etc/passwd"})
    (again,) = await executor.execute([call], answers=patched)
    assert isinstance(again, Interrupted)
    assert WritePath("/etc/passwd") in again.questions[0].accesses
    broken = await executor.execute([call], answers=Answers().approve(question, arguments={"path": 5}))
    assert isinstance(broken[0], Failed) and broken[0].error.code == "invalid_input"


async def test_patched_arguments_may_be_denied() -> None:
    from callwright import Allow, Ask, Deny, Policy
    from callwright.core.access import Decision
    from callwright.policy import Policies

    class OnlyTmp(Policy):
        def judge(self, access: object, subject: object) -> Decision:
            if isinstance(access, ReadPath):
                return Allow()
            return Ask("ask") if getattr(access, "path", "").startswith("/tmp/") else Deny("only /tmp")

    executor = Executor(Registry(Save()), Policies(OnlyTmp()))
    call = ToolCall("1", "save", {"path": "/tmp/a"})
    (question,) = questions_of(await executor.execute([call]))
    (denied,) = await executor.execute([call], answers=Answers().approve(question, arguments={"path": "/etc/x"}))
    assert isinstance(denied, Failed) and "only /tmp" in denied.text


class Watching(Hook):
    """Sees what would run, and refuses what it is told to."""

    def __init__(self, *refused: object) -> None:
        self.seen: list[object] = []
        self._refused = refused

    async def before(self, pending: PendingCall) -> Verdict | None:
        self.seen.append(dict(pending.arguments))
        return Deny("not that one") if pending.arguments.get("amount") in self._refused else None


async def test_hooks_see_and_may_deny_patched_arguments() -> None:
    hook = Watching(13)
    executor = Executor(Registry(pay), hooks=[hook])
    call = ToolCall("1", "pay", {"amount": 5})
    (question,) = questions_of(await executor.execute([call]))
    (refused,) = await executor.execute([call], answers=Answers().approve(question, arguments={"amount": 13}))
    assert hook.seen[-1] == {"amount": 13}
    assert isinstance(refused, Failed) and refused.text == "not that one" and paid == []


async def test_hook_output_is_dropped_for_patched_arguments(tmp_path: Path) -> None:
    class Cache(Hook):
        async def before(self, pending: PendingCall) -> Verdict | None:
            return Answer("cached a") if pending.arguments["content"] == "a" else None

    executor = Executor(Registry(Save()), hooks=[Cache()])
    call = ToolCall("1", "save", {"path": str(tmp_path / "x"), "content": "a"})
    (question,) = questions_of(await executor.execute([call]))
    changed = Answers().approve(question, arguments={"path": str(tmp_path / "x"), "content": "b"})
    (outcome,) = await executor.execute([call], answers=changed)
    assert isinstance(outcome, Completed) and outcome.text != "cached a"


async def test_hook_may_ask_about_patched_arguments() -> None:
    class Wary(Hook):
        async def before(self, pending: PendingCall) -> Verdict | None:
            return Ask("it holds a secret") if pending.arguments["content"] == "key" else None

    executor = Executor(Registry(Save()), hooks=[Wary()])
    call = ToolCall("1", "save", {"path": "/tmp/a", "content": "a"})
    (question,) = questions_of(await executor.execute([call]))
    changed = Answers().approve(question, arguments={"path": "/tmp/a", "content": "key"})
    (again,) = await executor.execute([call], answers=changed)
    assert isinstance(again, Interrupted) and "it holds a secret" in again.questions[0].reason


async def test_turn_ask_is_repeated_for_patched_arguments() -> None:
    asked: list[int] = []
    replies = iter([{"amount": 6}, {"amount": 5}, {"amount": 6}, None])

    async def ask(questions: Sequence[Question]) -> Answers:
        (question,) = questions
        asked.append(int(str(question.arguments["amount"])))
        return Answers().approve(question, arguments=next(replies))

    (outcome,) = await Executor(Registry(pay)).execute([ToolCall("1", "pay", {"amount": 5})], turn=Turn(ask=ask))
    assert isinstance(outcome, Completed)
    assert asked == [5, 6, 5, 6] and paid == [6]


async def test_reply_that_repeats_the_arguments_approves() -> None:
    executor = Executor(Registry(pay))
    call = ToolCall("1", "pay", {"amount": 5})
    (question,) = questions_of(await executor.execute([call]))
    (outcome,) = await executor.execute([call], answers=Answers().approve(question, arguments={"amount": 5}))
    assert isinstance(outcome, Completed) and outcome.repairs == () and paid == [5]


async def test_answers_to_both_questions_may_come_at_once() -> None:
    executor = Executor(Registry(pay))
    call = ToolCall("1", "pay", {"amount": 5})
    (question,) = questions_of(await executor.execute([call]))
    answers = Answers().approve(question, arguments={"amount": 6})
    (again,) = questions_of(await executor.execute([call], answers=answers))
    answers.approve(again)
    assert isinstance((await executor.execute([call], answers=answers))[0], Completed)
    assert isinstance((await executor.execute([call], answers=answers))[0], Interrupted)  # each counts once
    assert paid == [6]


async def test_question_shows_the_action_and_hidden_characters() -> None:
    executor = Executor(Registry(Save()))
    asked = await executor.execute([ToolCall("1", "save", {"path": "/tmp/a\u202e\x1b[2Jtxt"})])
    (question,) = questions_of(asked)
    assert question.summary == "Allow save: /tmp/a\\u202e\\x1b[2Jtxt (content='')?"
    assert "\u202e" not in question.reason and "\x1b" not in question.reason
    assert question.accesses[0] == WritePath("/tmp/a\u202e\x1b[2Jtxt")


async def test_turn_ask_without_an_answer_declines() -> None:
    asked: list[str] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(question.summary for question in questions)
        return Answers().approve(questions[0])

    executor = Executor(Registry(pay))
    calls = [ToolCall("1", "pay", {"amount": 5}), ToolCall("2", "pay", {"amount": 6})]
    outcomes = await executor.execute(calls, turn=Turn(ask=ask))
    assert [type(outcome) for outcome in outcomes] == [Completed, Failed]
    assert asked == ["Allow pay: amount=5?", "Allow pay: amount=6?"]
    assert paid == [5]


async def test_turn_ask_that_raises_declines(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(questions: Sequence[Question]) -> Answers:
        raise ConnectionError("the window is gone")

    [outcome] = await Executor(Registry(pay)).execute([ToolCall("1", "pay", {"amount": 5})], turn=Turn(ask=ask))
    assert isinstance(outcome, Failed) and not outcome.started and not paid
    assert outcome.error.code == "denied" and "the window is gone" in outcome.text
    assert "asking the user failed" in caplog.text


@pytest.mark.parametrize("count", [1, 2])
async def test_cancel_during_ask_gives_every_call_an_outcome(count: int) -> None:
    asked = asyncio.Event()

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.set()
        await asyncio.sleep(60)
        return Answers.approving(questions)

    calls = [ToolCall(str(number), "pay", {"amount": number}) for number in range(count)]
    recorder = Recorder()
    task = asyncio.create_task(Executor(Registry(pay), observe=recorder).execute(calls, turn=Turn(ask=ask)))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await task
    assert [(o.call.id, o.error.code, o.started) for o in outcomes_behind(stopped.value) if isinstance(o, Failed)] == [
        (call.id, "cancelled", False) for call in calls
    ]
    assert recorder.names == ["QuestionsRaised", *["CallEnded"] * count] and not paid


async def test_accesses_may_require_approval() -> None:
    class Careful(Save):
        """Asks by itself."""

        spec = describe("careful", "Save with care.", effect=Effect.READ)

        def accesses(self, arguments: SaveArguments) -> Sequence[Access]:
            raise ApprovalRequired("production data")

    executor = Executor(Registry(Careful()), ByMode("default"))
    call = ToolCall("1", "careful", {"path": "x"})
    (question,) = questions_of(await executor.execute([call]))
    assert question.reason == "production data"
    assert isinstance((await executor.execute([call], answers=Answers.approving([question])))[0], Completed)


async def test_sign_in_is_a_question_of_kind_auth() -> None:
    signed_in = False

    class Remote(Save):
        """Needs a token."""

        spec = describe("remote", "Save remotely.", effect=Effect.READ)

        def accesses(self, arguments: SaveArguments) -> Sequence[Access]:
            if not signed_in:
                raise AuthRequired("sign in to the store", url="https://store.example/login")
            return []

    executor = Executor(Registry(Remote()))
    call = ToolCall("1", "remote", {"path": "x"})
    (question,) = questions_of(await executor.execute([call]))
    assert (question.kind, question.url) == ("auth", "https://store.example/login")
    declined = await executor.execute([call], answers=Answers().decline(question, "not now"))
    assert isinstance(declined[0], Failed) and declined[0].text == "not now"
    signed_in = True
    assert isinstance((await executor.execute([call]))[0], Completed)


async def test_questions_are_observed_and_not_counted() -> None:
    recorder = Recorder()
    await Executor(Registry(pay), observe=recorder).execute([ToolCall("1", "pay", {"amount": 5})])
    assert recorder.names == ["QuestionsRaised"]


@pytest.mark.parametrize(
    ("scope", "again", "elsewhere"), [("once", Interrupted, Interrupted), ("session", Completed, Interrupted)]
)
async def test_approval_lasts_for_its_scope(scope: GrantScope, again: type, elsewhere: type) -> None:
    from callwright.policy import Grants, PathContext, Policies

    executor = Executor(Registry(Save()), Policies(Grants(PathContext("/", "/root")), ByMode("default")))

    async def save(call_id: str, session: str, answers: Answers | None = None) -> Outcome:
        call = ToolCall(call_id, "save", {"path": "/tmp/a"})
        return (await executor.execute([call], answers=answers, turn=Turn(session_id=session)))[0]

    (question,) = questions_of([await save("1", "one")])
    assert isinstance(await save("1", "one", Answers().approve(question, scope=scope)), Completed)
    assert isinstance(await save("2", "one"), again)
    assert isinstance(await save("3", "two"), elsewhere)


async def test_session_approval_without_accesses_covers_arguments() -> None:
    """Also where no policy was there to remember it."""
    executor = Executor(Registry(pay), ByMode("default"))

    async def made(call_id: str, amount: int, session: str, answers: Answers | None = None) -> Outcome:
        call = ToolCall(call_id, "pay", {"amount": amount})
        return (await executor.execute([call], answers=answers, turn=Turn(session_id=session)))[0]

    (question,) = questions_of([await made("1", 5, "one")])
    assert question.accesses == (UseTool("pay", Effect.WRITE),)
    assert isinstance(await made("1", 5, "one", Answers().approve(question, scope="session")), Completed)
    assert isinstance(await made("2", 5, "one"), Completed)
    assert isinstance(await made("3", 6, "one"), Interrupted)
    assert isinstance(await made("4", 5, "two"), Interrupted)
    assert paid == [5, 5]


async def test_hook_question_is_dropped_for_patched_arguments() -> None:
    class Wary(Hook):
        def before(self, pending: PendingCall) -> Verdict | None:
            return Ask("a round sum") if pending.arguments["amount"] == 100 else None

    executor = Executor(Registry(pay), ByMode("auto"), hooks=[Wary()])
    call = ToolCall("1", "pay", {"amount": 100})
    (question,) = questions_of(await executor.execute([call]))
    [outcome] = await executor.execute([call], answers=Answers().approve(question, arguments={"amount": 99}))
    assert isinstance(outcome, Completed) and paid == [99]


async def test_allowed_accesses_do_not_allow_the_tool() -> None:
    @tool(accesses=lambda arguments: [ReadPath("/tmp/a")] if arguments["looking"] else [])
    async def either(looking: bool) -> str:
        """Look, or change something."""
        return "done"

    executor = Executor(Registry(either), ByMode("default"))
    assert isinstance(await executor.run("either", {"looking": True}), Completed)
    assert isinstance(await executor.run("either", {"looking": False}), Interrupted)


async def test_allow_rule_lets_bash_run_without_a_question(tmp_path: Path) -> None:
    from callwright.policy import rules_of, standard_policies
    from callwright.toolbox import Bash

    policies = standard_policies(tmp_path, rules=rules_of(allow=["Bash(touch *)"]))
    executor = Executor(Registry(Bash(tmp_path)), policies)
    assert isinstance(await executor.run("bash", {"command": "touch made"}), Completed)
    assert (tmp_path / "made").exists()
    assert isinstance(await executor.run("bash", {"command": "mkdir other"}), Interrupted)


async def test_cancelling_a_question_is_not_logged_as_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    cancellation = Cancellation()

    async def ask(questions: Sequence[Question]) -> Answers:
        cancellation.cancel("interrupted by the user")
        await asyncio.sleep(60)
        return Answers.approving(questions)

    call = ToolCall("1", "pay", {"amount": 1})
    (outcome,) = await Executor(Registry(pay)).execute([call], turn=Turn(ask=ask, cancellation=cancellation))
    assert isinstance(outcome, (Failed, Interrupted)) and not paid and not caplog.records


async def test_observers_learn_the_replies_and_what_decided_to_ask() -> None:
    recorder = Recorder()

    async def ask(questions: Sequence[Question]) -> Answers:
        return Answers().approve(questions[0]).decline(questions[1], "too much")

    calls = [ToolCall(str(number), "pay", {"amount": number}) for number in range(2)]
    await Executor(Registry(pay), observe=recorder).execute(calls, turn=Turn(ask=ask, session_id="s"))
    raised = next(event for event in recorder.events if isinstance(event, QuestionsRaised))
    assert all(question.source for question in raised.questions)
    settled = [event for event in recorder.events if isinstance(event, QuestionsSettled)]
    first, second = (question.id for question in raised.questions)
    assert settled == [QuestionsSettled({first: Approve(), second: Decline("too much")}, "s")]
    assert recorder.names.index("QuestionsSettled") < recorder.names.index("CallBegan")


class HaltWhenArmed(Hook):
    """Halts the run at calls of `balance` once it is armed."""

    armed = False

    def before(self, pending: PendingCall) -> Verdict | None:
        return Halt("not today") if self.armed and pending.call.name == "balance" else None


async def test_approval_of_a_call_that_was_halted_does_not_last() -> None:
    hook = HaltWhenArmed()
    executor = Executor(Registry(pay, balance), hooks=hook)
    calls = [ToolCall("1", "pay", {"amount": 5}), ToolCall("2", "balance", {})]
    waiting = await executor.execute(calls, turn=Turn("s"))
    assert isinstance(waiting[0], Interrupted)
    answers = Answers().approve(waiting[0].questions[0], scope="session")
    hook.armed = True
    outcomes = await executor.execute(calls, answers=answers, turn=Turn("s"))
    assert all(isinstance(outcome, Failed) and isinstance(outcome.error, Halted) for outcome in outcomes)
    hook.armed = False
    (again,) = await executor.execute([calls[0]], turn=Turn("s"))
    assert isinstance(again, Interrupted) and paid == []


class WaitWhenArmed(Hook):
    """Holds calls of `balance` in admission once it is armed."""

    def __init__(self) -> None:
        self.armed = False
        self.waits, self.released = asyncio.Event(), asyncio.Event()

    async def before(self, pending: PendingCall) -> Verdict | None:
        if self.armed and pending.call.name == "balance":
            self.waits.set()
            await self.released.wait()
        return None


async def test_answer_used_while_its_turn_is_admitted_counts_no_more() -> None:
    hook = WaitWhenArmed()
    executor = Executor(Registry(pay, balance), hooks=hook)
    calls = [ToolCall("1", "pay", {"amount": 5}), ToolCall("2", "balance", {})]
    waiting, _ = await executor.execute(calls)
    assert isinstance(waiting, Interrupted)
    answers = Answers.approving(waiting.questions)
    hook.armed = True
    both = asyncio.ensure_future(executor.execute(calls, answers=answers))
    await hook.waits.wait()
    (alone,) = await executor.execute(calls[:1], answers=answers)
    assert isinstance(alone, Completed)
    hook.released.set()
    second, other = await both
    assert isinstance(second, Failed) and "used by another call meanwhile" in second.error.message
    assert isinstance(other, Completed) and paid == [5]
