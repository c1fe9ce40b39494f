"""The spans of runs and of requests to models."""

from typing import Any

from opentelemetry.trace import SpanKind, Tracer

from callwright.core.message import Usage
from callwright.core.run import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnded
from callwright.hooks.redact import Redact
from callwright.telemetry import names
from callwright.telemetry.content import Content
from callwright.telemetry.entered import Entered, note_retry


class RunSpans:
    """Open runs and requests, by the events that began them."""

    def __init__(self, tracer: Tracer, redact: Redact, content: Content | None) -> None:
        self._tracer = tracer
        self._redact = redact
        self._content = content
        self._open: dict[int, Entered] = {}

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
        self._open[id(event)] = Entered(self._tracer.start_span(name, attributes=attributes))

    def run_ended(self, event: RunEnded) -> None:
        """Close it; a run that waits for a person is no failure."""
        entered = self._open.pop(id(event.began), None)
        if entered is None:
            return
        spent = _spent(event.usage, event.cost)
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
        self._open[id(event)] = Entered(span)

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
            **_spent(message.usage, event.cost),
        }
        if message.model:
            attributes[names.RESPONSE_MODEL] = message.model
        if self._content is not None:
            attributes[names.OUTPUT] = self._content.said(message)
        return attributes


def _spent(usage: Usage, cost: float | None) -> dict[str, Any]:
    tokens = names.usage_attributes(usage)
    return tokens if cost is None else {**tokens, names.COST: cost}
