"""Runs the calls of one model message, first time or after a crash, until each has an outcome."""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from callwright.agent.compaction import Compaction
from callwright.agent.model_request import Requests
from callwright.agent.replay import Ending, OpenTurn
from callwright.agent.results import AgentEvent, Paused
from callwright.agent.text_replies import is_text_call, note_text_calls
from callwright.agent.transcript import Transcript, wait_for_nothing
from callwright.clip import READER, Outputs, find_output_ids
from callwright.core._fast import frozen, make_constructor, replace
from callwright.core.calls import Answers, Decline, Failed, Interrupted, Outcome, Question, ToolCall
from callwright.core.decisions import check_answers
from callwright.core.errors import InvalidArguments, Unanswered
from callwright.core.events import BatchBegan, CallEnded, Event
from callwright.core.json import FrozenDict, JsonObject
from callwright.core.messages import AssistantMessage
from callwright.core.spec import Effect
from callwright.executor.executor import Executor
from callwright.executor.ledger import ask_again
from callwright.executor.turn_context import AskPerson, Keep, Starting, Turn, TurnCancelled
from callwright.hooks.base import await_if_needed
from callwright.providers.base import Provider
from callwright.registry.catalog import Catalog, Toolset
from callwright.repairs.names import repair_name
from callwright.sessions.base import SessionError
from callwright.sessions.records import Ended
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import State

_log = logging.getLogger("callwright")
_turn = make_constructor(Turn)
_NOTHING_KEPT: JsonObject = FrozenDict()
_CUT = "the message reached its token limit inside this call, so the call was not run; send it again in smaller parts"
_CRASHED = "not done: the process ended while this turn was running"
_NOT_STARTED = "; it had not started"
_STARTED_BEFORE = "; it had started before the run was continued, so it may have had an effect"


class _ChangedCall(Exception):
    """The calls to repeat differ from those that were started before the crash."""


@frozen
class RunDependencies:
    """The parts a run works with."""

    provider: Provider
    registry: Toolset
    executor: Executor
    state: State
    ask: AskPerson | None
    durable: bool
    """Whether the session store survives a crash, so that starts are worth recording."""
    system: str
    requests: Requests
    compaction: Compaction | None
    undo: UndoRecorder
    keep: Keep
    """Stores the notes of running tools; made once, as each turn holds it."""


async def make_calls(
    transcript: Transcript, turn: OpenTurn, catalog: Catalog, parts: RunDependencies
) -> Paused | Sequence[Ending]:
    """Run the open turn's calls and close the turn, or pause it; a cancelled task closes it too."""
    calls, settled, answers, begun = turn.calls, turn.ended, None, turn.begun
    if turn.stored or turn.message.stop == "length":  # of an earlier run, or its last call was cut off
        open_questions = _find_unanswered(turn, parts.executor.limits.question_seconds) if turn.waiting else ()
        if open_questions and not await _ask_again(transcript, turn, open_questions, parts.ask):
            return await transcript.pause(turn, open_questions)
        settled = _find_settled(turn, catalog)
        calls = _find_open(turn.calls, settled) if settled else turn.calls
        if turn.replies:
            answers = Answers(turn.replies)
            if parts.durable:  # what has started is on record; a run that was given up may have used the answer
                parts.executor.accept_again(turn.replies)
    parts.undo.begin_turn()
    try:
        executor_turn = _make_turn(transcript, turn, calls, catalog, parts)
        if len(calls) == 1:  # by itself: a coroutine less that waits with it
            outcomes: Sequence[Outcome] = (await parts.executor.make_call(calls[0], answers, executor_turn),)
        else:
            outcomes = await parts.executor.execute(calls, answers=answers, turn=executor_turn) if calls else ()
    except _ChangedCall:
        outcomes = list(map(partial(turn.fail_unfinished, why=_CRASHED), calls))
    except asyncio.CancelledError as stopped:
        turn_cancelled = TurnCancelled.find(stopped)  # None: cancelled before the executor had outcomes of its own
        outcomes = [Interrupted(call) for call in calls] if turn_cancelled is None else turn_cancelled.outcomes
        outcomes = _tell_earlier_starts(outcomes, begun) if begun else outcomes
        await _close_anyway(transcript, turn, _merge_outcomes(turn, settled, outcomes), parts)
        raise
    outcomes = _tell_earlier_starts(outcomes, begun) if begun else outcomes
    if Interrupted in map(type, outcomes):
        ended = [outcome for outcome in outcomes if not isinstance(outcome, Interrupted)]
        keep_outputs(transcript, ended, parts.executor.outputs, durable=parts.durable)
        return await transcript.pause(turn, _collect_questions(outcomes), ended)
    endings: Sequence[Ending] = _merge_outcomes(turn, settled, outcomes) if settled else outcomes  # type: ignore[assignment] - none is interrupted
    if is_text_call(turn.calls[0]):  # then all of them are
        endings = note_text_calls(endings, parts.executor.stats)
    endings = transcript.spending.count_outcomes(endings)
    keep_outputs(transcript, endings, parts.executor.outputs, durable=parts.durable)
    if not transcript.close_at_once(turn, endings):
        await transcript.close_turn(turn, endings)
    return endings


