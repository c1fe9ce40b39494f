"""Knows when the last call of a turn has ended, which no single call can tell."""

from dataclasses import dataclass, field
from typing import TypeAlias

from callwright.core.call import ToolCall
from callwright.core.event import BatchBegan, CallEnded, Event

Entry: TypeAlias = dict[str, object]


@dataclass(slots=True)
class _Batch:
    waiting: set[int]
    ended: list[Entry] = field(default_factory=list[Entry])


class Batches:
    """The turns whose calls are under way; told of them as an observer."""

    def __init__(self) -> None:
        self._of_call: dict[int, _Batch] = {}

    def observe(self, event: Event) -> None:
        """Hear of calls that begin together, and of those that end without hooks being asked."""
        if isinstance(event, BatchBegan):
            batch = _Batch({id(call) for call in event.calls})
            self._of_call.update(dict.fromkeys(batch.waiting, batch))
        elif isinstance(event, CallEnded):
            batch = self._of_call.pop(id(event.outcome.call), None)
            if batch is not None:
                batch.waiting.discard(id(event.outcome.call))

    def ended(self, call: ToolCall, entry: Entry) -> list[Entry] | None:
        """Note a call's end; the calls that were made together, if this was the last of them."""
        batch = self._of_call.get(id(call))
        if batch is None:
            return None
        batch.waiting.discard(id(call))
        batch.ended.append(entry)
        return None if batch.waiting else batch.ended
