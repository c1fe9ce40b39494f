"""MCP clients of the gateway: the caller of a tool, its state between calls, and notices of list changes."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from callwright.core.calls import Answers, Question
from callwright.serve.access import CLIENT_ID, CLIENT_RETURNED
from callwright.tool.base import State

Context = ServerRequestContext[Any, Any]
# in rising order, because positions are compared
LOG_LEVELS: tuple[types.LoggingLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A client's request to call a tool; with a state it resumes a suspended call."""

    name: str
    arguments: Mapping[str, Any]
    state: str | None = None
    responses: Mapping[str, object] = field(default_factory=dict[str, object])


def read_request(params: types.CallToolRequestParams) -> CallRequest:
    """Convert the SDK's request."""
    return CallRequest(params.name, params.arguments or {}, params.request_state, params.input_responses or {})


class Caller(Protocol):
    """A client during one of its calls."""

    @property
    def key(self) -> str:
        """Identifies the client by an id that the server issued: its session, or without sessions its cookie."""
        ...

    @property
    def known(self) -> bool:
        """Whether the client sent an id back, so that its state is worth keeping."""
        ...

    @property
    def modern(self) -> bool:
        """Whether questions are returned as results (2026-07-28) instead of being asked during the call."""
        ...

    @property
    def wants_progress(self) -> bool:
        """Whether it requested progress."""
        ...

    @property
    def reachable(self) -> bool:
        """Whether requests can be sent to it now."""
        ...

    @property
    def can_answer(self) -> bool:
        """Whether it declares any capability to answer requests."""
        ...

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        """The capabilities it declares."""
        ...

    @property
    def log_level(self) -> str | None:
        """The lowest log level it requested; None for no log messages."""
        ...

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send progress."""
        ...

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None) -> None:
        """Send a log message."""
        ...

    async def send(self, request: types.InputRequest) -> types.InputResponse:
        """Send a request in the middle of the call."""
        ...


MAX_CLIENTS = 2048
_MAX_NEW_CLIENTS = 128
_IDLE_SECONDS = 1800.0


class ClientStates:
    """The states of the clients, by the ids that the server issued.

    Clients that have not returned their id yet, however many, do not displace those that have. When there are too many
    of those, one that has been idle for long makes room; if there is none, a new client gets an error.

    Args:
        make: Creates the state of a new client.
        most: How many clients have a state at the same time.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, make: Callable[[], State], *, most: int = MAX_CLIENTS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make, self._most, self._clock = make, most, clock
        self._known: dict[str, tuple[State, float]] = {}  # the least recently used is the first
        self._new: dict[str, State] = {}

    def find(self, key: str, *, known: bool) -> State:
        """Return the state of a client.

        Args:
            key: Its id.
            known: Whether it has returned the id.

        Raises:
            MCPError: There are too many clients.
        """
        if not known:
            return self._find_new(key)
        kept = self._known.pop(key, None)
        if len(self._known) >= self._most:
            self._make_room()
        state = kept[0] if kept is not None else self._new.pop(key, None) or self._make()
        self._known[key] = state, self._clock()
        return state

    def forget(self, key: str) -> None:
        """Drop the state of a client that has left; what belongs to it, such as background jobs, ends."""
        self._known.pop(key, None)

    def _find_new(self, key: str) -> State:
        state = self._new.pop(key, None) or self._make()
        while len(self._new) >= _MAX_NEW_CLIENTS:
            del self._new[next(iter(self._new))]
        self._new[key] = state
        return state

    def _make_room(self) -> None:
        oldest = next(iter(self._known))
        if self._clock() - self._known[oldest][1] < _IDLE_SECONDS:
            raise MCPError(types.INTERNAL_ERROR, f"this server has {self._most} clients, its limit; try again later")
        del self._known[oldest]


