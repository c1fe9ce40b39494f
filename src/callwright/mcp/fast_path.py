"""The short way over a pipe: calls as plain JSON with numbers of our own, past the SDK's layers.

Both kinds of traffic share the pipe. What is an answer to us is taken out before the SDK sees the line; everything
else (the handshake, listings, notifications) is the SDK's. A call costs a third of what it does on the long way.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR
from pydantic_core import to_json

Watcher: TypeAlias = Callable[[float, float | None, str | None], None]
_FIRST_NUMBER = 1_000_000_000  # far from the numbers the SDK gives out, and still an int anywhere


class Lane:
    """Requests of ours on their way over one pipe."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._watched: dict[int, Watcher] = {}
        self.meta: Mapping[str, Any] = {}
        """What the SDK sends along with each request, and so must we."""

    @property
    def busy(self) -> bool:
        """Whether an answer to us may be among what comes."""
        return bool(self._waiting)

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; it goes out with what is written next to it."""
        self._writer.write(to_json({"jsonrpc": "2.0", **message}) + b"\n")

    async def request(self, method: str, params: Mapping[str, Any], progress: Watcher | None = None) -> dict[str, Any]:
        """Ask the other side and wait for its answer; stopping to wait tells it to stop."""
        number = next(self._numbers)
        meta = dict(self.meta)
        if progress is not None:
            meta["progressToken"] = number
            self._watched[number] = progress
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.send({"id": number, "method": method, "params": {**params, "_meta": meta} if meta else params})
            await self._drained()
            return await answer
        except asyncio.CancelledError:
            self.send({"method": "notifications/cancelled", "params": {"requestId": number, "reason": "cancelled"}})
            raise
        finally:
            self._waiting.pop(number, None)
            self._watched.pop(number, None)

    async def _drained(self) -> None:
        try:
            await self._writer.drain()
        except (ConnectionError, RuntimeError, OSError) as error:
            raise MCPError(CONNECTION_CLOSED, f"the pipe is closed: {error}") from error

    def take(self, message: Any) -> bool:
        """Take a message that is meant for us; False leaves it to the SDK."""
        said = _table(message)
        number = said.get("id")
        if "method" in said:
            return said["method"] == "notifications/progress" and self._progressed(said.get("params"))
        if not isinstance(number, int) or number < _FIRST_NUMBER:
            return False
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():  # an answer nobody waits for any more is nobody's
            _settle(answer, said)
        return True

    def _progressed(self, params: Any) -> bool:
        said = _table(params)
        token, done = said.get("progressToken"), said.get("progress")
        watcher = self._watched.get(token) if isinstance(token, int) else None
        if watcher is None or not isinstance(done, (int, float)):
            return False
        watcher(done, said.get("total"), said.get("message"))
        return True

    def close(self) -> None:
        """Tell everybody who waits that no answer will come."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(MCPError(CONNECTION_CLOSED, "Connection closed"))


def _settle(answer: "asyncio.Future[dict[str, Any]]", message: Mapping[str, Any]) -> None:
    result: Any = message.get("result")
    error = _table(message.get("error"))
    if isinstance(result, dict):
        answer.set_result(cast("dict[str, Any]", result))
    elif isinstance(error.get("code"), int):
        answer.set_exception(MCPError(error["code"], str(error.get("message", "")), error.get("data")))
    else:
        answer.set_exception(MCPError(INTERNAL_ERROR, "answered with neither a result nor an error"))


def _table(value: object) -> dict[str, Any]:
    """An object of the other side's, or an empty one where it sent something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
