"""Where a command's spans and metrics go: by the standard `OTEL_…` variables, as other programs' do."""

import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from callwright.core.errors import UsageError
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
