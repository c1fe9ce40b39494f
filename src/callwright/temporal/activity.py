"""The activity: runs a slice of turns of an agent, under a heartbeat, from wherever its session stands."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import cast

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from callwright.agent.agent import Agent
from callwright.agent.handover import Handover
from callwright.agent.results import Done, Paused, Result, StopKind, Stopped
from callwright.core.calls import Answers, Failed, Question
from callwright.core.decisions import Decline
from callwright.core.errors import CallwrightError, Halted, UsageError, describe_raised
from callwright.core.messages import ToolMessage
from callwright.sessions.base import (
    SessionDamaged,
    SessionError,
    SessionMissing,
    SessionStore,
    StoredRecord,
    StoreTooNew,
)
from callwright.sessions.lease import name_attempt
from callwright.sessions.records import Answered, LimitReached, Record, Said, find_open_questions
from callwright.temporal.blobs import ClusterStore, read_prompt, require_cluster_store
from callwright.temporal.workflow import ACTIVITY, Data, question_key
from callwright.tool.base import Cancellation

_log = logging.getLogger("callwright")
_REASON_CHARS = 300
_CLOSING_SECONDS = 60.0
"""How long a cancelled run may take to close its turn."""
_STOPPED = "WorkerStopped"
_LONGEST_AWAY_SECONDS = 300.0
"""The longest delay before a slice is tried again whose provider is away."""
_LAPSED = "no answer came in time"
_CANCELLED = "the run was cancelled"


class Advance:
    """The one activity of a worker: continues runs of these agents.

    Args:
        agents: the agents by name.
        on_pause: is told the store and the session of a run that waits for answers.
    """

    def __init__(self, agents: Mapping[str, Agent], on_pause: Callable[[SessionStore, str], None]) -> None:
        self._agents = agents
        self._on_pause = on_pause

    @activity.defn(name=ACTIVITY)
    async def advance(self, order: Data) -> Data:
        """Run the next slice; raise what a retry may mend, or an error that no retry can."""
        try:
            agent = self._find(order)
            report = await _keep_alive(_Slice(agent, order))
            if report["state"] == "paused":
                self._on_pause(agent.sessions, str(order["session"]))
            return report
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the server is told, and decides about a retry
            failure = _translate(error)
            if failure.type != _STOPPED:
                # only what is not expected needs a traceback
                unknown = error if not isinstance(error, CallwrightError | ApplicationError) else None
                _log.warning("session %s: %s", ascii(order.get("session")), failure, exc_info=unknown)
            if failure.non_retryable or _is_last_attempt():
                await self._forget_prompt(str(order["prompt"]))
            raise failure from None

    async def _forget_prompt(self, reference: str) -> None:
        """Delete the prompt of a run that fails for good: nothing reads it any more, and no session has it."""
        stores = {id(agent.sessions): agent.sessions for agent in self._agents.values()}
        for store in stores.values() if reference else ():
            with suppress(SessionError):
                await require_cluster_store(store).delete_blobs([reference])

    def _find(self, order: Data) -> Agent:
        name = str(order["agent"])
        agent = self._agents.get(name)
        if agent is None:
            known = ", ".join(sorted(self._agents))
            raise _make_failure(
                f"there is no agent {name!r} on this queue; its worker has: {known}", "UnknownAgent", final=True
            )
        return agent


def _name_owner(info: activity.Info) -> str:
    """Return who holds the session: this attempt, which takes it from earlier ones of the workflow only.

    Slices follow each other in the server's time, and the attempts at one slice are counted.
    """
    scheduled = int(info.scheduled_time.timestamp() * 1_000_000)
    return name_attempt(f"temporal:{info.workflow_id}", int(f"{scheduled}{info.attempt:09}"))


class _Slice:
    """One attempt at a slice of turns."""

    def __init__(self, agent: Agent, order: Data) -> None:
        self._agent = agent
        self._order = order
        self._store: ClusterStore = require_cluster_store(agent.sessions)
        self._session = str(order["session"])
        self.cancellation = Cancellation()
        self.handover = Handover(int(order["turns"]), owner=_name_owner(activity.info()))

    async def run(self) -> Data:
        """Run, and return the report for the workflow."""
        if self._order.get("cancel"):
            return await self._close()
        ended = await self._find_end()
        if ended is not None:
            return await self._report(ended)
        result = await self._advance()
        if isinstance(result, Paused) and self._order["lapsed"]:
            result = await self._decline_lapsed(result)
        if isinstance(result, Stopped) and result.transient and not _is_last_attempt():
            raise _make_failure(result.reason, "ProviderError", delay_seconds=2.0 ** activity.info().attempt)
        return await self._report(result)

    async def _advance(self) -> Result:
        reference = str(self._order["prompt"])
        if reference:
            result = await self._begin(reference)
            await self._store.delete_blobs([reference])
            return result
        if self._order["open"] and not self._order["lapsed"]:
            # A signal only says where to look, and any client of the server can send one: the answers that count
            # are on record. Resuming without them would ask the same questions anew.
            questions = await self._find_unanswered()
            if questions:
                return Paused(questions, session_id=self._session)
        return await self._resume(None)

    async def _find_unanswered(self) -> tuple[Question, ...]:
        replies = [item.record.replies for item in await self._read_new() if isinstance(item.record, Answered)]
        answered = {question_key(question_id) for each in replies for question_id in each}
        if answered >= {*self._order["open"]}:  # the usual case, without reading the whole session
            return ()
        return find_open_questions(await self._read())

    async def _begin(self, reference: str) -> Result:
        prompt = await read_prompt(self._store, reference)
        if prompt is not None:
            return await self._agent.run(
                prompt,
                session=self._session,
                key=str(self._order["key"]),
                cancellation=self.cancellation,
                handover=self.handover,
            )
        if not self._has_heard(await self._read()):
            raise _make_failure(
                f"the prompt of session {self._session!r} is not in the store of this worker; start runs with the "
                "store that the agents use",
                "PromptLost",
                final=True,
            )
        return await self._resume(None)  # an earlier attempt had heard it, and was killed before it could say so

    async def _resume(self, answers: Answers | None) -> Result:
        return await self._agent.resume(self._session, answers, cancellation=self.cancellation, handover=self.handover)

    async def _decline_lapsed(self, paused: Paused) -> Result:
        """Decline the questions that expired; they were asked again when the session was resumed."""
        asked = set(self._order["open"])
        lapsed = (question for question in paused.questions if question_key(question.id) in asked)
        answers = Answers({question.id: Decline(_LAPSED) for question in lapsed})
        return await self._resume(answers) if len(answers) else paused

    async def _close(self) -> Data:
        """Close the turn of a cancelled run, if it is open: its questions must not wait any longer."""
        self.cancellation.cancel(_CANCELLED)
        records = await self._read()
        if self._has_heard(records):  # not if it was cancelled before it began
            questions = find_open_questions(records)
            answers = Answers({question.id: Decline(_CANCELLED) for question in questions})
            await self._resume(answers if questions else None)
        if self._order["prompt"]:
            await self._store.delete_blobs([str(self._order["prompt"])])
        return await self._report(Stopped(_CANCELLED, "cancelled"))

    async def _find_end(self) -> Stopped | None:
        """Return how an earlier attempt of this slice ended the run, at a limit or by a hook: resuming would go on."""
        if activity.info().attempt == 1:
            return None
        fresh = await self._read_new()
        if self._order["prompt"] and not self._has_heard([item.record for item in fresh]):
            return None  # this run has not begun: what is there is the end of an earlier one
        match fresh[-1].record if fresh else None:
            case LimitReached(kind):
                return Stopped(f"the limit of {kind} is reached", cast("StopKind", kind))
            case Said(ToolMessage(outcomes)):
                errors = (outcome.error for outcome in outcomes if isinstance(outcome, Failed))
                halted = next((error for error in errors if isinstance(error, Halted)), None)
                return None if halted is None else Stopped(halted.message, "halted")
            case _:
                return None

    async def _read_new(self) -> Sequence[StoredRecord]:
        """Return the records since the last report; a long session is read once, when it is resumed."""
        try:
            return await self._store.read_from(self._session, int(self._order["position"]))
        except SessionMissing:
            return ()

    async def _read(self) -> Sequence[Record]:
        try:
            return await self._store.read(self._session)
        except SessionMissing:
            return ()

    def _has_heard(self, records: Sequence[Record]) -> bool:
        return any(isinstance(record, Said) and record.key == self._order["key"] for record in records)

    async def _report(self, result: Result) -> Data:
        position = int(self._order["position"]) + len(await self._read_new())
        report: Data = {"state": "done", "position": position, "open": [], "expires": 0}
        match result:
            case Done():
                return report
            case Paused(questions):
                return report | {"state": "paused"} | _describe_questions(questions)
            case Stopped(kind="handover"):
                return report | {"state": "more"}
            case Stopped(reason, kind):
                return report | {"state": "stopped", "kind": kind, "reason": reason[:_REASON_CHARS]}


def _describe_questions(questions: Iterable[Question]) -> Data:
    keys = {question_key(question.id): question.expires_at for question in questions}
    return {"open": list(keys), "expires": min((at for at in keys.values() if at), default=0)}


async def _keep_alive(slice_: _Slice) -> Data:
    """Run a slice under a heartbeat; cancel it, or hand it over, when the server or the worker says so."""
    running = asyncio.ensure_future(slice_.run())
    helpers = [asyncio.ensure_future(work) for work in (_send_heartbeats(), _hand_over(slice_.handover))]
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if running.done():
            raise
        await _stop(slice_, running)
        raise
    finally:
        for helper in helpers:
            helper.cancel()


async def _stop(slice_: _Slice, running: "asyncio.Future[Data]") -> None:
    details = activity.cancellation_details()
    requested = details is not None and details.cancel_requested
    if requested:
        slice_.cancellation.cancel(_CANCELLED)
    else:  # the worker must end, or this attempt has been given up: another one continues from the record
        slice_.handover.give_up()
        running.cancel()
    await asyncio.wait([running], timeout=_CLOSING_SECONDS)
    if not running.done():
        running.cancel()
    elif not running.cancelled() and (error := running.exception()) is not None:
        _log.warning("a run was stopped: %s", describe_raised(error))
    if not requested:
        raise _make_failure("the worker was stopped", _STOPPED)


async def _send_heartbeats() -> None:
    limit = activity.info().heartbeat_timeout
    seconds = 1.0 if limit is None else limit.total_seconds() / 4
    while True:
        activity.heartbeat()
        await asyncio.sleep(seconds)


async def _hand_over(handover: Handover) -> None:
    await activity.wait_for_worker_shutdown()
    handover.request()


def _translate(error: Exception) -> ApplicationError:
    """Return the error for the server: its kind decides whether it is retried."""
    match error:
        case ApplicationError():
            return error
        case UsageError() | SessionDamaged() | StoreTooNew() | SessionMissing():  # missing: it was deleted meanwhile
            return _make_failure(str(error), type(error).__name__, final=True)
        case SessionError():
            return _make_failure(str(error), type(error).__name__)
        case _:
            return _make_failure(describe_raised(error), type(error).__name__)


def _is_last_attempt() -> bool:
    info = activity.info()
    most = 0 if info.retry_policy is None else info.retry_policy.maximum_attempts
    return info.retry_policy is None or 0 < most <= info.attempt


def _make_failure(message: str, kind: str, *, final: bool = False, delay_seconds: float = 0.0) -> ApplicationError:
    return ApplicationError(
        message[:_REASON_CHARS],
        type=kind,
        non_retryable=final,
        next_retry_delay=timedelta(seconds=min(delay_seconds, _LONGEST_AWAY_SECONDS)) if delay_seconds else None,
        # for the SDK's log only, which prints a traceback of its own code for any other one: the worker says it
        category=ApplicationErrorCategory.BENIGN,
    )
