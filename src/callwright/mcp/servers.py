"""`McpServers`: the servers in use. Puts their tools into a registry and keeps it in step while sessions run."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

import httpx2
from mcp.client.auth import TokenStorage

from callwright.core.errors import UsageError
from callwright.mcp.config import ServerConfig
from callwright.mcp.connection import Condition, Connection
from callwright.mcp.elicitation import AnswerTool
from callwright.mcp.pinned_tools import PinnedTools
from callwright.mcp.session import Listing
from callwright.mcp.tools import RemoteTool, SignInTool, prompt_tool, resource_tools
from callwright.mcp.translate import server_names, tool_names
from callwright.tool.base import Tool, identify

_OURS = ("answer", "get_prompt", "list_resources", "read_resource", "sign_in")


class Shelf(Protocol):
    """Where tools are put: a `Registry`."""

    def add(self, tool: Tool) -> object: ...

    def remove(self, name: str) -> object: ...

    def __contains__(self, name: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one server is doing."""

    name: str
    condition: Condition
    tools: tuple[str, ...]
    reason: str = ""
    """Why it is not ready, when it is not."""
    sign_in_url: str = ""
    held: tuple[str, ...] = ()
    """Tools that changed after they were accepted and wait to be accepted again."""
    problems: tuple[str, ...] = ()
    protocol: str = ""
    """The version of MCP that is spoken with it."""
    server: str = ""
    """What it calls itself, with its version."""
    seconds: float = 0.0
    """How long it took to be ready."""
    log: str = ""
    """The end of what its process wrote beside the protocol: where it tells why it fails."""


