"""`JsonLines`: log records as one JSON object per line, without secrets; `log_to` sends the events' log somewhere."""

import json
import logging
from datetime import UTC, datetime
from os import PathLike
from typing import Any, TextIO

from callwright.core.errors import UsageError, plainly
from callwright.hooks.redact import Redact
from callwright.telemetry.log import EventLog

_OWN = frozenset((*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"))
"""What every record has; the rest was given with it."""


class JsonLines(logging.Formatter):
    """Writes time, level, what happened, and whatever fields a record was given; works for records of any logger."""

    def __init__(self, redact: Redact | None = None) -> None:
        super().__init__()
        self._clean = (redact or Redact()).clean

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in record.__dict__.items() if name not in _OWN}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: self._plain(value) for name, value in fields.items()}, ensure_ascii=False)

    def _plain(self, value: object) -> object:
        if isinstance(value, float):
            return round(value, 6)
        if value is None or isinstance(value, (bool, int)):
            return value
        return self._clean(value if isinstance(value, str) else str(value))


def log_to(target: str | PathLike[str] | TextIO, level: int = logging.INFO) -> EventLog:
    """Make an observer that writes JSON lines to a file or a stream, and nowhere else; `close` it at the end."""
    try:
        named = isinstance(target, (str, PathLike))
        handler = logging.FileHandler(target, encoding="utf-8") if named else logging.StreamHandler(target)
    except OSError as error:
        raise UsageError(f"the log {target} cannot be written: {plainly(error)}; name another file") from None
    handler.setFormatter(JsonLines())
    logger = logging.Logger("callwright.events", level)  # of its own: the program's set-up of logging stays as it is
    logger.addHandler(handler)
    return EventLog(logger, opened=handler)
