"""The observers that settings and environment ask for: a structured log, and OpenTelemetry."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from callwright.app.settings import Settings
from callwright.core.errors import UsageError
from callwright.executor.executor import Observer

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
        from callwright.app.export import exporting

        telemetry, close = exporting(around, content=content)
    except (UsageError, ImportError) as error:
        made.problems.append(f"nothing is traced: {error}")
    else:
        made.add(telemetry, close)
