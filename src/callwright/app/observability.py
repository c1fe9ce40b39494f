"""Observers from settings and environment: a structured log, and OpenTelemetry by the standard `OTEL_…` variables."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from callwright.app.settings import Settings
from callwright.core._lazy import install_command
from callwright.core.errors import UsageError
from callwright.executor.executor import Observer
from callwright.system.paths import expand_home
from callwright.telemetry import Telemetry

_INSTALL = install_command("opentelemetry-sdk opentelemetry-exporter-otlp-proto-http")
_MISSING = f"the OpenTelemetry SDK is not installed: {_INSTALL}"
_PROTOCOLS = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def _open_telemetry(variables: Mapping[str, str], *, content: bool) -> tuple[Telemetry, Callable[[], object]]:
    """Return an OpenTelemetry observer and a function that flushes it.

    If the program has already configured OpenTelemetry, as `opentelemetry-instrument` does, that configuration is used.

    Raises:
        UsageError: The SDK or an exporter is not installed.
    """
    try:
        from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
    except ImportError:
        raise UsageError(_MISSING) from None
    if not isinstance(get_tracer_provider(), ProxyTracerProvider):
        return Telemetry(content=content), lambda: None
    return _configure_export(variables, content=content)


def _configure_export(variables: Mapping[str, str], *, content: bool) -> tuple[Telemetry, Callable[[], object]]:
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise UsageError(_MISSING) from None
    # Resource.create reads these variables itself, and our name must not override theirs
    named = "OTEL_SERVICE_NAME" in variables or "service.name=" in variables.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": "callwright"})
    span_exporters, metric_exporters = _exporters("traces", variables), _exporters("metrics", variables)
    # `close` shuts them down, so that everything is sent before the command ends
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in span_exporters:
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    readers = [PeriodicExportingMetricReader(exporter) for exporter in metric_exporters]
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)

    def close() -> None:
        tracers.shutdown()
        meters.shutdown()

    return Telemetry(tracer_provider=tracers, meter_provider=meters, content=content), close


def _exporters(signal: str, variables: Mapping[str, str]) -> list[Any]:
    """Return the exporters of one signal, chosen as the SDK's own configurator does."""
    upper = signal.upper()
    asked = variables.get(f"OTEL_{upper}_EXPORTER") or "otlp"
    names = [name.strip() for name in asked.split(",") if name.strip() not in ("", "none")]
    return [_exporter(signal, _full_name(name, upper, variables)) for name in names]


def _full_name(name: str, upper: str, variables: Mapping[str, str]) -> str:
    if name != "otlp":
        return name
    protocol = variables.get(f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL") or variables.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return _PROTOCOLS.get(protocol or "http/protobuf", name)


def _exporter(signal: str, name: str) -> Any:
    for found in entry_points(group=f"opentelemetry_{signal}_exporter", name=name):
        made = found.load()
        return made(out=sys.stderr) if name == "console" else made()  # stdout is for the output of the command
    raise UsageError(f"no exporter {name!r} for {signal}: {_INSTALL}, or set OTEL_{signal.upper()}_EXPORTER")


LOG, TELEMETRY = "CALLWRIGHT_LOG", "CALLWRIGHT_TELEMETRY"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = ("1", "true", "on", "yes")
_NO = ("", "0", "false", "off", "no")
_CAPTURED_IN_SPANS = (*_YES, "span_only", "span_and_event")


@dataclass(slots=True)
class Observability:
    """The configured observers, and why others could not be opened."""

    observers: list[Observer] = field(default_factory=list[Observer])
    problems: list[str] = field(default_factory=list[str])
    _closing: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])

    def add(self, observer: Observer, close: Callable[[], object]) -> None:
        """Add an observer and the function that closes it."""
        self.observers.append(observer)
        self._closing.append(close)

    def close(self) -> None:
        """Flush and close every observer."""
        while self._closing:
            self._closing.pop()()


def open_observability(settings: Settings, log: str = "") -> Observability:
    """Open the configured observers: the option takes precedence, then the environment, then the settings.

    Args:
        settings: The merged settings.
        log: The value of `--log`: a file, or `-` for stderr.
    """
    variables, made = os.environ, Observability()
    target = log or variables.get(LOG) or settings.last("log")
    if target:
        _add_log(made, str(target))
    choice = variables.get(TELEMETRY, "").lower() or settings.last("telemetry")
    if choice is True or choice in (*_YES, "content"):
        content = choice == "content" or variables.get(_CAPTURE, "").lower() in _CAPTURED_IN_SPANS
        _add_telemetry(made, variables, content=content)
    elif isinstance(choice, str) and choice not in _NO:
        made.problems.append(f"tracing is off: {TELEMETRY} is {choice!r}; write 1, content or 0")
    return made


def _add_log(made: Observability, target: str) -> None:
    from callwright.telemetry import log_to

    try:
        log = log_to(sys.stderr if target == "-" else expand_home(target))
    except UsageError as error:
        made.problems.append(str(error))
    else:
        made.add(log, log.close)


def _add_telemetry(made: Observability, variables: Mapping[str, str], *, content: bool) -> None:
    try:
        telemetry, close = _open_telemetry(variables, content=content)
    except (UsageError, ImportError) as error:  # of an exporter that is there, but cannot be loaded
        made.problems.append(f"tracing is off: {error}")
    else:
        made.add(telemetry, close)
