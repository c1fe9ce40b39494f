"""A process that asks on the spot and is killed: at the question, or between the answer and the call."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from callwright import Agent, Answers, Executor, Question, Registry, SqliteStore, ToolCall, tool
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall, Verdict
from callwright.testing.fakes import ScriptedProvider


class KillAfterAnswer(Hook):
    """Kills the process when the call is admitted again, with the answer."""

    def __init__(self) -> None:
        self.admitted = 0

    def before(self, pending: PendingCall) -> Verdict | None:
        self.admitted += 1
        if self.admitted == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return None


async def main(folder: Path, at: str) -> None:
    """Run an agent until it kills itself."""

    @tool
    async def charge(n: int) -> str:
        """Charge once."""
        with (folder / "ledger").open("a", encoding="utf-8") as ledger:
            ledger.write(f"{n}\n")
        return "charged"

    async def ask(questions: Sequence[Question]) -> Answers:
        if at == "question":
            os.kill(os.getpid(), signal.SIGKILL)
        return Answers.approving(questions)

    executor = Executor(Registry(charge), hooks=[KillAfterAnswer()])
    model = ScriptedProvider(ToolCall("c1", "charge", {"n": 7}))
    async with SqliteStore(folder / "s.db") as store:
        await Agent(model, executor=executor, sessions=store, ask=ask).run("go", session="s")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
