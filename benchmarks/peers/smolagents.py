"""smolagents: a tool-calling agent over a scripted model; its tools are sync and take no models."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from smolagents import ChatMessage, LogLevel, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, get_tool_json_schema

from benchmarks.peers.contract import Call, Function, Session

DISTRIBUTION = "smolagents"
PACKAGE = "smolagents"
IMPORT = "from smolagents import ToolCallingAgent, tool"
CALL = "ToolCallingAgent.execute_tool_call"
TURN = "ToolCallingAgent.run"
TUNING = "max_tool_threads=1000"
ASYNC = NESTED = False


class Scripted(Model):
    """Requests the calls once, then stores the outcomes and gives its final answer."""

    pending: Sequence[Call] = ()
    told: list[str]

    def generate(self, messages: Any, tools_to_call_from: Any = None, **_: Any) -> ChatMessage:
        self._prepare_completion_kwargs(messages, tools_to_call_from=tools_to_call_from)
        calls = self.pending or [("final_answer", '{"answer": "done"}')]
        if not self.pending:
            told = [message.content for message in messages if message.role == MessageRole.TOOL_RESPONSE]
            self.told = [part["text"] for content in told for part in content]
        self.pending = ()
        asked = [
            ChatMessageToolCall(ChatMessageToolCallFunction(arguments=text, name=name), id=str(i), type="function")
            for i, (name, text) in enumerate(calls)
        ]
        return ChatMessage(MessageRole.ASSISTANT, "", tool_calls=asked)


def define(functions: Sequence[Function]) -> list[Any]:
    return [tool(function) for function in functions]


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    return {"get_tool_json_schema (OpenAI's shape)": lambda: [get_tool_json_schema(each) for each in tools]}


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    model = Scripted()
    threads = 1_000 if tuned else None
    agent = ToolCallingAgent(tools, model, verbosity_level=LogLevel.OFF, max_tool_threads=threads)

    async def call(name: str, text: str) -> object:
        return agent.execute_tool_call(name, json.loads(text))

    async def turn(calls: Sequence[Call]) -> list[str]:
        model.pending = calls
        agent.run("go")
        return model.told

    yield Session(call, turn)
