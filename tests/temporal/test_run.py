"""What a run does with the replies of its server: answers, cancellation and what it watches; without a server."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode
from tests.waiting import LONG_SECONDS

from callwright import Agent, Done, Question, SqliteStore, ToolCall, tool
from callwright.core.errors import UsageError
from callwright.core.messages import ToolMessage
from callwright.sessions import QuestionClosed, StoredRecord
from callwright.temporal import Run, TemporalError
from callwright.temporal.workflow import question_key
from callwright.testing import ScriptedProvider


class Workflow:
    """The handle of a workflow; its server may refuse every request."""

    def __init__(
        self,
        status: WorkflowExecutionStatus | None = WorkflowExecutionStatus.RUNNING,
        refusal: RPCStatusCode | None = None,
    ) -> None:
        self.signals: list[Any] = []
        self.cancelled = False
        self.ended = asyncio.Event()
        self.events = 0
        self._status = status
        self._refusal = refusal

    def _reply(self) -> None:
        if self._refusal is not None:
            raise RPCError("the details", self._refusal, b"")

    async def signal(self, name: str, given: Any) -> None:
        self._reply()
        self.signals.append(given)

    async def cancel(self) -> None:
        self._reply()
        self.cancelled = True

    async def describe(self) -> SimpleNamespace:
        self._reply()
        return SimpleNamespace(status=self._status, history_length=self.events)

    async def result(self) -> dict[str, Any]:
        self._reply()
        await self.ended.wait()
        return {"state": "done"}

    async def fetch_history(self) -> str:
        self._reply()
        return "history"


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def make_run(store: SqliteStore, workflow: Workflow) -> Run:
    return Run(cast("Any", workflow), store, "s")


async def ask(store: SqliteStore, workflow: Workflow) -> tuple[Run, Question]:
    """Let a session wait for an answer; return its run and its question."""
    await Agent(ScriptedProvider(ToolCall("c", "pay", {"amount": 7})), [pay], sessions=store).run("go", session="s")
    run = make_run(store, workflow)
    (question,) = await run.questions()
    return run, question


async def go_on(store: SqliteStore) -> list[str]:
    """Resume as a worker would; return the outcomes."""
    agent = Agent(ScriptedProvider("done"), [pay], sessions=store)
    assert isinstance(await agent.resume("s"), Done)
    messages = await agent.messages("s")
    return [outcome.text for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes]


async def test_approval_runs_the_call_and_wakes_the_run(store: SqliteStore) -> None:
    workflow = Workflow()
    run, question = await ask(store, workflow)
    await run.approve(question)
    assert workflow.signals == [{"keys": [question_key(question.id)]}]
    assert await go_on(store) == ["paid 7"]


async def test_declined_call_does_not_run(store: SqliteStore) -> None:
    run, question = await ask(store, Workflow())
    await run.decline(question, "too much")
    assert await go_on(store) == ["declined: too much"]


async def test_what_is_no_approval_answers_nothing(store: SqliteStore) -> None:
    workflow = Workflow()
    run, question = await ask(store, workflow)
    with pytest.raises(UsageError, match="scope"):
        await run.approve(question, scope=cast("Any", "everything"))
    with pytest.raises(UsageError, match=r"expected a Question, .* got str"):
        await run.approve(cast("Any", question.id))
    assert await run.questions() == (question,) and not workflow.signals


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (RPCStatusCode.NOT_FOUND, "'s' has no run on this server that waits; the answer is on record"),
        (RPCStatusCode.UNAVAILABLE, "does not answer: the details"),
        (RPCStatusCode.DEADLINE_EXCEEDED, "does not answer: the details"),
        (RPCStatusCode.PERMISSION_DENIED, "refused the request: the details"),
    ],
)
async def test_answer_is_on_record_whatever_the_server_replies(
    store: SqliteStore, status: RPCStatusCode, message: str
) -> None:
    run, question = await ask(store, Workflow(refusal=status))
    with pytest.raises(TemporalError, match=message):
        await run.approve(question)
    with pytest.raises(QuestionClosed):
        await run.decline(question)
    assert await go_on(store) == ["paid 7"]


@pytest.mark.parametrize("status", [*WorkflowExecutionStatus, None])
async def test_only_a_run_that_goes_on_is_cancelled(store: SqliteStore, status: WorkflowExecutionStatus | None) -> None:
    workflow = Workflow(status)
    run = make_run(store, workflow)
    if status in (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW):
        await run.cancel()
        assert workflow.cancelled
        return
    with pytest.raises(TemporalError, match="'s' has ended; there is nothing to cancel"):
        await run.cancel()
    assert not workflow.cancelled


async def read_all(run: Run) -> list[StoredRecord]:
    return [stored async for stored in run.watch()]


@pytest.mark.parametrize(
    "request_to",
    [Run.cancel, Run.result, Run.info, Run.is_taken, Run.fetch_history, read_all],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize(
    ("status", "message"),
    [(RPCStatusCode.NOT_FOUND, "'s' has no run on this server"), (RPCStatusCode.UNAVAILABLE, "does not answer")],
)
async def test_requests_that_fail_are_temporal_errors(
    store: SqliteStore, request_to: Callable[[Run], Awaitable[Any]], status: RPCStatusCode, message: str
) -> None:
    with pytest.raises(TemporalError, match=message):
        await request_to(make_run(store, Workflow(refusal=status)))


async def test_run_is_taken_when_more_happened_than_its_start(store: SqliteStore) -> None:
    workflow = Workflow()
    workflow.events = 2
    assert await make_run(store, workflow).is_taken() is False
    workflow.events = 3
    assert await make_run(store, workflow).is_taken() is True


async def test_watch_gives_every_record_once_until_the_run_has_ended(store: SqliteStore) -> None:
    workflow, seen = Workflow(), list[StoredRecord]()
    run = make_run(store, workflow)

    async def watch() -> None:
        async for stored in run.watch():
            seen.append(stored)

    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0)  # it begins before there is a session
    await Agent(ScriptedProvider("one"), sessions=store).run("go", session="s")
    async with asyncio.timeout(LONG_SECONDS):
        while len(seen) < 2:  # noqa: ASYNC110 - it looks from time to time
            await asyncio.sleep(0.005)
        await Agent(ScriptedProvider("two"), sessions=store).run("more", session="s")
        workflow.ended.set()
        await watching
    assert [stored.position for stored in seen] == [0, 1, 2, 3]
    assert [stored.position for stored in await read_all(run)] == [0, 1, 2, 3]
