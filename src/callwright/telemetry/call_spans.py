"""The spans of calls.

Which calls are open, and whose they are: events name a call only by itself.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from opentelemetry.trace import Span, Tracer, get_current_span

from callwright.core.calls import Completed, Failed, Interrupted, ToolCall
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallRetried, QuestionsRaised
from callwright.core.run_events import RunEnded
from callwright.telemetry import attributes as names
from callwright.telemetry.content import Content
from callwright.telemetry.metrics import Metrics
from callwright.telemetry.run_spans import CurrentSpan, end_span, note_retry

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


class CallSpans:
    """Open calls; one that never ran gets its span, without length, when it ends."""

    def __init__(self, tracer: Tracer, metrics: Metrics, content: Content | None) -> None:
        self._tracer = tracer
        self._metrics = metrics
        self._content = content
        self._calls: OpenCalls[CurrentSpan] = OpenCalls()

    def batch_began(self, event: BatchBegan) -> None:
        """Remember whose calls these are."""
        self._calls.begin(event)

    def asked(self, event: QuestionsRaised) -> None:
        """Note on the surrounding span what a person is asked; nothing has run."""
        for question in event.questions:
            about = {names.TOOL: question.tool, names.CALL: question.call_id, names.QUESTION: question.kind}
            get_current_span().add_event("question", about)

    def began(self, event: CallBegan) -> None:
        """Open a call's span."""
        for entry in self._calls.of(event.call):
            if entry.kept is None:
                entry.kept = CurrentSpan(self._span(entry))
                return

    def retried(self, event: CallRetried) -> None:
        """Note a failed attempt."""
        entry = self._found(event.call)
        if entry is not None and entry.kept is not None:
            note_retry(entry.kept.span, event.error.code, event.attempt, event.delay_seconds)

    def ended(self, event: CallEnded) -> None:
        """Close it, or make one for a call that was refused; a call that was abandoned may end twice."""
        outcome = event.outcome
        entry = self._found(outcome.call)
        if entry is None or isinstance(outcome, Interrupted):
            return
        self._calls.end(entry)
        self._close(entry, outcome)
        self._metrics.call(outcome, None if entry.kept is None else entry.kept.seconds)

    def abandoned(self, event: RunEnded) -> None:
        """Close what a run that broke down has left open."""
        for entry in self._calls.left_in(event.began.session_id):
            self._calls.end(entry)
            if entry.kept is not None:
                entry.kept.close(names.UNKNOWN)

    def _found(self, call: ToolCall) -> OpenCall[CurrentSpan] | None:
        """The open call that is meant; of several, the one that what runs now is inside of.

        A hook may put an outcome in the place of another and make up the call in it; then that is the one.
        """
        entries = self._calls.of(call)
        if len(entries) == 1:
            return entries[0]
        around = (entry for entry in entries or self._calls.named(call.id) if entry.kept and entry.kept.innermost)
        return next(around, next(iter(entries), None))

    def _span(self, entry: OpenCall[CurrentSpan]) -> Span:
        call = entry.call
        attributes: dict[str, Any] = {
            names.OPERATION: "execute_tool",
            names.TOOL: call.name,
            names.TOOL_TYPE: "function",
            names.CALL: call.id,
        }
        if entry.session_id:
            attributes[names.CONVERSATION] = entry.session_id
            attributes[names.TURN] = entry.turn_id
        if self._content is not None:
            attributes[names.ARGUMENTS] = self._content.arguments(call)
        return self._tracer.start_span(f"execute_tool {call.name}", attributes=attributes)

    def _close(self, entry: OpenCall[CurrentSpan], outcome: Completed | Failed) -> None:
        span = self._span(entry) if entry.kept is None else entry.kept.span
        failed = isinstance(outcome, Failed)
        span.set_attribute(names.ATTEMPTS, outcome.attempts)
        span.set_attribute(names.STARTED, outcome.started if failed else outcome.attempts > 0)
        if self._content is not None:
            span.set_attribute(names.RESULT, self._content.outcome(outcome))
        code = outcome.error.code if failed else ""
        said = self._content.outcome(outcome) if failed and self._content is not None else ""
        if failed and outcome.error.__cause__ is not None:
            span.add_event("exception", {names.EXCEPTION: type(outcome.error.__cause__).__qualname__})
        if entry.kept is None:
            end_span(span, code, said)
        else:
            entry.kept.close(code, said)
