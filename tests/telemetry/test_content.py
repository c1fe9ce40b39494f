"""Content is recorded only on request, and without secrets."""

import json
from typing import TYPE_CHECKING

from callwright import Effect, Executor, Image, Registry, ToolCall, ToolFailed, tool
from callwright.agent import Agent
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Thinking
from callwright.policy import AllowEverything
from callwright.testing.fakes import ScriptedProvider

if TYPE_CHECKING:
    from tests.telemetry.conftest import Collected

KEY = "sk-abcdefghijklmnopqrstuvwxyz"


@tool(effect=Effect.READ)
async def fetch(name: str) -> str:
    """Fetch something."""
    return f"{name} is {KEY}"


@tool(effect=Effect.READ)
async def refuse(name: str) -> str:
    """Say no."""
    raise ToolFailed(f"{name}: {KEY} is not welcome")


async def run(collected: "Collected", *, content: bool) -> str:
    observer = collected.observer(content=content)
    executor = Executor(Registry(fetch, refuse), AllowEverything(), observe=observer)
    first = AssistantMessage((Thinking("hm"), ToolCall("1", "fetch", f'{{"name": "{KEY}"}}')), "calls")
    script = (first, ToolCall("2", "refuse", {"name": "marker"}), f"the answer is {KEY}")
    agent = Agent(ScriptedProvider(*script), executor=executor, system="be brief")
    await agent.run((Text(f"find the marker {KEY}"), Image(b"pixels")))
    return "\n".join(span.to_json() for span in collected.spans)


async def test_content_is_not_recorded_by_default(collected: "Collected") -> None:
    written = await run(collected, content=False)
    for said in ("marker", "be brief", "welcome", "answer is", KEY):
        assert said not in written


async def test_content_is_recorded_without_secrets(
    collected: "Collected",
) -> None:
    written = await run(collected, content=True)
    assert KEY not in written
    chats = [span.attributes or {} for span in collected.spans if span.name.startswith("chat")]
    assert json.loads(str(chats[0]["gen_ai.system_instructions"])) == [{"type": "text", "content": "be brief"}]
    assert json.loads(str(chats[0]["gen_ai.input.messages"])) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "find the marker [redacted]"},
                {"type": "omitted", "mime_type": "image/png", "bytes": 6},
            ],
        }
    ]
    call = {"type": "tool_call", "id": "1", "name": "fetch", "arguments": '{"name": "[redacted]"}'}
    assert json.loads(str(chats[0]["gen_ai.output.messages"])) == [
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, call], "finish_reason": "tool_call"}
    ]
    assert json.loads(str(chats[1]["gen_ai.input.messages"]))[-1] == {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "1", "response": "[redacted] is [redacted]"}],
    }
    tool_span = collected.span("execute_tool fetch").attributes or {}
    assert tool_span["gen_ai.tool.call.arguments"] == '{"name": "[redacted]"}'
    assert tool_span["gen_ai.tool.call.result"] == "[redacted] is [redacted]"
    assert collected.span("execute_tool refuse").status.description == "marker: [redacted] is not welcome"
