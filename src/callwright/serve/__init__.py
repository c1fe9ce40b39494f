"""MCP server: the tools of a registry for MCP clients. Needs the extra `callwright[mcp]`."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.serve.call import CallingClient as CallingClient, calling_client as calling_client
    from callwright.serve.gateway import Gateway as Gateway, ListingOptions as ListingOptions
    from callwright.serve.http import HttpOptions as HttpOptions, serve_http as serve_http
    from callwright.serve.stdio import serve as serve, serve_stdio as serve_stdio
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "call": "CallingClient calling_client",
            "gateway": "Gateway ListingOptions",
            "http": "HttpOptions serve_http",
            "stdio": "serve serve_stdio",
        },
        install={
            "mcp": "'callwright[mcp]'",
            "mcp_types": "'callwright[mcp]'",
            "anyio": "'callwright[mcp]'",
            "starlette": "'callwright[mcp]'",
            "uvicorn": "'callwright[mcp]'",
        },
    )
