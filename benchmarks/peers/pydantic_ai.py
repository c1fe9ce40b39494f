"""pydantic-ai: an agent over a scripted model."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, RunContext, Tool
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.usage import RequestUsage, RunUsage

from benchmarks.peers.contract import ASKED_AGAIN, Call, Function, Session

DISTRIBUTION = "pydantic-ai-slim"
PACKAGE = "pydantic_ai"
IMPORT = "from pydantic_ai import Agent, Tool"
CALL = "ToolManager.handle_call"
TURN = "Agent.run"
TUNING = "anyio's limiter at 1000 threads"
ASYNC = NESTED = True


class Scripted(Model):
    """Requests the calls once, then stores the outcomes it receives."""

    model_name = "scripted"
    system = "scripted"
    pending: Sequence[Call] = ()
    told: list[str]

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        self.prepare_request(model_settings, model_request_parameters)
        usage = RequestUsage(input_tokens=1, output_tokens=1)
        if self.pending:
            parts = [ToolCallPart(name, text, tool_call_id=str(i)) for i, (name, text) in enumerate(self.pending)]
            self.pending = ()
            return ModelResponse(parts=parts, usage=usage)
        results = (ToolReturnPart, RetryPromptPart)
        self.told = [str(part.content) for part in messages[-1].parts if isinstance(part, results)]
        return ModelResponse(parts=[TextPart("done")], usage=usage)


def define(functions: Sequence[Function]) -> list[Any]:
    return [Tool(function) for function in functions]


def _context() -> Any:
    return RunContext(deps=None, model=Scripted(), usage=RunUsage(), run_step=1)


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    toolset, context = FunctionToolset(tools), _context()

    async def listed() -> object:
        return (await ToolManager(toolset).for_run_step(context)).tool_defs

    return {"ToolManager.for_run_step": listed}


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    if tuned:
        to_thread.current_default_thread_limiter().total_tokens = 1_000
    model = Scripted()
    agent = Agent(model, tools=tools)
    manager = await ToolManager(FunctionToolset(tools)).for_run_step(_context())

    async def turn(calls: Sequence[Call]) -> list[str]:
        model.pending = calls
        await agent.run("go")
        return model.told

    yield Session(lambda name, text: manager.handle_call(ToolCallPart(name, text)), turn)


async def approve(function: Function, asked: Call, stored: Call, times: int) -> str:
    model = Scripted()
    agent = Agent(model, tools=[Tool(function, requires_approval=True)], output_type=[str, DeferredToolRequests])
    model.pending = [asked]
    paused = await agent.run("go")
    saved = paused.all_messages_json()
    answers = paused.output.build_results(approve_all=True)
    for _ in range(times):
        messages = ModelMessagesTypeAdapter.validate_json(saved)
        for part in messages[-1].parts:
            if isinstance(part, ToolCallPart):
                part.args = stored[1]
        done = await agent.run(message_history=messages, deferred_tool_results=answers)
    return ASKED_AGAIN if isinstance(done.output, DeferredToolRequests) else f"told: {' / '.join(model.told)}"
