"""A process that is killed inside the second of several calls."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from callwright import Agent, Annotations, Effect, Executor, Registry, SqliteStore, ToolCall, tool
from callwright.policy import AllowEverything
from callwright.testing.fakes import ScriptedProvider


def registry(folder: Path) -> Registry:
    """Tools that write what they did into a ledger."""

    def enter(name: str) -> str:
        with (folder / "ledger").open("a", encoding="utf-8") as ledger:
            ledger.write(f"{name}\n")
        return name

    @tool
    async def work(name: str) -> str:
        """Do something; such calls run one after the other."""
        return enter(name)

    @tool
    async def die(name: str) -> str:
        """Do something and kill the process."""
        enter(name)
        if not (folder / "dead").exists():
            (folder / "dead").touch()
            while "fourth" not in (folder / "ledger").read_text(encoding="utf-8"):  # noqa: ASYNC110 - a call beside it
                await asyncio.sleep(0.001)
            os.kill(os.getpid(), signal.SIGKILL)
        return name

    @tool(annotations=Annotations(parallel=True))
    async def beside(name: str) -> str:
        """Run beside any other call."""
        enter(name)
        await asyncio.sleep(10)
        return name

    @tool(effect=Effect.READ)
    async def look(name: str) -> str:
        """Look."""
        return name

    return Registry(work, die, beside, look)


CALLS = [
    ToolCall("c1", "work", {"name": "first"}),
    ToolCall("c2", "die", {"name": "second"}),
    ToolCall("c3", "work", {"name": "third"}),
    ToolCall("c4", "beside", {"name": "fourth"}),
    ToolCall("c5", "look", {"name": "fifth"}),
]


async def main(folder: Path) -> None:
    """Run the calls."""
    executor = Executor(registry(folder), AllowEverything())
    async with SqliteStore(folder / "s.db") as store:
        await Agent(ScriptedProvider(CALLS), executor=executor, sessions=store).run("go", session="s")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
