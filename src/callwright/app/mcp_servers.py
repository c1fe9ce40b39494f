"""MCP servers from the settings and from `--mcp-config`: their entries, their configuration and their status."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from callwright.app.locations import Locations
from callwright.app.settings import Settings, describe_shadow, own_servers, repository_layers, shadowed_server
from callwright.app.settings_file import read_layer, read_named
from callwright.core.errors import UsageError, describe_exception, join_first
from callwright.core.json import FrozenDict, read_object, thaw
from callwright.mcp.config import Relay, ServerConfig, servers_of
from callwright.registry import Registry

if TYPE_CHECKING:
    from callwright.mcp import McpServers, ServerStatus


NOT_TRUSTED = "not trusted"
_MOST_PROBLEMS = 5
_DISABLED = "disabledMcpjsonServers"
"""A setting of Claude Code: servers of the project that the user does not want."""


def prepare_servers(registry: Registry, configs: Iterable[ServerConfig], locations: Locations) -> "McpServers":
    """Return the servers, not yet connected.

    Args:
        registry: Receives the tools of the servers.
        configs: The servers to connect to.
        locations: Where OAuth tokens and accepted tool definitions are stored.
    """
    from callwright.mcp import McpServers, PinnedToolsFile, token_files  # slower to import than the rest of the app

    return McpServers(
        configs, registry, pinned=PinnedToolsFile(locations.pinned_tools), tokens=token_files(locations.tokens)
    )


def load_servers(
    settings: Settings,
    sources: Iterable[str],
    problems: list[str],
    locations: Locations,
    *,
    relay: Callable[[str], Relay] | None = None,
) -> list[ServerConfig]:
    """Return the configured servers; a later entry replaces an earlier one of the same name.

    Args:
        settings: The merged settings.
        sources: Values of `--mcp-config`, each a file name or JSON.
        problems: Receives a message for every entry that cannot be used, or replaces one of the user's.
        locations: Where the project is.
        relay: Returns the way to a server inside the driving program, by its name.

    Raises:
        UsageError: A source cannot be read, or an entry of it cannot be used: the user named it for this run.
    """
    own = [name for layer in settings.layers if not layer.in_repository for name in layer.section("mcpServers")]
    # for each name only the entry of the last layer, so that a replaced one causes no messages
    last = {name: layer for layer in settings.layers for name in layer.section("mcpServers")}
    off = {name for layer in settings.layers for name in cast("list[str]", layer.content.get(_DISABLED, ()))}
    last = {name: layer for name, layer in last.items() if name not in off or not layer.in_repository}
    found: dict[str, ServerConfig] = {}
    variables = {**os.environ, **settings.merged("env")}
    for layer in dict.fromkeys(last.values()):
        entries = {name: entry for name, entry in layer.section("mcpServers").items() if last.get(name) is layer}
        given = {"mcpServers": thaw(FrozenDict(entries))}
        loaded = servers_of(given, written_in=layer.at("mcpServers"), environment=variables)
        servers = _mark_repository(loaded.servers, own, locations) if layer.in_repository else loaded.servers
        found |= {server.name: server for server in servers}
        problems += loaded.problems
    for source, content in map(_read_source, sources):
        loaded = servers_of(content, written_in=source, relay=relay)
        wanted = _list_server_names(content)
        if wanted is None or wanted - {server.name for server in loaded.servers}:
            raise UsageError("; ".join(loaded.problems))
        # the whole entry is replaced: merging a command with another's variables would be a third server
        found |= {server.name: server for server in loaded.servers}
        problems += loaded.problems
    problems += [describe_replacement(server) for server in found.values() if server.shadows]
    return list(found.values())


def _mark_repository(
    servers: Iterable[ServerConfig], own: Iterable[str], locations: Locations
) -> tuple[ServerConfig, ...]:
    """Mark servers that a project's files configure, and which of the user's servers they replace or resemble."""
    names, project = tuple(own), str(locations.project)
    return tuple(replace(server, repository=project, shadows=shadowed_server(server.name, names)) for server in servers)


def describe_replacement(server: ServerConfig) -> str:
    """Say that a project's server replaces or resembles one of the user's."""
    return f"MCP server {server.name} of this project {describe_shadow(server.name, server.shadows)}"


def describe_problems(status: "ServerStatus") -> str:
    """Say in one line what is wrong with a server at the start; callwright mcp test shows all of it."""
    why = status.reason or join_first(status.problems, _MOST_PROBLEMS, "; ")
    return f"MCP server {status.name}: {status.condition}: {why}"


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server entry, and the file that holds it."""

    name: str
    scope: str
    file: Path
    entry: Mapping[str, Any]
    shadows: str = ""
    """The user's own server that a project's entry replaces or resembles."""

    @property
    def in_repository(self) -> bool:
        """Whether its file lies in the project."""
        return self.scope in ("project", "local")

    @property
    def conflict(self) -> str:
        """What the user must know about an entry that takes the name of another; empty if it does not."""
        return describe_shadow(self.name, self.shadows)

    @property
    def target(self) -> str:
        """The command or URL, as it is written."""
        remote = self.entry.get("type", "http" if "url" in self.entry else "stdio") != "stdio"
        words = (self.entry.get("url", ""),) if remote else (self.entry.get("command", ""), *self.entry.get("args", ()))
        return " ".join(map(str, words))

    @property
    def place(self) -> str:
        """The file and the scope, to show."""
        return f"{self.file} ({self.scope})"


