"""`EventLog` writes events to the standard `logging`; `JsonLines` formats records as JSON without secrets."""

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from callwright.core.calls import Completed, Failed
from callwright.core.errors import UsageError, describe_exception
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallRetried, Event, QuestionsRaised
from callwright.core.messages import AssistantMessage, Usage
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnded
from callwright.hooks.builtin import Redact
from callwright.system.private_files import open_private
from callwright.telemetry.open_calls import OpenCall, OpenCalls

_DEBUG, _INFO, _WARNING = logging.DEBUG, logging.INFO, logging.WARNING
Entry: TypeAlias = tuple[int, str, dict[str, Any]]
"""A level, the name of the event, and its fields; empty fields are left out."""


class EventLog:
    """An observer that logs runs, requests, questions and calls, with their ids, ends and usage.

    Beginnings are DEBUG, ends INFO, retries and failures WARNING; the fields are attributes of the log record.
    Prompts, arguments and outputs are never logged. The first failure of a handler is reported on stderr.

    Args:
        logger: Where to log; by default the logger "callwright.events".
        owned_handler: A handler to close together with this observer.
    """

    def __init__(self, logger: logging.Logger | None = None, *, owned_handler: logging.Handler | None = None) -> None:
        self._logger = logger or logging.getLogger("callwright.events")
        self._owned_handler = owned_handler
        self._calls: OpenCalls[None] = OpenCalls()
        self._reported = False

    def __call__(self, event: Event) -> None:
        for level, name, fields in self._entries(event):
            if self._logger.isEnabledFor(level):
                self._log(level, name, fields)

    def close(self) -> None:
        """Close the handler that this observer owns, if any."""
        if self._owned_handler is not None:
            self._owned_handler.close()

    def __eq__(self, other: object) -> bool:
        """Compare by logger: an inner agent with an equal observer must not log its events twice."""
        return isinstance(other, EventLog) and self._logger is other._logger

    def __hash__(self) -> int:
        return hash(self._logger)

    def _entries(self, event: Event) -> Iterable[Entry]:
        match event:
            case RunBegan() | RunEnded():
                return (self._run_entry(event),)
            case RequestBegan() | RequestRetried() | RequestEnded():
                return (_request_entry(event),)
            case BatchBegan():
                self._calls.begin(event)
            case QuestionsRaised(questions, session_id):
                raised = [{"call": one.call_id, "tool": one.tool, "kind": one.kind} for one in questions]
                return [(_INFO, "question raised", {"session": session_id, **fields}) for fields in raised]
            case CallBegan(call) | CallRetried(call=call):
                return [_call_entry(event, entry) for entry in self._calls.find(call)[:1]]
            case CallEnded(call=call):
                return [self._end_call(event, entry) for entry in self._calls.find(call)[:1]]
            case _:
                pass
        return ()

    def _run_entry(self, event: RunBegan | RunEnded) -> Entry:
        began = event if isinstance(event, RunBegan) else event.began
        about = {"session": began.session_id, "agent": began.agent, "model": began.model}
        if isinstance(event, RunBegan):
            self._calls.begin_run(began.session_id)
            return _DEBUG, "run began", about
        self._calls.end_run(began.session_id)
        level = _INFO if event.ended in ("done", "paused") else _WARNING
        ended = {"ended": event.ended, "code": event.reason, "turns": event.turns, "seconds": event.seconds}
        return level, "run ended", {**about, **ended, **_usage_fields(event.usage, event.cost)}

    def _end_call(self, event: CallEnded, entry: OpenCall[None]) -> Entry:
        self._calls.end(entry)
        return _call_entry(event, entry)

    def _log(self, level: int, name: str, fields: dict[str, Any]) -> None:
        shown = {key: value for key, value in fields.items() if value not in ("", None)}
        try:
            self._logger.log(level, name, extra=shown)
        except Exception as error:  # noqa: BLE001 - a failing log must not fail the call
            if not self._reported:
                self._reported = True
                print(f"callwright: logging failed: {type(error).__name__}: {error}", file=sys.stderr)


