"""The transcript of a session: replays its records, and stores every message before it joins the history."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from callwright.agent.cancel_watch import CancelWatch
from callwright.agent.compaction import estimate_message_tokens
from callwright.agent.handover import Handover
from callwright.agent.replay import Ending, OpenTurn, SessionReplay, find_outcomes
from callwright.agent.results import LIMIT_KINDS, AgentEvent, Done, Paused, StopKind, Stopped, TurnEnded
from callwright.agent.run_limits import Spending
from callwright.clip import find_output_ids
from callwright.core._fast import make_constructor
from callwright.core.calls import Question, Reply, ToolCall
from callwright.core.errors import CallwrightError, describe_raised
from callwright.core.events import BatchBegan
from callwright.core.json import Json
from callwright.core.messages import NO_USAGE, AssistantMessage, History, Message, ToolMessage, Usage, UserMessage
from callwright.executor.driver import drive, is_cancelling
from callwright.sessions.base import SessionError, SessionHold
from callwright.sessions.memory import MemoryHold
from callwright.sessions.records import (
    Answered,
    Asked,
    Began,
    Compacted,
    Ended,
    Kept,
    LimitReached,
    Record,
    Said,
    Spent,
    Started,
    UndoPoint,
)

_said, _began, _outcomes = make_constructor(Said), make_constructor(Began), make_constructor(ToolMessage)
_GRACE_SECONDS = 30.0
"""How long a store may take to end a write that was cancelled."""
_NO_IDS: frozenset[str] = frozenset()
_RESTARTED = frozenset(LIMIT_KINDS) - {"seconds"}  # which each resume starts again
Emit = Callable[[AgentEvent], None]


async def wait_for_nothing() -> None:
    """End at once."""


def _retrieve(stored: "asyncio.Future[None]") -> None:
    """Take note of an error whose callers were cancelled; the next record that is to be stored raises it again."""
    if not stored.cancelled():
        stored.exception()


class Transcript:
    """A session while a run writes it. Its history is valid for every provider at any time."""

    def __init__(
        self,
        hold: SessionHold,
        spending: Spending,
        watch: CancelWatch,
        emit: Emit | None,
        handover: Handover | None = None,
    ) -> None:
        replay = SessionReplay(hold.records)
        self.hold = hold
        self._in_memory = hold if type(hold) is MemoryHold else None
        self._interruptible = getattr(hold, "interruptible", False) is True
        self.session_id = hold.session_id
        self.spending = spending
        self.watch = watch
        self.emit = emit
        self._handover = handover
        self.history = replay.history
        self.open = replay.open
        self._last: AssistantMessage | None = None
        self._used_answers = frozenset(replay.used_answers) or _NO_IDS
        self.grants = tuple(replay.grants)
        self._run_id = os.urandom(8).hex()
        """Part of turn ids, so that idempotency keys never repeat, not even in a new session of the same name."""
        self._unsaved: tuple[Record, ...] = ()
        self._run = tuple(replay.run)
        self.kept_outputs = _NO_IDS
        """Ids of whole outputs that this run has stored."""
        self.has_cut_outputs = any(find_output_ids(outcome) for outcome in find_outcomes(self.history))
        """Whether the model was given the id of an output to read."""
        self._gathered: tuple[Record, ...] = ()
        self._storing_gathered: asyncio.Future[None] | None = None
        self._failure: CallwrightError | None = None
        """Why records were not stored: what follows them would falsify the session."""
        self.tokens = 0
        """Estimated size of the history; corrected by the usage that providers report."""
        for index, message in enumerate(self.history):
            # What was reported for a message before a compaction covers messages that are gone.
            self._add_tokens(message, estimate=index < replay.compacted)

    def carry_spending(self) -> None:
        """Count what the run used before it was resumed."""
        earlier, model = Spending(self.spending.limits), ""
        for record in self._run:
            match record:
                case Said(AssistantMessage(model=model) as message):
                    earlier.count_request(message)
                case Said(ToolMessage(outcomes)):
                    earlier.count_outcomes(outcomes)
                case Compacted(_, usage):  # does not name its model: it was the last one before
                    earlier.add(usage, model)
                case Spent(usage, cost):
                    earlier.add_inner(usage, cost)
                case LimitReached(kind):
                    earlier.restart(kind)
                case _:
                    pass
        self.spending.carry(earlier)

    @property
    def corrections(self) -> int:
        """How often the run that is resumed had asked the model to correct its answer."""
        said = (record for record in self._run if isinstance(record, Said) and record.turn_id)
        return sum(isinstance(record.message, UserMessage) for record in said)

    def has_heard(self, key: str) -> bool:
        """Whether the current run began with the prompt of this key; an empty key identifies none.

        Raises:
            SessionError: It did, but another prompt followed: there is no result for this one any more.
        """
        if not key:
            return False
        keys = [record.key for record in self.hold.records if isinstance(record, Said) and record.key]
        if key not in keys:
            return False
        if not any(isinstance(record, Said) and record.key == key for record in self._run):
            raise SessionError(f"session {self.session_id!r} went on with another prompt after the one of key {key!r}")
        return True

    async def add_user_message(
        self, message: UserMessage, *, prompt: bool = True, key: str = "", point: UndoPoint | None = None
    ) -> None:
        """Add a user message; a turn that is still open is closed first.

        Args:
            message: The message.
            prompt: It begins a run; otherwise the run adds it by itself.
            key: Identifies the prompt.
            point: The state before the message, if the session can return to it.
        """
        turn, said = self.open, Said(message, "" if prompt else self._run_id, key)
        added = (said,) if point is None else (point, said)
        if turn is None:
            await self._store(*added)
        else:
            outcomes = ToolMessage(tuple(turn.abandon("not done: the user continued without it")))
            self.has_cut_outputs = self.has_cut_outputs or any(map(find_output_ids, outcomes.outcomes))
            await self._store(*self._opening_records(turn), Said(outcomes), *added)
            self._append_turn(turn, outcomes)
        self._add(message)

    async def add_reply(self, message: AssistantMessage) -> None:
        """Add a model message without calls."""
        await self._store(Said(message))
        self._add(message)
        self.spending.count_request(message)
        self._last = message

    def open_turn(self, message: AssistantMessage, calls: tuple[ToolCall, ...]) -> OpenTurn:
        """Open a turn with a model message that has calls."""
        # Not stored yet: stored together with what follows it, a turn costs one fsync less.
        self.open = turn = OpenTurn(message, f"{self._run_id}-{self.spending.turns}", calls)
        self.spending.count_request(message)
        self._last = message
        return turn

    def add_replies(self, turn: OpenTurn, replies: dict[str, Reply]) -> None:
        """Add the user's replies; the first one to a question counts, and once."""
        if fresh := self._take_replies(turn, replies):
            self._unsaved += (Answered(fresh),)

    async def record_questions(self, turn: OpenTurn, questions: Sequence[Question]) -> None:
        """Store the model's message and the questions; must return before the user is asked."""
        await self._store(*self._opening_records(turn), Asked(tuple(questions)))
        turn.add_questions(questions, paused=False)

    async def record_answers(self, turn: OpenTurn, replies: dict[str, Reply]) -> None:
        """Store the user's replies; must return before they count."""
        if fresh := self._take_replies(turn, replies):
            await self._store(*self._opening_records(turn), Answered(fresh))

    def _take_replies(self, turn: OpenTurn, replies: dict[str, Reply]) -> dict[str, Reply]:
        taken = self._used_answers.union(turn.replies)
        fresh = {key: reply for key, reply in replies.items() if key not in taken}
        turn.replies = {**turn.replies, **fresh}
        return fresh

    def record_start(self, turn: OpenTurn, began: BatchBegan) -> Awaitable[None]:
        """Store which calls are about to run; must return before they do.

        Of several calls the start of each is stored by itself, because some may have to wait for others. Nothing runs
        before the first of these starts is stored, so the turn is stored together with it, by one fsync.
        """
        digests = dict(zip([call.id for call in began.calls], began.digests, strict=True))
        each = len(digests) > 1
        turn.add_start(digests, each=each)
        if each:
            self._unsaved += (*self._opening_records(turn), Began(digests, each=True))
            return wait_for_nothing()
        return self._store(*self._opening_records(turn), _began(digests, False))

    def is_on_record(self, turn: OpenTurn) -> bool:
        """Whether the start of a turn of several calls is stored: one that repeats them then uses the same keys."""
        return bool(turn.begun) and not self._unsaved and self._failure is None

    async def record_call_start(self, turn: OpenTurn, call_id: str) -> None:
        """Store that one call is about to run; must return before it does. Calls that start together share one fsync.

        Raises:
            SessionError: This start, or that of an earlier call, could not be stored.
        """
        await self._store_gathered(turn, Started((call_id,)))
        turn.begun = turn.begun.union((call_id,))

    async def _store_gathered(self, turn: OpenTurn, record: Record) -> None:
        """Store a record together with those that others store at the same time; it is stored on return."""
        self._gathered += (record,)
        if self._storing_gathered is None:
            self._storing_gathered = asyncio.ensure_future(self._store_all_gathered(turn))
            self._storing_gathered.add_done_callback(_retrieve)
        await asyncio.shield(self._storing_gathered)

    async def _store_all_gathered(self, turn: OpenTurn) -> None:
        await asyncio.sleep(0)  # the others that store something now
        gathered, self._gathered, self._storing_gathered = self._gathered, (), None
        started = tuple(call_id for record in gathered if isinstance(record, Started) for call_id in record.call_ids)
        starts = [Started(started)] if started else []
        notes = [record for record in gathered if not isinstance(record, Started)]
        await self._store(*self._opening_records(turn), *starts, *notes)

    def note(self, record: Record) -> None:
        """Add a record without waiting, after those that wait to be stored."""
        if self._unsaved:
            self._unsaved += (record,)
        elif self._failure is None and not self._is_given_up():
            self.hold.note(record)

    def fail(self, error: SessionError) -> None:
        """Store nothing more, because the session of an agent inside a call could not be stored.

        The outcome of that call does not say what the agent has done. Resumed, both sessions go on where they were.
        """
        self._failure = self._failure or error

    async def keep(self, path: str, note: Json, wait: bool) -> None:
        """Store a note of a running tool; with `wait`, it is stored on return. Notes that wait share one fsync."""
        turn = self.open
        if turn is None:  # an abandoned tool, whose call has its outcome
            return
        turn.add_note(path, note)
        if wait:
            await self._store_gathered(turn, Kept(path, note))
        else:
            self._unsaved += self._opening_records(turn)  # a note before its turn would not be found again
            self.note(Kept(path, note))

    async def record_restart(self, turn: OpenTurn, call_id: str) -> None:
        """Store that a call which asked while it ran is about to run again; must return before it does."""
        if turn.digests is not None and call_id in turn.digests:
            await self._store(Began({call_id: turn.digests[call_id]}))
            turn.end_waiting((call_id,))

    async def pause(self, turn: OpenTurn, questions: tuple[Question, ...], ended: Sequence[Ending] = ()) -> Paused:
        """Store the questions, and the outcomes of calls that have ended; return the result of the paused run."""
        fresh = [outcome for outcome in ended if outcome.call.id not in turn.ended]
        inner = {question.within for question in questions if question.within}
        known = turn.questions.keys() >= {question.id for question in questions} and turn.waiting.keys() >= inner
        asked = () if known else (Asked(questions, paused=bool(inner)),)
        if fresh or asked or self._unsaved:
            await self._store(*self._opening_records(turn), *map(Ended, fresh), *asked)
        turn.ended = {**turn.ended, **{outcome.call.id: outcome for outcome in fresh}}
        turn.add_questions(questions, paused=True)
        spent = self.spending
        return Paused(questions, spent.usage, self.session_id, spent.turns, spent.known_cost)

    def close_at_once(self, turn: OpenTurn, outcomes: Sequence[Ending]) -> bool:
        """Close a turn of a session in memory of which nothing is stored yet; False if that is not what it is."""
        if self._in_memory is None or turn.stored or self._unsaved or self._failure or self._handover is not None:
            return False
        message = _outcomes(tuple(outcomes))
        if not self._in_memory.keep_turn(turn.message, turn.turn_id, message):
            return False
        self._append_turn(turn, message)
        if self.emit is not None:
            self.emit_turn_end()
        return True

    async def close_turn(self, turn: OpenTurn, outcomes: Sequence[Ending]) -> None:
        """Store the outcomes, then add the turn to the history."""
        message = _outcomes(tuple(outcomes))
        await self._store(*self._opening_records(turn), _said(message, "", ""))
        self._append_turn(turn, message)
        self.emit_turn_end()

    async def compact(self, history: History, usage: Usage) -> None:
        """Replace the history with a shorter one; `usage`, which made it, is already counted."""
        await self._store(Compacted(tuple(history), usage))
        # the system prompt and the tools, which the provider counted too, stay as large as they were
        beside = max(0, self.tokens - sum(map(estimate_message_tokens, self.history)))
        self.history, self.tokens = history, beside + sum(map(estimate_message_tokens, history))

    def emit_event(self, event: AgentEvent) -> None:
        """Pass an event to the consumer of a streamed run."""
        if self.emit is not None:
            self.emit(event)

    def emit_turn_end(self) -> None:
        """Pass what the run has used by the end of a turn to the consumer of a streamed run."""
        if self.emit is not None:
            self.emit(TurnEnded(self.spending.usage, self.spending.turns, self.spending.known_cost))

    def finish(self, text: str, output: object = None) -> Done:
        """Return the result of a run whose model has answered."""
        spent = self.spending
        return Done(text, spent.usage, self.session_id, output, spent.turns, spent.known_cost)

    def stop(self, kind: StopKind, reason: str, last: AssistantMessage | None = None) -> Stopped:
        """Return the result of a run that ended early; a limit that was reached is put on record.

        `last` is the model's last message if it is not of this run.
        """
        if kind in _RESTARTED:
            self.note(LimitReached(kind))
        last = last or self._last
        last_text = "" if last is None else last.text
        spent = self.spending
        return Stopped(reason, kind, spent.usage, self.session_id, last_text, spent.turns, spent.known_cost)

    def _opening_records(self, turn: OpenTurn) -> tuple[Record, ...]:
        if turn.stored:
            return ()
        turn.stored = True
        return (_said(turn.message, turn.turn_id, ""),)

    def _append_turn(self, turn: OpenTurn, outcomes: ToolMessage) -> None:
        if turn.replies:
            self._used_answers = self._used_answers.union(turn.replies)
        self.open = None
        self.history.extend((turn.message, outcomes))
        self._add_tokens(turn.message)
        self.tokens += estimate_message_tokens(outcomes)

    def _store(self, *records: Record) -> Awaitable[None]:
        if self._unsaved:
            records = (*self._unsaved, *records)
            self._unsaved = ()
        return self._append(*records)

    def _is_given_up(self) -> bool:
        return self._handover is not None and self._handover.given_up

    async def _append(self, *records: Record) -> None:
        """Store records; whatever a store raises is a `SessionError`, and the last that is asked of it."""
        if self._failure is not None:
            raise self._failure
        if self._is_given_up():
            raise SessionError(f"session {self.session_id!r} is continued by another process")
        appending = self.hold.append(*records)
        try:
            await (appending if self._interruptible else drive(appending, _GRACE_SECONDS))
        except CallwrightError as error:
            self._failure = error
            raise
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelling():
                raise
            reason = f"session {self.session_id!r} was not stored: {describe_raised(error)}"
            self._failure = SessionError(reason)
            raise self._failure from error

    def _add(self, message: Message) -> None:
        self.history.append(message)
        self._add_tokens(message)

    def _add_tokens(self, message: Message, *, estimate: bool = False) -> None:
        usage = message.usage if isinstance(message, AssistantMessage) and not estimate else NO_USAGE
        if usage is not NO_USAGE and (reported := usage.total):
            self.tokens = reported  # covers everything up to this message, so it replaces the sum
        else:
            self.tokens += estimate_message_tokens(message)