def find_unused_servers(locations: Locations, used: Iterable[str]) -> tuple[Path, list[str]] | None:
    """Return Claude Code's own file with the names of its servers that are not configured here; None without any.

    Args:
        locations: The project, and the user's folder of Claude Code.
        used: Names of servers that are configured here.
    """
    # beside ~/.claude, and inside a folder that CLAUDE_CONFIG_DIR names
    for file in (locations.claude / ".claude.json", locations.claude.parent / ".claude.json"):
        try:
            content = read_object(json.loads(file.read_bytes()))
        except (OSError, ValueError, RecursionError):
            continue
        projects = read_object(content.get("projects"))
        parts = (content, *(read_object(projects.get(str(each))) for each in (locations.project, locations.cwd)))
        names = dict.fromkeys(name for part in parts for name in read_object(part.get("mcpServers")))
        left = [name for name in names if name not in set(used)]
        return (file, left) if left else None
    return None


def find_entries(locations: Locations) -> list[ServerEntry]:
    """Return the entries of every file; of several with the same name the last one wins."""
    layers = [read_layer("user", locations.user_settings), *repository_layers(locations)]
    own = own_servers(locations)
    return [
        ServerEntry(
            name,
            layer.scope,
            Path(layer.source),
            entry,
            shadowed_server(name, own) if layer.in_repository else "",
        )
        for layer in layers
        if layer is not None
        for name, entry in layer.section("mcpServers").items()
    ]


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One server and its status; the status is None if the folder is not trusted and no connection was tried."""

    entry: ServerEntry
    status: "ServerStatus | None"

    @property
    def condition(self) -> str:
        """`ready`, `signing in`, `not trusted` and so on."""
        return NOT_TRUSTED if self.status is None else self.status.condition

    @property
    def problem(self) -> str:
        """Why the server is not ready, with the next step; empty if it is ready."""
        if self.status is None:
            return "callwright trust shows what this folder requests; callwright trust give grants it"
        if self.status.condition == "ready":
            return ""
        if self.status.condition == "signing in":
            return f"sign-in needed: run callwright mcp test {self.status.name} in a terminal"
        return self.status.reason or "no reason given"


class CheckedServers:
    """The servers of some entries, connected for a look at their status: nothing a project names without trust.

    Args:
        entries: The entries to connect; a file that the user named by hand has the scope `given`.
        locations: Where the project and its trust are.
        trusted: Whether the project's folder is trusted.
        seconds: How long to wait for each server.
    """

    def __init__(self, entries: Sequence[ServerEntry], locations: Locations, *, trusted: bool, seconds: float) -> None:
        self.registry = Registry()
        """The tools of the servers."""
        self.problems: tuple[str, ...]
        """What is wrong with entries that cannot be used."""
        self._entries, self._trusted = entries, trusted
        permitted = {entry.name: entry for entry in entries if self.may_start(entry)}
        loaded = servers_of({"mcpServers": {name: thaw(entry.entry) for name, entry in permitted.items()}})
        self.problems = tuple(loaded.problems)
        theirs = [server for server in loaded.servers if permitted[server.name].in_repository]
        marked = {server.name: server for server in _mark_repository(theirs, own_servers(locations), locations)}
        # the user is waiting, so the limit is the caller's and not that of the entry
        configs = [replace(marked.get(server.name, server), connect_seconds=seconds) for server in loaded.servers]
        self.servers = prepare_servers(self.registry, configs, locations)

    async def __aenter__(self) -> "CheckedServers":
        await self.servers.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.servers.__aexit__(*exception)

    def may_start(self, entry: ServerEntry) -> bool:
        """Whether an entry may run: of a repository only if trusted; a file named by hand is the user's word."""
        return self._trusted or entry.scope in ("user", "given")

    def find(self, entry: ServerEntry) -> FoundServer:
        """Return the status of an entry as it is now."""
        if not self.may_start(entry):
            return FoundServer(entry, None)
        from callwright.mcp import ServerStatus

        unusable = ServerStatus(entry.name, "closed", (), "its entry is not valid; see the warning above")
        found = (status for status in self.servers.status() if status.name == entry.name)
        return FoundServer(entry, next(found, unusable))

    def list(self) -> list[FoundServer]:
        """Return the status of every entry."""
        return [self.find(entry) for entry in self._entries]


def _list_server_names(content: object) -> set[str] | None:
    """Return the names of the servers that a source asks for; None if it is not a configuration of servers."""
    if not isinstance(content, dict) or not isinstance(cast("dict[str, Any]", content).get("mcpServers"), dict):
        return None
    entries = cast("dict[str, Any]", content["mcpServers"])
    return {name for name, entry in entries.items() if read_object(entry).get("disabled") is not True}


def _read_source(text: str) -> tuple[str, Any]:
    """Return where a value of `--mcp-config` stands, and its content."""
    written = text.lstrip().startswith("{")
    source, advice = "--mcp-config" if written else f"--mcp-config {text}", "; give a file name or the JSON itself"
    try:
        return source, json.loads(text if written else read_named("--mcp-config", text, advice))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: {describe_exception(error)}{advice}") from None
