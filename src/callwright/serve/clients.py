"""Who makes a call, as the gateway sees them: what they can be asked, and how.

The client a call came from, for tools that want more of it than the call: its log, its model, its folders.

Clients are told when the list of tools changes, each as its version of the protocol has it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, Protocol

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata
from mcp_types import CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from callwright.core.calls import Answers, Question
from callwright.core.errors import ToolFailed
from callwright.core.json import Json

Context = ServerRequestContext[Any, Any]
LEVELS: tuple[types.LoggingLevel, ...] = (
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
class Wanted:
    """What a client wants called; with a state it goes on with a call that it was asked something about."""

    name: str
    arguments: Mapping[str, Any]
    state: str | None = None
    responses: Mapping[str, object] = field(default_factory=dict[str, object])


def wanted(params: types.CallToolRequestParams) -> Wanted:
    """Read a request of the SDK's."""
    return Wanted(params.name, params.arguments or {}, params.request_state, params.input_responses or {})


class Caller(Protocol):
    """A client in the middle of a call."""

    @property
    def key(self) -> str:
        """Which client this is: its session, or where the protocol has none, who it says it is and what it knows."""
        ...

    @property
    def modern(self) -> bool:
        """Whether the client is answered with questions (2026-07-28), not asked them during the call."""
        ...

    @property
    def watches(self) -> bool:
        """Whether it wants to hear of progress."""
        ...

    @property
    def reachable(self) -> bool:
        """Whether it can be asked something now."""
        ...

    @property
    def answers(self) -> bool:
        """Whether it says that it can be asked anything at all."""
        ...

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        """What it says it can do."""
        ...

    @property
    def least(self) -> str | None:
        """The least grave thing it wants in its log; None: nothing."""
        ...

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call is."""
        ...

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None) -> None:
        """Write into its log."""
        ...

    async def send(self, request: types.InputRequest) -> types.InputResponse:
        """Ask it something in the middle of the call."""
        ...


class ContextCaller:
    """A client that came through the SDK."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        headers: Mapping[str, str] = getattr(context.request, "headers", {})
        self.key = headers.get("mcp-session-id", "")
        if self.modern and headers and not self.key:
            self.key = _sessionless(context, headers)
        self.watches = bool(context.meta)

    @property
    def reachable(self) -> bool:
        return self._context.session.can_send_request

    @property
    def answers(self) -> bool:
        can = self.capabilities
        return can is not None and any((can.elicitation, can.sampling, can.roots))

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        return self._context.session.client_capabilities

    @property
    def least(self) -> str | None:
        return least_level(self._context.meta or {}, modern=self.modern)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._context.session.report_progress(done, total, message)

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        about = types.LoggingMessageNotification(params=params)
        await self._context.session.send_notification(about, self._context.request_id)

    async def send(self, request: types.InputRequest) -> types.InputResponse:
        about = ServerMessageMetadata(related_request_id=self._context.request_id)
        match request:
            case types.ElicitRequest():
                kind: type[types.InputResponse] = types.ElicitResult
            case types.CreateMessageRequest():
                kind = types.CreateMessageResult
            case types.ListRootsRequest():
                kind = types.ListRootsResult
        return await self._context.session.send_request(request, kind, metadata=about)


def least_level(meta: Mapping[str, Any], *, modern: bool) -> str | None:
    """What a request says about logging; since 2026-07-28 who does not say how much wants none."""
    said: object = meta.get(LOG_LEVEL_META_KEY) if modern else LEVELS[0]
    return said if isinstance(said, str) and said in LEVELS else None


def _sessionless(context: Context, headers: Mapping[str, str]) -> str:
    """Tells clients apart that keep no session, so that what one has found is not in another's list.

    By machine, name and credentials: two that have all three in common share, which costs them a longer list.
    """
    address = getattr(context.request, "client", None)
    known = (context.meta or {}).get(CLIENT_INFO_META_KEY)
    said = repr((address[0] if address else "", known, headers.get("authorization"), headers.get("user-agent")))
    return sha256(said.encode()).hexdigest()[:32]


_CALLING: ContextVar["CallingClient | None"] = ContextVar("calling_client", default=None)


class Asking(Protocol):
    """How the questions of one call reach whoever answers them."""

    async def people(self, questions: Sequence[Question]) -> Answers:
        """Put our questions to the client's person."""
        ...

    async def client(self, requests: types.InputRequests) -> types.InputResponses:
        """Put a tool's own requests to the client, all at once."""
        ...