class McpServers:
    """Connects to servers and keeps a registry in step with what they offer.

    `async with McpServers(configs, registry):` connects to all at once. A server that cannot be reached costs nothing
    but its own tools; it is tried again, and its tools appear when it answers.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        into: Shelf,
        *,
        seen: PinnedTools | None = None,
        tokens: Callable[[ServerConfig], TokenStorage] | None = None,
        auth: Callable[[ServerConfig], httpx2.Auth | None] | None = None,
    ) -> None:
        """`auth` signs requests where no person is to sign in: with a secret, a key, a workload's token."""
        self._configs = {config.name: config for config in servers}
        self._shelf = into
        self._seen = seen or PinnedTools()
        self._tokens = tokens
        self._auth = auth
        self._names = server_names(self._configs)
        self._stocks: dict[str, _Stock] = {}

    async def __aenter__(self) -> "McpServers":
        await asyncio.gather(*(self._connect(config) for config in self._configs.values()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(self.remove_server(name) for name in list(self._stocks)))

    async def add_server(self, config: ServerConfig) -> ServerStatus:
        """Connect to one more server while sessions run."""
        if config.name in self._stocks:
            raise UsageError(f"there is an MCP server {config.name!r} already; remove it first")
        given = server_names([*self._names, config.name])
        # servers that are connected keep the names their tools go by; only the new one may have to give way
        self._names[config.name] = given[config.name]
        self._configs[config.name] = config
        await self._connect(config)
        return self._stocks[config.name].status()

    async def remove_server(self, name: str) -> None:
        """Let a server go, and its tools with it."""
        stock = self._stocks.pop(name, None)
        if stock is None:
            raise UsageError(f"there is no MCP server {name!r}; there are {', '.join(self._stocks) or 'none'}")
        self._configs.pop(name, None)
        self._names.pop(name, None)
        stock.clear()
        await stock.connection.close()

    def status(self) -> list[ServerStatus]:
        """How every server is doing."""
        return [stock.status() for stock in self._stocks.values()]

    def accept(self, name: str) -> None:
        """Take a tool that its server changed as it is now: a person has looked at it."""
        for stock in self._stocks.values():
            if stock.accept(name):
                return
        raise UsageError(f"there is no changed MCP tool {name!r} to accept")

    async def _connect(self, config: ServerConfig) -> None:
        stock = _Stock(config, self._names[config.name], self._shelf, self._seen)
        stock.connection = Connection(
            config,
            stock.restock,
            signing_in=stock.offer_sign_in,
            answerer=stock.names["answer"],
            tokens=self._tokens(config) if self._tokens else None,
            auth=self._auth(config) if self._auth and config.url else None,
        )
        self._stocks[config.name] = stock
        await stock.connection.open()


class _Stock:
    """What one server has on the shelf."""

    connection: Connection

    def __init__(self, config: ServerConfig, name: str, shelf: Shelf, seen: PinnedTools) -> None:
        self._config = config
        self._name = name
        self._shelf = shelf
        self._seen = seen
        self._tools: dict[str, Tool] = {}
        self._problems: list[str] = []
        self.names: Mapping[str, str] = tool_names(name, _OURS)

    def status(self) -> ServerStatus:
        link, listing = self.connection, self.connection.listing
        held = tuple(name for name, tool in self._tools.items() if isinstance(tool, RemoteTool) and tool.held)
        return ServerStatus(
            self._config.name,
            link.condition,
            tuple(sorted(name for name, tool in self._tools.items() if not isinstance(tool, AnswerTool))),
            link.reason,
            link.sign_in_url,
            held,
            (*self._problems, *(listing.problems if listing else ())),
            listing.protocol if listing else "",
            listing.server if listing else "",
            link.seconds,
            link.log,
        )

    def offer_sign_in(self) -> None:
        """Until somebody has signed in there is nothing else to offer."""
        if not self._tools:
            self._put({self.names["sign_in"]: SignInTool(self.names["sign_in"], self.connection)})

    def restock(self, listing: Listing) -> None:
        """Bring the shelf in step with a new listing; tools that stayed the same stay the same objects."""
        self._problems = []
        given = tool_names(self._name, [*listing.tools])
        wanted: dict[str, Tool] = {}
        for tool, offered in listing.tools.items():
            kept = self._tools.get(given[tool])
            if isinstance(kept, RemoteTool) and kept.digest == offered.digest:
                wanted[given[tool]] = kept
                continue
            try:
                fresh = RemoteTool(offered, given[tool], self.connection, self.names["answer"])
            except UsageError as error:
                self._problems.append(f"left out: {error}")
                continue
            fresh.held = not self._accepted(tool, offered.digest)
            wanted[given[tool]] = fresh
        for tool in self._ours(listing):
            wanted.setdefault(identify(tool)[0], tool)
        self._put(wanted)

    def _accepted(self, tool: str, digest: str) -> bool:
        if self._config.trusted:
            self._seen.accept(self._config.name, tool, digest)
        return self._seen.accepts(self._config.name, tool, digest)

    def _ours(self, listing: Listing) -> list[Tool]:
        tools: list[Tool] = [AnswerTool(self.names["answer"], self._config)]
        if listing.resources:
            tools += resource_tools(self.names, self.connection)
        if listing.prompts:
            tools.append(prompt_tool(self.names["get_prompt"], self.connection, listing.prompts))
        return [self._same(tool) for tool in tools]

    def _same(self, tool: Tool) -> Tool:
        kept = self._tools.get(identify(tool)[0])
        return kept if kept is not None and kept.spec == tool.spec else tool

    def _put(self, wanted: Mapping[str, Tool]) -> None:
        for name in [name for name in self._tools if name not in wanted]:
            self._take(name)
        for name, tool in wanted.items():
            if self._tools.get(name) is tool:
                continue
            if name not in self._tools and name in self._shelf:
                self._problems.append(f"{name}: left out, another tool has that name")
                continue
            self._tools[name] = tool
            self._shelf.add(tool)

    def _take(self, name: str) -> None:
        del self._tools[name]
        if name in self._shelf:
            self._shelf.remove(name)

    def clear(self) -> None:
        """Take everything off the shelf."""
        self._put({})

    def accept(self, name: str) -> bool:
        """Release a tool that was held, if it is one of these."""
        tool = self._tools.get(name)
        if not isinstance(tool, RemoteTool) or not tool.held:
            return False
        self._seen.accept(self._config.name, str(tool.spec.metadata["tool"]), tool.digest)
        tool.held = False
        return True
