"""Serve a registry over MCP and call it with the official client: pip install 'callwright[mcp]'."""

import asyncio

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from callwright import Effect, Executor, Registry, tool
from callwright.serve import Gateway, HttpOptions
from callwright.serve.http import listen


@tool(effect=Effect.READ)
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


async def main() -> None:
    registry = Registry(add)
    options = HttpOptions(port=0, token="secret")
    async with listen(Gateway(registry, Executor(registry)), options) as (url, _):
        print("serving", url.rpartition(":")[0])
        async with (
            httpx2.AsyncClient(headers={"Authorization": "Bearer secret"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            print([listed.name for listed in (await client.list_tools()).tools])
            print((await client.call_tool("add", {"a": 2, "b": 3})).structured_content)


asyncio.run(main())