def _request_entry(event: RequestBegan | RequestRetried | RequestEnded) -> Entry:
    began = event if isinstance(event, RequestBegan) else event.began
    about: dict[str, Any] = {"session": began.session_id, "model": began.model}
    match event:
        case RequestBegan():
            return _DEBUG, "request began", about
        case RequestRetried(_, error, attempt, delay):
            about |= {"attempt": attempt, "delay_seconds": delay, "error": str(error)}
            return _WARNING, "request retried", about
        case RequestEnded(message=AssistantMessage() as message):
            about |= {"answered_by": message.model, "stop": message.stop, "seconds": event.seconds}
            about |= {"first_seconds": event.first_seconds, **_usage_fields(message.usage, event.cost)}
            return _INFO, "request ended", about
        case RequestEnded():
            about |= {"code": event.reason, "error": str(event.error), "seconds": event.seconds}
            return _WARNING, "request ended", about


def _call_entry(event: CallBegan | CallRetried | CallEnded, entry: OpenCall[None]) -> Entry:
    call = entry.call
    tool = (event.tool if isinstance(event, CallEnded) else "") or call.name
    about: dict[str, Any] = {"session": entry.session_id, "turn": entry.turn_id, "call": call.id, "tool": tool}
    match event:
        case CallBegan():
            return _DEBUG, "call began", about
        case CallRetried(_, error, attempt, delay):
            return _WARNING, "call retried", {**about, "code": error.code, "attempt": attempt, "delay_seconds": delay}
        case CallEnded(Failed() as outcome):
            about |= {"code": outcome.error.code, "started": outcome.started}
            about |= {"seconds": outcome.seconds, "attempts": outcome.attempts}
            cause = outcome.error.__cause__
            return _WARNING, "call ended", {**about, "cause": "" if cause is None else type(cause).__name__}
        case CallEnded(Completed(seconds=seconds, attempts=attempts)):
            return _INFO, "call ended", {**about, "code": "completed", "seconds": seconds, "attempts": attempts}
        case CallEnded():
            return _INFO, "call ended", {**about, "code": "interrupted"}


def _usage_fields(usage: Usage, cost: float | None) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_usd": cost,
    }


_STANDARD_FIELDS = frozenset((*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"))
"""Attributes of every log record; all others are fields of the event."""


class JsonLines(logging.Formatter):
    """Formats a log record of any logger as one JSON object per line.

    Args:
        redact: Removes secrets from every text; by default known kinds of credentials.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        super().__init__()
        self._clean = (redact or Redact()).clean

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: self._plain(value) for name, value in fields.items()}, ensure_ascii=False)

    def _plain(self, value: object) -> object:
        if isinstance(value, float):
            return round(value, 6) if isfinite(value) else str(value)  # JSON has no NaN
        if value is None or isinstance(value, (bool, int)):
            return value
        return self._clean(value if isinstance(value, str) else str(value))


def log_to(target: str | PathLike[str] | TextIO, level: int = logging.INFO) -> EventLog:
    """Return an observer that writes JSON lines to a file or a stream only; `close` it at the end.

    Args:
        target: A path or an open text stream.
        level: The lowest level to write.

    Raises:
        UsageError: The file cannot be opened.
    """
    try:
        if isinstance(target, (str, PathLike)):
            open_private(Path(target), append=True).close()  # created for its owner alone
            handler = logging.FileHandler(target, encoding="utf-8", errors="backslashreplace")
        else:
            handler = logging.StreamHandler(target)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError(f"cannot write the log {target}: {describe_exception(error)}; choose another file") from None
    handler.setFormatter(JsonLines())
    # made by hand, not by `getLogger`: the program's logging configuration stays untouched
    logger = logging.Logger("callwright.events", level)
    logger.addHandler(handler)
    return EventLog(logger, owned_handler=handler)
