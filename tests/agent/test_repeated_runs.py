"""A call runs again in the same turn, after a question or a retry: it finds what it has done, and repeats no write."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
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
    Interrupted,
    Question,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    tool,
)
from callwright.agent import Done, Paused, Result
from callwright.core.decisions import AnswersNeeded
from callwright.core.errors import Transient
from callwright.core.messages import ToolMessage
from callwright.core.spec import Annotations, ToolSpec
from callwright.policy import AllowEverything
from callwright.sessions import MemoryStore, SessionStore
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
