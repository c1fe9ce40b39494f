"""langgraph: the graph of a model node and a `ToolNode` that its own documentation begins with."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.peers.contract import Call, Function, Session

DISTRIBUTION = "langgraph"
PACKAGE = "langgraph.prebuilt"
IMPORT = "from langchain_core.tools import tool; from langgraph.prebuilt import ToolNode"
CALL = "BaseTool.ainvoke"
TURN = "StateGraph with ToolNode"
TUNING = "asyncio's executor at 1000 threads"
ASYNC = NESTED = True


def define(functions: Sequence[Function]) -> list[Any]:
    return [tool(function, parse_docstring=True) for function in functions]


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    return {"convert_to_openai_tool (each bind_tools)": lambda: [convert_to_openai_tool(each) for each in tools]}


def _asked(calls: Sequence[Call]) -> AIMessage:
    parsed = [{"name": name, "args": json.loads(text), "id": str(i)} for i, (name, text) in enumerate(calls)]
    return AIMessage("", tool_calls=parsed)


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    if tuned:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1_000))
    pending: list[AIMessage] = []
    by_name = {each.name: each for each in tools}

    async def model(_: MessagesState) -> dict[str, Any]:
        return {"messages": [pending.pop() if pending else AIMessage("done")]}

    graph = StateGraph(MessagesState).add_node("model", model).add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    compiled = graph.compile()

    async def call(name: str, text: str) -> object:
        asked = {"type": "tool_call", "id": "1", "name": name, "args": json.loads(text)}
        return await by_name[name].ainvoke(asked)

    async def turn(calls: Sequence[Call]) -> list[str]:
        pending[:] = [_asked(calls)]
        state = await compiled.ainvoke({"messages": []})
        return [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]

    yield Session(call, turn)
