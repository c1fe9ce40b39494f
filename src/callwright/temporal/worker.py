"""The worker: runs agents for a Temporal server until it is asked to stop, then hands its runs over."""

import asyncio
import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import cast

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from callwright.agent.agent import Agent
from callwright.core.errors import UsageError, safe_repr
from callwright.temporal.activity import Advance
from callwright.temporal.answer_watch import AnswerWatch
from callwright.temporal.blobs import require_cluster_store
from callwright.temporal.client import DEFAULT_QUEUE, connect_client
from callwright.temporal.workflow import RunWorkflow


class AgentWorker:
    """Runs agents for a Temporal server.

    Start as many as there is work for, on any machine that reaches the server and the database. A worker that is
    killed loses nothing: another one continues each run from its session.

    Args:
        agents: the agents, each with a name of its own and a durable store.
        queue: the task queue to serve. Agents whose tools keep state in the process, or need one machine, get a queue
            of that machine.
        most_runs: how many runs to advance at the same time.
        grace_seconds: when the worker stops, how long running turns may take to end; then their calls are cancelled.

    Raises:
        UsageError: there is no agent, one has no name or shares it, its store ends with the process, or the queue or
            a number is not valid.
    """

    def __init__(
        self,
        agents: Iterable[Agent],
        *,
        queue: str = DEFAULT_QUEUE,
        most_runs: int = 100,
        grace_seconds: float = 20.0,
    ) -> None:
        self.agents = _name_agents(agents)
        if not queue:
            raise UsageError("a worker needs the name of a queue, got an empty one")
        if most_runs < 1:  # with 0 it would serve, and never run anything
            raise UsageError(f"most_runs must be at least 1, got {most_runs}")
        if not (math.isfinite(grace_seconds) and grace_seconds >= 0):
            raise UsageError(f"grace_seconds must be a number of seconds of at least 0, got {grace_seconds}")
        self.queue = queue
        self._most_runs = most_runs
        self._grace_seconds = grace_seconds
        self._stop: asyncio.Event | None = None

    async def run(
        self,
        address: str = "localhost:7233",
        *,
        namespace: str = "default",
        serving: Callable[[], None] | None = None,
    ) -> None:
        """Serve the queue until `stop` is called; then hand the runs over, and return.

        Args:
            address: the server.
            namespace: the namespace on the server.
            serving: called once, when the worker is connected and begins to take runs.

        Raises:
            TemporalError: the server cannot be reached.
            SessionError: a store cannot be used; nothing was taken from the queue.
        """
        self._stop = asyncio.Event()
        client = await connect_client(address, namespace)
        for agent in self.agents.values():
            await agent.sessions.version()  # a store that does not work must not cost runs their attempts
        watch = AnswerWatch(self.queue, [agent.sessions for agent in self.agents.values()])
        async with self._make_worker(client, watch):
            watching = asyncio.ensure_future(watch.run(client))
            if serving is not None:
                serving()
            try:
                await self._stop.wait()
            finally:
                watching.cancel()

    def stop(self) -> None:
        """Ask the worker to end; call it in the thread of its event loop, for example from a signal handler."""
        if self._stop is not None:
            self._stop.set()

    def _make_worker(self, client: Client, watch: AnswerWatch) -> Worker:
        return Worker(
            client,
            task_queue=self.queue,
            workflows=[RunWorkflow],
            activities=[Advance(self.agents, watch.add).advance],
            workflow_runner=UnsandboxedWorkflowRunner(),
            # Histories are short, so replaying them is cheap; a cached workflow would wait for its dead worker.
            max_cached_workflows=0,
            max_concurrent_activities=self._most_runs,
            # Tasks that the server gives to the polls of a worker that stands still are lost until they time out.
            max_concurrent_workflow_task_polls=2,
            max_concurrent_activity_task_polls=3,
            graceful_shutdown_timeout=timedelta(seconds=self._grace_seconds),
            # A cancellation arrives with the reply to a heartbeat.
            max_heartbeat_throttle_interval=timedelta(seconds=1),
        )


def _name_agents(agents: Iterable[Agent]) -> dict[str, Agent]:
    named: dict[str, Agent] = {}
    for agent in agents:
        if not isinstance(cast(object, agent), Agent):
            raise UsageError(f"expected an Agent, got {safe_repr(agent)}")
        if not agent.name:
            raise UsageError("an agent of a worker needs a name: Agent(…, name='desk')")
        if named.get(agent.name, agent) is not agent:
            raise UsageError(f"two agents are called {agent.name!r}; give each a name of its own")
        require_cluster_store(agent.sessions)
        named[agent.name] = agent
    if not named:
        raise UsageError("a worker needs at least one agent")
    return named
