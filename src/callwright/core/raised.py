"""Turns what foreign code raises into a `ToolError`, and recognises failures that may pass."""

import asyncio
from typing import Any

from callwright.core.errors import Crashed, TimedOut, ToolError, Transient, describe_raised, list_leaves, safe_str

_TRANSIENT_STATUS = frozenset({408, 425, 429})


def normalise(raised: BaseException) -> ToolError:
    """Turn any exception into a `ToolError`; the original stays its `__cause__`, for operators."""
    leaves = list_leaves(raised)
    if len(leaves) == 1:
        raised = leaves[0]  # such as a failure that may be retried, in a task group of the tool
    if isinstance(raised, ToolError) and type(getattr(raised, "message", None)) is str:
        return raised if raised.message.strip() else raised.with_message("failed; the tool gave no reason")
    if isinstance(raised, TimeoutError):
        text = safe_str(raised)
        error: ToolError = TimedOut(
            f"an operation inside the tool timed out: {text}" if text else "timed out in the tool"
        )
    else:
        error = detect_transient(raised) or Crashed(describe_raised(raised))
    error.__cause__ = raised
    return error


def is_transient_status(status: int) -> bool:
    """Whether an HTTP status is worth a retry: timeout, too early, too many requests, any server error."""
    return status in _TRANSIENT_STATUS or status >= 500


def detect_transient(error: BaseException) -> Transient | None:
    """Return a `Transient` error for a broken connection or a passing HTTP status, None for any other exception.

    The status is that of the exceptions of httpx, requests, aiohttp, urllib and the clients of vendors, none of which
    is imported for it. httpx raises its own exception from that of the connection.
    """
    status = _read_status(error)
    if status is None:
        passes = any(isinstance(each, _BROKEN) for each in _list_causes(error))
    else:
        passes = is_transient_status(status)
    if not passes:
        return None
    found = Transient(describe_raised(error), retry_after=None if status is None else _read_wait(error))
    found.inferred = True
    return found


_BROKEN = (ConnectionError, asyncio.IncompleteReadError)
_MOST_CAUSES = 8


def _list_causes(error: BaseException) -> list[BaseException]:
    found = [error]
    while (cause := found[-1].__cause__) is not None and len(found) < _MOST_CAUSES:
        found.append(cause)
    return found


def _read_status(error: BaseException) -> int | None:
    response = _get(error, "response")
    given = [_get(response, "status_code"), *(_get(error, name) for name in ("status_code", "status", "code"))]
    return next((status for status in given if isinstance(status, int) and 400 <= status <= 599), None)


def _read_wait(error: BaseException) -> float | None:
    """Return the seconds of `Retry-After`; a date there is left to the backoff."""
    headers = _get(_get(error, "response"), "headers") or _get(error, "headers")
    try:
        asked = str(headers.get("Retry-After", "") if headers is not None else "")
    except Exception:  # noqa: BLE001 - the headers are foreign
        return None
    return float(asked) if asked.isascii() and asked.isdecimal() else None


def _get(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the value is foreign, and telling what failed must not fail
        return None
