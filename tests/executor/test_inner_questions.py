"""Questions about calls that a tool makes: the outer call is interrupted, and finds its notes when it runs again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from callwright import (
    Agent,
    Answers,
    Approve,
    Completed,
    Decline,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Outcome,
    Question,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    Turn,
    tool,
)
from callwright.agent import Done, Paused
from callwright.core.decisions import AnswersNeeded
from callwright.core.errors import ApprovalRequired, UsageError
from callwright.core.json import Json
from callwright.core.spec import Annotations, ToolSpec
from callwright.executor import runtime
from callwright.policy import AllowEverything
from callwright.sessions.records import Kept
from callwright.testing.fakes import ScriptedProvider
from callwright.tool.base import InnerBatch
from callwright.tool.function import FunctionTool
from callwright.tool.schema_tool import SchemaTool

paid: list[int] = []
runs: list[tuple[Json, ...]] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    paid.clear()
    runs.clear()


@tool(effect=Effect.WRITE)
async def pay(amount: int) -> str:
    """Pay once."""
    paid.append(amount)
    return f"paid {amount}"


async def _pay_all(arguments: dict[str, list[int]], context: ToolContext) -> str:
    runs.append(tuple(context.kept))
    done = {int(str(note)) for note in context.kept}
    calls = [
        ToolCall(f"{context.call_id}.{amount}", "pay", {"amount": amount})
        for amount in arguments["amounts"]
        if amount not in done
    ]
    for call in calls:
        (outcome,) = await context.execute(call, batch=InnerBatch(["step"]))
        if isinstance(outcome, Interrupted):
            raise AnswersNeeded(outcome.questions)
        if isinstance(outcome, Failed):
            return outcome.error.message
        await context.keep(call.id.partition(".")[2])
    return "all paid"


pay_all = SchemaTool(
    ToolSpec(
        "pay_all",
        "Pay every amount.",
        {"type": "object", "properties": {"amounts": {"type": "array", "items": {"type": "integer"}}}},
        annotations=Annotations(Effect.READ, idempotent=True, delegates=True),
    ),
    _pay_all,
)
CALL = ToolCall("c", "pay_all", {"amounts": [1, 2]})


async def test_inner_questions_interrupt_the_outer_call() -> None:
    executor = Executor(Registry(pay, pay_all))
    (first,) = await executor.execute([CALL])
    assert isinstance(first, Interrupted) and first.call is CALL and paid == []
    (question,) = first.questions
    assert (question.tool, question.within, question.origin) == ("pay", "c", "step")
    (second,) = await executor.execute([CALL], answers=Answers.approving([question]))
    assert isinstance(second, Interrupted) and paid == [1]
    (third,) = await executor.execute([CALL], answers=Answers.approving(second.questions))
    assert isinstance(third, Completed) and third.text == "all paid" and paid == [1, 2]
    assert runs == [(), (), ("1",)]


async def test_notes_are_dropped_when_the_call_has_ended() -> None:
    executor = Executor(Registry(pay, pay_all))
    outcome = await executor.run("pay_all", {"amounts": [1]})
    assert isinstance(outcome, Interrupted)
    ended = await executor.run("pay_all", {"amounts": [1]}, answers=Answers.approving(outcome.questions))
    assert ended.text == "all paid" and paid == [1]
    again = await executor.execute([ToolCall("run-1", "pay_all", {"amounts": [1]})])
    assert isinstance(again[0], Interrupted) and runs[-1] == ()


@pytest.mark.parametrize("count", [1, 2])
async def test_notes_of_a_cancelled_call_are_dropped(count: int) -> None:
    kept, noted = list[tuple[Json, ...]](), asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait(long: bool, context: ToolContext) -> str:
        """Keep a note, and wait."""
        kept.append(tuple(context.kept))
        await context.keep("done")
        if long:
            noted.set()
            await asyncio.Event().wait()
        return "ended"

    executor = Executor(Registry(wait))
    calls = [ToolCall(f"c{number}", "wait", {"long": True}) for number in range(count)]
    running = asyncio.create_task(executor.execute(calls))
    await noted.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await executor.execute([ToolCall("c0", "wait", {"long": False})])  # another call, with the same id
    assert kept[-1] == ()


async def test_call_whose_notes_were_dropped_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_MAX_NOTED_CALLS", 2)
    executor = Executor(Registry(pay, pay_all))
    calls = [ToolCall(f"c{number}", "pay_all", {"amounts": [number, 9]}) for number in range(3)]
    asked: list[Sequence[Question]] = []
    for call in calls:
        (first,) = await executor.execute([call])
        assert isinstance(first, Interrupted)
        (second,) = await executor.execute([call], answers=Answers.approving(first.questions))
        assert isinstance(second, Interrupted)
        asked.append(second.questions)
    assert paid == [0, 1, 2]  # each has paid its first amount, and the notes of the oldest are gone
    (forgotten,) = await executor.execute(calls[:1], answers=Answers.approving(asked[0]))
    assert isinstance(forgotten, Failed) and "not done again" in forgotten.text and paid == [0, 1, 2]
    for call, questions in zip(calls[1:], asked[1:], strict=True):
        (ended,) = await executor.execute([call], answers=Answers.approving(questions))
        assert ended.text == "all paid"
    assert paid == [0, 1, 2, 9, 9]
    (fresh,) = await executor.execute(calls[:1])  # the refused call has ended, so that its id is free again
    assert isinstance(fresh, Interrupted)


async def test_an_inner_answer_counts_once() -> None:
    executor = Executor(Registry(pay, pay_all))
    (first,) = await executor.execute([CALL])
    assert isinstance(first, Interrupted)
    answers = Answers.approving(first.questions)
    await executor.execute([CALL], answers=answers)
    other = ToolCall("c", "pay_all", {"amounts": [1]})
    (replayed,) = await Executor(Registry(pay, pay_all)).execute([other], answers=answers)
    assert isinstance(replayed, Interrupted) and paid == [1]


ran: list[str] = []


@tool(effect=Effect.WRITE)
async def step(name: str) -> str:
    """Take a step."""
    ran.append(name)
    return name


@tool(effect=Effect.WRITE)
async def walk(steps: list[str], context: ToolContext) -> str:
    """Take steps one after the other."""
    ran.append("walk")
    for name in [*steps]:
        if name in context.kept:
            continue
        (outcome,) = await context.execute(ToolCall("i", "step", {"name": name}))
        if isinstance(outcome, Interrupted):
            steps.clear()  # which changes nothing for the next run
            raise AnswersNeeded(outcome.questions)
        await context.keep(name)
    return "there"


@pytest.fixture
def walker() -> Executor:
    """Both the call and the calls inside it need an approval."""
    ran.clear()
    return Executor(Registry(step, walk))


async def test_approved_call_goes_on_with_the_answers_about_calls_inside(walker: Executor) -> None:
    asked = list[str]()
    outcome = await walker.run("walk", {"steps": ["a", "b"]})
    while isinstance(outcome, Interrupted) and len(asked) < 9:
        asked += [question.tool for question in outcome.questions]
        outcome = await walker.run("walk", {"steps": ["a", "b"]}, answers=Answers.approving(outcome.questions))
    assert outcome.text == "there" and asked == ["walk", "step", "step"]
    assert ran == ["walk", "walk", "a", "walk", "b"]


async def test_approval_of_a_call_that_waits_counts_once_and_for_that_call(walker: Executor) -> None:
    call = ToolCall("c", "walk", {"steps": ["a"]})
    (outer,) = await walker.execute([call])
    assert isinstance(outer, Interrupted)
    (inner,) = await walker.execute([call], answers=Answers.approving(outer.questions))
    assert isinstance(inner, Interrupted) and [question.tool for question in inner.questions] == ["step"]
    others = [
        ToolCall("c", "walk", {"steps": ["b"]}),
        ToolCall("d", "walk", {"steps": ["a"]}),
    ]
    for other in others:
        (asked,) = await walker.execute([other], answers=Answers.approving(inner.questions))
        assert isinstance(asked, Interrupted) and asked.questions[0].tool == "walk"
    (asked,) = await walker.execute([call], turn=Turn("other session"), answers=Answers.approving(inner.questions))
    assert isinstance(asked, Interrupted) and asked.questions[0].tool == "walk"
    (again,) = await walker.execute([call])  # without the answer that it waits for
    assert isinstance(again, Interrupted) and again.questions[0].tool == "walk"
    assert ran == ["walk"]
    both = await asyncio.gather(*(walker.execute([call], answers=Answers.approving(inner.questions)) for _ in "ab"))
    assert ran == ["walk", "walk", "a"]
    assert sorted(type(outcome).__name__ for (outcome,) in both) == ["Completed", "Interrupted"]
    (used,) = await walker.execute([call], answers=Answers.approving(inner.questions))
    assert isinstance(used, Interrupted) and used.questions[0].tool == "walk" and ran == ["walk", "walk", "a"]


async def test_declined_call_inside_an_approved_one_does_not_run(walker: Executor) -> None:
    outcome = await walker.run("walk", {"steps": ["a"]})
    for reply in (Approve(), Decline("no")):
        assert isinstance(outcome, Interrupted)
        answers = Answers({question.id: reply for question in outcome.questions})
        outcome = await walker.run("walk", {"steps": ["a"]}, answers=answers)
    assert outcome.text == "there" and ran == ["walk", "walk"]


async def test_user_asked_on_the_spot_sees_the_origin() -> None:
    asked: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(questions)
        return Answers({question.id: Approve() for question in questions})

    (outcome,) = await Executor(Registry(pay, pay_all)).execute([CALL], turn=Turn(ask=ask))
    assert outcome.text == "all paid" and [question.origin for question in asked] == ["step", "step"]


@pytest.mark.parametrize("restart", [False, True])
async def test_a_session_keeps_notes_and_answers(tmp_path: Path, restart: bool) -> None:
    store = SqliteStore(tmp_path / "s.db")
    agent = Agent(ScriptedProvider([CALL], "done"), executor=Executor(Registry(pay, pay_all)), sessions=store)
    result = await agent.run("pay", session="s")
    while isinstance(result, Paused):
        if restart:
            store.close()
            store = SqliteStore(tmp_path / "s.db")
            agent = Agent(ScriptedProvider("done"), executor=Executor(Registry(pay, pay_all)), sessions=store)
        result = await agent.resume("s", Answers.approving(result.questions))
    assert isinstance(result, Done) and paid == [1, 2]
    records = await store.read("s")
    assert [record for record in records if isinstance(record, Kept) and record.path == "c"] == [
        Kept("c", "1"),
        Kept("c", "2"),
    ]
    store.close()


def test_answers_needed_without_questions_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one question"):
        AnswersNeeded(())


async def test_a_tool_learns_the_end_of_recorded_calls_too() -> None:
    notes: dict[str, list[Json]] = {}
    ended: list[str] = []

    async def keep(path: str, note: Json, wait: bool) -> None:
        notes.setdefault(path, []).append(note)

    async def end(outcome: Outcome) -> None:
        ended.append(outcome.text)

    async def pay_twice(arguments: object, context: ToolContext) -> str:
        calls = [ToolCall(f"p{amount}", "pay", {"amount": amount}) for amount in (1, 2)]
        outcomes = await context.execute(*calls, batch=InnerBatch(ended=end))
        return ", ".join(outcome.text for outcome in outcomes)

    outer = SchemaTool(
        ToolSpec(
            "pay_twice",
            "Pay twice.",
            {"type": "object"},
            annotations=Annotations(Effect.READ, idempotent=True, delegates=True),
        ),
        pay_twice,
    )
    executor = Executor(Registry(pay, outer), AllowEverything())
    call = ToolCall("c", "pay_twice", {})
    for _ in range(2):  # the second time as after a restart
        (outcome,) = await executor.execute([call], turn=Turn(keep=keep, kept=dict(notes)))
        assert isinstance(outcome, Completed) and outcome.text == "paid 1, paid 2"
    assert paid == [1, 2]
    assert ended == ["paid 1", "paid 2"] * 2


def _make_leaving_tool(ending: asyncio.Event, left: list["asyncio.Task[None]"]) -> FunctionTool:
    @tool(effect=Effect.READ)
    async def leave(context: ToolContext, ask: bool = False) -> str:
        """Leave something running, or wait for it."""
        runs.append(tuple(context.kept))
        if left:
            ending.set()
            await left[0]
        else:

            async def keep_late() -> None:
                await ending.wait()
                await context.keep("late")

            left.append(asyncio.ensure_future(keep_late()))
        if ask and context.answer is None:
            raise ApprovalRequired("go on?")
        return "left"

    return leave


async def test_late_note_is_not_for_the_next_call_of_the_same_id() -> None:
    ending, left = asyncio.Event(), list["asyncio.Task[None]"]()
    executor, call = Executor(Registry(_make_leaving_tool(ending, left))), ToolCall("c1", "leave", {})
    await executor.execute([call])
    ending.set()
    await left[0]
    await executor.execute([call])
    assert runs == [(), ()]


async def test_late_note_of_a_call_that_waits_is_kept() -> None:
    ending, left = asyncio.Event(), list["asyncio.Task[None]"]()
    executor, call = Executor(Registry(_make_leaving_tool(ending, left))), ToolCall("c1", "leave", {"ask": True})
    (waiting,) = await executor.execute([call])
    assert isinstance(waiting, Interrupted)
    ending.set()
    await left[0]
    await executor.execute([call], answers=Answers.approving(waiting.questions))
    assert runs == [(), ("late",)]


async def test_late_note_is_not_on_record_of_a_later_turn(tmp_path: Path) -> None:
    ending, left = asyncio.Event(), list["asyncio.Task[None]"]()
    call = ToolCall("c1", "leave", {})
    async with SqliteStore(tmp_path / "s.db") as store:
        script = ScriptedProvider(call, call, "done")  # the second one waits for what the first one left
        agent = Agent(script, [_make_leaving_tool(ending, left)], sessions=store)
        assert isinstance(await agent.run("go", session="s"), Done)
        assert left[0].done() and not [record for record in await store.read("s") if isinstance(record, Kept)]
