"""One run on a Temporal server: its questions, its result, and what it records meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

from temporalio.client import WorkflowExecution, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.service import RPCError, RPCStatusCode

from callwright.agent.results import Done, StopKind, Stopped
from callwright.core.calls import Answers, Decline, Question, Reply
from callwright.core.decisions import GrantScope, make_reply
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.json import JsonObject
from callwright.core.messages import AssistantMessage
from callwright.sessions.base import SessionMissing, SessionStore, StoredRecord
from callwright.sessions.records import Record, Said, is_prompt, sum_usage
from callwright.sessions.waiting import read_questions, record_answers
from callwright.temporal.blobs import ClusterStore
from callwright.temporal.workflow import SIGNAL, Data, question_key

WORKFLOW_PREFIX = "callwright/"
"""The start of workflow ids; the session follows. The server runs one workflow of an id at a time."""
_WATCH_SECONDS = 0.2
RunStatus = Literal["running", "done", "failed", "cancelled", "terminated", "other"]
_STATUSES: dict[str, RunStatus] = {
    "RUNNING": "running",
    "CONTINUED_AS_NEW": "running",
    "COMPLETED": "done",
    "FAILED": "failed",
    "CANCELED": "cancelled",
    "TERMINATED": "terminated",
    "TIMED_OUT": "failed",
}

AWAY = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED)
"""A request with one of these says nothing about itself: the server cannot be reached."""
_EVENTS_BEFORE_A_WORKER = 2
"""The start, and the task that the first worker is to take."""


class TemporalError(CallwrightError):
    """The Temporal server cannot be reached, or refused a request."""


class RunFailed(CallwrightError):
    """A run ended with an error that no retry could mend; its session has what was done before.

    Args:
        session_id: the session of the run.
        kind: the name of the error, such as `UnknownAgent` or `SessionDamaged`.
        reason: what went wrong.
    """

    def __init__(self, session_id: str, kind: str, reason: str) -> None:
        super().__init__(f"the run of session {session_id!r} failed: {reason}")
        self.session_id = session_id
        self.kind = kind
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One entry in the list of runs."""

    session_id: str
    agent: str
    status: RunStatus
    started_at: float
    history_bytes: int = 0


