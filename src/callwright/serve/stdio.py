"""Serving over our own pipes, to the program that started us.

`serve`: a gateway in one call.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mcp.server.stdio import stdio_server

from callwright.executor.executor import Executor
from callwright.mcp.stdio import LineReader, LineWriter, TappedPipe
from callwright.registry.catalog import Toolset
from callwright.serve.fast_path import CallLane
from callwright.serve.gateway import SHOWN, Gateway, Shown
from callwright.serve.http import HttpOptions, serve_http
from callwright.skills.loader import Skills

_MESSAGE_BYTES = 16 * 1024 * 1024


async def serve_stdio(gateway: Gateway) -> None:
    """Serve until the other side closes our input."""
    streams = _pipes(gateway) if _is_pipe(0) and _is_pipe(1) else stdio_server()
    async with gateway.running(), streams as (reader, writer):
        options = gateway.server.create_initialization_options()
        await gateway.server.run(reader, writer, options)  # type: ignore[arg-type] - our streams have what it uses


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@asynccontextmanager
async def _pipes(gateway: Gateway) -> AsyncGenerator[tuple[LineReader, LineWriter], None]:
    """Read and write the pipes themselves: the SDK's way hands every line to a thread, which costs more than the call.

    Meanwhile our output is our error output and our input is empty: a tool that prints must not speak MCP by accident.
    """
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MESSAGE_BYTES)
    outgoing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(wire_out, "wb")
    )
    writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
    lane = CallLane(gateway, writer)
    incoming, _ = await loop.connect_read_pipe(lambda: TappedPipe(reader, lane.take), os.fdopen(wire_in, "rb"))
    try:
        yield LineReader(reader, lane.take), LineWriter(writer)
    finally:
        await lane.stop()
        os.close(nothing)
        incoming.close()
        outgoing.close()


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
