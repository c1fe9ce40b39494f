"""What clients and workers refuse at once: a server would retry it without end, or fail with errors of its own."""

from typing import Any

import pytest

from callwright import Agent, MemoryStore, SqliteStore
from callwright.core.errors import UsageError
from callwright.temporal import AgentWorker, Runs
from callwright.testing import ScriptedProvider


async def test_workers_need_named_agents_with_durable_stores(store: SqliteStore) -> None:
    named = Agent(ScriptedProvider(), sessions=store, name="desk")
    for agents, message in (
        ([], "at least one agent"),
        ([Agent(ScriptedProvider(), sessions=store)], "needs a name"),
        ([named, Agent(ScriptedProvider(), sessions=store, name="desk")], "two agents"),
        ([Agent(ScriptedProvider(), sessions=MemoryStore(), name="desk")], "in this process only"),
        (["desk"], "expected an Agent"),
    ):
        with pytest.raises(UsageError, match=message):
            AgentWorker(agents)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - some are wrong
    with pytest.raises(UsageError, match="in this process only"):
        await Runs.connect(sessions=MemoryStore())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"turns": 0}, "turns must be at least 1, got 0"),
        ({"turns": 1.5}, "turns must be at least 1, a whole number, got 1.5"),
        ({"attempts": 0}, "attempts must be at least 1"),  # for the server, without end
        ({"attempts": 2.5}, "a whole number, got 2.5"),  # these fail in the workflow, and are tried without end
        ({"attempts": True}, "a whole number, got True"),
        ({"attempts": 2**31}, "at most 2,147,483,647, got 2147483648"),
        ({"heartbeat_seconds": 0}, "heartbeat_seconds must be at least 0.1"),
        ({"heartbeat_seconds": 1e-9}, "at least 0.1"),  # for the server, no limit
        ({"heartbeat_seconds": float("nan")}, "at least 0.1"),
        ({"heartbeat_seconds": float("inf")}, "at most 86,400"),
        ({"heartbeat_seconds": "10"}, "a number, got '10'"),
        ({"address": ""}, "expected the address of a Temporal server, such as localhost:7233, got ''"),
        ({"address": "\udcff:1"}, "expected the address of a Temporal server"),
        ({"namespace": ""}, "expected a namespace of the Temporal server, such as default, got ''"),
        ({"namespace": "\udcff"}, "expected a namespace"),
    ],
)
async def test_runs_refuse_what_a_server_cannot_take(store: SqliteStore, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await Runs.connect(sessions=store, **wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"most_runs": 0}, "most_runs must be at least 1"),
        ({"most_runs": 2**70}, "at most 100,000"),
        ({"grace_seconds": -1.0}, "grace_seconds must be at least 0"),
        ({"grace_seconds": float("nan")}, "got nan"),
        ({"grace_seconds": float("inf")}, "at most 86,400, got inf"),
        ({"grace_seconds": 1e14}, "at most 86,400"),
    ],
)
def test_worker_refuses_limits_that_it_cannot_keep(store: SqliteStore, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")], **wrong)


@pytest.mark.parametrize("queue", ["", "q" * 251, "a\nb", "\udcff", "/_sys/desk", 5])
async def test_queue_that_no_server_takes_is_refused(store: SqliteStore, queue: Any) -> None:
    with pytest.raises(UsageError, match="expected the name of a queue, 1 to 250 printable characters"):
        await Runs.connect(sessions=store, queue=queue)
    with pytest.raises(UsageError, match="expected the name of a queue"):
        AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")], queue=queue)


async def test_worker_refuses_an_address_that_is_none(store: SqliteStore) -> None:
    worker = AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")])
    with pytest.raises(UsageError, match="expected the address of a Temporal server"):
        await worker.run("")
