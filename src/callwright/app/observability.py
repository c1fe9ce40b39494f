"""Where a command's spans and metrics go: by the standard `OTEL_…` variables, as other programs' do.

The observers that settings and environment ask for: a structured log, and OpenTelemetry.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from callwright.app.settings import Settings
from callwright.core.errors import UsageError
from callwright.executor.executor import Observer
from callwright.telemetry import Telemetry

_INSTALL = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
_PROTOCOLS = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def exporting(around: Mapping[str, str], *, content: bool) -> tuple[Telemetry, Callable[[], object]]:
    """Make an observer and the way to send off what it has left; raises `UsageError` where a part is missing.

    A program that has set OpenTelemetry up already, as `opentelemetry-instrument` does, is left alone.
    """
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    if not isinstance(get_tracer_provider(), ProxyTracerProvider):
        return Telemetry(content=content), lambda: None
    return _own_export(around, content=content)


def _own_export(around: Mapping[str, str], *, content: bool) -> tuple[Telemetry, Callable[[], object]]:
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise UsageError(f"there is no OpenTelemetry SDK here: {_INSTALL}") from None
    named = "OTEL_SERVICE_NAME" in around or "service.name=" in around.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": "callwright"})
    span_exporters, metric_exporters = _exporters("traces", around), _exporters("metrics", around)
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in span_exporters:
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    readers = [PeriodicExportingMetricReader(exporter) for exporter in metric_exporters]
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)

    def close() -> None:
        tracers.shutdown()
        meters.shutdown()

    return Telemetry(tracer_provider=tracers, meter_provider=meters, content=content), close


def _exporters(signal: str, around: Mapping[str, str]) -> list[Any]:
    """The exporters of one signal, found as the SDK's own set-up finds them."""
    upper = signal.upper()
    asked = around.get(f"OTEL_{upper}_EXPORTER") or "otlp"
    names = [name.strip() for name in asked.split(",") if name.strip() not in ("", "none")]
    return [_exporter(signal, _full_name(name, upper, around)) for name in names]


def _full_name(name: str, upper: str, around: Mapping[str, str]) -> str:
    if name != "otlp":
        return name
    protocol = around.get(f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL") or around.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return _PROTOCOLS.get(protocol or "http/protobuf", name)


def _exporter(signal: str, name: str) -> Any:
    for found in entry_points(group=f"opentelemetry_{signal}_exporter", name=name):
        made = found.load()
        return made(out=sys.stderr) if name == "console" else made()  # stdout is for what the command has to say
    raise UsageError(f"there is no exporter {name!r} for {signal}: {_INSTALL}, or set OTEL_{signal.upper()}_EXPORTER")


LOG, TELEMETRY = "CALLWRIGHT_LOG", "CALLWRIGHT_TELEMETRY"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = ("1", "true", "on", "yes")


@dataclass(slots=True)
class Watching:
    """What operators asked to be told, and what of it cannot be had."""

    observers: list[Observer] = field(default_factory=list[Observer])
    problems: list[str] = field(default_factory=list[str])
    _closing: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])

    def add(self, observer: Observer, close: Callable[[], object]) -> None:
        """Watch with another one, to be closed at the end."""
        self.observers.append(observer)
        self._closing.append(close)

    def close(self) -> None:
        """Send what is still to be sent."""
        while self._closing:
            self._closing.pop()()


def watching(settings: Settings, log: str = "", environment: Mapping[str, str] | None = None) -> Watching:
    """Find out who is to be told: by the option first, then by the environment, then by the settings."""
    around = os.environ if environment is None else environment
    made = Watching()
    target = log or around.get(LOG) or settings.last("log")
    if target:
        _log(made, str(target))
    wish = around.get(TELEMETRY, "").lower() or settings.last("telemetry")
    if wish is True or wish in (*_YES, "content"):
        content = wish == "content" or around.get(_CAPTURE, "").lower() in _YES
        _trace(made, around, content=content)
    return made


def _log(made: Watching, target: str) -> None:
    from callwright.telemetry import log_to

    try:
        log = log_to(sys.stderr if target == "-" else Path(target).expanduser())
    except UsageError as error:
        made.problems.append(str(error))
    else:
        made.add(log, log.close)


def _trace(made: Watching, around: Mapping[str, str], *, content: bool) -> None:
    try:
        telemetry, close = exporting(around, content=content)
    except (UsageError, ImportError) as error:
        made.problems.append(f"nothing is traced: {error}")
    else:
        made.add(telemetry, close)
