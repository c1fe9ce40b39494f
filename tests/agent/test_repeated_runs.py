"""A call runs again in the same turn, after a question or a retry: it finds what it has done, and repeats no write."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callwright import (
    Agent,
    Answers,
    ApprovalRequired,
    Completed,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Question,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    Turn,
    tool,
)
from callwright.agent import Done, Paused, Result
from callwright.core.decisions import AnswersNeeded
from callwright.core.errors import Transient, Unanswered
from callwright.core.messages import ToolMessage
from callwright.core.spec import Annotations, ToolSpec
from callwright.policy import AllowEverything
from callwright.sessions import MemoryStore, SessionStore
from callwright.sessions.records import Asked
from callwright.testing.fakes import FakeClock, ScriptedProvider
from callwright.tool.schema_tool import SchemaTool

done: list[str] = []
REPEATABLE = Annotations(Effect.READ, idempotent=True, delegates=True)


@pytest.fixture(autouse=True)
def _clean() -> None:
    done.clear()


@pytest.fixture(params=[MemoryStore, SqliteStore])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    if request.param is MemoryStore:
        yield MemoryStore()
        return
    durable = SqliteStore(tmp_path / "s.db")
    yield durable
    durable.close()


async def approve(questions: Sequence[Question]) -> Answers:
    return Answers.approving(questions)


def agent_of(store: SessionStore, *tools: Any, call: ToolCall, **more: Any) -> Agent:
    executor = Executor(Registry(*tools), AllowEverything(), clock=FakeClock())
    return Agent(ScriptedProvider(call, "done"), executor=executor, sessions=store, **more)


async def finish(agent: Agent) -> Result:
    """Run to the end; every question is approved."""
    result = await agent.run("go", session="s")
    for _ in range(5):
        if not isinstance(result, Paused):
            break
        result = await agent.resume("s", Answers.approving(result.questions))
    return result


async def text_of_call(agent: Agent) -> str:
    (message,) = [message for message in await agent.messages("s") if isinstance(message, ToolMessage)]
    return message.outcomes[0].text


def outer_tool(run: Callable[[ToolContext], Awaitable[str]], annotations: Annotations = REPEATABLE) -> SchemaTool:
    async def handle(arguments: object, context: ToolContext) -> str:
        return await run(context)

    return SchemaTool(ToolSpec("outer", "Make calls.", {"type": "object"}, annotations=annotations), handle)


OUTER = ToolCall("c", "outer", {})


@tool(effect=Effect.WRITE)
async def pay(n: int) -> str:
    """Pay."""
    done.append(f"pay {n}")
    return f"paid {n}"


@tool(effect=Effect.WRITE)
async def deploy(context: ToolContext) -> str:
    """Deploy; asks while it runs."""
    done.append("prepare")
    if context.answer is None:
        raise ApprovalRequired("to production?")
    done.append("deploy")
    return "deployed"


@pytest.mark.parametrize("ask", [None, approve])
@pytest.mark.parametrize("retried", [False, True])
async def test_notes_of_the_same_turn_are_found(store: SessionStore, ask: Any, retried: bool) -> None:
    @tool(annotations=Annotations(Effect.WRITE, idempotent=True))
    async def order(context: ToolContext) -> str:
        """Reserve, then pay."""
        if "reserved" not in context.kept:
            done.append("reserve")
            await context.keep("reserved")
        if retried and context.attempt == 1:
            raise Transient("busy")
        if not retried and context.answer is None:
            raise ApprovalRequired("pay?")
        return "paid"

    agent = agent_of(store, order, call=ToolCall("c", "order", {}), ask=ask)
    assert isinstance(await finish(agent), Done) and done == ["reserve"]


async def test_notes_read_before_are_not_changed(store: SessionStore) -> None:
    @tool
    async def count(context: ToolContext) -> str:
        """Count notes."""
        before = context.kept
        await context.keep(1)
        return f"{len(before)} {len(context.kept)}"

    agent = agent_of(store, count, call=ToolCall("c", "count", {}))
    await finish(agent)
    assert await text_of_call(agent) == "0 1"


@pytest.mark.parametrize("ask", [None, approve])
@pytest.mark.parametrize("retried", [False, True])
async def test_inner_write_is_not_repeated(store: SessionStore, ask: Any, retried: bool) -> None:
    async def run(context: ToolContext) -> str:
        (first,) = await context.execute(ToolCall("p", "pay", {"n": 1}))
        (second,) = await context.execute(ToolCall("p", "pay", {"n": 1}))  # the same call once more
        if retried and context.attempt == 1:
            raise Transient("busy")
        if not retried and context.answer is None:
            raise ApprovalRequired("tell the customer?")
        return f"{first.text}, {second.text}"

    agent = agent_of(store, pay, outer_tool(run), call=OUTER, ask=ask)
    assert isinstance(await finish(agent), Done) and done == ["pay 1", "pay 1"]
    assert await text_of_call(agent) == "paid 1, paid 1"


@pytest.mark.parametrize("together", [False, True])
async def test_writes_of_nested_calls_are_told_apart(store: SessionStore, together: bool) -> None:
    async def pay_inside(arguments: object, context: ToolContext) -> str:
        (outcome,) = await context.execute(ToolCall("p", "pay", {"n": 1}))
        if context.attempt == 1:
            raise Transient("busy")
        return outcome.text

    inner = SchemaTool(ToolSpec("inner", "Pay inside.", {"type": "object"}, annotations=REPEATABLE), pay_inside)

    async def run(context: ToolContext) -> str:
        call = ToolCall("i", "inner", {})
        if together:
            outcomes = await context.execute(call, call)
        else:
            outcomes = [*await context.execute(call), *await context.execute(call)]
        if context.answer is None:
            raise ApprovalRequired("tell the customer?")
        return ", ".join(outcome.text for outcome in outcomes)

    agent = agent_of(store, pay, inner, outer_tool(run), call=OUTER, ask=approve)
    assert isinstance(await finish(agent), Done) and done == ["pay 1", "pay 1"]
    assert await text_of_call(agent) == "paid 1, paid 1"


WRITING = Annotations(Effect.WRITE)


async def _deploy_inside(context: ToolContext) -> str:
    done.append("outer")
    (outcome,) = await context.execute(ToolCall("d", "deploy", {}))
    if isinstance(outcome, Interrupted):
        raise AnswersNeeded(outcome.questions)
    return outcome.text if isinstance(outcome, Completed) else f"failed: {outcome.error.message}"


async def test_inner_call_that_asks_while_it_runs_goes_on(store: SessionStore) -> None:
    agent = agent_of(store, deploy, outer_tool(_deploy_inside), call=OUTER)
    assert isinstance(await finish(agent), Done)
    assert await text_of_call(agent) == "deployed"
    assert done == ["outer", "prepare", "outer", "prepare", "deploy"]


async def leave(questions: Sequence[Question]) -> Answers:
    raise Unanswered("the window was closed")


@pytest.mark.parametrize("ask", [None, leave])
@pytest.mark.parametrize("inner", ["deploy", "pay"])
async def test_writing_tool_goes_on_with_inner_answers(store: SessionStore, ask: Any, inner: str) -> None:
    async def run(context: ToolContext) -> str:
        done.append("outer")
        (outcome,) = await context.execute(ToolCall("i", inner, {"n": 1} if inner == "pay" else {}))
        if isinstance(outcome, Interrupted):
            raise AnswersNeeded(outcome.questions)
        return outcome.text

    executor = Executor(Registry(deploy, pay, outer_tool(run, WRITING)))  # asks about every write
    agent = Agent(ScriptedProvider(OUTER, "done"), executor=executor, sessions=store)
    result = await agent.run("go", session="s")
    agent.ask = ask
    assert isinstance(result, Paused) and not done
    result = await agent.resume("s", Answers.approving(result.questions))
    assert isinstance(result, Paused) and done == ["outer"]
    again = await agent.resume("s")  # without the answer nothing runs
    assert isinstance(again, Paused) and again.questions == result.questions and done == ["outer"]
    while isinstance(again, Paused):
        agent.ask = None
        again = await agent.resume("s", Answers.approving(again.questions))
    assert isinstance(again, Done) and await text_of_call(agent) == {"pay": "paid 1", "deploy": "deployed"}[inner]
    assert done.count("deploy") + done.count("pay 1") == 1


async def test_question_inside_a_tool_that_still_runs_repeats_nothing(tmp_path: Path) -> None:
    """A process that ends while the user is asked about a call inside has not ended the outer call."""
    store = SqliteStore(tmp_path / "s.db")
    copies: list[list[Any]] = []

    async def look(questions: Sequence[Question]) -> Answers:
        copies.append(list(await store.read("s")))
        return Answers.approving(questions)

    async def run(context: ToolContext) -> str:
        done.append("outer")
        (outcome,) = await context.execute(ToolCall("d", "deploy", {}))
        return outcome.text

    agent = agent_of(store, deploy, outer_tool(run, WRITING), call=OUTER, ask=look)
    assert isinstance(await finish(agent), Done) and done.count("outer") == 1
    hold = await store.hold("killed")
    await hold.append(*copies[-1])
    await hold.release()
    agent.provider = ScriptedProvider("done")
    assert isinstance(await agent.resume("killed"), Done)
    store.close()
    assert done.count("outer") == 1


async def expire(store: SessionStore, questions: Sequence[Question]) -> tuple[Question, ...]:
    """Put the questions of a session on record as if they had been asked long ago."""
    expired = tuple(replace(question, expires_at=1) for question in questions)
    hold = await store.hold("s")
    await hold.append(Asked(expired, paused=True))
    await hold.release()
    return expired


@pytest.mark.parametrize("inside", [False, True])
async def test_expired_question_is_asked_again_without_a_run(store: SessionStore, inside: bool) -> None:
    call = OUTER if inside else ToolCall("c", "deploy", {})
    agent = agent_of(store, deploy, outer_tool(_deploy_inside, WRITING), call=call)
    result = await agent.run("go", session="s")
    assert isinstance(result, Paused) and done.count("prepare") == 1
    (expired,) = await expire(store, result.questions)
    for answers in (None, Answers.approving([expired])):
        again = await agent.resume("s", answers)
        assert isinstance(again, Paused) and done.count("prepare") == 1
        (question,) = again.questions
        assert question.id != expired.id and not question.is_expired() and question.running
        assert question.digest == expired.digest and question.reason == expired.reason
        result = again
    assert isinstance(await agent.resume("s", Answers.approving(result.questions)), Done)
    assert done.count("prepare") == 2 and done.count("deploy") == 1


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_expired_question_is_put_to_the_user_at_once(store: SessionStore, answer: str) -> None:
    agent = agent_of(store, deploy, call=ToolCall("c", "deploy", {}))
    result = await agent.run("go", session="s")
    assert isinstance(result, Paused)
    await expire(store, result.questions)
    asked: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(questions)
        return Answers.approving(questions) if answer == "yes" else Answers().decline(questions[0])

    agent.ask = ask
    assert isinstance(await agent.resume("s"), Done) and len(asked) == 1
    assert done == (["prepare", "prepare", "deploy"] if answer == "yes" else ["prepare"])


async def test_late_no_counts(store: SessionStore) -> None:
    agent = agent_of(store, deploy, call=ToolCall("c", "deploy", {}))
    result = await agent.run("go", session="s")
    assert isinstance(result, Paused)
    (expired,) = await expire(store, result.questions)
    assert isinstance(await agent.resume("s", Answers().decline(expired, "not today")), Done)
    assert done == ["prepare"] and "not today" in await text_of_call(agent)


async def test_executor_asks_again_after_a_late_yes() -> None:
    executor = Executor(Registry(deploy), AllowEverything())
    call = ToolCall("c", "deploy", {})
    (first,) = await executor.execute([call])
    assert isinstance(first, Interrupted)
    expired = replace(first.questions[0], expires_at=1)
    turn = Turn(asked=[expired])
    (late,) = await executor.execute([call], answers=Answers.approving([expired]), turn=turn)
    assert isinstance(late, Interrupted) and done == ["prepare"]
    (declined,) = await executor.execute([call], answers=Answers().decline(expired), turn=turn)
    assert isinstance(declined, Failed) and declined.started and done == ["prepare"]
    (outcome,) = await executor.execute([call], answers=Answers.approving(late.questions))
    assert isinstance(outcome, Completed) and done == ["prepare", "prepare", "deploy"]


async def test_cancelled_call_that_had_asked_has_started(store: SessionStore) -> None:
    waits = asyncio.Event()

    @tool(annotations=Annotations(Effect.READ, parallel=True))
    async def wait() -> str:
        """Wait."""
        waits.set()
        await asyncio.Event().wait()
        return ""

    @tool(annotations=Annotations(Effect.WRITE, parallel=True))
    async def order(context: ToolContext) -> str:
        """Reserve, then ask."""
        done.append("reserve")
        raise ApprovalRequired("pay?")

    executor = Executor(Registry(order, wait), AllowEverything())
    calls = [ToolCall("a", "order", {}), ToolCall("b", "wait", {})]
    agent = Agent(ScriptedProvider(calls, "done"), executor=executor, sessions=store)
    running = asyncio.ensure_future(agent.run("go", session="s"))
    await waits.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (message,) = [message for message in await agent.messages("s") if isinstance(message, ToolMessage)]
    told = message.outcomes[0]
    assert done == ["reserve"] and isinstance(told, Failed) and told.started and "may have had an effect" in told.text


@pytest.mark.parametrize("reply", ["yes", "no"])
@pytest.mark.parametrize("restart", [False, True])
async def test_edited_call_that_asks_goes_on_as_edited(store: SessionStore, restart: bool, reply: str) -> None:
    @tool(effect=Effect.WRITE)
    async def release(place: str, context: ToolContext) -> str:
        """Release; asks while it runs."""
        done.append(place)
        if context.answer is None:
            raise ApprovalRequired("really?")
        return f"released to {place}"

    def make(*lines: Any) -> Agent:
        return Agent(ScriptedProvider(*lines, "done"), executor=Executor(Registry(release)), sessions=store)

    agent = make(ToolCall("c", "release", {"place": "production"}))
    result = await agent.run("go", session="s")
    assert isinstance(result, Paused)
    result = await agent.resume("s", Answers().approve(result.questions[0], arguments={"place": "test"}))
    for _ in range(3):
        if not isinstance(result, Paused):
            break
        (question,) = result.questions
        assert question.arguments == {"place": "test"}
        agent = make() if restart else agent
        no = question.running and reply == "no"
        answers = Answers().decline(question) if no else Answers.approving([question])
        result = await agent.resume("s", answers)
    assert isinstance(result, Done) and done == (["test"] if reply == "no" else ["test", "test"])


@pytest.mark.parametrize("asks", ["inside", "itself"])
@pytest.mark.parametrize("ask", [None, approve])
async def test_writing_tool_repeats_no_inner_write_after_a_question(store: SessionStore, ask: Any, asks: str) -> None:
    """The effect WRITE is the default: such a tool is not repeated after a crash, but runs again after a question."""

    async def run(context: ToolContext) -> str:
        done.append("outer")
        (paid,) = await context.execute(ToolCall("p", "pay", {"n": 1}))
        if asks == "itself":
            if context.answer is None:
                raise ApprovalRequired("tell the customer?")
            return paid.text
        (outcome,) = await context.execute(ToolCall("d", "deploy", {}))
        if isinstance(outcome, Interrupted):
            raise AnswersNeeded(outcome.questions)
        return f"{paid.text}, {outcome.text}"

    agent = agent_of(store, pay, deploy, outer_tool(run, WRITING), call=OUTER, ask=ask)
    assert isinstance(await finish(agent), Done)
    assert done.count("pay 1") == 1
    assert await text_of_call(agent) == ("paid 1" if asks == "itself" else "paid 1, deployed")
