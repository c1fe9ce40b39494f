"""`Connection`: the connection to one server, with reconnects. One task owns it; calls may come from any task.

connecting ─► ready ─► lost ─► waiting (longer each time) ─► connecting …
     └─► signing in ─► ready
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
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
from callwright.mcp.listing import Listing
from callwright.mcp.oauth import Tokens
from callwright.mcp.session import FIRST_DELAY, LONGEST_DELAY, ServerLink
from callwright.mcp.translate import cut_blocks, ends_session, fault_of, invalid_reply
from callwright.tool.base import OuterSession, ToolContext

Condition: TypeAlias = Literal["connecting", "ready", "waiting", "signing in", "closed"]
Result: TypeAlias = types.CallToolResult | types.InputRequiredResult
RESULT: TypeAdapter[Result] = TypeAdapter(Result)
_STEADY_SECONDS = 30.0
_PATIENCE_SECONDS = 10.0


class ProgressReporter(Protocol):
    """Receives the progress of a call."""

    def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def report(self, progress: float, total: float | None, message: str | None) -> None: ...


class Connection:
    """The connection to one server. Reconnects by itself; calls that need it meanwhile fail as transient."""

    def __init__(
        self,
        config: ServerConfig,
        listed: Callable[[Listing], Awaitable[None]],
        *,
        signing_in: Callable[[], None],
        answerer: str,
        tokens: TokenStorage | None,
        auth: httpx2.Auth | None,
    ) -> None:
        self.config = config
        self._condition: Condition = "connecting"
        self.reason = ""
        """Why the server is not ready."""
        self.listing: Listing | None = None
        self.seconds = 0.0
        """How long the server took to become ready."""
        self._on_listing = listed
        self._on_sign_in = signing_in
        self._answerer = answerer
        self._tokens = tokens or Tokens()
        self._auth = auth
        self._link: ServerLink | None = None
        self._began = 0.0
        self._owner: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        self._retry_now = asyncio.Event()
        self._active_calls: list[ToolContext] = []

    async def open(self) -> None:
        """Connect, and wait until the server is ready, has failed once or requires a sign-in."""
        self._owner = asyncio.create_task(self._run(), name=f"mcp {self.config.name}")
        try:
            await self._known.wait()
        except BaseException:  # cancelled: the caller gets no connection that it could close
            await asyncio.shield(asyncio.ensure_future(self.close()))
            raise

    async def close(self) -> None:
        """End the session, and the server process if there is one."""
        if self._owner is not None:
            self._owner.cancel()
            with suppress(asyncio.CancelledError):
                await self._owner
        self._condition, self._link = "closed", None

    @property
    def condition(self) -> Condition:
        """What the server does now. A sign-in in the middle of a session leaves it ready when it ends."""
        signed_in = self._condition == "signing in" and not self.sign_in_url and self._client is not None
        return "ready" if signed_in else self._condition

    @property
    def sign_in_url(self) -> str:
        """Where the user must sign in before the server can be used; empty when no sign-in is pending."""
        return self._link.sign_in_url if self._link is not None else ""

    @property
    def log(self) -> str:
        """The end of the server process's error output."""
        return self._link.log if self._link is not None else ""

    def check(self) -> None:
        """Raise `AuthRequired` while a sign-in is pending."""
        if self.sign_in_url:
            raise AuthRequired(f"the MCP server {self.config.name} requires you to sign in", url=self.sign_in_url)

    @asynccontextmanager
    async def session(self, context: ToolContext | None = None) -> AsyncGenerator[Client, None]:
        """Lend the session for one request; every failure of it becomes a `ToolError`."""
        client, link = await self._ready(), self._link
        if context is not None:
            self._active_calls.append(context)
        try:
            yield client
        except MCPError as error:
            if link is not None and ends_session(error):
                link.lose(error.message)
            raise fault_of(error, self.config.name) from error
        except (ToolError, AuthRequired, TimeoutError):  # a timeout is the executor's own limit
            raise
        except Exception as error:
            raise invalid_reply(error, self.config.name) from error
        finally:
            if context is not None:
                self._active_calls.remove(context)

    async def _ready(self) -> Client:
        """Return the session, after waiting a short time for a connection attempt under way."""
        if self._client is None and self.condition in ("connecting", "waiting"):
            self._retry_now.set()
            self._known.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._known.wait(), _PATIENCE_SECONDS)
        self.check()
        client = self._client
        if client is None:
            why = f": {self.reason}" if self.reason else ""
            raise Transient(f"the MCP server {self.config.name} is not connected{why}")
        return client

    @property
    def _client(self) -> Client | None:
        return self._link.client if self._link is not None else None

    async def _run(self) -> None:
        """Connect, stay connected, and reconnect with growing delays."""
        delay = FIRST_DELAY
        loop = asyncio.get_running_loop()
        while True:
            self._began = loop.time()
            self._condition = "connecting"
            link = self._link = ServerLink(self.config, self, self._tokens, self._auth)
            try:
                await link.run()
                self.reason = link.why() or self.reason
            except Exception as error:  # noqa: BLE001 - after any error of a server or its SDK, this server is not connected
                self.reason = link.why(error)
            finally:
                link.client = None
            delay = FIRST_DELAY if loop.time() - self._began > _STEADY_SECONDS else delay
            self._change("waiting")
            self._retry_now.clear()
            with suppress(TimeoutError):  # a call that needs the server shortens the wait, but not the first delay
                await asyncio.sleep(FIRST_DELAY * random.uniform(0.5, 1))
                await asyncio.wait_for(self._retry_now.wait(), delay * random.uniform(0.5, 1))
            delay = min(delay * 2, LONGEST_DELAY)

    def _change(self, condition: Condition) -> None:
        self._condition = condition
        self._known.set()

    def on_sign_in_needed(self) -> None:
        """Report that the user has to sign in; the link waits for it."""
        self._on_sign_in()
        self._change("signing in")

    async def on_listing(self, listing: Listing) -> None:
        """Pass on the server's new listing; the first one makes the server ready."""
        self.listing = listing
        await self._on_listing(listing)
        if self._condition != "ready":
            self.seconds, self.reason = asyncio.get_running_loop().time() - self._began, ""
            self._change("ready")

    def on_lost(self, reason: str) -> None:
        """Note that the session ended; the owner task begins another."""
        self.reason = reason
        if self._condition in ("ready", "signing in"):
            self._condition = "connecting"

    async def on_elicitation(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Put a question of the server to the user, for the call that began last: the protocol does not say which."""
        # with calls of several users the answer of one could go into the call of another
        if len({call.state.get(OuterSession).session_id or call.session_id for call in self._active_calls}) != 1:
            return types.ElicitResult(action="cancel")
        return await ask_person(params, self._active_calls[-1], self._answerer)

    async def refresh(self) -> None:
        """List the tools again now, after an error that says that their definitions are out of date."""
        async with self.session() as client:
            listing = self.listing if self._link is None else await self._link.list_all(client)
        if listing is not None:
            self.listing = listing
            await self._on_listing(listing)

    async def call(self, client: Client, params: types.CallToolRequestParams, progress: ProgressReporter) -> Result:
        """Send one call: over a pipe by the fast path, else through the SDK."""
        fast_path = self._link.fast_path if self._link is not None else None
        if fast_path is None:
            return await client.session.send_request(
                types.CallToolRequest(params=params), RESULT, progress_callback=progress.report
            )
        given: dict[str, Any] = {"name": params.name, "arguments": params.arguments or {}}
        if params.request_state is not None or params.input_responses is not None:
            given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        result = await fast_path.request("tools/call", given, progress)
        if result.get("resultType") == "input_required":
            return types.InputRequiredResult.model_validate(result, by_name=False)
        cut_blocks(result)
        return types.CallToolResult.model_validate(result, by_name=False)

    async def responses(self, requests: types.InputRequests, context: ToolContext) -> types.InputResponses:
        """Get the user's answers to everything a server asks before it continues."""
        given: types.InputResponses = {}
        for key, request in requests.items():
            if not isinstance(request, types.ElicitRequest):
                raise ToolFailed(f"{self.config.name} sent {request.method}, which this client does not support")
            given[key] = await ask_person(request.params, context, self._answerer, key=key)
        return given
