"""MCP client: tools of MCP servers, called like local ones. Needs the extra `callwright[mcp]`."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.mcp.config import (
        LoadedServers as LoadedServers,
        ServerConfig as ServerConfig,
        load_servers as load_servers,
        servers_of as servers_of,
    )
    from callwright.mcp.oauth import TokenFile as TokenFile, token_files as token_files
    from callwright.mcp.pinned_tools import PinnedTools as PinnedTools, PinnedToolsFile as PinnedToolsFile
    from callwright.mcp.servers import McpServers as McpServers, ServerStatus as ServerStatus
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "config": "LoadedServers ServerConfig load_servers servers_of",
            "oauth": "TokenFile token_files",
            "pinned_tools": "PinnedTools PinnedToolsFile",
            "servers": "McpServers ServerStatus",
        },
        install={
            "mcp": "'callwright[mcp]'",
            "mcp_types": "'callwright[mcp]'",
            "anyio": "'callwright[mcp]'",
            "httpx2": "'callwright[mcp]'",
        },
    )
