"""The worker: runs agents for a Temporal server until it is asked to stop, then hands its runs over."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import cast

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from callwright.agent.agent import Agent
from callwright.core.errors import UsageError, check_number, describe_raised, safe_repr
from callwright.sessions.base import SessionDamaged, SessionMissing, SessionStore
from callwright.sessions.records import Answered
from callwright.sessions.waiting import find_answered
from callwright.temporal.activity import Advance
from callwright.temporal.blobs import require_cluster_store
from callwright.temporal.client import DEFAULT_QUEUE, check_queue, connect_client
from callwright.temporal.run import AWAY, WORKFLOW_PREFIX, TemporalError, first_line
from callwright.temporal.workflow import SIGNAL, WORKFLOW, RunWorkflow, question_key

_log = logging.getLogger("callwright")
_LOOK_SECONDS = 1.0
_REST_RATIO = 20.0
"""How many times as long as a look took to wait before the next one."""
_MOST_REST_SECONDS = 10.0
_SCAN_SECONDS = 60.0
_MOST_SESSIONS = 10_000
_MOST_RUNS = 100_000
_MOST_GRACE_SECONDS = 86_400
"""A slice of turns takes no longer."""


class AnswerWatch:
    """Wakes runs whose questions were answered in the store, by programs that do not know the Temporal server.

    At its start, and from time to time, it looks among all runs of the queue; in between, when the store has changed,
    among those that paused in this process or were seen waiting. Looking takes a small share of the time: with
    thousands of sessions that wait in a store that changes all the time, an answer is noticed later.

    Args:
        queue: the task queue of the worker.
        stores: the stores of its agents.
    """

    def __init__(self, queue: str, stores: Iterable[SessionStore]) -> None:
        self._queue = queue
        self._stores = {id(store): store for store in stores}
        self._paused: dict[int, set[str]] = {key: set() for key in self._stores}
        self._added: set[int] = set()
        """Stores with runs that paused since the last look."""

    def add(self, store: SessionStore, session_id: str) -> None:
        """Look for the answers of a run that has paused: it may be answered before it was seen waiting."""
        self._paused[id(store)].add(session_id)
        self._added.add(id(store))

    async def run(self, client: Client) -> None:
        """Watch until it is cancelled; what fails is tried again."""
        await asyncio.gather(*(self._watch(client, store) for store in self._stores.values()))

    async def _watch(self, client: Client, store: SessionStore) -> None:
        paused, version, told = self._paused[id(store)], "", ""
        loop = asyncio.get_running_loop()
        scan_at = loop.time()
        while True:
            began = time.monotonic()
            try:
                if loop.time() >= scan_at:
                    for session_id in await self._find_answered_runs(client, store):
                        self.add(store, session_id)
                    scan_at = loop.time() + _SCAN_SECONDS
                current = await store.version()
                if id(store) in self._added or current != version:
                    self._added.discard(id(store))
                    version = ""  # until the look has succeeded: one that fails is repeated
                    await self._look(client, store, paused)
                    version = current
                told = ""
            except Exception as error:  # noqa: BLE001 - answers must be noticed again when what failed is back
                message = describe_raised(error)
                if message != told:  # once, not once a second, while a server is away
                    _log.warning("answers in the store cannot be looked for: %s", message)
                told = message
            rest = (time.monotonic() - began) * _REST_RATIO
            await asyncio.sleep(min(max(_LOOK_SECONDS, rest), _MOST_REST_SECONDS))

    async def _look(self, client: Client, store: SessionStore, paused: set[str]) -> None:
        """Wake the runs that paused and do not wait any more; look at the others again, and at those that wait now."""
        seen = {*paused}
        waiting = {entry.session_id for entry in await store.list(limit=_MOST_SESSIONS, waiting=True)}
        refusal: RPCError | None = None
        for session_id in seen - waiting:
            paused.discard(session_id)  # before: it may go on and pause again meanwhile
            try:
                await self._wake(client, store, session_id)
            except BaseException as error:
                paused.add(session_id)
                if not isinstance(error, RPCError) or error.status in AWAY:
                    raise
                refusal = error  # of this run, such as one with too many signals: it must not hold up the others
        paused |= waiting
        if refusal is not None:
            raise refusal

    async def _find_answered_runs(self, client: Client, store: SessionStore) -> set[str]:
        """Return the runs of the queue whose last record is an answer: nothing has taken it up."""
        query = f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'"
        found: set[str] = set()
        async for execution in client.list_workflows(query):
            if execution.task_queue != self._queue:
                continue
            session_id = execution.id.removeprefix(WORKFLOW_PREFIX)
            entry = await store.find(session_id)
            with suppress(SessionMissing, SessionDamaged):  # one that cannot be read must not hide the others
                last = () if entry is None else await store.read_from(session_id, entry.records - 1, limit=1)
                if last and isinstance(last[0].record, Answered):
                    found.add(session_id)
        return found

    async def _wake(self, client: Client, store: SessionStore, session_id: str) -> None:
        try:
            records = await store.read(session_id)
        except SessionMissing:
            return
        except SessionDamaged as error:  # woken all the same: its run fails, and says why
            records = [stored.record for stored in error.readable]
        answered = find_answered(records)
        if answered:
            handle = client.get_workflow_handle(f"{WORKFLOW_PREFIX}{session_id}")
            try:
                await handle.signal(SIGNAL, {"keys": [question_key(each) for each in answered]})
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # a session that no workflow runs is not ours
                    raise


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
        check_queue(queue)
        check_number("most_runs", most_runs, 1, most=_MOST_RUNS, whole=True)  # with 0 it would never run anything
        check_number("grace_seconds", grace_seconds, 0, most=_MOST_GRACE_SECONDS)
        self.queue = queue
        self._most_runs = most_runs
        self._grace_seconds = grace_seconds
        self._stop = asyncio.Event()

    async def run(
        self,
        address: str = "localhost:7233",
        *,
        namespace: str = "default",
        serving: Callable[[], None] | None = None,
    ) -> None:
        """Serve the queue until `stop` is called, perhaps before; then hand the runs over, and return.

        Args:
            address: the server.
            namespace: the namespace on the server.
            serving: called once, when the worker is connected and begins to take runs.

        Raises:
            TemporalError: the server cannot be reached, or refuses the worker for good.
            SessionError: a store cannot be used; nothing was taken from the queue.
            UsageError: the address or the namespace is not valid.
        """
        try:
            if self._stop.is_set():
                return
            client = await self._connect(address, namespace)
            if self._stop.is_set():  # it may take a while, and a signal that came meanwhile must not be lost
                return
            try:
                await self._serve(client, serving)
            except RuntimeError as error:
                if not isinstance(error.__cause__, RuntimeError):
                    raise
                # the SDK's for a server that refuses it for good: a namespace that is gone, a key that has expired
                raise TemporalError(f"the worker cannot go on: {first_line(error.__cause__)}") from error
        finally:
            self._stop = asyncio.Event()  # it may run again, also in another event loop

    def stop(self) -> None:
        """Ask the worker to end, or not to begin if it does not run yet.

        Call it in the thread of its event loop, for example from a signal handler.
        """
        self._stop.set()

    async def _connect(self, address: str, namespace: str) -> Client:
        client = await connect_client(address, namespace)
        for agent in self.agents.values():
            await agent.sessions.version()  # a store that does not work must not cost runs their attempts
        return client

    async def _serve(self, client: Client, serving: Callable[[], None] | None) -> None:
        watch = AnswerWatch(self.queue, [agent.sessions for agent in self.agents.values()])
        async with self._make_worker(client, watch):
            watching = asyncio.ensure_future(watch.run(client))
            if serving is not None:
                serving()
            try:
                await self._stop.wait()
            finally:
                watching.cancel()

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
