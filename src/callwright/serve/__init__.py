"""Our tools for other programs: an MCP server over whatever a registry holds. Needs the extra `callwright[mcp]`."""

from callwright.core.lazy import loader_for_extra

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.serve.calling import CallingClient as CallingClient
    from callwright.serve.calling import calling_client as calling_client
    from callwright.serve.gateway import Gateway as Gateway
    from callwright.serve.gateway import Shown as Shown
    from callwright.serve.http import HttpOptions as HttpOptions
    from callwright.serve.http import serve_http as serve_http
    from callwright.serve.run import serve as serve
    from callwright.serve.stdio import serve_stdio as serve_stdio

__all__ = [
    "CallingClient",
    "Gateway",
    "HttpOptions",
    "Shown",
    "calling_client",
    "serve",
    "serve_http",
    "serve_stdio",
]

_HOMES = {
    "calling": "CallingClient calling_client",
    "gateway": "Gateway Shown",
    "http": "HttpOptions serve_http",
    "run": "serve",
    "stdio": "serve_stdio",
}
__getattr__ = loader_for_extra(__name__, _HOMES, needs="mcp mcp_types anyio starlette uvicorn", extra="mcp")
