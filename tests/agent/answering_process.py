"""A process that resumes a paused session with an approval; several of them race for it.

Prints how its resume ended. A file `die` kills it in the middle of the call, after the effect; with `repeat` the model
makes the same call with the same id once more.
"""

import asyncio
import os
import pickle
import signal
import sys
import time
from pathlib import Path

from callwright import Agent, Answers, Executor, Registry, SqliteStore, ToolCall, tool
from callwright.agent import Paused
from callwright.sessions.base import SessionBusy
from callwright.sessions.records import Asked
from callwright.testing.fakes import ScriptedProvider

CALL = ToolCall("c1", "charge", {"n": 7})


def make_agent(folder: Path, store: SqliteStore, *script: ToolCall | str) -> Agent:
    """Return an agent whose calls each leave a line in a file; the same code in every process."""

    @tool
    async def charge(n: int) -> str:
        """Charge once."""
        descriptor = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{n}\n".encode())
        os.close(descriptor)
        if (folder / "die").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.05)  # the others must come while the call runs, too
        return "charged"

    return Agent(ScriptedProvider(*script), executor=Executor(Registry(charge)), sessions=store)


async def resume(folder: Path, how: str) -> str:
    """Resume with an approval of what was asked, again and again while another process holds the session."""
    answers = Answers(pickle.loads((folder / "answers").read_bytes()))
    async with SqliteStore(folder / "s.db") as store:
        agent = make_agent(folder, store, *([CALL] if how == "repeat" else []), "done")
        while not (folder / "go").exists():
            time.sleep(0.001)  # noqa: ASYNC251 - nothing else runs in this process yet
        while True:  # the test has a time limit
            try:
                result = await agent.resume("s", answers)
            except SessionBusy:
                await asyncio.sleep(0.005)
                continue
            return type(result).__name__


async def pause(folder: Path) -> None:
    """Run to the question, and keep its approval."""
    async with SqliteStore(folder / "s.db") as store:
        paused = await make_agent(folder, store, CALL).run("go", session="s")
        assert isinstance(paused, Paused)
        assert any(isinstance(record, Asked) for record in await store.read("s"))
        approvals = dict(Answers.approving(paused.questions))
        (folder / "answers").write_bytes(pickle.dumps(approvals))


if __name__ == "__main__":
    print(asyncio.run(resume(Path(sys.argv[1]), sys.argv[2])))
