"""MCP servers from the settings and from `--mcp-config`."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from callwright.app.locations import Locations
from callwright.app.settings import Settings, describe_shadow, shadowed_server
from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import FrozenDict, thaw
from callwright.mcp.config import Relay, ServerConfig, servers_of
from callwright.registry import Registry

if TYPE_CHECKING:
    from callwright.mcp import McpServers


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
        configs, registry, pinned=PinnedToolsFile(locations.seen_tools), tokens=token_files(locations.tokens)
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
        UsageError: A source cannot be read.
    """
    own = [name for layer in settings.layers if not layer.in_repository for name in layer.section("mcpServers")]
    # for each name only the entry of the last layer, so that a replaced one causes no messages
    last = {name: layer for layer in settings.layers for name in layer.section("mcpServers")}
    off = {name for layer in settings.layers for name in cast("list[str]", layer.content.get(_DISABLED, ()))}
    last = {name: layer for name, layer in last.items() if name not in off or not layer.in_repository}
    found: dict[str, ServerConfig] = {}
    for layer in dict.fromkeys(last.values()):
        entries = {name: entry for name, entry in layer.section("mcpServers").items() if last.get(name) is layer}
        loaded = servers_of({"mcpServers": thaw(FrozenDict(entries))}, written_in="settings")
        servers = mark_repository(loaded.servers, own, locations) if layer.in_repository else loaded.servers
        found |= {server.name: server for server in servers}
        problems += loaded.problems
    for source, content in map(_read_source, sources):
        loaded = servers_of(content, written_in=source, relay=relay)
        # the whole entry is replaced: merging a command with another's variables would be a third server
        found |= {server.name: server for server in loaded.servers}
        problems += loaded.problems
    problems += [describe_replacement(server) for server in found.values() if server.shadows]
    return list(found.values())


def mark_repository(
    servers: Iterable[ServerConfig], own: Iterable[str], locations: Locations
) -> tuple[ServerConfig, ...]:
    """Mark servers that a project's files configure, and which of the user's servers they replace or resemble."""
    names, project = tuple(own), str(locations.project)
    return tuple(replace(server, repository=project, shadows=shadowed_server(server.name, names)) for server in servers)


def describe_replacement(server: ServerConfig) -> str:
    """Say that a project's server replaces or resembles one of the user's."""
    conflict = describe_shadow(server.name, server.shadows)
    return f"MCP server {server.name} of this project {conflict}; your allow rules do not apply to it"


def _read_source(text: str) -> tuple[str, Any]:
    source = "--mcp-config" if text.lstrip().startswith("{") else text
    try:
        return source, json.loads(text if source == "--mcp-config" else Path(text).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = describe_exception(error)
        raise UsageError(f"--mcp-config {source}: {reason}; give a file name or the JSON itself") from None
