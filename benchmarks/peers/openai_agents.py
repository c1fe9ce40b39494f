"""openai-agents: a runner over a scripted model, tracing switched off."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage, function_tool
from agents.models.openai_responses import Converter
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks.peers.contract import ASKED_AGAIN, Call, Function, Session

DISTRIBUTION = "openai-agents"
PACKAGE = "agents"
IMPORT = "from agents import Agent, function_tool"
CALL = "FunctionTool.on_invoke_tool"
TURN = "Runner.run"
TUNING = "asyncio's executor at 1000 threads"
ASYNC = NESTED = True


class Scripted(Model):
    """Requests the calls once, then stores the outcomes it receives."""

    pending: Sequence[Call] = ()
    told: list[str]

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - theirs
        if self.pending:
            output = [
                ResponseFunctionToolCall(name=name, arguments=text, call_id=str(i), type="function_call")
                for i, (name, text) in enumerate(self.pending)
            ]
            self.pending = ()
            return ModelResponse(output=output, usage=Usage(), response_id=None)
        self.told = [str(item["output"]) for item in input if item.get("type") == "function_call_output"]
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        done = ResponseOutputMessage(id="1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[done], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def define(functions: Sequence[Function]) -> list[Any]:
    return [function_tool(function) for function in functions]


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    return {"Converter.convert_tools (OpenAI's shape)": lambda: Converter.convert_tools(tools, [])}


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    if tuned:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1_000))
    model = Scripted()
    agent = Agent("bench", model=model, tools=tools)
    by_name = {tool.name: tool for tool in tools}

    async def call(name: str, text: str) -> object:
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        return await by_name[name].on_invoke_tool(context, text)

    async def turn(calls: Sequence[Call]) -> list[str]:
        model.pending = calls
        await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
        return model.told

    yield Session(call, turn)


async def approve(function: Function, asked: Call, stored: Call, times: int) -> str:
    model = Scripted()
    agent = Agent("bench", model=model, tools=[function_tool(function, needs_approval=True)])
    quiet = RunConfig(tracing_disabled=True)
    model.pending = [asked]
    paused = await Runner.run(agent, "go", run_config=quiet)
    saved = paused.to_state().to_string().replace(json.dumps(asked[1]), json.dumps(stored[1]))
    for _ in range(times):
        state = await RunState.from_string(agent, saved)
        for item in state.get_interruptions():
            state.approve(item)
        done = await Runner.run(agent, state, run_config=quiet)
    return ASKED_AGAIN if done.interruptions else f"told: {' / '.join(model.told)}"
