"""Serving over standard input and output, and `serve`, which serves a registry in one call."""

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
from callwright.serve.fast_path import CallFastPath
from callwright.serve.gateway import DEFAULT_LISTING, Gateway, ListingOptions
from callwright.serve.http import HttpOptions, serve_http
from callwright.skills.loader import Skills

_MESSAGE_BYTES = 16 * 1024 * 1024


async def serve_stdio(gateway: Gateway) -> None:
    """Serve until the client closes our input.

    Args:
        gateway: What to serve.
    """
    streams = _pipes(gateway) if _is_pipe(0) and _is_pipe(1) else stdio_server()
    async with gateway.running(), streams as (reader, writer):
        options = gateway.server.create_initialization_options()
        await gateway.server.run(reader, writer, options)  # type: ignore[arg-type] - our streams have what it uses


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode  # asyncio cannot wait for regular files
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@asynccontextmanager
async def _pipes(gateway: Gateway) -> AsyncGenerator[tuple[LineReader, LineWriter], None]:
    """Read and write the pipes directly: the SDK hands every line to a thread, which costs more than the call.

    Meanwhile standard output is redirected to standard error, and standard input is empty: a tool that prints must
    not write into the protocol.
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
    fast_path = CallFastPath(gateway, writer)
    incoming, _ = await loop.connect_read_pipe(lambda: TappedPipe(reader, fast_path.take), os.fdopen(wire_in, "rb"))
    try:
        yield LineReader(reader, fast_path.take), LineWriter(writer)
    finally:
        await fast_path.stop()
        os.close(nothing)
        incoming.close()
        outgoing.close()


async def serve(
    registry: Toolset,
    executor: Executor,
    *,
    http: HttpOptions | None = None,
    listing: ListingOptions = DEFAULT_LISTING,
    skills: Skills | None = None,
) -> None:
    """Serve a registry's tools to MCP clients until the client closes the pipes or the task is cancelled.

    Args:
        registry: The tools.
        executor: Runs the calls.
        http: Serve over HTTP; standard input and output by default.
        listing: Which tools are listed when there are many.
        skills: Offered as prompts for users and as the tool `skill` for models.
    """
    gateway = Gateway(registry, executor, listing=listing, skills=skills)
    if http is None:
        await serve_stdio(gateway)
    else:
        await serve_http(gateway, http)
