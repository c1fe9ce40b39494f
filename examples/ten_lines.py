"""An agent in ten lines, with a scripted model; pass a model name such as `anthropic:…` to use a real one."""

import sys

from callwright import Agent, Effect, ToolCall, tool
from callwright.testing import ScriptedProvider


@tool(effect=Effect.READ)
def stock(item: str) -> int:
    """How many of an item are in the shop."""
    return {"apple": 12}.get(item, 0)


scripted = ScriptedProvider(ToolCall("1", "stock", {"item": "apple"}), "There are 12 apples.")
agent = Agent(sys.argv[1] if len(sys.argv) > 1 else scripted, [stock])
print(agent.run_sync("How many apples are there?").text)
