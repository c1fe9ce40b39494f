"""Other programs' tools: MCP servers whose tools are called like our own. Needs the extra `callwright[mcp]`."""

from callwright.core.lazy import loader_for_extra

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.mcp.config import LoadedServers as LoadedServers
    from callwright.mcp.config import ServerConfig as ServerConfig
    from callwright.mcp.config import load_servers as load_servers
    from callwright.mcp.config import servers_of as servers_of
    from callwright.mcp.oauth import TokenFile as TokenFile
    from callwright.mcp.oauth import token_files as token_files
    from callwright.mcp.seen import Seen as Seen
    from callwright.mcp.seen import SeenFile as SeenFile
    from callwright.mcp.toolset import McpServers as McpServers
    from callwright.mcp.toolset import ServerStatus as ServerStatus

__all__ = [
    "LoadedServers",
    "McpServers",
    "Seen",
    "SeenFile",
    "ServerConfig",
    "ServerStatus",
    "TokenFile",
    "load_servers",
    "servers_of",
    "token_files",
]

_HOMES = {
    "config": "LoadedServers ServerConfig load_servers servers_of",
    "oauth": "TokenFile token_files",
    "seen": "Seen SeenFile",
    "toolset": "McpServers ServerStatus",
}
__getattr__ = loader_for_extra(__name__, _HOMES, needs="mcp mcp_types anyio httpx2", extra="mcp")