class ClientLacks(ToolFailed):
    """A tool needs something of its client that the client does not offer."""

    def __init__(self, wanted: Sequence[str]) -> None:
        super().__init__(f"this tool needs a client that offers {' and '.join(wanted)}, and this one does not")
        self.wanted = tuple(wanted)

    def refusal(self) -> MCPError:
        """As the protocol of 2026-07-28 says it."""
        needed: dict[str, Any] = {name: {} for name in self.wanted}
        return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, self.message, {"requiredCapabilities": needed})


class CallingClient:
    """What a tool may want of the client that called it. What it cannot give is a failure of the call."""

    def __init__(self, caller: Caller, asking: Asking, least: types.LoggingLevel = "debug") -> None:
        self._caller = caller
        self._asking = asking
        self._least = least

    async def log(self, data: Json, level: types.LoggingLevel = "info", logger: str | None = None) -> None:
        """Write into the client's log, unless it wants to hear of graver things only."""
        least = self._caller.least
        if least is not None and LEVELS.index(level) >= max(map(LEVELS.index, (least, self._least))):
            await self._caller.log(level, data, logger)

    async def request(self, requests: types.InputRequests) -> types.InputResponses:
        """Ask the client for several things at once; the answers come under the same keys."""
        lacking = sorted({kind for kind in map(_kind, requests.values()) if not self.offers(kind)})
        if lacking:
            raise ClientLacks(lacking)
        return await self._asking.client(requests)

    async def sample(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Borrow the client's model for one message."""
        answer = (await self.request({"sample": types.CreateMessageRequest(params=params)}))["sample"]
        if not isinstance(answer, types.CreateMessageResult):
            raise ToolFailed("the client did not lend its model")
        return answer

    async def roots(self) -> Sequence[types.Root]:
        """The folders the client works in."""
        answer = (await self.request({"roots": types.ListRootsRequest()}))["roots"]
        if not isinstance(answer, types.ListRootsResult):
            raise ToolFailed("the client did not say which folders it works in")
        return answer.roots

    def offers(self, kind: Literal["elicitation", "sampling", "roots"]) -> bool:
        """Whether the client says it can be asked for this."""
        can = self._caller.capabilities
        return can is not None and getattr(can, kind) is not None


def _kind(request: types.InputRequest) -> Literal["elicitation", "sampling", "roots"]:
    """The capability a client needs for a request."""
    match request:
        case types.ElicitRequest():
            return "elicitation"
        case types.CreateMessageRequest():
            return "sampling"
        case types.ListRootsRequest():
            return "roots"


def calling_client() -> CallingClient | None:
    """The client that called the tool which asks; None where no MCP client did."""
    return _CALLING.get()


def called_by(client: CallingClient) -> None:
    """Let tools that run from here on know their client."""
    _CALLING.set(client)


def read_response(request: types.InputRequest, result: Mapping[str, Any]) -> types.InputResponse:
    """A client's plain answer as what the request is answered with."""
    match request:
        case types.ElicitRequest():
            return types.ElicitResult.model_validate(result, by_name=False)
        case types.CreateMessageRequest():
            return types.CreateMessageResult.model_validate(result, by_name=False)
        case types.ListRootsRequest():
            return types.ListRootsResult.model_validate(result, by_name=False)


_MOST_CLIENTS = 1024
_SETTLE_SECONDS = 0.02


class News:
    """Who has seen a list hears that it is old. `bus` is where clients of 2026-07-28 subscribe."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions: dict[str, ServerSession] = {}
        self._changed = asyncio.Event()

    def remember(self, key: str, session: ServerSession) -> None:
        """Tell this client of changes from now on."""
        while len(self._sessions) >= _MOST_CLIENTS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = session

    def changed(self, change: object = None) -> None:
        """Have everybody told soon."""
        self._changed.set()

    @asynccontextmanager
    async def told(self, source: object) -> AsyncGenerator[None, None]:
        """Follow a registry's changes while this is open; a toolset that tells nobody of changes is not followed."""
        subscribe: Callable[[Callable[[object], None]], object] | None = getattr(source, "subscribe", None)
        leave = None if subscribe is None else subscribe(self.changed)
        telling = asyncio.create_task(self._tell())
        try:
            yield
        finally:
            if callable(leave):
                leave()
            telling.cancel()

    async def _tell(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)  # a server that brings a hundred tools is one change
            self._changed.clear()
            await self.bus.publish(ToolsListChanged())
            for key, session in list(self._sessions.items()):
                try:
                    await session.send_tool_list_changed()
                except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    self._sessions.pop(key, None)
