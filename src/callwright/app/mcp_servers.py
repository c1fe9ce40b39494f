"""MCP servers from the settings and from `--mcp-config`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.app.locations import Locations
from callwright.app.settings import Settings
from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import thaw
from callwright.mcp.config import ServerConfig, servers_of
from callwright.registry import Registry

if TYPE_CHECKING:
    from callwright.mcp import McpServers


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


def load_servers(settings: Settings, sources: Iterable[str], problems: list[str]) -> list[ServerConfig]:
    """Return the configured servers; a later entry replaces an earlier one of the same name.

    Args:
        settings: The merged settings.
        sources: Values of `--mcp-config`, each a file name or JSON.
        problems: Receives a message for every entry that cannot be used.

    Raises:
        UsageError: A source cannot be read.
    """
    entries: list[tuple[str, Any]] = [("settings", {"mcpServers": thaw(settings.merged("mcpServers"))})]
    entries += [_read_source(text) for text in sources]
    found: dict[str, ServerConfig] = {}
    for source, content in entries:
        loaded = servers_of(content, written_in=source)
        # the whole entry is replaced: merging a command with another's variables would be a third server
        found |= {server.name: server for server in loaded.servers}
        problems += loaded.problems
    return list(found.values())


def _read_source(text: str) -> tuple[str, Any]:
    source = "--mcp-config" if text.lstrip().startswith("{") else text
    try:
        return source, json.loads(text if source == "--mcp-config" else Path(text).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = describe_exception(error)
        raise UsageError(f"--mcp-config {source}: {reason}; give a file name or the JSON itself") from None
