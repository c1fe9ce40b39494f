"""The MCP servers of every layer and of the command line."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolwright.app.settings import Settings
from toolwright.core.errors import UsageError, plainly
from toolwright.core.json import thaw
from toolwright.mcp.config import ServerConfig, servers_of


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
