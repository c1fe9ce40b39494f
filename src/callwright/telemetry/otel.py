"""`Telemetry`: OpenTelemetry spans and metrics of what an agent and its tools do, by the conventions for generative AI.

invoke_agent ─┬─ chat
              └─ execute_tool ─┬─ whatever the tool itself traces
                               ├─ execute_tool    a tool that calls tools
                               └─ invoke_agent    an agent as a tool
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    """An observer that traces runs, requests and calls: `Agent(…, observe=Telemetry())`, or an executor's.

    Without providers the global ones are used. Prompts, arguments, outputs and the words of tools' errors are
    recorded only with `content`, after hooks have had their say and `redact` has taken secrets out.
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
        self._ways = _make_handlers(tracer_provider, meter_provider, redact or Redact(), content=content)

    def __call__(self, event: Event) -> None:
        for way in self._ways.get(type(event), ()):
            way(event)

    def __eq__(self, other: object) -> bool:
        """The same to an agent inside another one, whose events would else be traced twice."""
        return isinstance(other, Telemetry) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)


def _make_handlers(
    tracer_provider: "TracerProvider | None", meter_provider: "MeterProvider | None", redact: Redact, *, content: bool
) -> _Handlers:
    """What is done about each event; a span is ended before anything is counted, so that it ends in any case."""
    try:
        from opentelemetry.metrics import get_meter
        from opentelemetry.trace import get_tracer
    except ImportError:
        raise UsageError("telemetry needs OpenTelemetry: pip install 'callwright[otel]'") from None
    from callwright.telemetry.call_spans import CallSpans
    from callwright.telemetry.content import Content
    from callwright.telemetry.metrics import Metrics
    from callwright.telemetry.run_spans import RunSpans

    tracer = get_tracer(_SCOPE, tracer_provider=tracer_provider)
    metrics = Metrics(get_meter(_SCOPE, meter_provider=meter_provider))
    recorded = Content(redact) if content else None
    runs = RunSpans(tracer, redact, recorded)
    calls = CallSpans(tracer, metrics, recorded)
    return {
        RunBegan: (runs.run_began,),
        RunEnded: (calls.abandoned, runs.run_ended, metrics.run),
        RequestBegan: (runs.request_began,),
        RequestRetried: (runs.request_retried,),
        RequestEnded: (runs.request_ended, metrics.request),
        BatchBegan: (calls.batch_began,),
        QuestionsRaised: (calls.asked,),
        CallBegan: (calls.began,),
        CallRetried: (calls.retried,),
        CallEnded: (calls.ended,),
    }