def _tell_earlier_starts(outcomes: Sequence[Outcome], begun: Collection[str]) -> Sequence[Outcome]:
    """Say of calls that did not run again now that an earlier process had started them."""
    return [
        replace(
            outcome,
            error=outcome.error.with_message(f"{outcome.error.message.removesuffix(_NOT_STARTED)}{_STARTED_BEFORE}"),
            started=True,
        )
        if isinstance(outcome, Failed) and not outcome.started and outcome.call.id in begun
        else outcome
        for outcome in outcomes
    ]


def _find_open(calls: Sequence[ToolCall], settled: Mapping[str, Ending]) -> tuple[ToolCall, ...]:
    return tuple(call for call in calls if call.id not in settled)


def _find_unanswered(turn: OpenTurn, seconds: float | None) -> tuple[Question, ...]:
    """Return what calls asked while they ran and the user has not answered, as it is asked now.

    Without the answers they must not run: they would do once more what they did before they asked.
    """
    found: list[Question] = []
    for question in (question for asked in turn.waiting.values() for question in asked):
        reply, expired = turn.replies.get(question.id), question.is_expired()
        if reply is None or (expired and not isinstance(reply, Decline)):
            found.append(ask_again(question, seconds) if expired else question)
    return tuple(found)


async def _ask_again(
    transcript: Transcript, turn: OpenTurn, questions: Sequence[Question], ask: AskPerson | None
) -> bool:
    """Ask what calls asked before a pause, without running them again first; False if the user cannot be asked."""
    if ask is None:
        return False
    try:
        await _record_asking(ask, transcript, turn)(questions)
    except Unanswered:
        return False
    except Exception:  # noqa: BLE001 - a failure to ask is not a yes
        _log.exception("asking the user failed")
    declined = {question.id: Decline("the user gave no answer") for question in questions}
    turn.replies = {**declined, **turn.replies}
    return True


def keep_outputs(transcript: Transcript, outcomes: Iterable[Ending], outputs: Outputs, *, durable: bool) -> None:
    """Store the whole of outputs that were cut, so that the model can read them in another process too."""
    for outcome in outcomes:
        if READER not in outcome.text:
            continue
        for output_id in find_output_ids(outcome):
            transcript.has_cut_outputs = True
            if durable and output_id not in transcript.kept_outputs:
                text = outputs.load(output_id)
                if text is not None:
                    transcript.kept_outputs = transcript.kept_outputs.union((output_id,))
                    transcript.hold.keep_output(output_id, text)


def _find_settled(turn: OpenTurn, catalog: Catalog) -> Mapping[str, Ending]:
    """Return outcomes of calls that must not run: cut off, ended before a crash, or started and not repeatable.

    A call that had not begun when the turn paused waited for one that has a question, and runs after it.
    """
    cut = _find_cut_call(turn.message) if turn.message.stop == "length" else None
    settled: dict[str, Ending] = dict(turn.ended)
    if cut is not None:
        settled[cut.id] = Failed(cut, InvalidArguments(_CUT))
    if turn.digests is None:
        return settled
    for call in turn.calls:
        if call.id in settled or call.id in turn.waiting or (turn.waiting and call.id not in turn.begun):
            continue
        if call.id in turn.digests and not _repeatable(call, catalog):
            settled[call.id] = turn.fail_unfinished(call, _CRASHED)
    return settled


def _find_cut_call(message: AssistantMessage) -> ToolCall | None:
    last = message.parts[-1] if message.parts else None
    return last if isinstance(last, ToolCall) else None


def _repeatable(call: ToolCall, catalog: Catalog) -> bool:
    tool = catalog.get(call.name) or catalog.get(repair_name(call.name, catalog.spellings) or "")
    if tool is None:
        return True  # a tool that does not exist cannot have run
    return tool.spec.annotations.repeatable


def _may_have_effect(call: ToolCall, catalog: Catalog) -> bool:
    tool = catalog.get(call.name)
    return tool is None or tool.spec.annotations.effect is not Effect.READ or tool.spec.annotations.delegates


def _make_turn(
    transcript: Transcript, turn: OpenTurn, calls: Sequence[ToolCall], catalog: Catalog, parts: RunDependencies
) -> Turn:
    return _turn(
        transcript.session_id,
        turn.turn_id,
        parts.state,
        catalog,
        transcript.watch.cancellation,
        None if parts.ask is None else _record_asking(parts.ask, transcript, turn, running=True),
        _TurnJournal(transcript, turn, calls) if parts.durable else None,
        _observer_for(transcript, calls, parts) if parts.durable or transcript.emit is not None else None,
        _record_starts(transcript, turn, catalog) if parts.durable and len(calls) > 1 else None,
        tuple(turn.questions.values()) if turn.questions else (),
        parts.keep,
        {path: tuple(notes) for path, notes in turn.kept.items()} if turn.kept else _NOTHING_KEPT,
    )


