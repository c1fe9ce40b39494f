"""A process that is killed while a tool runs that asks a question, or that calls other tools."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from callwright import (
    Agent,
    Answers,
    ApprovalRequired,
    Effect,
    Executor,
    Question,
    Registry,
    SqliteStore,
    ToolCall,
    tool,
)
from callwright.policy import AllowEverything
from callwright.testing import ScriptedProvider
from callwright.tool.base import ToolContext


def make_registry(folder: Path) -> Registry:
    """Make the tools; each writes down what it does."""

    def note(line: str) -> None:
        with (folder / "ledger").open("a", encoding="utf-8") as ledger:
            ledger.write(f"{line}\n")

    def die(at: str) -> None:
        if at == os.environ.get("KILL_AT"):  # not a value of the tool: a changed tool would have to ask again
            os.kill(os.getpid(), signal.SIGKILL)

    @tool
    async def pay(n: int, context: ToolContext) -> str:
        """Pay, after a question."""
        note(f"key {context.idempotency_key}")
        if context.answer is None:
            raise ApprovalRequired("is the price right?")
        die("answered")
        note(f"paid {n}")
        return "paid"

    @tool(effect=Effect.WRITE)
    async def write(n: int) -> str:
        """Write."""
        note(f"wrote {n}")
        die(f"in write {n}")
        return f"written {n}"

    @tool(effect=Effect.READ)
    async def survey(context: ToolContext) -> str:
        """Look around, and write on the way."""
        texts: list[str] = []
        for calls in (
            [ToolCall("a", "write", {"n": 1}), ToolCall("a", "write", {"n": 2})],
            [ToolCall("a", "write", {"n": 1})],
        ):
            texts += [type(outcome).__name__ for outcome in await context.execute(*calls)]
            die(f"after {len(texts)}")
        return " ".join(texts)

    return Registry(pay, write, survey)


async def main(folder: Path, name: str) -> None:
    """Run an agent until it kills itself."""

    async def ask(questions: Sequence[Question]) -> Answers:
        if os.environ.get("KILL_AT") == "asked":
            os.kill(os.getpid(), signal.SIGKILL)
        return Answers.approving(questions)

    model = ScriptedProvider(ToolCall("c1", name, {"n": 7} if name == "pay" else {}))
    executor = Executor(make_registry(folder), AllowEverything())
    async with SqliteStore(folder / "s.db") as store:
        await Agent(model, executor=executor, sessions=store, ask=ask).run("go", session="s")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
