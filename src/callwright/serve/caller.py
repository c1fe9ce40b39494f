"""Who makes a call, as the gateway sees them: what they can be asked, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp_types import CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

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
