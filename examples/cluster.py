"""One agent, in this process or on workers: the same object serves both.

python examples/cluster.py                    here

export CALLWRIGHT_STORE=$PWD/sessions.db      on workers; or postgresql://user@host/name
cd examples
callwright worker cluster:agent --dev         starts a Temporal server too; its page: http://localhost:8233
callwright runs ask desk 'Pay invoice 42'     in another terminal
callwright runs approve SESSION
"""

import asyncio
import os
import tempfile
from pathlib import Path

from callwright import Agent, Answers, Paused, SqliteStore, ToolCall, tool
from callwright.core.messages import ToolMessage
from callwright.providers.base import ModelRequest
from callwright.sessions import PostgresStore, SessionStore
from callwright.testing import ScriptedProvider


@tool
async def pay(invoice: int) -> str:
    """Pay an invoice; asks first, because it changes something."""
    return f"paid invoice {invoice}"


def reply(request: ModelRequest) -> str | ToolCall:
    """Stand in for a model: pay once, then say so. It has no state, so any worker can continue."""
    last = request.messages[-1]
    return last.outcomes[0].text if isinstance(last, ToolMessage) else ToolCall("1", "pay", {"invoice": 42})


def open_store() -> SessionStore:
    """Return the store that `CALLWRIGHT_STORE` names: PostgreSQL for several machines, or a file."""
    address = os.environ.get("CALLWRIGHT_STORE") or str(Path(tempfile.mkdtemp(), "sessions.db"))
    return PostgresStore(address) if "://" in address else SqliteStore(address)


store = open_store()
agent = Agent(ScriptedProvider.answering(reply), [pay], name="desk", sessions=store)


async def main() -> None:
    """Do here what a worker does: run, pause at the question, go on with the answer."""
    paused = await agent.run("Pay invoice 42")
    assert isinstance(paused, Paused)
    print(paused.text)
    result = await agent.resume(paused.session_id, Answers.approving(paused.questions))
    print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
