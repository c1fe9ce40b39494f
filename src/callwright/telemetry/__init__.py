"""Observers for operators: OpenTelemetry spans and metrics, and a structured log."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.telemetry.lines import JsonLines as JsonLines
    from callwright.telemetry.lines import log_to as log_to
    from callwright.telemetry.log import EventLog as EventLog
    from callwright.telemetry.spans import Telemetry as Telemetry

__all__ = ["EventLog", "JsonLines", "Telemetry", "log_to"]

_HOMES = {"lines": "JsonLines log_to", "log": "EventLog", "spans": "Telemetry"}

__getattr__ = loader(__name__, _HOMES)
