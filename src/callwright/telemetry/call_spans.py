"""The spans of tool calls."""

from typing import Any

from opentelemetry.trace import Span, Tracer, get_current_span

from callwright.core.calls import Completed, Failed, Interrupted, ToolCall
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallRetried, QuestionsRaised
from callwright.core.run_events import RunEnded
from callwright.telemetry import attributes as names
from callwright.telemetry.content import Content
from callwright.telemetry.metrics import Metrics
from callwright.telemetry.open_calls import OpenCall, OpenCalls
from callwright.telemetry.run_spans import CurrentSpan, end_span, note_retry


class CallSpans:
    """Creates a span per call; a call that never ran gets one without duration when it ends."""

    def __init__(self, tracer: Tracer, metrics: Metrics, content: Content | None) -> None:
        self._tracer = tracer
        self._metrics = metrics
        self._content = content
        self._calls: OpenCalls[CurrentSpan] = OpenCalls()

    def begin_batch(self, event: BatchBegan) -> None:
        """Record the session and the turn of the calls."""
        self._calls.begin(event)

    def add_questions(self, event: QuestionsRaised) -> None:
        """Add approval requests as events to the surrounding span; their calls have no span yet."""
        for question in event.questions:
            about = {names.TOOL: question.tool, names.CALL: question.call_id, names.QUESTION: question.kind}
            get_current_span().add_event("question", about)

    def begin_call(self, event: CallBegan) -> None:
        """Start the span of a call."""
        for entry in self._calls.find(event.call):
            if entry.kept is None:
                entry.kept = CurrentSpan(self._start_span(entry))
                return

    def add_retry(self, event: CallRetried) -> None:
        """Add a failed attempt as an event to the call's span."""
        entry = self._find_entry(event.call)
        if entry is not None and entry.kept is not None:
            note_retry(entry.kept.span, event.error.code, event.attempt, event.delay_seconds)

    def end_call(self, event: CallEnded) -> None:
        """End the span; create it first for a call that never ran. The second end of an abandoned call is ignored."""
        outcome = event.outcome
        entry = self._find_entry(outcome.call)
        if entry is None or isinstance(outcome, Interrupted):
            return
        self._calls.end(entry)
        self._end_span(entry, outcome)
        self._metrics.record_call(outcome, None if entry.kept is None else entry.kept.seconds)

    def end_abandoned(self, event: RunEnded) -> None:
        """End the spans that a failed run has left open."""
        for entry in self._calls.find_by_session(event.began.session_id):
            self._calls.end(entry)
            if entry.kept is not None:
                entry.kept.close(names.UNKNOWN)

    def _find_entry(self, call: ToolCall) -> OpenCall[CurrentSpan] | None:
        """Return the open entry of a call; of several, the one whose span is current."""
        entries = self._calls.find(call)
        if len(entries) == 1:
            return entries[0]
        # A hook may replace an outcome by one with a call object of its own; then only the id can identify it.
        current = (entry for entry in entries or self._calls.find_by_id(call.id) if entry.kept and entry.kept.innermost)
        return next(current, next(iter(entries), None))

    def _start_span(self, entry: OpenCall[CurrentSpan]) -> Span:
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
            attributes[names.ARGUMENTS] = self._content.render_arguments(call)
        return self._tracer.start_span(f"execute_tool {call.name}", attributes=attributes)

    def _end_span(self, entry: OpenCall[CurrentSpan], outcome: Completed | Failed) -> None:
        span = self._start_span(entry) if entry.kept is None else entry.kept.span
        failed = isinstance(outcome, Failed)
        span.set_attribute(names.ATTEMPTS, outcome.attempts)
        span.set_attribute(names.STARTED, outcome.started if failed else outcome.attempts > 0)
        if self._content is not None:
            span.set_attribute(names.RESULT, self._content.render_outcome(outcome))
        code = outcome.error.code if failed else ""
        description = self._content.render_outcome(outcome) if failed and self._content is not None else ""
        if failed and outcome.error.__cause__ is not None:
            span.add_event("exception", {names.EXCEPTION: type(outcome.error.__cause__).__qualname__})
        if entry.kept is None:
            end_span(span, code, description)
        else:
            entry.kept.close(code, description)
