"""Only an `Approve` approves: every other reply, through every way in, runs nothing."""

import ast
import asyncio
import inspect
import itertools
import logging
from collections import UserDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.executor.replies import EqualToAll, make_replies

from callwright import (
    Answers,
    Approve,
    Completed,
    Decline,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Question,
    ReadPath,
    Registry,
    ToolCall,
    Turn,
    UsageError,
    WritePath,
    tool,
)
from callwright.agent import Agent, Paused
from callwright.core.decisions import check_answers, check_reply, digest_of, digest_running, make_reply, parse_answer
from callwright.executor.ledger import Ledger
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.records import Answered
from callwright.testing import ScriptedProvider

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@tool
async def wipe() -> str:
    """Wipe everything."""
    ran.append("wipe")
    return "wiped"


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    logging.disable()  # thousands of refused replies would each be logged
    yield
    logging.disable(logging.NOTSET)


def smuggle(question: Question, reply: object) -> Answers:
    """Return answers that contain a reply which their constructor would not accept."""
    answers = Answers()
    cast(Any, answers)._given[question.id] = reply
    return answers


class MoreAnswers(Answers):  # type: ignore[misc] - final for type checkers, and a subclass must not pass at run time
    """Approves whatever is asked."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter([("any", Approve())])


def in_user_dict(question: Question, reply: object) -> object:
    return UserDict({question.id: close(reply)})


def in_list(question: Question, reply: object) -> object:
    return [(question.id, close(reply))]


def close(reply: object) -> object:
    if inspect.iscoroutine(reply):  # only a reply itself is closed, not one deep inside of something
        reply.close()
    return reply


def in_dict(question: Question, reply: object) -> object:
    return {question.id: reply}


def bare(question: Question, reply: object) -> object:
    return reply


WRAPPINGS: Sequence[Callable[[Question, object], object]] = (in_dict, smuggle, bare, in_list, in_user_dict)
"""The ways in which a caller may try to pass a reply."""
CALL = ToolCall("1", "wipe")


async def test_execute_runs_nothing_without_approve() -> None:
    executor = Executor(Registry(wipe))
    (asked,) = await executor.execute([CALL])
    assert isinstance(asked, Interrupted)
    for reply, wrap in zip(make_replies(1), itertools.cycle(WRAPPINGS), strict=False):
        try:
            (outcome,) = await executor.execute([CALL], answers=cast(Any, wrap(asked.questions[0], reply)))
        except UsageError:
            continue
        assert isinstance(outcome, Interrupted)  # None and `Answers()` are the same as no answer
    assert not ran


async def test_ask_runs_nothing_without_approve() -> None:
    executor = Executor(Registry(wipe))
    for reply, wrap in zip(make_replies(2), itertools.cycle(WRAPPINGS), strict=False):

        async def ask(questions: Sequence[Question], reply: object = reply, wrap: Any = wrap) -> Answers:
            return wrap(questions[0], reply)

        (outcome,) = await executor.execute([CALL], turn=Turn(ask=ask))
        assert isinstance(outcome, Failed) and outcome.error.code == "denied"
    assert not ran


@pytest.mark.parametrize("count", [400, pytest.param(2_500, marks=pytest.mark.slow)])
async def test_agent_ask_runs_nothing_without_approve(count: int) -> None:
    for reply, wrap in zip(make_replies(3, count), itertools.cycle(WRAPPINGS), strict=False):

        def ask(questions: Sequence[Question], reply: object = reply, wrap: Any = wrap) -> Any:
            return wrap(questions[0], reply)

        await Agent(ScriptedProvider(CALL, "done"), [wipe], ask=ask).run("go")
    assert not ran


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_resume_runs_nothing_without_approve(store: str, tmp_path: Path) -> None:
    sessions = MemoryStore() if store == "memory" else SqliteStore(tmp_path / "sessions.db")
    agent = Agent(ScriptedProvider(CALL, "done"), [wipe], sessions=sessions)
    paused = await agent.run("go", session="s")
    assert isinstance(paused, Paused)
    for reply, wrap in zip(make_replies(4), itertools.cycle(WRAPPINGS), strict=False):
        given = wrap(paused.questions[0], reply)
        try:
            result = await agent.resume("s", cast(Any, given))
        except UsageError:
            assert given is not None
            continue
        # None is the documented absence of answers, and `Answers()` has none: the question stays
        assert isinstance(result, Paused) and (given is None or (type(given) is Answers and not len(given)))
    assert not ran
    assert not isinstance(await agent.resume("s", Answers.approving(paused.questions)), Paused)
    assert ran == ["wipe"]
    if isinstance(sessions, SqliteStore):
        sessions.close()


_ANYTHING: Any = cast(Any, st.from_type(type)).flatmap(st.from_type)


@given(_ANYTHING.filter(lambda value: type(value) not in (Approve, Decline)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] - of any type
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_reply_of_any_type_is_a_usage_error(reply: object) -> None:
    with pytest.raises(UsageError):
        check_reply(reply)


def test_replies_are_copied_so_that_they_cannot_change() -> None:
    arguments: dict[str, Any] = {"path": "a"}
    reply = check_reply(Approve(arguments))
    arguments["path"] = "/etc"
    assert isinstance(reply, Approve) and reply.arguments == {"path": "a"}


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda: Answers(cast(Any, {"q": True})), "expected Approve() or Decline(reason) as the reply, got True"),
        (lambda: Answers(cast(Any, {"q": Approve})), "got the class Approve; write Approve()"),
        (lambda: Answers(cast(Any, {5: Approve()})), "expected the id of a question"),
        (lambda: check_answers(True), "write Answers().approve(question)"),
        (lambda: check_answers({}), "expected Answers, got {}"),
        (lambda: check_answers(None), "expected Answers, got None"),
        (lambda: check_answers(MoreAnswers()), "expected Answers"),
        (lambda: Approve(scope=cast(Any, "forever")), '"once", "session", "always" or "pattern"'),
        (lambda: Approve(cast(Any, "path")), "must be a mapping"),
        (lambda: Decline(cast(Any, 5)), "must be a text"),
    ],
    ids=range(10),
)
def test_mistakes_are_usage_errors_that_say_what_to_write(wrong: Callable[[], object], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        wrong()
    assert advice in str(caught.value)


async def test_plain_dict_of_replies_is_accepted() -> None:
    executor = Executor(Registry(wipe))
    (outcome,) = await executor.execute([CALL])
    assert isinstance(outcome, Interrupted)
    await executor.execute([CALL], answers=cast(Any, {outcome.questions[0].id: Approve()}))
    assert ran == ["wipe"]


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("y", Approve()),
        (" YES \n", Approve()),
        ("1", Approve()),
        ("s", Approve(scope="session")),
        ("A", Approve(scope="always")),
        ("n", Decline()),
        ("no", Decline()),
        ("n use the other file", Decline("use the other file")),
        ("no, not the second file", Decline("not the second file")),
    ],
)
def test_bare_answers_are_understood(typed: str, reply: object) -> None:
    assert parse_answer(typed) == reply


@pytest.mark.parametrize(
    "typed",
    [
        *("", " ", "y not?", "yes but not the second file", "s top", "a quick question first", "2 questions first"),
        *("yy", "y.", "y!", "y\ny", "\u017f", "\uff59", "y\u200b", "\u00a0y", "always", "ok", "sure", "4", "e", "11"),
    ],
)
def test_anything_else_is_not_an_answer(typed: str) -> None:
    assert parse_answer(typed) is None


@pytest.mark.parametrize("typed", [True, None, 1, b"y", ["y"], EqualToAll()], ids=range(6))
def test_only_text_is_parsed(typed: object) -> None:
    assert parse_answer(typed) is None


@pytest.mark.parametrize("said", [1, "yes", "True", object(), EqualToAll(), Approve(), Approve, [True], None, False])
def test_make_reply_approves_only_true_itself(said: object) -> None:
    assert type(make_reply(said)) is Decline
    assert make_reply(True) == Approve()


@pytest.mark.parametrize(
    "wrong",
    [
        {"arguments": "all"},
        {"arguments": [("path", "/")]},
        {"arguments": {"path": object()}},
        {"arguments": {5: "x"}},
        {"scope": "forever"},
        {"scope": None},
        {"scope": EqualToAll()},
    ],
    ids=range(7),
)
def test_make_reply_declines_what_is_not_an_approval_in_every_part(wrong: dict[str, Any]) -> None:
    reply = make_reply(True, **wrong)
    assert type(reply) is Decline and "not understood" in reply.reason


def test_make_reply_keeps_reason_and_speaker_of_a_decline() -> None:
    assert make_reply(False, reason="no", by="a hook") == Decline("no", "a hook")
    assert make_reply(False, reason=cast(Any, 5)) == Decline()
    assert make_reply(True, arguments={"a": 1}, scope="session", by="ada") == Approve({"a": 1}, "session", "ada")


def test_no_other_module_makes_an_approval() -> None:
    package = Path(inspect.getfile(Answers)).parents[1]
    files = (file for file in package.rglob("*.py") if "Approve(" in file.read_text("utf-8"))
    made = [
        f"{file.relative_to(package)}:{node.lineno}"
        for file in files
        if file.relative_to(package).as_posix() not in ("core/decisions.py", "testing/stores.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Approve"
    ]
    assert not made


async def test_question_on_record_is_used_once_by_one_executor() -> None:
    executor = Executor(Registry(wipe))
    (asked,) = await Executor(Registry(wipe)).execute([CALL])
    assert isinstance(asked, Interrupted)
    turn, answers = Turn(asked=asked.questions), Answers.approving(asked.questions)
    assert isinstance((await executor.execute([CALL], answers=answers, turn=turn))[0], Completed)
    for _ in range(3):
        assert isinstance((await executor.execute([CALL], answers=answers, turn=turn))[0], Interrupted)
    assert ran == ["wipe"]


async def test_answer_of_a_plain_dict_is_on_record() -> None:
    store = MemoryStore()

    def ask(questions: Sequence[Question]) -> Any:
        return {question.id: Approve(by="ada") for question in questions}

    await Agent(ScriptedProvider(CALL, "done"), [wipe], ask=ask, sessions=store).run("go", session="s")
    (answered,) = [record for record in await store.read("s") if isinstance(record, Answered)]
    assert ran == ["wipe"] and list(answered.replies.values()) == [Approve(by="ada")]


def make_tool(what: str, **traits: Any) -> Any:
    """Return tools of one name and one signature that do, or say, something else."""

    async def wipe() -> str:
        """Wipe everything."""
        ran.append(what)
        return "wiped"

    return tool(**traits)(wipe)


@pytest.mark.parametrize(
    "other",
    [
        make_tool("other"),
        make_tool("same", description="Wipe a little."),
        make_tool("same", effect=Effect.DESTROY),
        make_tool("same", metadata={"server": "theirs"}),
    ],
    ids=["code", "description", "effect", "metadata"],
)
async def test_answer_on_record_is_for_the_tool_that_was_shown(other: Any) -> None:
    store = MemoryStore()
    paused = await Agent(ScriptedProvider(CALL), [make_tool("same")], sessions=store).run("go", session="s")
    assert isinstance(paused, Paused)
    answers = Answers.approving(paused.questions)
    again = await Agent(ScriptedProvider("done"), [other], sessions=store).resume("s", answers)
    assert isinstance(again, Paused) and not ran
    await Agent(ScriptedProvider("done"), [make_tool("same")], sessions=store).resume("s", answers)
    assert ran == ["same"]


async def test_answer_is_for_its_session_arguments_and_call() -> None:
    executor = Executor(Registry(make_tool("x")))
    (asked,) = await executor.execute([CALL], turn=Turn("mine"))
    assert isinstance(asked, Interrupted)
    answers, turn = Answers.approving(asked.questions), Turn("mine", asked=asked.questions)
    other = Executor(Registry(make_tool("x")))
    for call, where in ((CALL, Turn("theirs", asked=asked.questions)), (ToolCall("2", "wipe"), turn)):
        for each in (executor, other):
            assert isinstance((await each.execute([call], answers=answers, turn=where))[0], Interrupted)
    assert not ran and isinstance((await other.execute([CALL], answers=answers, turn=turn))[0], Completed)


def test_question_matches_only_an_unexpired_id_of_the_same_call() -> None:
    question = Question("c1", "wipe", {}, "d1", "Allow?", expires_at=0x10)
    same = Question("c1", "wipe", {}, "d1", "Allow?", expires_at=0x10)
    assert same.id != question.id and same.matches(question.id, now=15.9) and not same.matches(question.id, now=16)
    assert not question.is_expired(now=15.9) and question.is_expired(now=16) and question.is_expired()
    for wrong in ("d1.c1.zz.n", "d1.c1..n", "d2.c1.10.n", "d1.c2.10.n", "d1.c1.10", "d1.c1", "", "x.d1.c1.10.n"):
        assert not same.matches(wrong, now=1)
    endless = Question("c1", "wipe", {}, "d1", "Allow?")
    assert endless.matches(f"{endless.digest}.c1.0.n") and not endless.is_expired() and not endless.running
    assert not endless.matches(question.id)


def test_digests_differ_in_every_part() -> None:
    base: dict[str, Any] = {"tool": "t", "arguments": {"a": 1}, "accesses": (WritePath("/a"),), "session_id": "s"}
    changes: list[dict[str, Any]] = [
        {},
        {"tool": "u"},
        {"arguments": {"a": 2}},
        {"accesses": (ReadPath("/a"),)},
        {"accesses": ()},
        {"session_id": "r"},
        {"implementation": "x"},
        {"implementation": "y"},
    ]
    digests = [digest_of(**{**base, **change}) for change in changes]
    digests += [
        digest_running("d", "approval", "a"),
        digest_running("d", "auth", "a"),
        digest_running("d", "input", "a"),
    ]
    digests += [digest_running("d", "approval", "b"), digest_running("e", "approval", "a")]
    assert len(set(digests)) == len(digests) and all(len(digest) == 64 for digest in digests)


def test_declines_pass_and_answers_are_chained() -> None:
    assert check_reply(Decline("not now", "ada")) == Decline("not now", "ada")
    first, second = (Question(name, "wipe", {}, "d", "Allow?") for name in ("1", "2"))
    answers = Answers().approve(first, scope="session").decline(second, "no").approve(first)
    assert len(answers) == 2 and dict(answers) == {first.id: Approve(), second.id: Decline("no")}


def test_every_number_of_the_menu_is_understood() -> None:
    found = {number: parse_answer(number) for number in "12345"}
    assert found == {
        "1": Approve(),
        "2": Approve(scope="session"),
        "3": Approve(scope="always"),
        "4": None,
        "5": Decline(),
    }


def endless() -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    arguments["again"] = arguments
    return arguments


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda: Answers(cast(Any, 5)), "expected a mapping of question ids to replies, got 5"),
        (lambda: Answers(cast(Any, {"q": Decline})), "got the class Decline; write Decline()"),
        (lambda: check_reply(Approve(endless())), "cannot be read as JSON"),
        (lambda: check_reply(Approve({"a": cast(Any, {1})})), "cannot be read as JSON"),
        (lambda: check_reply(Approve({"a": float("nan")})), "cannot be read as JSON"),
    ],
    ids=range(5),
)
def test_unreadable_replies_are_usage_errors(wrong: Callable[[], object], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        wrong()
    assert advice in str(caught.value)


def test_ledger_gives_each_question_out_once() -> None:
    ledger = Ledger()
    asked, recorded = (Question(name, "wipe", {}, "d", "Allow?") for name in ("1", "2"))
    assert not ledger.take(asked.id), "it was never asked"
    ledger.add(asked, wipe)
    assert ledger.take(asked.id) and ledger.is_used(asked.id)
    assert not ledger.take(asked.id) and not ledger.take(asked.id, on_record=True)
    ledger.add(asked, wipe)  # asked once more, with the id of a used question
    assert not ledger.take(asked.id)
    assert ledger.take(recorded.id, on_record=True) and not ledger.take(recorded.id, on_record=True)


async def test_turns_at_the_same_time_use_an_answer_once() -> None:
    executor = Executor(Registry(wipe))
    (asked,) = await executor.execute([CALL])
    assert isinstance(asked, Interrupted)
    answers, on_record = Answers.approving(asked.questions), Turn(asked=asked.questions)
    turns = [executor.execute([CALL], answers=answers, turn=turn) for turn in (Turn(), on_record) for _ in range(20)]
    outcomes = [outcome for (outcome,) in await asyncio.gather(*turns)]
    assert ran == ["wipe"] and sum(isinstance(outcome, Completed) for outcome in outcomes) == 1