class Run:
    """One run: its questions, its result, and what it records meanwhile. Made by `Runs.start` and `Runs.get`.

    Args:
        handle: the run's workflow on the server.
        sessions: the store that holds its session.
        session_id: the session.
        key: the key of this run in the session; empty for the latest run.
    """

    def __init__(
        self, handle: "WorkflowHandle[Any, Data]", sessions: ClusterStore, session_id: str, key: str = ""
    ) -> None:
        self._handle = handle
        self._sessions = sessions
        self.session_id = session_id
        self._key = key

    async def questions(self) -> tuple[Question, ...]:
        """Return the questions that wait for an answer, from the store: no worker needs to run.

        Raises:
            SessionError: the store cannot be read.
        """
        return await read_questions(self._sessions, self.session_id)

    async def approve(
        self, question: Question, *, arguments: JsonObject | None = None, scope: GrantScope = "once", by: str = ""
    ) -> None:
        """Approve a question. The answer is written into the session, for a worker to take; the first one counts.

        Args:
            question: one of `questions`.
            arguments: run the call with these arguments instead; they are judged again.
            scope: how long the approval lasts: this call, the session, or always.
            by: who approved, for the record.

        Raises:
            QuestionClosed: it has an answer already, has expired, or is a question of another run.
            SessionError: the answer cannot be stored.
            TemporalError: the answer is stored, and the server cannot be reached or knows no such run.
            UsageError: the question is not one, or the arguments or the scope are not valid.
        """
        reply = make_reply(True, arguments=arguments, scope=scope, by=by)
        if isinstance(reply, Decline):
            raise UsageError(reply.reason)
        await self.answer(question, reply)

    async def decline(self, question: Question, reason: str = "", *, by: str = "") -> None:
        """Decline a question. Raises the same errors as `approve`.

        Args:
            question: one of `questions`.
            reason: why; the model reads it.
            by: who declined, for the record.
        """
        await self.answer(question, Decline(reason, by))

    async def answer(self, question: Question, reply: Reply) -> None:
        """Answer a question. Raises the same errors as `approve`.

        Args:
            question: one of `questions`.
            reply: an `Approve` or a `Decline`.
        """
        if not isinstance(cast(object, question), Question):
            raise UsageError(f"expected a Question, as run.questions() returns, got {type(question).__name__}")
        asked = await record_answers(self._sessions, self.session_id, Answers({question.id: reply}))
        try:
            await self._handle.signal(SIGNAL, {"keys": [question_key(each.id) for each in asked]})
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise TemporalError(
                    f"session {self.session_id!r} has no run on this server that waits; the answer is on record"
                ) from None
            raise explain_refusal(error) from error

    async def cancel(self) -> None:
        """Cancel the run: a running call is stopped, open questions are declined, and the result is `Stopped`.

        Raises:
            TemporalError: the server cannot be reached, there is no such run, or it has ended.
        """
        with self._explaining():
            described = await self._handle.describe()
            if _STATUSES.get(described.status.name if described.status else "") != "running":
                # the server would accept it, and the caller would believe that something was stopped
                raise TemporalError(f"the run of session {self.session_id!r} has ended; there is nothing to cancel")
            await self._handle.cancel()

    async def result(self) -> Done | Stopped:
        """Wait until the run has ended and return its result, read from the session.

        Raises:
            RunFailed: the run ended with an error.
            TemporalError: the server cannot be reached, or there is no such run.
            SessionError: the session cannot be read.
        """
        try:
            with self._explaining():
                report = await self._handle.result()
        except WorkflowFailureError as error:
            return await self._explain_failure(error)
        return await self._read_result(report)

    async def watch(self, position: int = 0) -> AsyncGenerator[StoredRecord, None]:
        """Yield the records of the session as they are stored, by whichever machine, until the run has ended.

        Args:
            position: begin with this record; after a lost connection, one more than the last position seen.

        Raises:
            TemporalError: the server cannot be reached, or there is no such run.
            SessionError: the session cannot be read.
        """
        ended = asyncio.ensure_future(self._wait())
        try:
            async with _subscribe_to_changes(self._sessions, self.session_id) as changed:
                version = ""
                while True:
                    changed.clear()
                    done = ended.done()
                    current = await self._sessions.version()
                    if current != version or done:
                        version = current
                        for stored in await self._read_from(position):
                            position = stored.position + 1
                            yield stored
                    if done:
                        ended.result()
                        return
                    await _wait_for_first(ended, changed)
        finally:
            ended.cancel()

    async def info(self) -> RunInfo:
        """Return what the server knows of the run.

        Raises:
            TemporalError: the server cannot be reached, or there is no such run.
        """
        with self._explaining():
            described = await self._handle.describe()
        size = described.raw_description.workflow_execution_info.history_size_bytes
        return await describe_run(described, size)

    async def is_taken(self) -> bool:
        """Whether a worker has taken the run; until then it waits for one that serves its queue.

        Raises:
            TemporalError: the server cannot be reached, or there is no such run.
        """
        with self._explaining():
            return (await self._handle.describe()).history_length > _EVENTS_BEFORE_A_WORKER

    async def fetch_history(self) -> WorkflowHistory:
        """Return the workflow's own history: references and counts, for looking into problems.

        Raises:
            TemporalError: the server cannot be reached, or there is no such run.
        """
        with self._explaining():
            return await self._handle.fetch_history()

    async def _wait(self) -> None:
        with self._explaining(), suppress(WorkflowFailureError):  # it has ended all the same
            await self._handle.result()

    async def _read_from(self, position: int) -> Sequence[StoredRecord]:
        try:
            return await self._sessions.read_from(self.session_id, position)
        except SessionMissing:
            return ()  # no worker has begun it yet

    async def _explain_failure(self, error: WorkflowFailureError) -> Stopped:
        cause = error.cause
        if is_cancelled_exception(cause):
            return cast("Stopped", await self._read_result({"state": "stopped", "kind": "cancelled"}))
        if isinstance(cause, ActivityError) and cause.cause is not None:
            cause = cause.cause
        kind = cause.type if isinstance(cause, ApplicationError) and cause.type else type(cause).__name__
        raise RunFailed(self.session_id, kind, first_line(cause)) from None

    async def _read_result(self, report: Data) -> Done | Stopped:
        position = report.get("position")
        try:
            stored: Sequence[StoredRecord] = await self._sessions.read_from(self.session_id, limit=position)
        except SessionMissing:
            if report["state"] == "done":
                raise
            stored = []  # it was stopped before it began
        records = _find_run([item.record for item in stored], self._key)
        said = [record.message for record in records if isinstance(record, Said)]
        replies = [message for message in said if isinstance(message, AssistantMessage)]
        text, usage = replies[-1].text if replies else "", sum_usage(records)
        if report["state"] == "done":
            return Done(text, usage, self.session_id, turns=len(replies))
        kind, reason = str(report.get("kind", "cancelled")), str(report.get("reason", "the run was cancelled"))
        return Stopped(reason, cast("StopKind", kind), usage, self.session_id, text, len(replies))

    @contextmanager
    def _explaining(self) -> Generator[None]:
        """Raise a `TemporalError` for a request inside that fails."""
        try:
            yield
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                missing = f"session {self.session_id!r} has no run on this server, or it has ended"
                raise TemporalError(missing) from error
            raise explain_refusal(error) from error


