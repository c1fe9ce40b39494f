"""Which calls are open, and whose they are: events name a call only by itself."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from callwright.core.call import ToolCall
from callwright.core.event import BatchBegan

Kept = TypeVar("Kept")


class OpenCall(Generic[Kept]):
    """A call between its batch's beginning and its own end, with whatever the observer keeps of it."""

    __slots__ = ("call", "kept", "session_id", "turn_id")

    def __init__(self, call: ToolCall, session_id: str, turn_id: str) -> None:
        self.call = call
        self.session_id = session_id
        self.turn_id = turn_id
        self.kept: Kept | None = None


class OpenCalls(Generic[Kept]):
    """The open calls by identity: ids are unique in a message only, and one call object may be open several times."""

    def __init__(self) -> None:
        self._open: dict[int, list[OpenCall[Kept]]] = {}

    def begin(self, batch: BatchBegan) -> None:
        """Note the calls of a batch; each of them will be told to have ended."""
        for call in batch.calls:
            self._open.setdefault(id(call), []).append(OpenCall(call, batch.session_id, batch.turn_id))

    def of(self, call: ToolCall) -> Sequence[OpenCall[Kept]]:
        """What is open of a call: nothing, if it was told to have ended before, as abandoned ones are."""
        return self._open.get(id(call), ())

    def named(self, call_id: str) -> Sequence[OpenCall[Kept]]:
        """What is open by that id, which may be calls of several sessions."""
        return [entry for entries in self._open.values() for entry in entries if entry.call.id == call_id]

    def end(self, entry: OpenCall[Kept]) -> None:
        """Forget a call."""
        entries = self._open[id(entry.call)]
        entries.remove(entry)
        if not entries:
            del self._open[id(entry.call)]

    def left_in(self, session_id: str) -> Sequence[OpenCall[Kept]]:
        """What a session that is over has left open: nothing, unless something broke between two events."""
        return [entry for entries in self._open.values() for entry in entries if entry.session_id == session_id]
