"""Outputs that were cut can be read by the id in their note: every tool, in this process and in another."""

import asyncio
import shutil
from pathlib import Path

import pytest

from callwright import (
    Agent,
    Answers,
    Completed,
    Effect,
    Executor,
    Limits,
    MemoryStore,
    Registry,
    SqliteStore,
    ToolCall,
    ToolContext,
    tool,
)
from callwright.agent import Compaction, Done, Paused
from callwright.clip import READER, find_output_ids
from callwright.core.errors import ApprovalRequired
from callwright.core.messages import Message, ToolMessage
from callwright.executor.runtime import TurnLimits
from callwright.policy import AllowEverything
from callwright.providers.base import ModelRequest
from callwright.sessions import SessionStore
from callwright.sessions.records import Ended
from callwright.system.output_capture import output_folder
from callwright.testing.fakes import Line, ScriptedProvider
from callwright.toolbox import Bash

WHOLE = "".join(f"{number}\n" for number in range(1, 20_001))


@tool(effect=Effect.READ, limits=Limits(output_chars=2000))
async def count() -> str:
    """Count to twenty thousand."""
    return WHOLE


@tool(effect=Effect.READ, limits=Limits(output_chars=1_000_000))
async def count_all() -> str:
    """Count without a limit of its own."""
    return WHOLE


@tool(effect=Effect.READ)
async def ask(context: ToolContext) -> str:
    """Ask while it runs."""
    if context.answer is None:
        raise ApprovalRequired("really?")
    return "yes"


CALLS = {
    "tool": [ToolCall("c1", "count")],
    "turn": [ToolCall("c1", "count_all"), ToolCall("c2", "count_all")],
    "bash": [ToolCall("c1", "bash", {"command": "seq 1 20000"})],
}


def agent_in(folder: Path, store: SessionStore, provider: ScriptedProvider) -> Agent:
    tools = Registry(count, count_all, ask, Bash(folder))
    executor = Executor(tools, AllowEverything(), limits=TurnLimits(turn_chars=40_000))
    return Agent(provider, executor=executor, sessions=store)


def read_back(request: ModelRequest) -> Line:
    """Read the end of the output by the id in its note."""
    (first, *_) = outcomes_in(request.messages)
    assert READER in {spec.name for spec in request.tools}, "the model is shown the tool that the note names"
    return ToolCall("r", READER, {"id": find_output_ids(first)[0], "offset": len(WHOLE) - 12})


def outcomes_in(messages: object) -> list[Completed]:
    found: list[Message] = list(messages)  # type: ignore[call-overload] - messages
    return [
        outcome
        for message in found
        if isinstance(message, ToolMessage)
        for outcome in message.outcomes
        if isinstance(outcome, Completed)
    ]


@pytest.mark.parametrize("kind", list(CALLS))
@pytest.mark.parametrize("durable", [True, False])
async def test_cut_output_is_read_by_its_id(tmp_path: Path, kind: str, durable: bool) -> None:
    store: SessionStore = SqliteStore(tmp_path / "s.db") if durable else MemoryStore()

    def reply(request: ModelRequest) -> Line:
        turns = sum(isinstance(message, ToolMessage) for message in request.messages)
        return (CALLS[kind], read_back(request) if turns == 1 else "", "done")[turns] if turns else CALLS[kind]

    agent = agent_in(tmp_path, store, ScriptedProvider.answering(reply))
    assert isinstance(await agent.run("count", session="s"), Done)
    assert outcomes_in(await agent.messages("s"))[-1].text.rstrip().endswith("19999\n20000")
    if isinstance(store, SqliteStore):
        store.close()


