"""strands: an agent over a scripted model, printing switched off."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.tools.registry import ToolRegistry

from benchmarks.peers.contract import Call, Function, Session

DISTRIBUTION = "strands-agents"
PACKAGE = "strands"
IMPORT = "from strands import Agent, tool"
CALL = "DecoratedFunctionTool.stream"
TURN = "Agent.invoke_async"
TUNING = "asyncio's executor at 1000 threads"
ASYNC = NESTED = True


class Scripted(Model):
    """Requests the calls once, then stores the outcomes it receives."""

    pending: Sequence[Call] = ()
    told: list[str]

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        yield {"messageStart": {"role": "assistant"}}
        for place, (name, text) in enumerate(self.pending):
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": str(place)}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}}}
            yield {"contentBlockStop": {}}
        if not self.pending:
            results = [block["toolResult"] for block in messages[-1]["content"] if "toolResult" in block]
            self.told = [part["text"] for result in results for part in result["content"]]
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if self.pending else "end_turn"}}
        self.pending = ()

    def get_config(self) -> Any:
        return {}

    def update_config(self, **_: Any) -> None: ...

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def define(functions: Sequence[Function]) -> list[Any]:
    return [tool(function) for function in functions]


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    registry = ToolRegistry()
    registry.process_tools(tools)
    return {"ToolRegistry.get_all_tool_specs": registry.get_all_tool_specs}


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    if tuned:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1_000))
    model = Scripted()
    agent = Agent(model=model, tools=tools, callback_handler=None)
    by_name = {each.tool_name: each for each in tools}

    async def call(name: str, text: str) -> object:
        asked = {"toolUseId": "1", "name": name, "input": json.loads(text)}
        return [event async for event in by_name[name].stream(asked, {})]

    async def turn(calls: Sequence[Call]) -> list[str]:
        model.pending = calls
        agent.messages.clear()  # else every turn would carry those before it
        await agent.invoke_async("go")
        return model.told

    yield Session(call, turn)
