"""The state of a session, replayed from its records (history, open turn, approvals)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from callwright.core.calls import Approve, Completed, Failed, Question, Reply, ToolCall
from callwright.core.errors import Cancelled
from callwright.core.json import FrozenDict, Json
from callwright.core.messages import AssistantMessage, History, Message, ToolMessage, UserMessage
from callwright.sessions.records import (
    Answered,
    Asked,
    Began,
    Compacted,
    Ended,
    Kept,
    Record,
    Rewound,
    Said,
    Started,
    follow_rewinds,
    is_prompt,
)

Ending = Completed | Failed


def find_outcomes(messages: Iterable[Message]) -> Iterator[Ending]:
    """Yield the outcomes in a history."""
    return (outcome for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes)


def ensure_unique_ids(message: AssistantMessage) -> AssistantMessage:
    """Give every call of a message a unique id; some models repeat ids or leave them out."""
    calls = message.calls
    if not calls or (len(calls) == 1 and calls[0].id):
        return message
    ids = {call.id for call in calls}
    if "" not in ids and len(ids) == len(calls):
        return message
    taken: set[str] = set()
    parts = [_assign_free_id(part, taken) if isinstance(part, ToolCall) else part for part in message.parts]
    return replace(message, parts=tuple(parts))


def _assign_free_id(call: ToolCall, taken: set[str]) -> ToolCall:
    preferred = call.id or "call"
    found, count = preferred, 1
    while found in taken or not found:
        count += 1
        found = f"{preferred}-{count}"
    taken.add(found)
    return call if found == call.id else replace(call, id=found)


_NOTHING: Mapping[str, Any] = FrozenDict()
_NO_IDS: frozenset[str] = frozenset()


class OpenTurn:
    """A model message whose calls have no outcomes yet; it joins the history together with them.

    What most turns never have, such as questions, is an empty value that all turns share until a turn has it.
    """

    __slots__ = (
        "begun",
        "calls",
        "digests",
        "ended",
        "kept",
        "message",
        "questions",
        "replies",
        "stored",
        "turn_id",
        "waiting",
    )

    def __init__(
        self, message: AssistantMessage, turn_id: str, calls: tuple[ToolCall, ...], *, stored: bool = False
    ) -> None:
        self.message = message
        self.turn_id = turn_id
        self.calls = calls
        self.stored = stored
        self.digests: Mapping[str, str] | None = None
        """What was about to run, by call id; None before the calls were started."""
        self.begun = _NO_IDS
        """Ids of the calls whose start is on record."""
        self.ended: Mapping[str, Ending] = _NOTHING
        self.kept: dict[str, list[Json]] | None = None
        """Notes of running tools, by the path of the call."""
        self.replies: Mapping[str, Reply] = _NOTHING
        self.questions: Mapping[str, Question] = _NOTHING
        """The questions of this turn that are on record, by id."""
        self.waiting: Mapping[str, tuple[Question, ...]] = _NOTHING
        """What calls asked while they ran, themselves or by a call inside, by call id; with the answers they go on."""

    def add_questions(self, questions: Sequence[Question], *, paused: bool) -> None:
        """Add questions that are on record; unless `paused`, a call inside which one was asked still runs."""
        self.questions = {**self.questions, **{question.id: question for question in questions}}
        waiting: dict[str, tuple[Question, ...]] = {}
        for question in questions:
            call_id = question.within or question.call_id
            waits = (paused or call_id in self.waiting) if question.within else question.running
            if waits:
                waiting[call_id] = (*waiting.get(call_id, ()), question)
        if waiting:
            self.waiting = {**self.waiting, **waiting}

    def end_waiting(self, call_ids: Iterable[str]) -> None:
        """Note that calls run again."""
        if self.waiting:
            self.waiting = {call_id: asked for call_id, asked in self.waiting.items() if call_id not in call_ids}

    def add_start(self, digests: Mapping[str, str], *, each: bool) -> None:
        """Add that calls are about to run; with `each`, the start of every single one is still to come."""
        self.digests = digests if self.digests is None else {**self.digests, **digests}
        if not each:
            self.begun = self.begun.union(digests)
        self.end_waiting(digests)

    def add_note(self, path: str, note: Json) -> None:
        """Add a note of a running tool."""
        if self.kept is None:
            self.kept = {}
        self.kept.setdefault(path, []).append(note)

    def abandon(self, why: str) -> list[Ending]:
        """Return an outcome for every call, without running any."""
        return [self.ended.get(call.id) or self.fail_unfinished(call, why) for call in self.calls]

    def fail_unfinished(self, call: ToolCall, why: str) -> Failed:
        """Return the outcome of a call that has no recorded end."""
        if call.id in self.begun or call.id in self.waiting:
            return Failed(call, Cancelled(f"{why}; it had started, so it may have had an effect"), started=True)
        return Failed(call, Cancelled(f"{why}; it had not started"))


class SessionReplay:
    """The state of a session, replayed from its records; those that were rewound do not count."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.history = History()
        self.open: OpenTurn | None = None
        self.used_answers: set[str] = set()
        """Ids of questions whose answers were used: an answer counts once, also after a restart."""
        self.compacted = 0
        """How many messages at the beginning of the history a compaction kept."""
        self.grants: list[tuple[Question, Approve]] = []
        """Approvals for longer than once, of calls that began: they hold for the rest of the session."""
        self._asked: dict[str, Question] = {}
        self._lasting: dict[str, tuple[Question, Approve]] = {}
        self.run: list[Record] = []
        """The records since the last prompt: what the run used that may be resumed now."""
        counting = follow_rewinds(records)
        for index in counting:
            self._apply(records[index])
        if len(counting) < len(records):  # an answer that was rewound was used all the same
            replies = (record.replies for record in records if isinstance(record, Answered))
            self.used_answers.update(key for each in replies for key in each)
            self.used_answers.difference_update(() if self.open is None else self.open.replies)

    def _apply(self, record: Record) -> None:
        if is_prompt(record):
            self.run.clear()
        self.run.append(record)
        self._collect_grants(record)
        match record:
            case Said(message, turn_id):
                self._apply_message(message, turn_id)
            case Compacted(messages):
                self.history, self.compacted = History(messages), len(messages)
            case Rewound(note=note):
                if note:
                    self.history.append(UserMessage(note))
            case _ if self.open is not None:
                self._apply_to_turn(self.open, record)
            case _:
                pass

    def _collect_grants(self, record: Record) -> None:
        """Keep an approval for longer if the call it was given for began: only then it had counted."""
        match record:
            case Asked(questions):
                self._asked.update({question.id: question for question in questions})
            case Answered(replies):
                for key, reply in replies.items():
                    question = self._asked.get(key)
                    if question is not None and not question.running:
                        # a later answer about the same call replaces an earlier one, which may have expired
                        self._lasting.pop(question.call_id, None)
                        if isinstance(reply, Approve) and reply.scope != "once" and reply.arguments is None:
                            self._lasting[question.call_id] = (question, reply)
            case Began(digests):
                self.grants += [self._lasting[call_id] for call_id in digests if call_id in self._lasting]
            case Said(ToolMessage()):
                self._asked.clear()
                self._lasting.clear()
            case _:
                pass

    def _apply_message(self, message: Message, turn_id: str) -> None:
        if isinstance(message, AssistantMessage) and message.calls:
            self.open = OpenTurn(message, turn_id, message.calls, stored=True)
            return
        if isinstance(message, ToolMessage):
            if self.open is None:  # providers reject outcomes without calls
                return
            self.history.append(self.open.message)
            self.used_answers.update(self.open.replies)
            self.open = None
        self.history.append(message)

    def _apply_to_turn(self, turn: OpenTurn, record: Record) -> None:
        match record:
            case Asked(questions, paused):
                turn.add_questions(questions, paused=paused)
            case Answered(replies):
                turn.replies = {**turn.replies, **replies}
            case Began(digests, each):
                turn.add_start(digests, each=each)
            case Started(call_ids):
                turn.begun = turn.begun.union(call_ids)
            case Ended(outcome):
                turn.ended = {**turn.ended, outcome.call.id: outcome}
            case Kept(path, note):
                turn.add_note(path, note)
            case _:
                pass
