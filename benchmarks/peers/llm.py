"""llm: a chain over a scripted asynchronous model."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import llm

from benchmarks.peers.contract import Call, Function, Session

DISTRIBUTION = "llm"
PACKAGE = "llm"
IMPORT = "from llm import AsyncModel, Tool"
CALL = "AsyncResponse.execute_tool_calls"
TURN = "AsyncModel.chain"
TUNING = ""
ASYNC = NESTED = True


class Scripted(llm.AsyncModel):
    """Requests the calls once, then stores the outcomes it receives."""

    model_id = "scripted"
    supports_tools = True
    pending: Sequence[Call] = ()
    told: list[str]

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> AsyncIterator[str]:
        for place, call in enumerate(self.pending):
            response.add_tool_call(_asked(place, *call))
        if not self.pending:
            self.told = [str(result.output) for result in prompt.tool_results]
        self.pending = ()
        yield "done"


def _asked(place: int, name: str, text: str) -> Any:
    return llm.ToolCall(name=name, arguments=json.loads(text), tool_call_id=str(place))


def define(functions: Sequence[Function]) -> list[Any]:
    return [llm.Tool.function(function) for function in functions]


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    def listed() -> object:
        parts = ({"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools)
        return [{"type": "function", "function": part} for part in parts]

    return {"as its OpenAI plug-in writes them": listed}


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    model = Scripted()
    response = model.prompt("go", tools=tools)

    async def call(name: str, text: str) -> object:
        return await response.execute_tool_calls(tool_calls_list=[_asked(0, name, text)])

    async def turn(calls: Sequence[Call]) -> list[str]:
        model.pending = calls
        await model.chain("go", tools=tools).text()
        return model.told

    yield Session(call, turn)
