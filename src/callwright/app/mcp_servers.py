"""The MCP servers of every layer and of the command line."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.app.locations import Locations
from callwright.app.settings import Settings
from callwright.core.errors import UsageError, plainly
from callwright.core.json import thaw
from callwright.mcp.config import ServerConfig, servers_of
from callwright.registry import Registry

if TYPE_CHECKING:
    from callwright.mcp import McpServers


def servers_into(registry: Registry, configs: Iterable[ServerConfig], places: Locations) -> "McpServers":
    """Make the servers ready to be connected: their tools go to the registry, sign-ins and what was seen to disk."""
    from callwright.mcp import McpServers, PinnedToolsFile, token_files  # takes longer to import than all the rest

    return McpServers(configs, registry, seen=PinnedToolsFile(places.seen_tools), tokens=token_files(places.tokens))


def configured_servers(settings: Settings, given: Iterable[str], problems: list[str]) -> list[ServerConfig]:
    """Return them, the last word on a name counting whole; what is wrong with entries goes to `problems`."""
    sources: list[tuple[str, Any]] = [("settings", {"mcpServers": thaw(settings.merged("mcpServers"))})]
    sources += [_given(text) for text in given]
    found: dict[str, ServerConfig] = {}
    for source, content in sources:
        loaded = servers_of(content, written_in=source)
        found |= {server.name: server for server in loaded.servers}
        problems += loaded.problems
    return list(found.values())


def _given(text: str) -> tuple[str, Any]:
    source = "--mcp-config" if text.lstrip().startswith("{") else text
    try:
        return source, json.loads(text if source == "--mcp-config" else Path(text).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--mcp-config {source}: {plainly(error)}; give a file, or the JSON itself") from None
