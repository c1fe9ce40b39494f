"""`serve`: a gateway in one call."""

from callwright.executor.executor import Executor
from callwright.registry.catalog import Toolset
from callwright.serve.gateway import SHOWN, Gateway, Shown
from callwright.serve.http import HttpOptions, serve_http
from callwright.serve.stdio import serve_stdio
from callwright.skills.load import Skills


async def serve(
    registry: Toolset,
    executor: Executor,
    *,
    http: HttpOptions | None = None,
    shown: Shown = SHOWN,
    skills: Skills | None = None,
) -> None:
    """Offer a registry's tools to MCP clients, every call through the executor: over our pipes, or over HTTP.

    Runs until the client closes the pipes or the task is cancelled.
    """
    gateway = Gateway(registry, executor, shown=shown, skills=skills)
    if http is None:
        await serve_stdio(gateway)
    else:
        await serve_http(gateway, http)
