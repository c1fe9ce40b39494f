"""`McpServers`: connects to servers and keeps a registry in step with the tools they offer."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, TypeGuard

import httpx2
from mcp.client.auth import TokenStorage

from callwright.core.errors import UsageError, check_kind, shorten
from callwright.core.escaping import latin_form, visible_line
from callwright.core.json import compact
from callwright.mcp.config import ServerConfig, may_be_hashed, server_names, tool_names
from callwright.mcp.connection import Condition, Connection
from callwright.mcp.elicitation import AnswerTool
from callwright.mcp.listing import Listing, Offered, Slices, prompt_digests, resource_digests
from callwright.mcp.pinned_tools import PinnedTools, digest_of
from callwright.mcp.tools import HeldTool, RemoteTool, SignInTool, prompt_line, prompt_tool, resource_tools
from callwright.tool.base import Tool, identify
from callwright.tool.schema_tool import SchemaTool

_RUNTIME_TOOLS = ("answer", "get_prompt", "list_resources", "read_resource", "sign_in")
_RESERVED = frozenset(name.replace("_", "") for name in (*_RUNTIME_TOOLS, "tool_search", "read_output"))
_PROMPTS = "#prompts"
_RESOURCES = "#resources"
_NAMES = "#names"
_MOST_STATUS_CHARS = 500
_COMPILE_SECONDS = 1.0
"""How long schemas are compiled when a server lists its tools; those of further tools with their first call."""


class MutableRegistry(Protocol):
    """Where the tools are added: a `Registry`."""

    def add(self, tool: Tool) -> object: ...

    def remove(self, name: str) -> object: ...

    def get(self, name: str) -> Tool | None: ...

    def __contains__(self, name: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of one server."""

    name: str
    condition: Condition
    tools: tuple[str, ...]
    reason: str = ""
    """Why it is not ready."""
    sign_in_url: str = ""
    held: tuple[str, ...] = ()
    """Tools that changed after they were accepted and cannot be called until accepted again."""
    problems: tuple[str, ...] = ()
    protocol: str = ""
    """The MCP version in use."""
    server: str = ""
    """Its own name and version."""
    seconds: float = 0.0
    """How long it took to become ready."""
    log: str = ""
    """The end of its error output, which often holds the cause of a failure."""
    review: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """What the held tools are now, by name, for the user to review."""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """What `review` shows of each held tool, as a digest for `McpServers.accept`."""


