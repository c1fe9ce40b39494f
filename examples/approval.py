"""A run that needs an approval returns Paused; any process can resume it with the answer."""

import asyncio
import tempfile
from pathlib import Path

from callwright import Agent, Answers, Executor, Registry, SqliteStore, ToolCall, tool
from callwright.agent import Paused
from callwright.testing import ScriptedProvider

paid: list[int] = []


@tool
async def pay(amount: int) -> str:
    """Pay an invoice."""
    paid.append(amount)
    return f"paid {amount}"


async def main() -> None:
    model = ScriptedProvider(ToolCall("1", "pay", {"amount": 20}), "It is paid.")
    with tempfile.TemporaryDirectory() as folder:
        async with SqliteStore(Path(folder) / "sessions.db") as store:
            agent = Agent(model, executor=Executor(Registry(pay)), sessions=store)
            paused = await agent.run("Pay the invoice.", session="customer-1")
            assert isinstance(paused, Paused) and paid == []
            print(paused.questions[0].summary)
            done = await agent.resume("customer-1", Answers.approving(paused.questions))
            print(done.text, paid)


asyncio.run(main())
