"""One turn of five calls: a write waits for a conflicting read, two calls fail, and each call has an outcome."""

import asyncio

from callwright import Effect, Executor, ReadPath, Registry, ToolCall, WritePath, tool
from callwright.policy import AllowEverything

shelf = {"a.txt": "old"}


@tool(effect=Effect.READ, accesses=lambda arguments: [ReadPath(str(arguments["path"]))])
async def look(path: str) -> str:
    """Read a text from the shelf."""
    await asyncio.sleep(0.01)
    return shelf[path]


@tool(accesses=lambda arguments: [WritePath(str(arguments["path"]))])
async def put(path: str, text: str) -> str:
    """Put a text on the shelf."""
    shelf[path] = text
    return "done"


calls = [
    ToolCall("1", "look", {"path": "a.txt"}),
    ToolCall("2", "put", {"path": "a.txt", "text": "new"}),
    ToolCall("3", "look", {"path": "a.txt"}),
    ToolCall("4", "lok", {"path": "a.txt"}),
    ToolCall("5", "put", {"path": 7}),
]
for outcome in asyncio.run(Executor(Registry(look, put), AllowEverything()).execute(calls)):
    print(f"{outcome.call.id}  {type(outcome).__name__:9}  {outcome.text}")
