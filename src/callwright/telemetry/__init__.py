"""Observers for operations: OpenTelemetry spans and metrics, and structured logs."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.telemetry.logging import EventLog as EventLog, JsonLines as JsonLines, log_to as log_to
    from callwright.telemetry.otel import Telemetry as Telemetry
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "logging": "EventLog JsonLines log_to",
            "otel": "Telemetry",
        },
    )
