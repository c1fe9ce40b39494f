"""The process the fault suite kills: an agent that performs counted effects, started again and again.

Imports take longer than whole runs, so one process that has imported everything forks a child for every run.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from callwright import Annotations, Answers, Effect, Executor, Registry, ToolCall, ToolContext, tool
from callwright.agent import Agent, Paused, RunLimits
from callwright.core.messages import ToolMessage
from callwright.providers.base import ModelRequest
from callwright.sessions import SessionBusy, SqliteStore
from callwright.testing.fakes import Line, ScriptedProvider

TURNS = 8


def registry(ledger: Path) -> Registry:
    """Tools that write every effect into the ledger, which stands for the real world."""

    def enter(*words: object) -> None:
        descriptor = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
        os.close(descriptor)

    @tool
    async def charge(n: int) -> str:
        """Charge once; asks first, must never happen twice."""
        await asyncio.sleep(random.random() * 0.002)
        enter("charge", n)
        await asyncio.sleep(random.random() * 0.002)
        return f"charged {n}"

    @tool(annotations=Annotations(Effect.WRITE, idempotent=True))
    async def put(n: int, context: ToolContext) -> str:
        """Put; may be repeated, with the same key."""
        enter("put", n, context.idempotency_key)
        await asyncio.sleep(random.random() * 0.002)
        return f"put {n}"

    @tool(effect=Effect.READ)
    async def look(n: int) -> str:
        """Look."""
        return f"saw {n}"

    return Registry(charge, put, look)


def reply(request: ModelRequest) -> Line:
    """What the model says depends on the conversation alone, so that a restart changes nothing."""
    turn = sum(isinstance(message, ToolMessage) for message in request.messages)
    if turn >= TURNS:
        return "done"
    names: Sequence[str] = (("charge",), ("charge", "put", "charge", "look"), ("put",), ("look", "put"))[turn % 4]
    return [ToolCall(f"c{place}", name, {"n": turn * 10 + place}) for place, name in enumerate(names)]


async def work(folder: Path, session: str) -> str:
    """Begin the session or go on with it, saying yes to every question."""
    async with SqliteStore(folder / "sessions.db") as store:
        tools = registry(folder / f"{session}.ledger")
        agent = Agent(
            ScriptedProvider.answering(reply),
            tools,
            executor=Executor(tools),
            sessions=store,
            limits=RunLimits(turns=100),
        )
        known = {entry.session_id for entry in await store.list(limit=10_000)}
        try:
            result = await (agent.resume(session) if session in known else agent.run("go", session=session))
            while isinstance(result, Paused):
                result = await agent.resume(session, Answers.approving(result.questions))
        except SessionBusy:
            return "busy"
        return type(result).__name__


def child(folder: Path, session: str) -> int:
    """Fork a process that works on the session and leaves with 0 when it was done, 3 when it was busy."""
    pid = os.fork()
    if pid:
        return pid
    said = asyncio.run(work(folder, session))
    os._exit({"Done": 0, "busy": 3}.get(said, 1))


def killed_after(pid: int, seconds: float) -> int:
    """Kill a child at that instant, unless it has ended by itself; returns its exit code."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """For every line `{folder, session, seconds}` run a child, kill it after that time, and say how it ended."""
    for line in sys.stdin:
        order = json.loads(line)
        folder, session = Path(order["folder"]), order["session"]
        if order["seconds"] is None:  # a race: two at once, neither is killed
            pids = [child(folder, session), child(folder, session)]
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
            print(json.dumps(codes), flush=True)
            continue
        print(json.dumps(killed_after(child(folder, session), order["seconds"])), flush=True)


if __name__ == "__main__":
    main()
