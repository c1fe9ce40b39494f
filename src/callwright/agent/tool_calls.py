"""The calls of one model message, from the message to one outcome each."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from callwright.agent.results import AgentEvent, Paused
from callwright.agent.transcript import Ending, OpenTurn, Transcript
from callwright.core._fast import maker
from callwright.core.calls import Answers, Failed, Interrupted, Outcome, Question, ToolCall
from callwright.core.errors import Cancelled, InvalidArguments
from callwright.core.events import BatchBegan, CallEnded, Event
from callwright.core.messages import AssistantMessage
from callwright.core.spec import Effect
from callwright.executor.executor import Executor
from callwright.executor.turn import AskPerson, Journal, Turn, TurnCancelled
from callwright.registry.catalog import Catalog
from callwright.sessions.base import SessionError
from callwright.sessions.records import Ended
from callwright.tool.base import State

_turn = maker(Turn)
_CUT = "the message reached its token limit inside this call, so it was not run; send it again in smaller parts"
_CRASHED = "not done: the process ended while this turn was running"


class _ChangedCall(Exception):
    """What would be repeated is no longer what was begun."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What the calls of every turn are made with."""

    executor: Executor
    state: State
    ask: AskPerson | None
    durable: bool
    """Whether it is worth saying what is about to run."""


async def make_calls(
    talk: Transcript, turn: OpenTurn, catalog: Catalog, around: CallContext
) -> Paused | Sequence[Ending]:
    """Bring the open turn to its outcomes and close it, or pause it; a cancelled task leaves it closed too."""
    settled = _find_settled(turn, catalog)
    calls = turn.calls if not settled else tuple(call for call in turn.calls if call.id not in settled)
    try:
        outcomes = await _execute(talk, turn, calls, catalog, around) if calls else []
    except TurnCancelled as stopped:
        await _close_anyway(talk, turn, _merge_outcomes(turn, settled, stopped.outcomes))
        raise
    except asyncio.CancelledError:
        await _close_anyway(talk, turn, _merge_outcomes(turn, settled, [Interrupted(call) for call in calls]))
        raise
    questions = _collect_questions(outcomes)
    if questions is not None:
        return await talk.pause(turn, questions)
    endings = _merge_outcomes(turn, settled, outcomes)
    await talk.close(turn, endings)
    return endings


def _find_settled(turn: OpenTurn, catalog: Catalog) -> dict[str, Ending]:
    """Outcomes of calls that must not run: cut off, ended before a crash, or begun and not harmless to repeat."""
    if turn.digests is None and turn.message.stop != "length":
        return {}
    settled: dict[str, Ending] = {}
    if turn.message.stop == "length" and (cut := _find_cut_call(turn.message)) is not None:
        settled[cut.id] = Failed(cut, InvalidArguments(_CUT))
    if turn.digests is None:
        return settled
    for call in turn.calls:
        if call.id in turn.ended:
            settled[call.id] = turn.ended[call.id]
        elif call.id in turn.digests and not _repeatable(call, catalog):
            settled[call.id] = turn.lost(call, _CRASHED)
    return settled


def _find_cut_call(message: AssistantMessage) -> ToolCall | None:
    last = message.parts[-1] if message.parts else None
    return last if isinstance(last, ToolCall) else None


def _repeatable(call: ToolCall, catalog: Catalog) -> bool:
    tool = catalog.get(call.name)
    if tool is None:
        return True  # there is nothing that could have run
    return tool.spec.annotations.idempotent or tool.spec.annotations.effect is Effect.READ


def _execute(
    talk: Transcript, turn: OpenTurn, calls: Sequence[ToolCall], catalog: Catalog, around: CallContext
) -> Awaitable[list[Outcome]]:
    circumstances = _turn(
        talk.session_id,
        turn.turn_id,
        around.state,
        catalog,
        talk.watch.cancellation,
        around.ask,
        _make_journal(talk, turn, calls) if around.durable else None,
        _make_observer(talk, calls, around),
    )
    answers = Answers(turn.replies) if turn.replies else None
    executing = around.executor.execute(calls, answers=answers, turn=circumstances)
    return _fail_changed_calls(executing, turn, calls) if around.durable else executing


def _make_journal(talk: Transcript, turn: OpenTurn, calls: Sequence[ToolCall]) -> Journal:
    """Stores what is about to run; refuses what is no longer what was begun before a crash."""
    repeats = turn.digests

    async def journal(began: BatchBegan) -> None:
        if began.calls[0] is not calls[0]:
            return  # made by a running tool, whose own beginning is on record
        if repeats is None:
            await talk.begin(turn, began)
        elif any(repeats.get(call.id) != digest for call, digest in zip(calls, began.digests, strict=True)):
            raise _ChangedCall

    return journal


async def _fail_changed_calls(
    executing: Awaitable[list[Outcome]], turn: OpenTurn, calls: Sequence[ToolCall]
) -> list[Outcome]:
    try:
        return await executing
    except _ChangedCall:
        return [turn.lost(call, _CRASHED) for call in calls]


def _make_observer(talk: Transcript, calls: Sequence[ToolCall], around: CallContext) -> "_OutcomeRecorder | None":
    if around.durable and len(calls) > 1:
        return _OutcomeRecorder(talk, calls)
    return None if talk.emit is None else _OutcomeRecorder(talk, ())


class _OutcomeRecorder:
    """Writes down each call's end as it comes, so that a crash forgets only what was still running."""

    def __init__(self, talk: Transcript, calls: Sequence[ToolCall]) -> None:
        self._talk = talk
        self._own = {id(call) for call in calls}

    def __call__(self, event: Event) -> None:
        if isinstance(event, CallEnded) and id(event.outcome.call) in self._own:
            outcome = event.outcome
            if not isinstance(outcome, Interrupted):
                self._talk.hold.note(Ended(outcome))
        told: AgentEvent = event
        self._talk.tell(told)


async def _close_anyway(talk: Transcript, turn: OpenTurn, endings: Sequence[Ending]) -> None:
    """Close a turn whose task is being cancelled; a store that fails now leaves it to be found after a restart."""
    with suppress(SessionError):
        await asyncio.shield(asyncio.ensure_future(talk.close(turn, endings)))


def _collect_questions(outcomes: Sequence[Outcome]) -> tuple[Question, ...] | None:
    if not outcomes or not isinstance(outcomes[0], Interrupted):
        return None  # one interrupted, all interrupted
    return tuple(question for outcome in outcomes if isinstance(outcome, Interrupted) for question in outcome.questions)


def _merge_outcomes(turn: OpenTurn, settled: dict[str, Ending], outcomes: Sequence[Outcome]) -> Sequence[Ending]:
    """One outcome per call, in call order."""
    if not settled:
        return [_to_ending(outcome) for outcome in outcomes]
    found = dict(settled)
    for outcome in outcomes:
        found[outcome.call.id] = _to_ending(outcome)
    return [found[call.id] for call in turn.calls]


def _to_ending(outcome: Outcome) -> Ending:
    if isinstance(outcome, Interrupted):
        return Failed(outcome.call, Cancelled("stopped before it was done; it had not started"))
    return outcome
