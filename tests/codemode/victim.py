"""A process with a program of calls: answers its questions, or is killed while it runs and goes on afterwards.

python victim.py FOLDER answer | kill SECONDS | resume
"""

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from callwright import Agent, Answers, Effect, Executor, Registry, ToolCall, tool
from callwright.agent import Done, Paused
from callwright.codemode import CodeMode
from callwright.policy import AllowEverything
from callwright.sessions import SqliteStore
from callwright.testing.fakes import ScriptedProvider

CALLS = 12
CODE = f"""
made, unknown = [], []
for first in range(0, {CALLS}, 3):
    async def one(n):
        try:
            return ('made', n, await pay(amount=n))
        except RuntimeError as error:
            return ('unknown', n, str(error))
    for kind, n, text in await asyncio.gather(*[one(n) for n in range(first, first + 3)]):
        (made if kind == 'made' else unknown).append(n)
print(json.dumps({{'made': made, 'unknown': unknown, 'tried': {CALLS}}}))
"""


def registry(folder: Path) -> Registry:
    """Make the tools of the tests; they write down what they do."""

    def add(name: str) -> None:
        with (folder / "effects").open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")

    @tool(effect=Effect.READ)
    async def quote(amount: int) -> str:
        """Quote a price."""
        add(f"quote {amount}")
        return str(amount)

    @tool(effect=Effect.WRITE)
    async def pay(amount: int) -> str:
        """Pay."""
        add(f"pay {amount}")
        return f"paid {amount}"

    return Registry(quote, pay)


async def answer(folder: Path) -> None:
    """Approve what the session waits for."""
    async with SqliteStore(folder / "s.db") as store:
        agent = Agent(ScriptedProvider("done"), executor=Executor(CodeMode(registry(folder))), sessions=store)
        waiting: Any = await agent.resume("s")
        assert isinstance(waiting, Paused)
        result = await agent.resume("s", Answers.approving(waiting.questions))
        print(result.text if isinstance(result, Done) else "paused")


async def pay_all(folder: Path, kill_after: float | None) -> None:
    ready = threading.Event()

    @tool(effect=Effect.WRITE)
    async def pay(amount: int) -> str:
        """Pay."""
        ready.set()
        with (folder / "effects").open("a", encoding="utf-8") as file:
            file.write(f"{amount}\n")
        await asyncio.sleep(0.001)
        return "paid"

    def kill() -> None:
        ready.wait()
        threading.Event().wait(kill_after)
        os.kill(os.getpid(), signal.SIGKILL)

    if kill_after is not None:
        threading.Thread(target=kill, daemon=True).start()
    script: list[Any] = ["done"] if kill_after is None else [[ToolCall("c", "run_code", {"code": CODE})], "done"]
    async with SqliteStore(folder / "s.db") as store:
        agent = Agent(
            ScriptedProvider(*script), executor=Executor(CodeMode(Registry(pay)), AllowEverything()), sessions=store
        )
        if kill_after is None:
            await agent.resume("s")
        else:
            await agent.run("pay", session="s")
        messages = await agent.messages("s")
    (outcome,) = [outcome for message in messages for outcome in getattr(message, "outcomes", ())]
    print(json.dumps(json.loads(outcome.text)))


if __name__ == "__main__":
    if sys.argv[2] == "answer":
        asyncio.run(answer(Path(sys.argv[1])))
    else:
        asyncio.run(pay_all(Path(sys.argv[1]), float(sys.argv[3]) if sys.argv[2] == "kill" else None))
