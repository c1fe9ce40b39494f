"""`JsonLines`: log records as one JSON object per line, without secrets; `log_to` sends the events' log somewhere.

`EventLog`: what happens, as records of the standard `logging`.
"""

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from os import PathLike
from typing import Any, TextIO, TypeAlias

from callwright.core.calls import Completed, Failed
from callwright.core.errors import UsageError, plainly
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallRetried, Event, QuestionsRaised
from callwright.core.messages import AssistantMessage, Usage
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnded
from callwright.hooks.builtin import Redact
from callwright.telemetry.call_spans import OpenCall, OpenCalls

_DEBUG, _INFO, _WARNING = logging.DEBUG, logging.INFO, logging.WARNING
Entry: TypeAlias = tuple[int, str, dict[str, Any]]
"""A level, what happened, and the fields that say more; empty fields are left out."""


class EventLog:
    """An observer that logs runs, requests, questions and calls: whose they are, how they ended, what they took.

    Beginnings are DEBUG, ends INFO, retries and failures WARNING; the fields are the record's attributes. Nothing
    that a person, a model or a tool said is logged. A handler that fails is reported on stderr, once.
    """

    def __init__(self, logger: logging.Logger | None = None, *, opened: logging.Handler | None = None) -> None:
        """`opened` is a handler that is the log's own, to be closed with it."""
        self._logger = logger or logging.getLogger("callwright.events")
        self._opened = opened
        self._calls: OpenCalls[None] = OpenCalls()
        self._reported = False

    def __call__(self, event: Event) -> None:
        for level, name, fields in self._entries(event):
            if self._logger.isEnabledFor(level):
                self._log(level, name, fields)

    def close(self) -> None:
        """Close what was opened for it, if anything."""
        if self._opened is not None:
            self._opened.close()

    def __eq__(self, other: object) -> bool:
        """The same to an agent inside another one, whose events would else be logged twice."""
        return isinstance(other, EventLog) and self._logger is other._logger

    def __hash__(self) -> int:
        return hash(self._logger)

    def _entries(self, event: Event) -> Iterable[Entry]:
        match event:
            case RunBegan() | RunEnded():
                return (self._run(event),)
            case RequestBegan() | RequestRetried() | RequestEnded():
                return (_request_entry(event),)
            case BatchBegan():
                self._calls.begin(event)
            case QuestionsRaised(questions, session_id):
                told = [{"call": one.call_id, "tool": one.tool, "kind": one.kind} for one in questions]
                return [(_INFO, "question raised", {"session": session_id, **fields}) for fields in told]
            case CallBegan(call) | CallRetried(call=call):
                return [_call_entry(event, entry) for entry in self._calls.of(call)[:1]]
            case CallEnded(outcome):
                return [self._ended(event, entry) for entry in self._calls.of(outcome.call)[:1]]
            case _:
                pass
        return ()

    def _run(self, event: RunBegan | RunEnded) -> Entry:
        began = event if isinstance(event, RunBegan) else event.began
        about = {"session": began.session_id, "agent": began.agent, "model": began.model}
        if isinstance(event, RunBegan):
            return _DEBUG, "run began", about
        for entry in self._calls.left_in(began.session_id):
            self._calls.end(entry)
        level = _INFO if event.ended in ("done", "paused") else _WARNING
        ended = {"ended": event.ended, "code": event.reason, "turns": event.turns, "seconds": event.seconds}
        return level, "run ended", {**about, **ended, **_usage_fields(event.usage, event.cost)}

    def _ended(self, event: CallEnded, entry: OpenCall[None]) -> Entry:
        self._calls.end(entry)
        return _call_entry(event, entry)

    def _log(self, level: int, name: str, fields: dict[str, Any]) -> None:
        shown = {key: value for key, value in fields.items() if value not in ("", None)}
        try:
            self._logger.log(level, name, extra=shown)
        except Exception as error:  # noqa: BLE001 - a log has no say in what it logs
            if not self._reported:
                self._reported = True
                print(f"callwright: the log failed: {type(error).__name__}: {error}", file=sys.stderr)


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
    about: dict[str, Any] = {"session": entry.session_id, "turn": entry.turn_id, "call": call.id, "tool": call.name}
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
        fields |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}
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
