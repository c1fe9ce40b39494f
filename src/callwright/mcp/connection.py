"""`Connection`: the way to one server, link after link. One task owns it; calls may come from any task.

connecting ─► ready ─► lost ─► waiting (longer each time) ─► connecting …
     └─► signing in ─► ready
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, Protocol, TypeAlias

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.auth import TokenStorage
from pydantic import TypeAdapter

from callwright.core.errors import AuthRequired, ToolError, ToolFailed, Transient
from callwright.mcp.config import ServerConfig
from callwright.mcp.elicitation import ask_person
from callwright.mcp.oauth import Tokens
from callwright.mcp.session import FIRST_DELAY, LONGEST_DELAY, Link, Listing, list_all
from callwright.mcp.translate import ends_session, fault_of, nonsense
from callwright.tool.base import ToolContext

Condition: TypeAlias = Literal["connecting", "ready", "waiting", "signing in", "closed"]
Result: TypeAlias = types.CallToolResult | types.InputRequiredResult
RESULT: TypeAdapter[Result] = TypeAdapter(Result)
_STEADY_SECONDS = 30.0
_PATIENCE_SECONDS = 10.0


class Reporter(Protocol):
    """Where the progress of a call goes."""

    def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def reported(self, progress: float, total: float | None, message: str | None) -> None: ...


class Connection:
    """The way to one server. Reconnects by itself; what it cannot do meanwhile costs the calls that wanted it."""

    def __init__(
        self,
        config: ServerConfig,
        listed: Callable[[Listing], None],
        *,
        signing_in: Callable[[], None] = lambda: None,
        answerer: str = "",
        tokens: TokenStorage | None = None,
        auth: httpx2.Auth | None = None,
    ) -> None:
        self.config = config
        self.condition: Condition = "connecting"
        self.reason = ""
        """Why it is not ready, when it is not."""
        self.listing: Listing | None = None
        self.seconds = 0.0
        """How long the server took to be ready."""
        self._listed = listed
        self._signing_in = signing_in
        self._answerer = answerer
        self._tokens = tokens or Tokens()
        self._auth = auth
        self._link: Link | None = None
        self._began = 0.0
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._kicked = asyncio.Event()
        self._underway: list[ToolContext] = []

    async def open(self) -> None:
        """Begin, and wait until the server is ready, has failed for the first time or wants somebody to sign in."""
        self._owner = asyncio.create_task(self._own(), name=f"mcp {self.config.name}")
        await self._settled.wait()

    async def close(self) -> None:
        """End the session and the server, if it is ours."""
        if self._owner is not None:
            self._owner.cancel()
            with suppress(asyncio.CancelledError):
                await self._owner
        self.condition, self._link = "closed", None

    @property
    def sign_in_url(self) -> str:
        """Where somebody must sign in before this server can be used; empty when nobody must."""
        return self._link.sign_in_url if self._link is not None else ""

    @property
    def log(self) -> str:
        """The end of what the server's process wrote beside the protocol."""
        return self._link.log if self._link is not None else ""

    def check(self) -> None:
        """Raise `AuthRequired` while somebody has to sign in."""
        if self.sign_in_url:
            raise AuthRequired(f"the MCP server {self.config.name} wants you to sign in", url=self.sign_in_url)

    @asynccontextmanager
    async def session(self, context: ToolContext | None = None) -> AsyncGenerator[Client, None]:
        """Lend the session for one request; whatever goes wrong with it becomes a `ToolError`."""
        client, link = await self._ready(), self._link
        if context is not None:
            self._underway.append(context)
        try:
            yield client
        except MCPError as error:
            if link is not None and ends_session(error):
                link.lose(error.message)
            raise fault_of(error, self.config.name) from error
        except (ToolError, AuthRequired, TimeoutError):
            raise
        except Exception as error:
            raise nonsense(error, self.config.name) from error
        finally:
            if context is not None:
                self._underway.remove(context)

    async def _ready(self) -> Client:
        """The session, waited for as long as it takes to know whether there will be one soon."""
        if self._client is None and self.condition in ("connecting", "waiting"):
            self._kicked.set()
            self._settled.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), _PATIENCE_SECONDS)
        self.check()
        client = self._client
        if client is None:
            why = f": {self.reason}" if self.reason else ""
            raise Transient(f"the MCP server {self.config.name} is not connected{why}")
        return client

    @property
    def _client(self) -> Client | None:
        return self._link.client if self._link is not None else None

    async def _own(self) -> None:
        """Connect, stay, and connect again, waiting longer after each failure."""
        delay = FIRST_DELAY
        loop = asyncio.get_running_loop()
        while True:
            self._began = loop.time()
            self.condition = "connecting"
            link = self._link = Link(self.config, self, self._tokens, self._auth)
            try:
                await link.keep()
                self.reason = link.why() or self.reason
            except Exception as error:  # noqa: BLE001 - whatever a server or its SDK raises, this server is not connected
                self.reason = link.why(error)
            finally:
                link.client = None
            delay = FIRST_DELAY if loop.time() - self._began > _STEADY_SECONDS else delay
            self._change("waiting")
            self._kicked.clear()
            with suppress(TimeoutError):  # a call that wants the server shortens the wait, but not the first moments
                await asyncio.sleep(FIRST_DELAY * random.uniform(0.5, 1))
                await asyncio.wait_for(self._kicked.wait(), delay * random.uniform(0.5, 1))
            delay = min(delay * 2, LONGEST_DELAY)

    def _change(self, condition: Condition) -> None:
        self.condition = condition
        self._settled.set()

    def wants_sign_in(self) -> None:
        """Somebody has to sign in; the link waits for it."""
        self._signing_in()
        self._change("signing in")

    def listed(self, listing: Listing) -> None:
        """Pass on what the server offers now; the first time it is ready with that."""
        self.listing = listing
        self._listed(listing)
        if self.condition != "ready":
            self.seconds, self.reason = asyncio.get_running_loop().time() - self._began, ""
            self._change("ready")

    def lost(self, reason: str) -> None:
        """The session is over; another is begun."""
        self.reason = reason
        if self.condition == "ready":
            self.condition = "connecting"

    async def asked(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """A question in the middle of a call. Which call, the protocol does not say: the one that began last."""
        if not self._underway:
            return types.ElicitResult(action="cancel")
        return await ask_person(params, self._underway[-1], self._answerer)

    async def refreshed(self) -> None:
        """List anew now, as after an answer that says our picture of a tool is out of date."""
        async with self.session() as client:
            self.listing = await list_all(client)
        self._listed(self.listing)

    async def call(self, client: Client, params: types.CallToolRequestParams, progress: Reporter) -> Result:
        """Send one call: the short way over a pipe, else the SDK's."""
        lane = self._link.lane if self._link is not None else None
        if lane is None:
            return await client.session.send_request(
                types.CallToolRequest(params=params), RESULT, progress_callback=progress.reported
            )
        given: dict[str, Any] = {"name": params.name, "arguments": params.arguments or {}}
        if params.request_state is not None or params.input_responses is not None:
            given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        result = await lane.request("tools/call", given, progress)
        if result.get("resultType") == "input_required":
            return types.InputRequiredResult.model_validate(result, by_name=False)
        return types.CallToolResult.model_validate(result, by_name=False)

    async def responses(self, requests: types.InputRequests, context: ToolContext) -> types.InputResponses:
        """Get everything a server wants to know before it goes on."""
        given: types.InputResponses = {}
        for key, request in requests.items():
            if not isinstance(request, types.ElicitRequest):
                raise ToolFailed(f"{self.config.name} asked for {request.method}, which is not offered to it")
            given[key] = await ask_person(request.params, context, self._answerer, key=key)
        return given
