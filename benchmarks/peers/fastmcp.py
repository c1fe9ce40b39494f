"""fastmcp: a server and its in-memory client; it has no loop, so a turn is the client's calls gathered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from fastmcp import Client, FastMCP
from fastmcp.tools import Tool

from benchmarks.peers.contract import Call, Function, Session

DISTRIBUTION = "fastmcp"
PACKAGE = "fastmcp"
IMPORT = "from fastmcp import FastMCP"
CALL = "Tool.run"
TURN = "gather of Client.call_tool"
TUNING = "anyio's limiter at 1000 threads"
ASYNC = NESTED = True


def define(functions: Sequence[Function]) -> list[Any]:
    return [Tool.from_function(function) for function in functions]


def _served(tools: list[Any]) -> FastMCP:
    server: FastMCP = FastMCP("bench")
    for tool in tools:
        server.add_tool(tool)
    return server


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    server = _served(tools)

    async def listed() -> object:
        return [tool.to_mcp_tool() for tool in await server.list_tools()]

    return {"FastMCP.list_tools (MCP's shape)": listed}


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    if tuned:
        to_thread.current_default_thread_limiter().total_tokens = 1_000
    by_name = {tool.name: tool for tool in tools}
    async with Client(_served(tools)) as client:
        await client.list_tools()  # else each call of a first wide turn lists them by itself

        async def tell(name: str, text: str) -> str:
            result = await client.call_tool(name, json.loads(text), raise_on_error=False)
            return " ".join(getattr(part, "text", "") for part in result.content)

        async def turn(calls: Sequence[Call]) -> list[str]:
            return await asyncio.gather(*(tell(*call) for call in calls))

        yield Session(lambda name, text: by_name[name].run(json.loads(text)), turn)
