"""A transport to a server inside the program that drives this one: each message is relayed and answered there."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from callwright.core.errors import CallwrightError
from callwright.mcp.config import Relay

_MOST_WAITING = 1_000


@asynccontextmanager
async def relay_transport(
    relay: Relay,
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], "RelayWriter"], None]:
    """Open the transport; leaving it abandons the requests that have no answer yet."""
    answers, reader = anyio.create_memory_object_stream[SessionMessage | Exception](_MOST_WAITING)
    writer = RelayWriter(relay, answers)
    try:
        yield reader, writer
    finally:
        await writer.aclose()


class RelayWriter:
    """Sends each message to the relay, in a task of its own: answers may come in another order."""

    def __init__(self, relay: Relay, answers: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        self._relay = relay
        self._answers = answers
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, item: SessionMessage, /) -> None:
        """Relay a message of the client."""
        message: dict[str, Any] = item.message.model_dump(by_alias=True, mode="json", exclude_none=True)
        task = asyncio.create_task(self._exchange(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        try:
            answer = await self._relay(message)
            if number is None or "method" not in message:
                return  # a notification: its reply is only a receipt
            parsed = types.jsonrpc_message_adapter.validate_python(answer, by_name=False)
            if getattr(parsed, "id", None) != number:
                raise ValueError(f"the answer is for {answer.get('id')!r}, not for {number!r}")
        except (CallwrightError, ValueError) as error:
            if number is None:
                return
            fault = types.ErrorData(code=types.INTERNAL_ERROR, message=str(error).splitlines()[0][:500])
            parsed = types.JSONRPCError(jsonrpc="2.0", id=number, error=fault)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._answers.send(SessionMessage(parsed))

    async def aclose(self) -> None:
        """Abandon what has no answer yet."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._answers.aclose()

    async def __aenter__(self) -> "RelayWriter":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