@pytest.mark.parametrize("kind", list(CALLS))
async def test_cut_output_is_read_in_another_process(tmp_path: Path, kind: str) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = agent_in(tmp_path, store, ScriptedProvider(CALLS[kind], "done"))
        assert isinstance(await agent.run("count", session="s"), Done)
    shutil.rmtree(agent.executor.outputs.folder)
    shutil.rmtree(output_folder())
    async with SqliteStore(tmp_path / "s.db") as store:
        await store.fork("s", "t")
        await store.delete("s")

        def reply(request: ModelRequest) -> Line:
            return "done" if outcomes_in(request.messages)[-1].call.name == READER else read_back(request)

        agent = agent_in(tmp_path, store, ScriptedProvider.answering(reply))
        assert isinstance(await agent.run("and the end?", session="t"), Done)
        assert outcomes_in(await agent.messages("t"))[-1].text.rstrip().endswith("19999\n20000")


@pytest.mark.parametrize("kind", ["tool", "turn"])
@pytest.mark.parametrize("answered", [True, False])
async def test_output_of_a_paused_turn_is_read_in_another_process(tmp_path: Path, kind: str, answered: bool) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = agent_in(tmp_path, store, ScriptedProvider([*CALLS[kind], ToolCall("c3", "ask")]))
        paused = await agent.run("count", session="s")
        assert isinstance(paused, Paused)
    shutil.rmtree(agent.executor.outputs.folder)

    def reply(request: ModelRequest) -> Line:
        return "done" if outcomes_in(request.messages)[-1].call.name == READER else read_back(request)

    async with SqliteStore(tmp_path / "s.db") as store:
        agent = agent_in(tmp_path, store, ScriptedProvider.answering(reply))
        if answered:
            assert isinstance(await agent.resume("s", Answers.approving(paused.questions)), Done)
        else:  # the user goes on without it
            assert isinstance(await agent.run("and the end?", session="s"), Done)
        assert outcomes_in(await agent.messages("s"))[-1].text.rstrip().endswith("19999\n20000")


async def test_output_is_kept_as_soon_as_its_call_has_ended(tmp_path: Path) -> None:
    kept: list[str | None] = []

    async with SqliteStore(tmp_path / "s.db") as store:

        @tool(effect=Effect.READ)
        async def stop() -> str:
            """Wait until the other call is on record, and cancel the run."""
            ended: list[Ended] = []
            while not ended:
                ended = [each for each in await store.read("s") if isinstance(each, Ended)]
            kept.append(await store.read_output("s", find_output_ids(ended[0].outcome)[0]))
            running.cancel()
            await asyncio.Event().wait()
            return ""

        provider = ScriptedProvider([ToolCall("c1", "count"), ToolCall("c2", "stop")])
        agent = Agent(provider, executor=Executor(Registry(count, stop), AllowEverything()), sessions=store)
        running = asyncio.ensure_future(agent.run("count", session="s"))
        with pytest.raises(asyncio.CancelledError):
            await running
        assert kept == [WHOLE], "a process that is killed now loses nothing"
        (first, *_) = outcomes_in(await agent.messages("s"))
        assert await store.read_output("s", find_output_ids(first)[0]) == WHOLE


async def test_dropped_output_is_read_in_another_process(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        provider = ScriptedProvider(ToolCall("c1", "count"), ToolCall("c2", "count_all"), "done")
        agent = agent_in(tmp_path, store, provider)
        agent.compaction = Compaction(at_tokens=5000, keep_tokens=100, method="drop")
        assert isinstance(await agent.run("count", session="s"), Done)
        (output_id, *_) = find_output_ids(outcomes_in(await agent.messages("s"))[0])
        shutil.rmtree(agent.executor.outputs.folder)
        assert await store.read_output("s", output_id) == WHOLE, "cut twice, the whole is still the whole"


async def test_reader_takes_what_a_command_names_and_nothing_else(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    executor = Executor(Registry(Bash(tmp_path)), AllowEverything())
    executor.registry.add(executor.outputs.reader())  # type: ignore[attr-defined] - a Registry
    output = (await executor.run("bash", {"command": "seq 1 20000"})).text
    path = output.partition("the whole output is in ")[2].partition("]")[0]
    assert (await executor.run(READER, {"id": path, "limit": 4})).text.startswith("1\n2\n")
    for other in (str(secret), "../secret", "secret.txt", "", "*", "x" * 5000):
        assert "there is no output" in (await executor.run(READER, {"id": other})).text
