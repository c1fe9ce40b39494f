"""The spans of runs, model requests and calls, and `CurrentSpan`, which makes a span current for what is inside it."""

from contextvars import ContextVar
from time import perf_counter
from typing import Any

from opentelemetry.context import attach, get_current
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_current_span, set_span_in_context

from callwright.core.calls import Completed, Failed, Interrupted, ToolCall
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallRetried, QuestionsRaised
from callwright.core.messages import Usage
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnded
from callwright.hooks.builtin import Redact
from callwright.telemetry import attributes as names
from callwright.telemetry.attributes import Content
from callwright.telemetry.metrics import Metrics
from callwright.telemetry.open_calls import OpenCall, OpenCalls

_current_span: "ContextVar[CurrentSpan | None]" = ContextVar("callwright_span", default=None)


class CurrentSpan:
    """A span that is current from its creation, also in tasks and threads started inside it.

    The end may be reported from another task, where a context token would be invalid, so none is kept.
    """

    __slots__ = ("_before", "_began", "outer", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self._began = perf_counter()
        self.outer = _current_span.get()
        self._before = get_current()
        attach(set_span_in_context(span, self._before))
        _current_span.set(self)

    @property
    def seconds(self) -> float:
        """Seconds since the span became current."""
        return perf_counter() - self._began

    @property
    def innermost(self) -> bool:
        """Whether this is the innermost span of the running code."""
        return _current_span.get() is self

    @property
    def encloses_caller(self) -> bool:
        """Whether the running code is inside this span."""
        step = _current_span.get()
        while step is not None and step is not self:
            step = step.outer
        return step is self

    def close(self, error: str = "", description: str = "") -> None:
        """End the span, with an error if there is one, and make the previous span current again."""
        if self.encloses_caller:  # before ending it: a failing exporter must not leave later spans misplaced
            attach(self._before)
            _current_span.set(self.outer)
        end_span(self.span, error, description)


def end_span(span: Span, error: str, description: str) -> None:
    """End a span, with an error if there is one."""
    if error:
        span.set_attribute(names.ERROR, error)
        span.set_status(Status(StatusCode.ERROR, description or None))
    span.end()


def note_retry(span: Span, error: str, attempt: int, delay_seconds: float) -> None:
    """Add an event: an attempt failed and will be retried."""
    span.add_event("retry", {names.ERROR: error, names.ATTEMPTS: attempt, names.DELAY: delay_seconds})


class RunSpans:
    """Creates spans for runs and requests, found again by the identity of the events that began them."""

    def __init__(self, tracer: Tracer, redact: Redact, content: Content | None) -> None:
        self._tracer = tracer
        self._redact = redact
        self._content = content
        self._open: dict[int, CurrentSpan] = {}

    def begin_run(self, event: RunBegan) -> None:
        """Start the span of a run."""
        attributes: dict[str, Any] = {
            names.OPERATION: "invoke_agent",
            names.PROVIDER: event.vendor or names.UNKNOWN,
            names.CONVERSATION: event.session_id,
            names.REQUEST_MODEL: event.model,
        }
        if event.agent:
            attributes[names.AGENT] = event.agent
        name = f"invoke_agent {event.agent}" if event.agent else "invoke_agent"
        self._open[id(event)] = CurrentSpan(self._tracer.start_span(name, attributes=attributes))

    def end_run(self, event: RunEnded) -> None:
        """End the span of a run; a paused run is not an error."""
        current = self._open.pop(id(event.began), None)
        if current is None:
            return
        spent = _usage_attributes(event.usage, event.cost)
        current.span.set_attributes({names.ENDED: event.ended, names.TURNS: event.turns, **spent})
        current.close(event.reason)

    def begin_request(self, event: RequestBegan) -> None:
        """Start the span of a request."""
        attributes: dict[str, Any] = {
            names.OPERATION: "chat",
            names.PROVIDER: event.vendor or names.UNKNOWN,
            names.CONVERSATION: event.session_id,
            names.REQUEST_MODEL: event.model,
            names.REQUEST_STREAM: True,
            names.MAX_TOKENS: event.max_tokens,
        }
        if event.shaped:
            attributes[names.OUTPUT_TYPE] = "json"
        if self._content is not None:
            attributes[names.INPUT] = self._content.render_messages(event.messages)
            attributes[names.SYSTEM] = self._content.render_system(event.system)
        span = self._tracer.start_span(f"chat {event.model}", kind=SpanKind.CLIENT, attributes=attributes)
        self._open[id(event)] = CurrentSpan(span)  # kept alive until its end event, so the id is unique

    def add_retry(self, event: RequestRetried) -> None:
        """Add a failed attempt as an event to the request's span."""
        current = self._open.get(id(event.began))
        if current is not None:
            fault = getattr(event.error, "fault", type(event.error).__name__)
            note_retry(current.span, fault, event.attempt, event.delay_seconds)

    def end_request(self, event: RequestEnded) -> None:
        """End the span of a request, with the attributes of its answer."""
        current = self._open.pop(id(event.began), None)
        if current is None:
            return
        if event.first_seconds is not None:
            current.span.set_attribute(names.FIRST_CHUNK, event.first_seconds)
        current.span.set_attributes(self._answer_attributes(event))
        current.close(event.reason, "" if event.error is None else self._redact.clean(str(event.error)))

    def _answer_attributes(self, event: RequestEnded) -> dict[str, Any]:
        message = event.message
        if message is None:
            return {}
        attributes: dict[str, Any] = {
            names.FINISH_REASONS: [names.FINISHES.get(message.stop, message.stop)],
            **_usage_attributes(message.usage, event.cost),
        }
        if message.model:
            attributes[names.RESPONSE_MODEL] = message.model
        if self._content is not None:
            attributes[names.OUTPUT] = self._content.render_reply(message)
        return attributes


def _usage_attributes(usage: Usage, cost: float | None) -> dict[str, Any]:
    tokens = names.usage_attributes(usage)
    return tokens if cost is None else {**tokens, names.COST: cost}


class CallSpans:
    """Creates a span per call; a call that never ran gets one without duration when it ends."""

    def __init__(self, tracer: Tracer, metrics: Metrics, content: Content | None) -> None:
        self._tracer = tracer
        self._metrics = metrics
        self._content = content
        self._calls: OpenCalls[CurrentSpan] = OpenCalls()

    def begin_run(self, event: RunBegan) -> None:
        """Record that a run of the session is open."""
        self._calls.begin_run(event.session_id)

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
        entry = self._find_entry(event.call)
        if entry is None:
            return
        self._calls.end(entry)
        if isinstance(outcome, Interrupted):  # it asked, or was cancelled: not an error, and no call that was done
            if entry.kept is not None:
                entry.kept.span.set_attribute(names.OUTCOME, "interrupted")
                entry.kept.close()
            return
        self._end_span(entry, event.tool, outcome)
        self._metrics.record_call(event.tool, outcome, None if entry.kept is None else entry.kept.seconds)

    def end_abandoned(self, event: RunEnded) -> None:
        """End the spans that a failed run has left open."""
        for entry in self._calls.end_run(event.began.session_id):
            if entry.kept is not None:
                entry.kept.close(names.UNKNOWN)

    def _find_entry(self, call: ToolCall) -> OpenCall[CurrentSpan] | None:
        """Return the open entry of a call; of several, the one whose span is current."""
        entries = self._calls.find(call)
        if len(entries) == 1:
            return entries[0]
        current = (entry for entry in entries if entry.kept and entry.kept.innermost)
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

    def _end_span(self, entry: OpenCall[CurrentSpan], tool: str, outcome: Completed | Failed) -> None:
        span = self._start_span(entry) if entry.kept is None else entry.kept.span
        if tool and tool != entry.call.name:  # the model called it by another name
            span.set_attribute(names.TOOL, tool)
            span.update_name(f"execute_tool {tool}")
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
