"""Agents for the workers of the tests; their model reads what to do from the prompt, so that it has no state.

The prompt is JSON: `{"turns": [["note"], ["keyed", "slow"]], "seconds": 0.05}`. Every effect is a line in the file
`$EFFECTS`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from callwright import Agent, Annotations, Effect, Executor, Registry, RunLimits, ToolCall, ToolContext, tool
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.executor import TurnLimits
from callwright.policy import AllowEverything, Policies
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.sessions import PostgresStore, SessionStore, SqliteStore
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line

_MODEL_SECONDS = float(os.environ.get("MODEL_SECONDS", "0.01"))


def open_store() -> SessionStore:
    address = os.environ["CALLWRIGHT_STORE"]
    return PostgresStore(address, lease_seconds=5) if "://" in address else SqliteStore(address)


def write_effect(*words: object) -> None:
    """Add a line in one write, so that lines of several processes never mix."""
    line = " ".join(map(str, (*words, os.getpid(), f"{time.time():.3f}"))) + "\n"
    descriptor = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def reply(request: ModelRequest) -> Line:
    last = max(index for index, message in enumerate(request.messages) if isinstance(message, UserMessage))
    prompt = request.messages[last]
    assert isinstance(prompt, UserMessage) and isinstance(prompt.content, str)
    plan = json.loads(prompt.content)
    turns = plan["turns"]
    made = sum(isinstance(message, ToolMessage) for message in request.messages[last:])
    if made >= len(turns):
        return f"{plan.get('answer', 'done')} after {made} turns"
    seconds = float(plan.get("seconds", 0))
    return [
        ToolCall(f"c{made}.{place}", name, {"n": made, "seconds": seconds}) for place, name in enumerate(turns[made])
    ]


class Model:
    """Takes a moment for each reply, as a remote model does."""

    model = "slow"

    def __init__(self, answer: Callable[[ModelRequest], Line]) -> None:
        self._answer = answer

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(_MODEL_SECONDS)
        async for event in ScriptedProvider.answering(self._answer).stream(request):
            yield event


@tool(annotations=Annotations(Effect.WRITE))
async def note(n: int, seconds: float, context: ToolContext) -> str:
    """Do something that must not be repeated."""
    write_effect("note", context.session_id, n)
    await asyncio.sleep(seconds)
    return f"noted {n}"


@tool(annotations=Annotations(Effect.WRITE, idempotent=True))
async def keyed(n: int, seconds: float, context: ToolContext) -> str:
    """Do something that the other side does once per key."""
    write_effect("keyed", context.session_id, n, context.idempotency_key)
    await asyncio.sleep(seconds)
    return f"kept {n}"


@tool(annotations=Annotations(Effect.READ))
async def big(n: int, seconds: float) -> str:
    """Return 5 MB."""
    return f"{n:09d}\n" * 500_000


store = open_store()
_everything = Executor(Registry(note, keyed, big), Policies(AllowEverything()))
agent = Agent(Model(reply), executor=_everything, sessions=store, name="desk", limits=RunLimits(turns=2000))
brief = Agent(Model(reply), executor=_everything, sessions=store, name="brief", limits=RunLimits(seconds=4))
asking = Agent(Model(reply), [note, keyed], sessions=store, name="asking")
_hasty = Executor(Registry(note, keyed), limits=TurnLimits(question_seconds=1.0))
hasty = Agent(Model(reply), executor=_hasty, sessions=store, name="hasty")
_patient = Executor(Registry(note, keyed), limits=TurnLimits(question_seconds=None))
patient = Agent(Model(reply), executor=_patient, sessions=store, name="patient")
_inner = Agent(Model(reply), executor=Executor(Registry(note, keyed), Policies(AllowEverything())), sessions=store)


def outer_reply(request: ModelRequest) -> Line:
    if any(isinstance(message, AssistantMessage) for message in request.messages):
        return "the helper is done"
    plan = {"turns": [["keyed"], ["note"], ["keyed"], ["note"]], "seconds": 0.1}
    return ToolCall("c1", "helper", {"prompt": json.dumps(plan)})


outer = Agent(
    Model(outer_reply),
    executor=Executor(Registry(_inner.as_tool("helper", "Helps.")), Policies(AllowEverything())),
    sessions=store,
    name="outer",
)


def program_reply(request: ModelRequest) -> Line:
    if any(isinstance(message, AssistantMessage) for message in request.messages):
        return "the program is done"
    program = "for n in range(5):\n    print(await keyed(n=n, seconds=0.1))"
    return ToolCall("c1", "run_code", {"code": program})


@asynccontextmanager
async def coder() -> AsyncGenerator[Agent, None]:
    """An agent in code mode."""
    from callwright.codemode import CodeMode

    executor = Executor(CodeMode(Registry(keyed)), Policies(AllowEverything()))
    yield Agent(Model(program_reply), executor=executor, sessions=store, name="coder")


@asynccontextmanager
async def clerk() -> AsyncGenerator[Agent, None]:
    """An agent with the tools of an MCP server, which lives as long as the worker."""
    from callwright.mcp import McpServers, ServerConfig

    script = Path(__file__).parents[1] / "mcp" / "servers" / "rough.py"
    registry = Registry()
    async with McpServers([ServerConfig("files", sys.executable, (str(script),))], registry):
        executor = Executor(registry, Policies(AllowEverything()))
        yield Agent(Model(clerk_reply), executor=executor, sessions=store, name="clerk")


def clerk_reply(request: ModelRequest) -> Line:
    if any(isinstance(message, AssistantMessage) for message in request.messages):
        outcomes = [message for message in request.messages if isinstance(message, ToolMessage)]
        return f"the server said: {outcomes[-1].outcomes[0].text}"
    return ToolCall("c1", "mcp__files__echo", {"text": "hello"})
