"""Fast path for calls over a pipe: plain JSON-RPC with ids of our own, without the SDK's layers.

Both kinds of traffic share the pipe. Responses to our ids are taken out before the SDK sees the line; everything else
(handshake, listings, notifications) goes to the SDK.

Kept because it pays: through the gateway a call takes 1.3 times a direct one with both fast paths and 1.8 times without
them (medians of six alternating runs of `python -m benchmarks gateway` on a busy machine; at most 1.25 is owed idle).
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard, cast

from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR
from pydantic_core import to_json

from callwright.core.json import check_json, read_object

OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
_FIRST_NUMBER = 1_000_000_000  # far from the ids of the SDK, and still a 32-bit integer


class ConnectionLost(MCPError):
    """The pipe broke. A server may use the same error code in a response, and then it is still there."""

    def __init__(self, message: str) -> None:
        super().__init__(CONNECTION_CLOSED, message)


class ServerError(MCPError):
    """An error that the server itself sent in a response."""


class PipeFastPath:
    """Pending requests over one pipe."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._progress_callbacks: dict[int, OnProgress] = {}
        self.meta: Mapping[str, Any] = {}
        """The `_meta` that the SDK sends with each request, and this path must send too."""

    @property
    def busy(self) -> bool:
        """Whether a response is awaited."""
        return bool(self._answers)

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; the event loop sends it. Lone surrogates, which UTF-8 cannot encode, become `?`."""
        whole = {"jsonrpc": "2.0", **message}
        try:
            line = to_json(whole)
        except ValueError:
            line = to_json(check_json(whole))
        self._writer.write(line + b"\n")

    async def request(
        self, method: str, params: Mapping[str, Any], progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its result; cancelling the wait cancels the request."""
        number = next(self._numbers)
        meta = dict(self.meta)
        if progress is not None:
            meta["progressToken"] = number
            self._progress_callbacks[number] = progress
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self.send({"id": number, "method": method, "params": {**params, "_meta": meta} if meta else params})
            await self.drain()
            return await answer
        except asyncio.CancelledError:
            self.send({"method": "notifications/cancelled", "params": {"requestId": number, "reason": "cancelled"}})
            raise
        finally:
            self._answers.pop(number, None)
            self._progress_callbacks.pop(number, None)

    async def drain(self) -> None:
        """Wait until the other side has read most of what was sent.

        Raises:
            ConnectionLost: It has closed the pipe.
        """
        try:
            await self._writer.drain()
        except (ConnectionError, RuntimeError, OSError) as error:
            raise ConnectionLost(f"the pipe is closed: {error}") from error

    def take(self, message: Any) -> bool:
        """Handle a response to one of our requests; False leaves the message to the SDK."""
        fields = read_object(message)
        number = fields.get("id")
        if "method" in fields:
            return fields["method"] == "notifications/progress" and self._report_progress(fields.get("params"))
        if isinstance(number, str):
            number = coerce_request_id(number)  # some servers return ids as texts, which the SDK takes too
        if not isinstance(number, int) or number < _FIRST_NUMBER:
            return False
        answer = self._answers.get(number)
        if answer is not None and not answer.done():  # a late response to a cancelled request is dropped
            _resolve(answer, fields)
        return True

    def _report_progress(self, params: Any) -> bool:
        fields = read_object(params)
        token, done = fields.get("progressToken"), fields.get("progress")
        callback = self._progress_callbacks.get(token) if isinstance(token, int) else None
        if callback is None or not isinstance(done, (int, float)):
            return False
        message: Any = fields.get("message")
        callback(done, fields.get("total"), message if isinstance(message, str) else None)
        return True

    def close(self) -> None:
        """Fail the pending requests."""
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionLost("Connection closed"))


def _resolve(answer: "asyncio.Future[dict[str, Any]]", message: Mapping[str, Any]) -> None:
    result, error = message.get("result"), message.get("error")
    if error is not None:  # also beside a result: a failure must not pass for a success
        answer.set_exception(_read_error(error))
    elif isinstance(result, dict):
        answer.set_result(cast("dict[str, Any]", result))
    else:
        answer.set_exception(MCPError(INTERNAL_ERROR, "the response has neither a result nor an error"))


def is_request_id(value: object) -> TypeGuard[int | str]:
    """Whether a value may be the id of a request: not true, which would be the same key as 1."""
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _read_error(error: object) -> ServerError:
    """Read the error of a response; one that is not as the protocol wants it is told as it is."""
    fields = read_object(error)
    code = fields.get("code")
    return ServerError(
        code if isinstance(code, int) else INTERNAL_ERROR, str(fields.get("message") or error), fields.get("data")
    )
