"""A program that serves a few tools over its pipes."""

import asyncio
import sys

from toolwright import Effect, Executor, Registry, ToolContext, tool
from toolwright.policy import ByMode
from toolwright.serve import serve


@tool(effect=Effect.READ)
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    print("thinking…")  # must not reach the wire
    return {"sum": a + b}


@tool(effect=Effect.WRITE)
async def save(text: str) -> str:
    """Save a text."""
    return f"saved {text}"


@tool(effect=Effect.READ)
async def count(context: ToolContext) -> str:
    """Count to three, aloud."""
    for number in (1, 2, 3):
        context.report({"progress": number, "total": 3})
    return "three"


@tool(effect=Effect.READ)
async def forever() -> str:
    """Run until stopped."""
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        print("stopped", file=sys.stderr, flush=True)
        raise
    return "never"


@tool(effect=Effect.READ)
async def read_input() -> str:
    """Read what is there to read."""
    return repr(sys.stdin.read())


if __name__ == "__main__":
    tools = Registry(add, save, count, forever, read_input)
    asyncio.run(serve(tools, Executor(tools, ByMode("default"))))
