"""The calls that have not ended, with their session and turn; events identify a call only by its object.

Not part of `spans`, which imports OpenTelemetry: the log must work without it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

from callwright.core.calls import ToolCall
from callwright.core.events import BatchBegan

Kept = TypeVar("Kept")


class OpenCall(Generic[Kept]):
    """A call that has not ended, with the value an observer attached to it."""

    __slots__ = ("call", "kept", "session_id", "turn_id")

    def __init__(self, call: ToolCall, session_id: str, turn_id: str) -> None:
        self.call = call
        self.session_id = session_id
        self.turn_id = turn_id
        self.kept: Kept | None = None


class OpenCalls(Generic[Kept]):
    """Open calls, by the identity of the call object.

    Call ids are unique within one message only, and one call object may be open several times.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[OpenCall[Kept]]] = {}
        self._runs: Counter[str] = Counter()

    def begin_run(self, session_id: str) -> None:
        """Count a run of a session: agents with stores of their own may run sessions of one name at once."""
        self._runs[session_id] += 1

    def end_run(self, session_id: str) -> Sequence[OpenCall[Kept]]:
        """Remove and return the calls whose end was never reported; none while another run has the same session id."""
        self._runs[session_id] -= 1
        if self._runs[session_id] > 0:
            return ()
        del self._runs[session_id]
        now = list(self._open.values())  # a copy: runs in other threads begin and end calls meanwhile
        left = [entry for entries in now for entry in entries if entry.session_id == session_id]
        for entry in left:
            self.end(entry)
        return left

    def begin(self, batch: BatchBegan) -> None:
        """Add the calls of a batch; a `CallEnded` event follows for each."""
        for call in batch.calls:
            self._open.setdefault(id(call), []).append(OpenCall(call, batch.session_id, batch.turn_id))

    def find(self, call: ToolCall) -> Sequence[OpenCall[Kept]]:
        """Return the open entries of a call; none if it has ended, as an abandoned call may do twice."""
        return self._open.get(id(call), ())

    def end(self, entry: OpenCall[Kept]) -> None:
        """Remove a call."""
        entries = self._open[id(entry.call)]
        entries.remove(entry)
        if not entries:
            del self._open[id(entry.call)]