class ContextCaller:
    """A client connected through the SDK."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        headers: Mapping[str, str] = getattr(context.request, "headers", {})
        self.known = True
        if self.modern and headers:  # over pipes there are no headers, and only one client
            scope: Mapping[str, Any] = getattr(context.request, "scope", {})
            # without the cookie of `ClientIds` it is a new client: a header it chose itself proves nothing
            self.key = str(scope.get(CLIENT_ID) or secrets.token_hex(16))
            self.known = scope.get(CLIENT_RETURNED) is True
        else:
            self.key = headers.get("mcp-session-id", "")  # the SDK has checked that it issued this id
        self.wants_progress = bool(context.meta)

    def on_session_end(self, tell: Callable[[], object]) -> None:
        """Call `tell` when the session of this client ends, by its own request or after a time without one."""
        connection = self._context.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the SDK has no other way to it
        connection.exit_stack.callback(tell)

    @property
    def reachable(self) -> bool:
        return self._context.session.can_send_request

    @property
    def can_answer(self) -> bool:
        can = self.capabilities
        return can is not None and any((can.elicitation, can.sampling, can.roots))

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        return self._context.session.client_capabilities

    @property
    def log_level(self) -> str | None:
        return requested_log_level(self._context.meta or {}, modern=self.modern)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._context.session.report_progress(done, total, message)

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        about = types.LoggingMessageNotification(params=params)
        await self._context.session.send_notification(about, self._context.request_id)

    async def send(self, request: types.InputRequest) -> types.InputResponse:
        # sends the request over the response stream of this call; a client may have no other stream open
        about = ServerMessageMetadata(related_request_id=self._context.request_id)
        return await self._context.session.send_request(request, _response_type(request), metadata=about)


def requested_log_level(meta: Mapping[str, Any], *, modern: bool) -> str | None:
    """Return the log level of a request; since 2026-07-28 a request without one gets no log messages."""
    level: object = meta.get(LOG_LEVEL_META_KEY) if modern else LOG_LEVELS[0]
    return level if isinstance(level, str) and level in LOG_LEVELS else None


class Asker(Protocol):
    """Puts the questions of one call to the client and its user."""

    @property
    def caller(self) -> Caller:
        """The client, in the request that is to be answered with the result of the call."""
        ...

    async def ask_user(self, questions: Sequence[Question]) -> Answers:
        """Put approval questions to the client's user."""
        ...

    async def ask_client(self, requests: types.InputRequests) -> types.InputResponses:
        """Put a tool's own requests to the client, all at once."""
        ...


def read_response(request: types.InputRequest, result: Mapping[str, Any]) -> types.InputResponse:
    """Convert a client's plain result to the response of a request."""
    return _response_type(request).model_validate(result, by_name=False)


def _response_type(request: types.InputRequest) -> type[types.InputResponse]:
    match request:
        case types.ElicitRequest():
            return types.ElicitResult
        case types.CreateMessageRequest():
            return types.CreateMessageResult
        case types.ListRootsRequest():
            return types.ListRootsResult


_MOST_CLIENTS = 1024
_SETTLE_SECONDS = 0.02
_NOTICE_SECONDS = 5.0
"""How long a client may take to accept a notice; one that reads nothing is not notified any more."""


class ListChangeNotifier:
    """Notifies clients of changes to the list of tools. Clients of 2026-07-28 subscribe to `bus`."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions: dict[str, ServerSession] = {}
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def remember(self, key: str, session: ServerSession) -> None:
        """Notify this client of changes from now on; if there are many, one that listed its tools long ago is not."""
        self._sessions.pop(key, None)
        while len(self._sessions) >= _MOST_CLIENTS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = session

    def forget(self, key: str) -> None:
        """Notify a client no more that has left."""
        self._sessions.pop(key, None)

    def notify(self, change: object = None) -> None:
        """Notify all clients soon. Thread-safe: a tool that runs in a thread may change the registry."""
        if self._loop is None:
            self._changed.set()
        else:
            with suppress(RuntimeError):  # the loop has ended, and its clients are gone
                self._loop.call_soon_threadsafe(self._changed.set)

    @asynccontextmanager
    async def follow(self, source: object) -> AsyncGenerator[None, None]:
        """Follow a registry's changes while this is open; a toolset without `subscribe` is not followed."""
        subscribe: Callable[[Callable[[object], None]], object] | None = getattr(source, "subscribe", None)
        self._loop = asyncio.get_running_loop()
        leave = None if subscribe is None else subscribe(self.notify)
        sending = asyncio.create_task(self._send_notices())
        try:
            yield
        finally:
            if callable(leave):
                leave()
            sending.cancel()

    async def _send_notices(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)  # a server that adds a hundred tools causes one notice
            self._changed.clear()
            await self.bus.publish(ToolsListChanged())
            await asyncio.gather(*(self._send_notice(*each) for each in list(self._sessions.items())))

    async def _send_notice(self, key: str, session: ServerSession) -> None:
        try:
            async with asyncio.timeout(_NOTICE_SECONDS):  # the next notice to all clients waits for this
                await session.send_tool_list_changed()
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError, TimeoutError):
            self._sessions.pop(key, None)
