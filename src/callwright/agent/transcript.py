"""A conversation as its records tell it: what was said, and the turn that was still open.

One run's hold on a conversation: everything that joins the history passes through here, stored first.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from callwright.agent.cancel_watch import CancelWatch
from callwright.agent.compaction import estimate_message_tokens
from callwright.agent.results import AgentEvent, Done, Paused, StopKind, Stopped, TurnEnded
from callwright.agent.run_limits import Spending
from callwright.core._fast import maker
from callwright.core.calls import Completed, Failed, Question, Reply, ToolCall
from callwright.core.errors import Cancelled
from callwright.core.events import BatchBegan
from callwright.core.messages import AssistantMessage, History, Message, ToolMessage, Usage, UserMessage
from callwright.sessions.base import SessionHold
from callwright.sessions.records import Answered, Asked, Began, Compacted, Ended, Record, Said

Ending = Completed | Failed


class OpenTurn:
    """A model's message whose calls have no outcomes yet; not part of the history before they have."""

    __slots__ = ("calls", "digests", "ended", "message", "replies", "stored", "turn_id")

    def __init__(
        self, message: AssistantMessage, turn_id: str, calls: tuple[ToolCall, ...], *, stored: bool = False
    ) -> None:
        self.message = message
        self.turn_id = turn_id
        self.calls = calls
        self.stored = stored
        self.digests: Mapping[str, str] | None = None
        """What was about to run, once it was."""
        self.ended: dict[str, Ending] = {}
        self.replies: dict[str, Reply] = {}

    def abandoned(self, why: str) -> list[Ending]:
        """An outcome for every call, although none will run any more."""
        return [self.ended.get(call.id) or self.lost(call, why) for call in self.calls]

    def lost(self, call: ToolCall, why: str) -> Failed:
        """The outcome of a call nobody saw the end of."""
        if self.digests is not None and call.id in self.digests:
            return Failed(call, Cancelled(f"{why}; it had started, so it may have had an effect"), started=True)
        return Failed(call, Cancelled(f"{why}; it had not started"))


