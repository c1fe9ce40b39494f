"""`Link`: one session with a server, from starting it until it is lost. What is lost is not taken up again.

What a server offers: its tools, resources and prompts, page by page and within bounds.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.client.auth import TokenStorage

from callwright.core.json import compact
from callwright.mcp.config import ServerConfig
from callwright.mcp.fast_path import Lane
from callwright.mcp.http import http_transport
from callwright.mcp.oauth import SignIn
from callwright.mcp.pinned_tools import digest_of
from callwright.mcp.stdio import ServerProcess
from callwright.mcp.translate import definition_of, reason_of

Item = TypeVar("Item")
_MOST_PAGES = 200
_MOST_ITEMS = 10_000
_MOST_DEFINITION_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool as the server defines it, and the digest of that."""

    tool: types.Tool
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server offered when it was last asked."""

    tools: dict[str, Offered]
    prompts: tuple[types.Prompt, ...] = ()
    resources: bool = False
    """There is something to read: what, the server is asked each time."""
    instructions: str = ""
    protocol: str = ""
    """The version of MCP that is spoken."""
    server: str = ""
    """What the server calls itself, with its version."""
    problems: tuple[str, ...] = ()


async def list_all(client: Client) -> Listing:
    """Ask a server for everything it offers; what is out of bounds is left out and named."""
    can = client.server_capabilities
    problems: list[str] = []
    tools: dict[str, Offered] = {}
    if can.tools is not None:
        for tool in await _pages(lambda cursor: client.list_tools(cursor=cursor), "tools", problems):
            _take(tools, tool, problems)
    prompts: list[types.Prompt] = []
    if can.prompts is not None:
        prompts = await _pages(lambda cursor: client.list_prompts(cursor=cursor), "prompts", problems)
    readable = can.resources is not None and any((await resources_of(client)).values())
    return Listing(
        tools,
        tuple(prompts),
        readable,
        client.instructions or "",
        client.protocol_version,
        _introduced(client.server_info),
        tuple(problems),
    )


def _introduced(server: types.Implementation | None) -> str:
    return f"{server.name} {server.version}".strip() if server is not None else ""


async def resources_of(client: Client) -> dict[str, Any]:
    """The resources there are now, and the patterns of those that exist when asked for."""
    listed = await _pages(lambda cursor: client.list_resources(cursor=cursor), "resources", [])
    templates = await _pages(lambda cursor: client.list_resource_templates(cursor=cursor), "resource_templates", [])
    return {
        "resources": [_entry(str(item.uri), item) for item in listed],
        "templates": [_entry(item.uri_template, item) for item in templates],
    }


def _entry(uri: str, item: types.Resource | types.ResourceTemplate) -> dict[str, str]:
    entry = {"uri": uri, "name": item.title or item.name, "description": item.description or ""}
    return {key: value for key, value in (*entry.items(), ("type", item.mime_type or "")) if value}


def _take(tools: dict[str, Offered], tool: types.Tool, problems: list[str]) -> None:
    definition = definition_of(tool)
    size = len(compact(definition))
    if tool.name in tools:
        problems.append(f"{tool.name}: listed twice; the first definition counts")
    elif not tool.name or size > _MOST_DEFINITION_CHARS:
        problems.append(f"{tool.name[:80]!r}: left out, its definition has {size} characters")
    else:
        tools[tool.name] = Offered(tool, digest_of(definition))


async def _pages(fetch: Callable[[str | None], Awaitable[Any]], kind: str, problems: list[str]) -> list[Any]:
    """Follow the cursors; a paginator that never ends ends here, and a list that is promised and not there is empty."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        try:
            page = await fetch(cursor)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            problems.append(f"it promises {kind} and has no list of them")
            break
        items += getattr(page, kind)
        cursor = page.next_cursor
        if cursor is None or len(items) >= _MOST_ITEMS:
            break
    if cursor is not None:
        problems.append(f"the list of {kind} did not end; the first {min(len(items), _MOST_ITEMS)} count")
    return items[:_MOST_ITEMS]


FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
_SETTLE_SECONDS = 0.05
_CLIENT = types.Implementation(name="callwright", version="0.1.0")
_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)


