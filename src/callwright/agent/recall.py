"""A conversation as its records tell it: what was said, and the turn that was still open."""

from collections.abc import Iterable, Mapping, Sequence

from callwright.core.call import Completed, Failed, Reply, ToolCall
from callwright.core.errors import Cancelled
from callwright.core.history import History
from callwright.core.message import AssistantMessage, Message, ToolMessage
from callwright.sessions.records import Answered, Began, Compacted, Ended, Record, Said

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


class Recalled:
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


def unanswered(messages: Sequence[object]) -> list[str]:
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
