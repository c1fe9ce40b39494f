"""`Connection`: one server's session. One task owns it, from connecting to letting go; calls may come from any task.

connecting ─► ready ─► lost ─► waiting (longer each time) ─► connecting …
     └─► signing in ─► ready
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Literal, Protocol, TypeAlias

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.client.auth import TokenStorage
from pydantic import TypeAdapter

from toolwright.core.errors import AuthRequired, ToolError, ToolFailed, Transient
from toolwright.mcp.config import ServerConfig
from toolwright.mcp.elicit import ask_person
from toolwright.mcp.faults import ends_session, fault_of, nonsense, reason_of
from toolwright.mcp.http import http_transport
from toolwright.mcp.listing import Listing, list_all
from toolwright.mcp.oauth import SignIn, Tokens
from toolwright.mcp.stdio import ServerProcess
from toolwright.tool.base import ToolContext

Condition: TypeAlias = Literal["connecting", "ready", "waiting", "signing in", "closed"]
Result: TypeAlias = types.CallToolResult | types.InputRequiredResult
RESULT: TypeAdapter[Result] = TypeAdapter(Result)
_FIRST_DELAY = 0.5
_LONGEST_DELAY = 60.0
_STEADY_SECONDS = 30.0
_SETTLE_SECONDS = 0.05
_PATIENCE_SECONDS = 10.0
_CLIENT = types.Implementation(name="toolwright", version="0.1.0")
_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)


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
    ) -> None:
        self.config = config
        self.condition: Condition = "connecting"
        self.reason = ""
        """Why it is not ready, when it is not."""
        self.listing: Listing | None = None
        self._listed = listed
        self._signing_in = signing_in
        self._answerer = answerer
        self._tokens = tokens or Tokens()
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._sign_in: SignIn | None = None
        self._owner: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._stale = False
        self._lost = False
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
        self.condition, self._client = "closed", None

    @property
    def sign_in_url(self) -> str:
        """Where somebody must sign in before this server can be used; empty when nobody must."""
        return self._sign_in.url if self._sign_in is not None else ""

    def check(self) -> None:
        """Raise `AuthRequired` while somebody has to sign in."""
        if self.sign_in_url:
            raise AuthRequired(f"the MCP server {self.config.name} wants you to sign in", url=self.sign_in_url)

    @asynccontextmanager
    async def session(self, context: ToolContext | None = None) -> AsyncGenerator[Client, None]:
        """Lend the session for one request; whatever goes wrong with it becomes a `ToolError`."""
        client = await self._ready()
        if context is not None:
            self._underway.append(context)
        try:
            yield client
        except MCPError as error:
            if ends_session(error):
                self._lose(error.message)
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
        if self._client is None:
            why = f": {self.reason}" if self.reason else ""
            raise Transient(f"the MCP server {self.config.name} is not connected{why}")
        return self._client

    def _lose(self, reason: str) -> None:
        self._lost, self.reason = True, reason
        if self._client is not None:
            self._client, self.condition = None, "connecting"
        self._wake.set()

    async def _own(self) -> None:
        """Connect, serve, and connect again, waiting longer after each failure."""
        delay = _FIRST_DELAY
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self.condition, self._lost = "connecting", False
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - whatever a server or its SDK raises, this server is not connected
                self.reason = self._last_words() or reason_of(error)
            finally:
                self._client = None
            delay = _FIRST_DELAY if loop.time() - began > _STEADY_SECONDS else delay
            self._change("waiting")
            self._kicked.clear()
            with suppress(TimeoutError):  # a call that wants the server shortens the wait, but not the first moments
                await asyncio.sleep(_FIRST_DELAY * random.uniform(0.5, 1))
                await asyncio.wait_for(self._kicked.wait(), delay * random.uniform(0.5, 1))
            delay = min(delay * 2, _LONGEST_DELAY)

    def _change(self, condition: Condition) -> None:
        self.condition = condition
        self._settled.set()

    async def _serve(self) -> None:
        self._process = ServerProcess(self.config) if self.config.command else None
        async with AsyncExitStack() as stack:
            client = self._client_of(self._process, stack)
            await self._begin(client, stack)
            stack.push_async_callback(_stop, self._watch(client, self._process))
            await self._follow(client)
        self.reason = self._last_words() or self.reason

    def _last_words(self) -> str:
        return self._process.explain() if self._process is not None else ""

    def _client_of(self, process: ServerProcess | None, stack: AsyncExitStack) -> Client:
        if process is not None:
            transport = process.transport()
        else:
            if not any(name.lower() == "authorization" for name in self.config.headers):
                self._sign_in = SignIn(self.config, self._tokens, self._wants_sign_in)
                stack.callback(self._sign_in.close)
            transport = http_transport(self.config, self._sign_in.auth if self._sign_in else None)
        return Client(
            transport,  # type: ignore[arg-type] - our streams have what the SDK uses of its own
            message_handler=self._heard,
            elicitation_callback=self._elicited,
            client_info=_CLIENT,
            cache=None,
        )

    def _wants_sign_in(self) -> None:
        self._signing_in()
        self._change("signing in")

    async def _begin(self, client: Client, stack: AsyncExitStack) -> None:
        """Introduce ourselves and list what there is; somebody who has to sign in first may take their time."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.config.connect_seconds) as limit:
            patience = loop.create_task(self._be_patient(limit))
            try:
                await stack.enter_async_context(client)
                self.listing = await list_all(client)
            finally:
                patience.cancel()
        self._client, self.reason, self._stale = client, "", False
        self._listed(self.listing)
        self._change("ready")

    async def _be_patient(self, limit: asyncio.Timeout) -> None:
        while True:
            await asyncio.sleep(0.2)
            if self.sign_in_url and (deadline := limit.when()) is not None:
                limit.reschedule(max(deadline, asyncio.get_running_loop().time() + self.config.connect_seconds))

    def _watch(self, client: Client, process: ServerProcess | None) -> list[asyncio.Task[None]]:
        watchers = [asyncio.create_task(self._listen(client))]
        if process is not None:
            watchers.append(asyncio.create_task(self._mourn(process)))
        return watchers

    async def _mourn(self, process: ServerProcess) -> None:
        await process.lost.wait()
        if process.lane is not None:
            process.lane.close()
        self._lose("the server ended")

    async def _listen(self, client: Client) -> None:
        """Hear of changes where the protocol wants them asked for."""
        can = client.server_capabilities
        tools = bool(can.tools and can.tools.list_changed)
        prompts = bool(can.prompts and can.prompts.list_changed)
        resources = bool(can.resources and can.resources.list_changed)
        delay = _FIRST_DELAY
        while client.session.discover_result is not None and (tools or prompts or resources):
            try:
                async with client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as events:
                    async for _ in events:
                        delay = _FIRST_DELAY
                        self._refresh()
            except Exception:  # noqa: BLE001 - a lost subscription is asked for again
                pass
            await asyncio.sleep(delay * random.uniform(0.5, 1))
            delay = min(delay * 2, _LONGEST_DELAY)
            self._refresh()  # what changed while nobody listened

    async def _follow(self, client: Client) -> None:
        """Stay with the session until it is lost, listing anew whenever the server says that something changed."""
        while not self._lost:
            await self._wake.wait()
            await asyncio.sleep(_SETTLE_SECONDS)  # a server that announces a hundred changes is asked once
            self._wake.clear()
            if self._stale and not self._lost:
                self._stale = False
                async with asyncio.timeout(self.config.connect_seconds):
                    self.listing = await list_all(client)
                self._listed(self.listing)

    def _refresh(self) -> None:
        self._stale = True
        self._wake.set()

    async def refreshed(self) -> None:
        """List anew now, as after an answer that says our picture of a tool is out of date."""
        async with self.session() as client:
            self.listing = await list_all(client)
        self._listed(self.listing)

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            self._refresh()

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """A question in the middle of a call. Which call, the protocol does not say: the one that began last."""
        if not self._underway:
            return types.ElicitResult(action="cancel")
        return await ask_person(params, self._underway[-1], self._answerer)

    async def call(self, client: Client, params: types.CallToolRequestParams, progress: Reporter) -> Result:
        """Send one call: the short way over a pipe, else the SDK's."""
        lane = self._process.lane if self._process is not None else None
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


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