def _find_run(records: Sequence[Record], key: str) -> Sequence[Record]:
    """Return the records of the run that began with a prompt; without a key, of the last one that has one."""
    prompts = {
        index: record.key for index, record in enumerate(records) if isinstance(record, Said) and is_prompt(record)
    }
    begun = [index for index, own in prompts.items() if own and key in ("", own)]
    if not begun:
        return ()
    following = (index for index in prompts if index > begun[-1])  # of runs that came later
    return records[begun[-1] : next(following, None)]


async def describe_run(execution: WorkflowExecution, history_bytes: int = 0) -> RunInfo:
    """Return what the server knows of a run."""
    status = _STATUSES.get(execution.status.name if execution.status else "", "other")
    agent = str((await execution.memo()).get("agent", ""))
    return RunInfo(
        execution.id.removeprefix(WORKFLOW_PREFIX), agent, status, execution.start_time.timestamp(), history_bytes
    )


def explain_refusal(error: RPCError, address: str = "") -> TemporalError:
    """Return the error for a request that failed."""
    place = f" at {address}" if address else ""
    what = "does not answer" if error.status in AWAY else "refused the request"
    return TemporalError(f"the Temporal server{place} {what}: {first_line(error)}")


def first_line(error: BaseException | None) -> str:
    """Return a short description of a foreign error."""
    return str(error).partition("\n")[0][:300]


async def _wait_for_first(ended: "asyncio.Future[None]", changed: asyncio.Event) -> None:
    """Wait until a run has ended or its session has changed, but not for long: not every store tells of changes."""
    hearing = asyncio.ensure_future(changed.wait())
    try:
        await asyncio.wait([ended, hearing], timeout=_WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hearing.cancel()


@asynccontextmanager
async def _subscribe_to_changes(store: SessionStore, session_id: str) -> AsyncGenerator[asyncio.Event]:
    """Give an event that a store sets after a change, if it can; with the others, look from time to time."""
    listen = getattr(store, "listen", None)
    if listen is None:
        yield asyncio.Event()
        return
    async with listen(session_id) as changed:
        yield changed
