"""`Telemetry`: OpenTelemetry spans and metrics of agents and tools, by the conventions for generative AI.

invoke_agent ─┬─ chat
              └─ execute_tool ─┬─ spans of the tool itself
                               ├─ execute_tool    a tool that calls tools
                               └─ invoke_agent    an agent as a tool
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.core._lazy import install_command
from callwright.core.errors import UsageError
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallRetried, Event, QuestionsRaised
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnded
from callwright.hooks.builtin import Redact

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_SCOPE = "callwright"
_Handlers = Mapping[type, Sequence[Callable[[Any], None]]]


class Telemetry:
    """An observer that traces runs, requests and calls: `Agent(…, observe=Telemetry())`, or the same for an executor.

    Args:
        tracer_provider: Creates the tracer; by default the global provider.
        meter_provider: Creates the meter; by default the global provider.
        content: Also record prompts, arguments, outputs and error texts, as they are after hooks.
        redact: Removes secrets from recorded texts; by default known kinds of credentials.

    Raises:
        UsageError: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        content: bool = False,
        redact: Redact | None = None,
    ) -> None:
        self._settings = (tracer_provider, meter_provider, content, redact)
        self._handlers = _make_handlers(tracer_provider, meter_provider, redact or Redact(), content=content)

    def __call__(self, event: Event) -> None:
        for handle in self._handlers.get(type(event), ()):
            handle(event)

    def __eq__(self, other: object) -> bool:
        """Compare by settings: an inner agent with an equal observer must not trace its events twice."""
        return isinstance(other, Telemetry) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)


def _make_handlers(
    tracer_provider: "TracerProvider | None", meter_provider: "MeterProvider | None", redact: Redact, *, content: bool
) -> _Handlers:
    """Return the handlers of each event."""
    # Spans come before metrics: a failing meter must not leave a span open.
    try:
        from opentelemetry.metrics import get_meter
        from opentelemetry.trace import get_tracer
    except ImportError:
        raise UsageError("telemetry needs OpenTelemetry: " + install_command("'callwright[otel]'")) from None
    from callwright.telemetry.attributes import Content
    from callwright.telemetry.metrics import Metrics
    from callwright.telemetry.spans import CallSpans, RunSpans

    tracer = get_tracer(_SCOPE, tracer_provider=tracer_provider)
    metrics = Metrics(get_meter(_SCOPE, meter_provider=meter_provider))
    recorded = Content(redact) if content else None
    runs = RunSpans(tracer, redact, recorded)
    calls = CallSpans(tracer, metrics, recorded)
    return {
        RunBegan: (runs.begin_run, calls.begin_run),
        RunEnded: (calls.end_abandoned, runs.end_run, metrics.record_run),
        RequestBegan: (runs.begin_request,),
        RequestRetried: (runs.add_retry,),
        RequestEnded: (runs.end_request, metrics.record_request),
        BatchBegan: (calls.begin_batch,),
        QuestionsRaised: (calls.add_questions,),
        CallBegan: (calls.begin_call,),
        CallRetried: (calls.add_retry,),
        CallEnded: (calls.end_call,),
    }
