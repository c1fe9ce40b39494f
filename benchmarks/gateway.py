"""Overhead of the gateway: a call through it compared with a direct call."""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

_SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("demo")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run()
'''
_GATEWAY = """
import asyncio, sys
from callwright import Executor, Registry
from callwright.mcp import McpServers, ServerConfig
from callwright.policy import AllowEverything
from callwright.serve import serve


async def main() -> None:
    registry = Registry()
    executor = Executor(registry, AllowEverything())
    async with McpServers([ServerConfig("demo", sys.executable, (sys.argv[1],))], registry):
        await serve(registry, executor)


asyncio.run(main())
"""
_ROUNDS = 20
_CALLS = 50


async def _time(client: Client, tool: str) -> float:
    began = time.perf_counter()
    for _ in range(_CALLS):
        await client.call_tool(tool, {"a": 1, "b": 2})
    return (time.perf_counter() - began) / _CALLS


async def _measure(folder: Path) -> tuple[float, float, float]:
    server, gateway = folder / "server.py", folder / "gateway.py"
    server.write_text(_SERVER)
    gateway.write_text(_GATEWAY)
    direct = StdioServerParameters(command=sys.executable, args=[str(server)])
    through = StdioServerParameters(command=sys.executable, args=[str(gateway), str(server)])
    async with Client(direct) as first, Client(through) as second:
        await _time(first, "add")
        await _time(second, "mcp__demo__add")
        pairs = [(await _time(first, "add"), await _time(second, "mcp__demo__add")) for _ in range(_ROUNDS)]
    return (
        statistics.median(one for one, _ in pairs),
        statistics.median(two for _, two in pairs),
        statistics.median(two / one for one, two in pairs),
    )


def main() -> None:
    """Measure both in turn, so that load affects them equally, and print the result."""
    with tempfile.TemporaryDirectory() as folder:
        one, two, ratio = asyncio.run(_measure(Path(folder)))
    print(f"direct   {one * 1e6:8.0f} µs a call (official SDK, client and server, over pipes)")
    print(f"gateway  {two * 1e6:8.0f} µs a call")
    print(f"ratio    {ratio:8.2f}   (target: at most 1.25)")


if __name__ == "__main__":
    main()
