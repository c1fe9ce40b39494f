"""JSON requests and responses: bodies are checked, every error is a status and one line."""

import asyncio
import gzip
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from callwright.agent.undo import UndoConflict
from callwright.app.live_client import AgentGone
from callwright.app.models import NO_MODEL
from callwright.core.errors import CallwrightError, UsageError, safe_str
from callwright.core.json import parse_strictly
from callwright.sessions import SessionBusy, SessionDamaged, SessionError, SessionMissing, StoreTooNew

_log = logging.getLogger("callwright")
_MOST_BODY_BYTES = 1 << 20
_MOST_NUMBER = 1 << 53
"""Larger numbers are not exact in JavaScript, and some not in a database."""
BODY_SECONDS = 30.0
_LEAST_GZIP_BYTES = 300
_LONG_BYTES = 1 << 15
"""Compressing more than this at level 9 takes eight times as long, for a tenth less."""
Fields = dict[str, Any]
Handler = Callable[[Request], Awaitable[Any]]


class ApiError(CallwrightError):
    """A request that cannot be answered.

    Args:
        status: The HTTP status.
        code: Identifies the error for the page.
        message: One line for the user.
        more: Further fields of the response.
    """

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.more = more


def encode_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8; a lone surrogate becomes an escape sequence."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=str).encode()


def json_response(request: Request, value: object, status: int = 200) -> Response:
    """Return a response with JSON, compressed if that is worth it."""
    body, headers = encode_json(value), {"content-type": "application/json"}
    if len(body) >= _LEAST_GZIP_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        level = 9 if len(body) < _LONG_BYTES else 1
        body, headers["content-encoding"] = gzip.compress(body, level, mtime=0), "gzip"
    return Response(body, status, headers)


def route(path: str, handler: Handler, *, method: str = "GET") -> Route:
    """Return the route of a handler, which returns a value for JSON, or a response."""

    async def answer(request: Request) -> Response:
        try:
            found = await handler(request)
            return found if isinstance(found, Response) else json_response(request, found)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001 - the page gets a line, the log the traceback
            status, code, more = _describe_error(error)
            if status == 500:
                _log.exception("the request %s failed", path)
            message = safe_str(error) if status != 500 else f"internal error: {type(error).__name__}; see the log"
            return json_response(request, {"error": message, "code": code, **more}, status)

    return Route(path, answer, methods=[method])


def _describe_error(error: Exception) -> tuple[int, str, Mapping[str, Any]]:
    match error:
        case ApiError():
            return error.status, error.code, error.more
        case SessionBusy():
            return 409, "busy", {}
        case SessionDamaged():
            return 422, "damaged", {"faults": {str(key): fault for key, fault in error.faults.items()}}
        case UndoConflict():
            return 409, "conflict", {}
        case SessionMissing():
            return 404, "not_found", {}
        case StoreTooNew():
            return 409, "later_version", {}
        case SessionError():
            return 409, "unreadable", {}
        case AgentGone():
            return 409, "gone", {}
        case UsageError() if str(error) == NO_MODEL:
            return 409, "no_model", {}
        case CallwrightError():
            return 400, "invalid", {}
        case _:
            return 500, "internal", {}


async def read_body(request: Request, fields: Mapping[str, type | tuple[type, ...]], *more: str) -> Fields:
    """Return the JSON object of a request.

    Args:
        request: The request.
        fields: The fields that it must have, with their types.
        more: The names of fields that it may have.

    Raises:
        ApiError: It is too long, not JSON, or has other fields.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "invalid", "expected a body of the type application/json")
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > _MOST_BODY_BYTES:
                    raise ApiError(413, "too_large", f"the request has more than {_MOST_BODY_BYTES} bytes")
    except TimeoutError:
        raise ApiError(408, "too_slow", f"the request did not arrive within {BODY_SECONDS:.0f} seconds") from None
    try:
        found = parse_strictly(bytes(data))
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "invalid", f"the request is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ApiError(400, "invalid", "expected a JSON object")
    body = cast("Fields", found)
    for name in body.keys() - fields.keys() - set(more):
        raise ApiError(400, "invalid", f"unknown field {name!r}")
    for name, kind in fields.items():
        if name not in body or not isinstance(body[name], kind):
            raise ApiError(400, "invalid", f"the field {name!r} is missing or has the wrong type")
    return body


def take_text(request: Request, name: str) -> str:
    """Return a text of the query.

    Raises:
        ApiError: It is missing.
    """
    found = request.query_params.get(name)
    if not found:
        raise ApiError(400, "invalid", f"the query needs {name}=…")
    return found


def take_int(request: Request, name: str, default: int, *, least: int = -_MOST_NUMBER, most: int = _MOST_NUMBER) -> int:
    """Return a whole number of the query.

    Raises:
        ApiError: It is not a number, or out of range.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        raise ApiError(400, "invalid", f"expected a whole number as {name}, got {text!r}") from None
    if not least <= number <= most:
        raise ApiError(400, "invalid", f"expected {name} from {least} to {most}, got {number}")
    return number
