"""One run's hold on a conversation: everything that joins the history passes through here, stored first."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from callwright.agent.budget import Spending
from callwright.agent.recall import Ending, OpenTurn, Recalled
from callwright.agent.result import AgentEvent, Done, Paused, StopKind, Stopped, TurnEnded
from callwright.agent.size import message_tokens
from callwright.agent.watch import Watch
from callwright.core.call import Question, Reply, ToolCall
from callwright.core.event import BatchBegan
from callwright.core.history import History
from callwright.core.message import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from callwright.core.value import maker
from callwright.sessions.base import SessionHold
from callwright.sessions.records import Answered, Asked, Began, Compacted, Record, Said

_said, _outcomes = maker(Said), maker(ToolMessage)
Emit = Callable[[AgentEvent], None]


class Talk:
    """A conversation while a run writes it. Its history is valid at every moment."""

    def __init__(self, hold: SessionHold, spending: Spending, watch: Watch, emit: Emit | None) -> None:
        recalled = Recalled(hold.records)
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
            self.tokens += message_tokens(message)


def with_unique_ids(message: AssistantMessage) -> AssistantMessage:
    """Give every call of a message an id of its own, where a model repeated one or gave none."""
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    if not ids or (all(ids) and (len(ids) == 1 or len(set(ids)) == len(ids))):
        return message
    taken: set[str] = set()
    parts = [_renamed(part, taken) if isinstance(part, ToolCall) else part for part in message.parts]
    return replace(message, parts=tuple(parts))


def _renamed(call: ToolCall, taken: set[str]) -> ToolCall:
    wish = call.id or "call"
    found, count = wish, 1
    while found in taken or not found:
        count += 1
        found = f"{wish}-{count}"
    taken.add(found)
    return call if found == call.id else replace(call, id=found)