class SessionReplay:
    """What a session's records come to."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.history = History()
        self.open: OpenTurn | None = None
        self.spent: set[str] = set()
        """Questions whose answers have been used: an answer counts once, also after a restart."""
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        match record:
            case Said(message, turn_id):
                self._hear(message, turn_id)
            case Compacted(messages):
                self.history = History(messages)
            case _ if self.open is not None:
                self._learn(self.open, record)
            case _:
                pass

    def _hear(self, message: Message, turn_id: str) -> None:
        if isinstance(message, AssistantMessage) and message.calls:
            self.open = OpenTurn(message, turn_id, message.calls, stored=True)
            return
        if isinstance(message, ToolMessage):
            if self.open is None:  # outcomes of nothing: no provider would take them
                return
            self.history.append(self.open.message)
            self.spent.update(self.open.replies)
            self.open = None
        self.history.append(message)

    def _learn(self, turn: OpenTurn, record: Record) -> None:
        match record:
            case Answered(replies):
                turn.replies.update(replies)
            case Began(digests):
                turn.digests = digests
            case Ended(outcome):
                turn.ended[outcome.call.id] = outcome
            case _:
                pass


def find_history_faults(messages: Sequence[object]) -> list[str]:
    """What is wrong with a history a provider is shown: calls without outcomes, outcomes without calls."""
    faults: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            given = [outcome.call.id for outcome in message.outcomes]
            if given != waiting:
                faults.append(f"message {place} has outcomes for {given}, the calls were {waiting}")
            waiting = []
            continue
        if waiting:
            faults.append(f"message {place} comes before the outcomes of {waiting}")
        waiting = [call.id for call in message.calls] if isinstance(message, AssistantMessage) else []
    return [*faults, f"the last calls have no outcomes: {waiting}"] if waiting else faults


_said, _outcomes = maker(Said), maker(ToolMessage)
Emit = Callable[[AgentEvent], None]


class Transcript:
    """A conversation while a run writes it. Its history is valid at every moment."""

    def __init__(self, hold: SessionHold, spending: Spending, watch: CancelWatch, emit: Emit | None) -> None:
        recalled = SessionReplay(hold.records)
        self.hold = hold
        self.session_id = hold.session_id
        self.spending = spending
        self.watch = watch
        self.emit = emit
        self.history = recalled.history
        self.open = recalled.open
        self._last: AssistantMessage | None = None
        self._spent = recalled.spent
        self._run_id = secrets.token_hex(8)
        """Makes the turns of this run unlike those of any other, also of a deleted session of the same name."""
        self._unsaved: list[Record] = []
        self.tokens = 0
        """About how much of a model's context the history takes; what providers count replaces what we guess."""
        for message in self.history:
            self._weigh(message)

    async def hear(self, message: UserMessage) -> None:
        """Take in what a person said; a turn that was still open is closed first."""
        turn = self.open
        if turn is None:
            await self._store(Said(message))
        else:
            outcomes = ToolMessage(tuple(turn.abandoned("not done: the conversation went on without it")))
            await self._store(*self._opening(turn), Said(outcomes), Said(message))
            self._join(turn, outcomes)
        self._add(message)

    async def say(self, message: AssistantMessage) -> None:
        """Take in a model's message that calls nothing."""
        await self._store(Said(message))
        self._add(message)
        self._count(message)

    def propose(self, message: AssistantMessage, calls: tuple[ToolCall, ...]) -> OpenTurn:
        """Begin a turn with a model's message that makes calls; it is stored with what becomes of it."""
        self.open = turn = OpenTurn(message, f"{self._run_id}-{self.spending.turns}", calls)
        self._count(message)
        return turn

    def answer(self, turn: OpenTurn, replies: dict[str, Reply]) -> None:
        """Take in a person's replies; those that were used in an earlier turn do not count again."""
        fresh = {key: reply for key, reply in replies.items() if key not in self._spent}
        turn.replies.update(fresh)
        if fresh:
            self._unsaved.append(Answered(fresh))

    async def begin(self, turn: OpenTurn, began: BatchBegan) -> None:
        """Store what is about to run, before it does."""
        digests = dict(zip([call.id for call in began.calls], began.digests, strict=True))
        await self._store(*self._opening(turn), Began(digests))
        turn.digests = digests

    async def pause(self, turn: OpenTurn, questions: tuple[Question, ...]) -> Paused:
        """Store that a person is being waited for."""
        await self._store(*self._opening(turn), Asked(questions))
        spent = self.spending
        return Paused(questions, spent.usage, self.session_id, spent.turns, spent.known_cost)

    async def close(self, turn: OpenTurn, outcomes: Sequence[Ending]) -> None:
        """Store the outcomes; only then does the turn become part of the history."""
        message = _outcomes(tuple(outcomes))
        if self._unsaved or turn.stored:
            await self._store(*self._opening(turn), _said(message, ""))
        else:
            await self.hold.append(_said(turn.message, turn.turn_id), _said(message, ""))
        self._join(turn, message)
        if self.emit is not None:
            self.emit(TurnEnded(self.spending.usage, self.spending.turns, self.spending.known_cost))

    async def compact(self, history: History, usage: Usage) -> None:
        """Go on from a shorter history."""
        await self._store(Compacted(tuple(history), usage))
        self.spending.add(usage)
        self.history, self.tokens = history, 0
        for message in history:
            self._weigh(message, guess=True)

    def tell(self, event: AgentEvent) -> None:
        """Let whoever streams this run know."""
        if self.emit is not None:
            self.emit(event)

    def done(self, text: str, output: object = None) -> Done:
        """The result of a run that came to its end."""
        spent = self.spending
        return Done(text, spent.usage, self.session_id, output, spent.turns, spent.known_cost)

    def stopped(self, kind: StopKind, reason: str) -> Stopped:
        """The result of a run that did not."""
        said = "" if self._last is None else self._last.text
        spent = self.spending
        return Stopped(reason, kind, spent.usage, self.session_id, said, spent.turns, spent.known_cost)

    def _opening(self, turn: OpenTurn) -> list[Record]:
        if turn.stored:
            return []
        turn.stored = True
        return [Said(turn.message, turn.turn_id)]

    def _join(self, turn: OpenTurn, outcomes: ToolMessage) -> None:
        self._spent.update(turn.replies)
        self.open = None
        self._add(turn.message)
        self._add(outcomes)

    async def _store(self, *records: Record) -> None:
        if self._unsaved:
            records = (*self._unsaved, *records)
            self._unsaved = []
        await self.hold.append(*records)

    def _count(self, message: AssistantMessage) -> None:
        self.spending.turns += 1
        self.spending.add(message.usage)
        self._last = message

    def _add(self, message: Message) -> None:
        self.history.append(message)
        self._weigh(message)

    def _weigh(self, message: Message, *, guess: bool = False) -> None:
        if isinstance(message, AssistantMessage) and message.usage.total and not guess:
            self.tokens = message.usage.total
        else:
            self.tokens += estimate_message_tokens(message)


def ensure_unique_ids(message: AssistantMessage) -> AssistantMessage:
    """Give every call of a message an id of its own, where a model repeated one or gave none."""
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    if not ids or (all(ids) and (len(ids) == 1 or len(set(ids)) == len(ids))):
        return message
    taken: set[str] = set()
    parts = [_assign_free_id(part, taken) if isinstance(part, ToolCall) else part for part in message.parts]
    return replace(message, parts=tuple(parts))


def _assign_free_id(call: ToolCall, taken: set[str]) -> ToolCall:
    wish = call.id or "call"
    found, count = wish, 1
    while found in taken or not found:
        count += 1
        found = f"{wish}-{count}"
    taken.add(found)
    return call if found == call.id else replace(call, id=found)
