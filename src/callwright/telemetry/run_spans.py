"""A span that is the current one for everything done inside it, also in the tasks and threads begun there.

The spans of runs and of requests to models.
"""

from contextvars import ContextVar
from time import perf_counter
from typing import Any

from opentelemetry.context import attach, get_current
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from callwright.core.messages import Usage
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnded
from callwright.hooks.builtin import Redact
from callwright.telemetry import attributes as names
from callwright.telemetry.content import Content

_current_span: "ContextVar[CurrentSpan | None]" = ContextVar("callwright_span", default=None)


class CurrentSpan:
    """Made current where it is made. The end may be told from another task, so there is no token to give back."""

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
        """How long ago it was entered."""
        return perf_counter() - self._began

    @property
    def innermost(self) -> bool:
        """Whether what runs now is inside, and nothing else is around it."""
        return _current_span.get() is self

    @property
    def here(self) -> bool:
        """Whether what runs now is inside."""
        step = _current_span.get()
        while step is not None and step is not self:
            step = step.outer
        return step is self

    def close(self, error: str = "", said: str = "") -> None:
        """End the span, as an error where there is one; what was current before it is so again."""
        if self.here:  # first, because a broken exporter must not leave later spans in the wrong place
            attach(self._before)
            _current_span.set(self.outer)
        end_span(self.span, error, said)


def end_span(span: Span, error: str = "", said: str = "") -> None:
    """End a span, as an error where there is one."""
    if error:
        span.set_attribute(names.ERROR, error)
        span.set_status(Status(StatusCode.ERROR, said or None))
    span.end()


def note_retry(span: Span, error: str, attempt: int, delay_seconds: float) -> None:
    """Write down that an attempt failed and another will follow."""
    span.add_event("retry", {names.ERROR: error, names.ATTEMPTS: attempt, names.DELAY: delay_seconds})


class RunSpans:
    """Open runs and requests, by the events that began them."""

    def __init__(self, tracer: Tracer, redact: Redact, content: Content | None) -> None:
        self._tracer = tracer
        self._redact = redact
        self._content = content
        self._open: dict[int, CurrentSpan] = {}

    def run_began(self, event: RunBegan) -> None:
        """Open a run's span."""
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

    def run_ended(self, event: RunEnded) -> None:
        """Close it; a run that waits for a person is no failure."""
        entered = self._open.pop(id(event.began), None)
        if entered is None:
            return
        spent = _usage_attributes(event.usage, event.cost)
        entered.span.set_attributes({names.ENDED: event.ended, names.TURNS: event.turns, **spent})
        entered.close(event.reason)

    def request_began(self, event: RequestBegan) -> None:
        """Open a request's span."""
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
            attributes[names.INPUT] = self._content.messages(event.messages)
            attributes[names.SYSTEM] = self._content.system(event.system)
        span = self._tracer.start_span(f"chat {event.model}", kind=SpanKind.CLIENT, attributes=attributes)
        self._open[id(event)] = CurrentSpan(span)

    def request_retried(self, event: RequestRetried) -> None:
        """Note a failed attempt."""
        entered = self._open.get(id(event.began))
        if entered is not None:
            fault = getattr(event.error, "fault", type(event.error).__name__)
            note_retry(entered.span, fault, event.attempt, event.delay_seconds)

    def request_ended(self, event: RequestEnded) -> None:
        """Close it, with what came of it."""
        entered = self._open.pop(id(event.began), None)
        if entered is None:
            return
        if event.first_seconds is not None:
            entered.span.set_attribute(names.FIRST_CHUNK, event.first_seconds)
        entered.span.set_attributes(self._answer(event))
        entered.close(event.reason, "" if event.error is None else self._redact.clean(str(event.error)))

    def _answer(self, event: RequestEnded) -> dict[str, Any]:
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
            attributes[names.OUTPUT] = self._content.said(message)
        return attributes


def _usage_attributes(usage: Usage, cost: float | None) -> dict[str, Any]:
    tokens = names.usage_attributes(usage)
    return tokens if cost is None else {**tokens, names.COST: cost}