def _record_asking(ask: AskPerson, transcript: Transcript, turn: OpenTurn, *, running: bool = False) -> AskPerson:
    """Return an `ask` whose questions are on record before the user sees them, and its answers before they count.

    A process that is killed at a question shows it again; one killed after the answer does not.
    """

    async def ask_on_record(questions: Sequence[Question]) -> Answers:
        await transcript.record_questions(turn, questions)
        answers = check_answers(await await_if_needed(ask(questions)))  # if it raises, the executor declines
        await transcript.record_answers(turn, dict(answers))
        for question in questions:
            if running and question.running and not question.within:  # with the answer it goes on at once
                await transcript.record_restart(turn, question.call_id)
        return answers

    return ask_on_record


class _TurnJournal:
    """Records the starts of a turn, or checks that a repetition is exactly what was started before."""

    __slots__ = ("_calls", "_repeats", "_transcript", "_turn")

    def __init__(self, transcript: Transcript, turn: OpenTurn, calls: Sequence[ToolCall]) -> None:
        self._transcript = transcript
        self._turn = turn
        self._calls = calls
        self._repeats = turn.digests

    def __call__(self, began: BatchBegan) -> Awaitable[None]:
        turn, repeats = self._turn, self._repeats
        if began.calls[0] is not self._calls[0]:
            return wait_for_nothing()  # calls made by a running tool; the start of that tool is on record
        if repeats is not None:
            for call, digest in zip(self._calls, began.digests, strict=True):
                if repeats.get(call.id, digest) != digest:
                    raise _ChangedCall
        if turn.digests is not None and not any(call.id in turn.waiting for call in self._calls):
            return wait_for_nothing()
        return self._transcript.record_start(turn, began)


def _observer_for(
    transcript: Transcript, calls: Sequence[ToolCall], parts: RunDependencies
) -> "_OutcomeRecorder | None":
    if parts.durable and len(calls) > 1:
        return _OutcomeRecorder(transcript, calls, parts.executor.outputs)
    return None if transcript.emit is None else _OutcomeRecorder(transcript, (), parts.executor.outputs)


def _record_starts(transcript: Transcript, turn: OpenTurn, catalog: Catalog) -> Starting:
    """Return what records the start of each call, so that a crash tells those apart that never began."""

    async def starting(call: ToolCall) -> None:
        # A call without an effect is made again after a crash, begun or not; only the turn must be on record.
        if not transcript.is_on_record(turn) or _may_have_effect(call, catalog):
            await transcript.record_call_start(turn, call.id)

    return starting


class _OutcomeRecorder:
    """Records each outcome as it arrives, so that a crash loses only calls that were still running."""

    def __init__(self, transcript: Transcript, calls: Sequence[ToolCall], outputs: Outputs) -> None:
        self._transcript = transcript
        self._outputs = outputs
        self._call_ids = {id(call) for call in calls}  # by identity: inner calls may have the same ids

    def __call__(self, event: Event) -> None:
        if isinstance(event, CallEnded) and id(event.call) in self._call_ids:
            outcome = event.outcome
            if not isinstance(outcome, Interrupted):
                self._transcript.note(Ended(outcome))
                keep_outputs(self._transcript, (outcome,), self._outputs, durable=True)
        agent_event: AgentEvent = event
        self._transcript.emit_event(agent_event)


async def _close_anyway(
    transcript: Transcript, turn: OpenTurn, endings: Sequence[Ending], parts: RunDependencies
) -> None:
    """Close a turn whose task is being cancelled."""
    # If the store fails now, the turn stays open on record and `resume` settles it.
    with suppress(SessionError):
        keep_outputs(transcript, endings, parts.executor.outputs, durable=parts.durable)
        await asyncio.shield(asyncio.ensure_future(transcript.close_turn(turn, endings)))


def _collect_questions(outcomes: Sequence[Outcome]) -> tuple[Question, ...]:
    return tuple(question for outcome in outcomes if isinstance(outcome, Interrupted) for question in outcome.questions)


def _merge_outcomes(turn: OpenTurn, settled: Mapping[str, Ending], outcomes: Sequence[Outcome]) -> Sequence[Ending]:
    """Return one outcome per call, in call order."""
    if not settled:
        return [_to_ending(turn, outcome) for outcome in outcomes]
    found = dict(settled)
    for outcome in outcomes:
        found[outcome.call.id] = _to_ending(turn, outcome)
    return [found[call.id] for call in turn.calls]


def _to_ending(turn: OpenTurn, outcome: Outcome) -> Ending:
    if not isinstance(outcome, Interrupted):
        return outcome
    turn.add_questions(outcome.questions, paused=True)  # a call that asked while it ran has started
    return turn.fail_unfinished(outcome.call, "the run was stopped before this call was done")
