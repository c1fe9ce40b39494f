"""Exported tools as the OpenAI Agents SDK sends them over a local HTTP connection."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from callwright import interop
from callwright.testing.loopback import Loopback, LoopbackReply

if TYPE_CHECKING:
    from tests.interop.conftest import Notes

pytestmark = pytest.mark.slow  # the frameworks take seconds to load, in each process


def completion(message: dict[str, Any], reason: str) -> LoopbackReply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    body = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return LoopbackReply([json.dumps(body).encode()], headers={"content-type": "application/json"})


async def test_openai_agents_sends_schema_and_error_over_http(notes: "Notes") -> None:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
    from openai import AsyncOpenAI

    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": '{"path": "note"}'}}
    async with Loopback() as server, AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        server.reply(completion({"tool_calls": [call]}, "tool_calls"), completion({"content": "done"}, "stop"))
        model = OpenAIChatCompletionsModel("m", client)
        agent = Agent("writer", model=model, tools=[*interop.to_openai_agents(notes.executor(ask=True))])
        result = await Runner.run(agent, "hello", run_config=RunConfig(tracing_disabled=True))
    assert result.final_output == "done"
    first, second = (request.json for request in server.received)
    told = {tool["function"]["name"]: tool["function"]["parameters"] for tool in first["tools"]}
    assert told == {spec.name: spec.input_schema for spec in notes.registry.definitions()}
    assert second["messages"][-1]["tool_call_id"] == "c1"
    assert "text: missing" in second["messages"][-1]["content"]
    assert notes.log == []