class LinkListener(Protocol):
    """Whoever keeps a link and is told what becomes of it."""

    def wants_sign_in(self) -> None:
        """Somebody has to sign in before there can be a session."""
        ...

    def listed(self, listing: Listing) -> None:
        """This is what the server offers now."""
        ...

    def lost(self, reason: str) -> None:
        """The session is over."""
        ...

    async def asked(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """The server asks something in the middle of a call."""
        ...


class Link:
    """One session. `client` is there from when the server is ready until it is lost."""

    def __init__(
        self, config: ServerConfig, keeper: LinkListener, tokens: TokenStorage, auth: httpx2.Auth | None = None
    ) -> None:
        self._config = config
        self._keeper = keeper
        self._tokens = tokens
        self._auth = auth
        self.client: Client | None = None
        self._process = ServerProcess(config) if config.command else None
        self._sign_in: SignIn | None = None
        self._wake = asyncio.Event()
        self._stale = False
        self._lost = False

    @property
    def sign_in_url(self) -> str:
        """Where somebody must sign in; empty when nobody must."""
        return self._sign_in.url if self._sign_in is not None else ""

    @property
    def lane(self) -> Lane | None:
        """The short way for calls, over a pipe."""
        return self._process.lane if self._process is not None else None

    @property
    def log(self) -> str:
        """The end of what the server's process wrote beside the protocol."""
        return self._process.log if self._process is not None else ""

    def why(self, error: Exception | None = None) -> str:
        """Why it ended, as far as anybody knows; a process that ended by itself knows better than the error."""
        reasons = [] if error is None else [self._reason(error)]
        if self._process is None:
            return "".join(reasons)
        if self._process.ended:
            reasons = []
        return "; ".join(filter(None, (*reasons, self._process.explain())))

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"it did not introduce itself and list its tools within {self._config.connect_seconds:g} s"
        return reason_of(error)

    async def keep(self) -> None:
        """Connect and stay until the server is lost; raises what keeps it from connecting."""
        async with AsyncExitStack() as stack:
            client = self._client_of(stack)
            await self._begin(client, stack)
            stack.push_async_callback(_stop, self._watch(client))
            await self._follow(client)

    def lose(self, reason: str) -> None:
        """Give the session up; whoever keeps the link begins another."""
        self._lost, self.client = True, None
        self._keeper.lost(reason)
        self._wake.set()

    def refresh(self) -> None:
        """Have the server asked again what it offers."""
        self._stale = True
        self._wake.set()

    def _client_of(self, stack: AsyncExitStack) -> Client:
        if self._process is not None:
            transport = self._process.transport()
        else:
            transport = http_transport(self._config, self._auth or self._signing_in(stack))
        return Client(
            transport,  # type: ignore[arg-type] - our streams have what the SDK uses of its own
            message_handler=self._heard,
            elicitation_callback=self._elicited,
            client_info=_CLIENT,
            cache=None,
        )

    def _signing_in(self, stack: AsyncExitStack) -> httpx2.Auth | None:
        """Have a person sign in where the server wants that and the entry brings no credentials of its own."""
        if any(name.lower() == "authorization" for name in self._config.headers):
            return None
        self._sign_in = SignIn(self._config, self._tokens, self._keeper.wants_sign_in)
        stack.callback(self._sign_in.close)
        return self._sign_in.auth

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            self.refresh()

    async def _elicited(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return await self._keeper.asked(params)

    async def _begin(self, client: Client, stack: AsyncExitStack) -> None:
        """Introduce ourselves and list what there is; somebody who has to sign in first may take their time."""
        async with asyncio.timeout(self._config.connect_seconds) as limit:
            patience = asyncio.create_task(self._be_patient(limit))
            try:
                await stack.enter_async_context(client)
                listing = await list_all(client)
            finally:
                patience.cancel()
        self.client, self._stale = client, False
        self._keeper.listed(listing)

    async def _be_patient(self, limit: asyncio.Timeout) -> None:
        while True:
            await asyncio.sleep(0.2)
            if self.sign_in_url and (deadline := limit.when()) is not None:
                limit.reschedule(max(deadline, asyncio.get_running_loop().time() + self._config.connect_seconds))

    def _watch(self, client: Client) -> list[asyncio.Task[None]]:
        watchers = [asyncio.create_task(self._listen(client))]
        if self._process is not None:
            watchers.append(asyncio.create_task(self._mourn(self._process)))
        return watchers

    async def _mourn(self, process: ServerProcess) -> None:
        await process.lost.wait()
        if process.lane is not None:
            process.lane.close()
        self.lose("the server ended")

    async def _listen(self, client: Client) -> None:
        """Hear of changes where the protocol wants them asked for."""
        can = client.server_capabilities
        tools = bool(can.tools and can.tools.list_changed)
        prompts = bool(can.prompts and can.prompts.list_changed)
        resources = bool(can.resources and can.resources.list_changed)
        delay = FIRST_DELAY
        while client.session.discover_result is not None and (tools or prompts or resources):
            try:
                async with client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as events:
                    async for _ in events:
                        delay = FIRST_DELAY
                        self.refresh()
            except Exception:  # noqa: BLE001 - a lost subscription is asked for again
                pass
            await asyncio.sleep(delay * random.uniform(0.5, 1))
            delay = min(delay * 2, LONGEST_DELAY)
            self.refresh()  # what changed while nobody listened

    async def _follow(self, client: Client) -> None:
        """Stay with the session until it is lost, listing anew whenever the server says that something changed."""
        while not self._lost:
            await self._wake.wait()
            await asyncio.sleep(_SETTLE_SECONDS)  # a server that announces a hundred changes is asked once
            self._wake.clear()
            if self._stale and not self._lost:
                self._stale = False
                async with asyncio.timeout(self._config.connect_seconds):
                    listing = await list_all(client)
                self._keeper.listed(listing)


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
