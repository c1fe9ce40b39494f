"""A program that serves a few tools over its pipes, or with --http on a printed address with the token sesame."""

import asyncio
import sys

import mcp_types as types

from callwright import Effect, Executor, Registry, ToolContext, tool
from callwright.policy import ByMode
from callwright.serve import Gateway, HttpOptions, calling_client, serve
from callwright.serve.http import listen
from callwright.tool.base import Tool


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
        await asyncio.sleep(0.02)  # some clients drop progress that comes in one piece with the result
    return "three"


@tool(effect=Effect.READ)
async def forever() -> str:
    """Run until stopped."""
    print("began", file=sys.stderr, flush=True)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("stopped", file=sys.stderr, flush=True)
        raise
    return "never"


@tool(effect=Effect.READ)
async def read_input() -> str:
    """Read what is there to read."""
    return repr(sys.stdin.read())


@tool(effect=Effect.READ)
async def think() -> str:
    """Borrow the client's model, and say so in its log."""
    client = calling_client()
    assert client is not None
    await client.log("thinking")
    said = types.SamplingMessage(role="user", content=types.TextContent(text="Well?"))
    return (await client.sample(types.CreateMessageRequestParams(messages=[said], max_tokens=5))).model


@tool(effect=Effect.READ)
async def late() -> str:
    """Came later."""
    return "here"


def grow(registry: Registry) -> Tool:
    """A tool that brings another."""

    @tool(name="grow", effect=Effect.READ)
    async def grown() -> str:
        """Bring another tool."""
        registry.add(late)
        return "there is one more"

    return grown


async def main(*, http: bool) -> None:
    tools = Registry(add, save, count, forever, read_input, think)
    tools.add(grow(tools))
    executor = Executor(tools, ByMode("default"))
    if not http:
        await serve(tools, executor)
        return
    async with listen(Gateway(tools, executor), HttpOptions(port=0, token="sesame")) as (url, serving):
        print(url, flush=True)
        await serving


if __name__ == "__main__":
    asyncio.run(main(http="--http" in sys.argv))