class McpServers:
    """Connects to servers and keeps a registry in step with what they offer.

    `async with McpServers(configs, registry):` connects to all at once. An unreachable server affects only its own
    tools: the connection is retried, and its tools appear when it succeeds.

    Args:
        servers: The servers to connect to.
        into: The registry that gets their tools.
        pinned: Accepted tool definitions; in memory by default.
        tokens: Returns the token storage of a server; in memory by default.
        auth: Returns an `httpx2.Auth` for servers that authenticate without a user (a secret, a key, a token).

    Raises:
        UsageError: A server is not a `ServerConfig`.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        into: MutableRegistry,
        *,
        pinned: PinnedTools | None = None,
        tokens: Callable[[ServerConfig], TokenStorage] | None = None,
        auth: Callable[[ServerConfig], httpx2.Auth | None] | None = None,
    ) -> None:
        configs = tuple(servers)
        for config in configs:
            check_kind("a server", config, ServerConfig, "pass load_servers(file).servers")
        self._configs = {config.name: config for config in configs}
        self._registry = into
        self._pinned = pinned or PinnedTools()
        self._tokens = tokens
        self._auth = auth
        self._names = server_names(self._configs)
        self._by_server: dict[str, _ServerTools] = {}

    async def __aenter__(self) -> "McpServers":
        try:
            await asyncio.gather(*(self._connect(config) for config in self._configs.values()))
        except BaseException:  # also cancelled: __aexit__ is not called, and no server may be left behind
            await asyncio.shield(asyncio.ensure_future(self._close_all()))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close_all()

    async def _close_all(self) -> None:
        await asyncio.gather(*(self.remove_server(name) for name in list(self._by_server)))

    async def add_server(self, config: ServerConfig) -> ServerStatus:
        """Connect to another server while sessions run."""
        if config.name in self._by_server:
            raise UsageError(f"MCP server {config.name!r} exists already; remove it first")
        given = server_names([*self._names, config.name])
        # connected servers keep their tool names; only the new one may get a changed name
        self._names[config.name] = given[config.name]
        self._configs[config.name] = config
        try:
            await self._connect(config)
        except BaseException:
            if config.name in self._by_server:
                await asyncio.shield(asyncio.ensure_future(self.remove_server(config.name)))
            raise
        return self._by_server[config.name].status()

    async def remove_server(self, name: str) -> None:
        """Disconnect a server and remove its tools."""
        tools = self._by_server.pop(name, None)
        if tools is None:
            raise UsageError(f"unknown MCP server {name!r}; connected: {', '.join(self._by_server) or 'none'}")
        self._configs.pop(name, None)
        self._names.pop(name, None)
        tools.clear()
        await tools.connection.close()

    def status(self) -> list[ServerStatus]:
        """Return the state of every server."""
        return [tools.status() for tools in self._by_server.values()]

    def accept(self, name: str, digest: str | None = None) -> None:
        """Accept the definition of a changed tool, after the user has reviewed it.

        Args:
            name: The tool.
            digest: What the user has seen: `ServerStatus.digests` beside the `review` that was shown. Without it, the
                definition is accepted as it is now.

        Raises:
            UsageError: There is no such tool, or it has changed again since it was shown.
        """
        for tools in self._by_server.values():
            if tools.accept(name, digest):
                return
        raise UsageError(f"no changed MCP tool {name!r} to accept")

    async def _connect(self, config: ServerConfig) -> None:
        tools = _ServerTools(config, self._names[config.name], self._registry, self._pinned)
        tools.connection = Connection(
            config,
            tools.update,
            signing_in=tools.offer_sign_in,
            answerer=tools.names["answer"],
            tokens=self._tokens(config) if self._tokens else None,
            auth=self._auth(config) if self._auth and config.url else None,
        )
        self._by_server[config.name] = tools
        await tools.connection.open()


def _in_one_line(text: str) -> str:
    """Return a text that a server may have written, so that it cannot pass for other lines of ours."""
    return visible_line(shorten(text, _MOST_STATUS_CHARS))


def _fold_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)


def _name_digests(given: Mapping[str, str]) -> dict[str, str]:
    """Return for full names that a server could pass to another tool, made of hashes, whose they are."""
    return {full.casefold(): digest_of({"tool": tool}) for tool, full in given.items() if may_be_hashed(full)}


def _is_held(tool: Tool | None) -> TypeGuard[HeldTool | RemoteTool]:
    return isinstance(tool, HeldTool) or (isinstance(tool, RemoteTool) and tool.held)


class _ServerTools:
    """The tools that one server has in the registry."""

    connection: Connection

    def __init__(self, config: ServerConfig, name: str, registry: MutableRegistry, pinned: PinnedTools) -> None:
        self._config = config
        self._name = name
        self._registry = registry
        self._pinned = pinned
        self._tools: dict[str, Tool] = {}
        self._problems: list[str] = []
        self._updating = asyncio.Lock()
        self._closed = False
        self.names: Mapping[str, str] = tool_names(name, _RUNTIME_TOOLS)

    def status(self) -> ServerStatus:
        self.release_accepted()
        link, listing = self.connection, self.connection.listing
        held = {name: tool for name, tool in self._tools.items() if _is_held(tool)}
        return ServerStatus(
            self._config.name,
            link.condition,
            tuple(sorted(name for name, tool in self._tools.items() if not isinstance(tool, AnswerTool))),
            _in_one_line(link.reason),
            link.sign_in_url,
            tuple(held),
            tuple(map(_in_one_line, (*self._problems, *(listing.problems if listing else ())))),
            listing.protocol if listing else "",
            _in_one_line(listing.server) if listing else "",
            link.seconds,
            link.log,
            {name: tool.review for name, tool in held.items()},
            {name: tool.digest for name, tool in held.items()},
        )

    def offer_sign_in(self) -> None:
        """Offer only the sign-in tool until the user has signed in."""
        if not self._tools:
            self._replace({self.names["sign_in"]: SignInTool(self.names["sign_in"], self.connection)})

    async def update(self, listing: Listing) -> None:
        """Update the registry to a new listing; unchanged tools stay the same objects, which keeps caches valid.

        The tools are made in slices, and enter the registry all at once.
        """
        async with self._updating:
            problems: list[str] = []
            desired = await self._make_tools(listing, problems)
            if not self._closed:
                self._problems = problems
                self._replace(desired)

    async def _make_tools(self, listing: Listing, problems: list[str]) -> dict[str, Tool]:
        slices = Slices()
        offers: dict[str, Offered] = {}
        for tool, offered in listing.tools.items():
            if self._is_reserved(tool):
                problems.append(f"{tool[:80]!r}: left out, the name is reserved")
            else:
                offers[tool] = offered
            await slices.pause()
        given = tool_names(self._name, [*offers])
        digests = {tool: offered.digest for tool, offered in offers.items()}
        changed = self._pinned.check_all(self._config.pin_name, digests, trusted=self._config.trusted)
        # the user's rules go by the full name, so it must not pass from one tool to another unseen
        reused = self._check_texts(_NAMES, _name_digests(given))
        changed |= {tool for tool, full in given.items() if full.casefold() in reused}
        desired: dict[str, Tool] = {}
        compile_until = time.monotonic() + _COMPILE_SECONDS
        for tool, offered in offers.items():
            await slices.pause()
            kept = self._tools.get(given[tool])
            if isinstance(kept, RemoteTool) and kept.digest == offered.digest:
                desired[given[tool]] = kept
                continue
            try:
                now = time.monotonic() < compile_until
                fresh = RemoteTool(offered, given[tool], self.connection, self.names["answer"], compile_now=now)
                fresh.release = self.release_accepted
            except UsageError as error:
                problems.append(f"left out: {error}")
                continue
            fresh.held = tool in changed
            desired[given[tool]] = fresh
        for tool in self._runtime_tools(listing):
            desired[identify(tool)[0]] = tool
        return desired

    def _is_reserved(self, tool: str) -> bool:
        """Whether a name is one of ours, however it is written: a user who is asked must not take one for the other."""
        drawn = latin_form(tool).casefold().lstrip("_ ")
        # a gateway forwards names such as mcp__time__now, but no server may list full names of this one
        own = drawn.startswith((f"mcp__{self._name}__".casefold(), f"mcp__{self._config.name}__".casefold()))
        answers = drawn.startswith("mcp__") and _fold_name(drawn.rpartition("__")[2]) == "answer"
        return _fold_name(drawn) in _RESERVED or own or answers

    def _runtime_tools(self, listing: Listing) -> list[Tool]:
        tools: list[Tool] = [AnswerTool(self.names["answer"], self._config)]
        if listing.resources:
            changed = self._changed_resources(listing.resources)
            review = tuple(compact(dict(listing.resources[uri])) for uri in sorted(changed))
            for tool in resource_tools(self.names, self.connection, lambda texts: not self._changed_resources(texts)):
                tools.append(self._hold(tool, _RESOURCES, resource_digests(listing.resources), review))
        if listing.prompts:
            digests = prompt_digests(listing)
            changed = self._check_texts(_PROMPTS, digests)
            review = tuple(prompt_line(prompt) for prompt in listing.prompts if prompt.name in changed)
            prompts = prompt_tool(self.names["get_prompt"], self.connection, listing.prompts)
            tools.append(self._hold(prompts, _PROMPTS, digests, review))
        return [self._keep_unchanged(tool) for tool in tools]

    def _changed_resources(self, texts: Mapping[str, Mapping[str, str]]) -> set[str]:
        return self._check_texts(_RESOURCES, resource_digests(texts))

    def _check_texts(self, kind: str, digests: Mapping[str, str]) -> set[str]:
        return self._pinned.check_all(f"{self._config.pin_name}\n{kind}", digests, trusted=self._config.trusted)

    def _hold(self, tool: SchemaTool, kind: str, digests: Mapping[str, str], review: tuple[str, ...]) -> SchemaTool:
        """Return the tool, or what stands for it while the user has to review texts that changed."""
        if not review:
            return tool
        pinned_as = f"{self._config.pin_name}\n{kind}"
        held = HeldTool(tool, self._config.name, pinned_as=pinned_as, digests=digests, review=review)
        held.release = self.release_accepted
        return held

    def _keep_unchanged(self, tool: Tool) -> Tool:
        kept = self._tools.get(identify(tool)[0])
        same = kept is not None and type(kept) is type(tool) and kept.spec == tool.spec
        return kept if kept is not None and same and not isinstance(tool, HeldTool) else tool

    def _replace(self, desired: Mapping[str, Tool]) -> None:
        # all names first: the registry looks names up in a snapshot, which every change makes anew
        own = {name for name, tool in self._tools.items() if self._registry.get(name) is tool}
        for name in [name for name in self._tools if name not in desired]:
            del self._tools[name]
            if name in own:  # the owner of the registry may have removed or replaced it
                self._registry.remove(name)
        taken = {name for name in desired if name not in own and name in self._registry}
        for name, tool in desired.items():
            if self._tools.get(name) is tool:
                continue
            if name in taken:  # a server must not replace a local tool
                self._problems.append(f"{name}: left out, another tool has this name")
                continue
            self._tools[name] = tool
            self._registry.add(tool)

    def release_accepted(self) -> None:
        """Release held tools that have been accepted meanwhile, perhaps by another process."""
        held = {str(t.spec.metadata["tool"]): t for t in self._tools.values() if isinstance(t, RemoteTool) and t.held}
        texts = [tool for tool in self._tools.values() if isinstance(tool, HeldTool)]
        if not held and not texts:
            return
        with suppress(UsageError):  # they stay held if the file cannot be read
            changed = self._pinned.check_all(self._config.pin_name, {name: tool.digest for name, tool in held.items()})
            reused = self._check_texts(_NAMES, _name_digests({name: tool.spec.name for name, tool in held.items()}))
            for name, tool in held.items():
                tool.held = name in changed or tool.spec.name.casefold() in reused
            for tool in texts:
                tool.held = bool(self._pinned.check_all(tool.pinned_as, tool.digests))
            if not all(tool.held for tool in texts):
                self._make_runtime_tools_again()

    def _make_runtime_tools_again(self) -> None:
        if self.connection.listing is not None:
            remote = {name: tool for name, tool in self._tools.items() if isinstance(tool, RemoteTool)}
            runtime = {identify(tool)[0]: tool for tool in self._runtime_tools(self.connection.listing)}
            self._replace(remote | runtime)

    def clear(self) -> None:
        """Remove all tools from the registry; an update under way adds none."""
        self._closed = True
        self._replace({})

    def accept(self, name: str, digest: str | None) -> bool:
        """Accept a held tool, if it is one of this server."""
        tool = self._tools.get(name)
        if not _is_held(tool):
            return False
        if digest is not None and digest != tool.digest:
            raise UsageError(f"{name} has changed again since it was shown; review it once more")
        if isinstance(tool, HeldTool):
            self._pinned.accept_all(tool.pinned_as, tool.digests)
            self._make_runtime_tools_again()
            return True
        original = str(tool.spec.metadata["tool"])
        self._pinned.accept(self._config.pin_name, original, tool.digest)
        self._pinned.accept_all(f"{self._config.pin_name}\n{_NAMES}", _name_digests({original: name}))
        tool.held = False
        return True
