"""Overhead of the adapters: a callwright tool in each framework compared with a native tool."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.measure import ratio
from callwright import Effect, Executor, Registry, tool
from callwright.interop import to_langchain, to_openai_agents, to_pydantic_ai
from callwright.policy import AllowEverything

TURNS = 20
"""Calls of one run, in sequence; enough to make the start of the run negligible."""
Run = Callable[[], Awaitable[object]]


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


def _executor() -> Executor:
    return Executor(Registry(tool(effect=Effect.READ)(add)), AllowEverything())


def pydantic_ai_runs() -> tuple[Run, Run]:
    """Return a run with the callwright toolset, and one with a native toolset."""
    from pydantic_ai import Agent, FunctionToolset
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 2 * TURNS:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("add", {"a": 1, "b": 2}, f"c{len(messages)}")])

    ours = Agent(FunctionModel(answer), toolsets=[to_pydantic_ai(_executor())])
    own = Agent(FunctionModel(answer), toolsets=[FunctionToolset([add])])
    return lambda: ours.run("go"), lambda: own.run("go")


def langgraph_runs() -> tuple[Run, Run]:
    """Return a graph with callwright tools, and one with a native LangChain tool."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import StructuredTool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    async def think(state: MessagesState) -> dict[str, Any]:
        count = len(state["messages"])
        if count > 2 * TURNS:
            return {"messages": [AIMessage("done")]}
        call = {"name": "add", "args": {"a": 1, "b": 2}, "id": f"c{count}", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    def run_with(tools: list[Any]) -> Run:
        graph: Any = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
        compiled = graph.compile()
        return lambda: compiled.ainvoke({"messages": [("user", "go")]}, {"recursion_limit": 4 * TURNS})

    return run_with([*to_langchain(_executor())]), run_with([StructuredTool.from_function(coroutine=add)])


def openai_agents_runs() -> tuple[Run, Run]:
    """Return a run with callwright tools, and one with a native function tool."""
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.testing import ScriptedModel, assistant_message, function_call

    config = RunConfig(tracing_disabled=True)

    def run_with(tools: list[Any]) -> Run:
        def run() -> Awaitable[object]:
            steps: list[Any] = [[function_call("add", '{"a":1,"b":2}', call_id=f"c{turn}")] for turn in range(TURNS)]
            model = ScriptedModel([*steps, [assistant_message("done")]])
            return Runner.run(Agent("a", model=model, tools=tools), "go", run_config=config, max_turns=TURNS + 1)

        return run

    return run_with([*to_openai_agents(_executor())]), run_with([function_tool(add)])


async def _measure() -> None:
    runs = {"pydantic-ai": pydantic_ai_runs, "LangGraph": langgraph_runs, "OpenAI Agents": openai_agents_runs}
    for name, make in runs.items():
        ours, own = make()
        await ours()
        times, floor = await ratio(ours, own, times=2, slices=15)
        more = floor * (times - 1) / TURNS
        own_tool = f"{floor / TURNS:6.0f} µs a turn with its own tool"
        print(f"  {name:<14} {own_tool}, {times:.2f} times that with ours ({more:+.0f} µs)")


def main() -> None:
    """Measure both in turn, so that load affects them equally, and print the result."""
    print(f"\nA run of {TURNS} turns with one call each, the model's answers scripted, CPU time\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the frameworks' own, about themselves
        asyncio.run(_measure())


if __name__ == "__main__":
    main()
