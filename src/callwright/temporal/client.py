"""The client: connects to a Temporal server, starts runs and lists them."""

import asyncio
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeGuard, cast

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfigProfile
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from callwright.agent.run_request import Prompt, check_prompt
from callwright.core.errors import UsageError, check_number, safe_repr
from callwright.sessions.base import SessionBusy, SessionStore, check_session_id
from callwright.sessions.waiting import WaitingRun, list_waiting
from callwright.temporal.blobs import ClusterStore, keep_prompt, require_cluster_store
from callwright.temporal.run import (
    WORKFLOW_PREFIX,
    Run,
    RunInfo,
    TemporalError,
    describe_run,
    explain_refusal,
    first_line,
)
from callwright.temporal.workflow import WORKFLOW, Data

DEFAULT_QUEUE = "callwright"
_MOST_QUEUE_CHARS = 250
"""A server takes 1,000 bytes, and a worker of a longer name would wait for ever."""
_RESERVED_QUEUES = "/_sys/"
_LEAST_HEARTBEAT_SECONDS = 0.1
"""Less is over before a sign of the worker arrives, and nearly 0 is no limit at all: a dead worker is not noticed."""
_MOST_HEARTBEAT_SECONDS = 86_400
_MOST_ATTEMPTS = 2**31 - 1
_REFUSALS = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.NOT_FOUND,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)
"""Errors after which a run was certainly not started; a request that timed out may have arrived."""
_MOST_STARTS = 50
"""How many starts to send at once: many more run into the deadlines of their requests."""


def read_security() -> Data:
    """Return how to identify at a server: TLS, certificates and the key, as arguments of `Client.connect`.

    They are in the variables that Temporal's own programs read, such as `TEMPORAL_API_KEY`.

    Raises:
        TemporalError: a file of a certificate cannot be read.
    """
    given = {name: value for name, value in os.environ.items() if value}
    try:
        found = ClientConfigProfile.load(disable_file=True, override_env_vars=given).to_client_connect_config()
    except (RuntimeError, ValueError, OSError) as error:
        raise TemporalError(f"the variables TEMPORAL_… name what cannot be used: {first_line(error)}") from error
    return {name: value for name, value in found.items() if name not in ("target_host", "namespace")}


def check_queue(queue: object) -> None:
    """Refuse the name of a queue that no server takes: the SDK fails with errors of its own, or waits for ever.

    Raises:
        UsageError: it is empty, too long, not printable or reserved.
    """
    if not _is_line(queue) or len(queue) > _MOST_QUEUE_CHARS or queue.startswith(_RESERVED_QUEUES):
        raise UsageError(
            f"expected the name of a queue, 1 to {_MOST_QUEUE_CHARS} printable characters that do not begin with "
            f"{_RESERVED_QUEUES}, got {safe_repr(queue)}"
        )


def _is_line(given: object) -> TypeGuard[str]:
    """Whether a value is text that a request can carry; lone surrogates, for example, cannot be sent."""
    return isinstance(given, str) and given != "" and given.isprintable()


def silence_core() -> None:
    """Keep what the core of the SDK logs off standard output, where a command prints its result.

    A runtime that the process has already stays as it is.
    """
    with suppress(RuntimeError):  # it has one
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))


async def connect_client(address: str, namespace: str) -> Client:
    """Connect to a server.

    Raises:
        TemporalError: the server cannot be reached, or has no such namespace.
        UsageError: the address or the namespace is empty or not printable.
    """
    if not _is_line(address):
        raise UsageError(f"expected the address of a Temporal server, such as localhost:7233, got {safe_repr(address)}")
    if not _is_line(namespace):
        raise UsageError(f"expected a namespace of the Temporal server, such as default, got {safe_repr(namespace)}")
    security = read_security()
    try:
        client = await Client.connect(address, namespace=namespace, connect_timeout=timedelta(seconds=10), **security)
        await client.count_workflows("WorkflowType = 'none'")
        return client
    except RPCError as error:
        raise explain_refusal(error, address) from error
    except (RuntimeError, ValueError, OSError) as error:
        how = " with TLS, as the variables TEMPORAL_… say" if security.get("tls") else ""
        raise TemporalError(
            f"the Temporal server at {address} cannot be reached{how}; start one, for example with "
            f"`callwright worker MODULE:agent --dev` ({first_line(error)})"
        ) from error


class Runs:
    """Runs of agents on a Temporal server; made by `Runs.connect`.

    Args:
        client: a client of the server.
        sessions: the store that the agents of the workers use.
        queue: the task queue of the workers.
        options: what `connect` makes of its other arguments.
    """

    def __init__(self, client: Client, sessions: ClusterStore, queue: str, options: Data) -> None:
        self._client = client
        self._sessions = sessions
        self._queue = queue
        self._options = options
        self._starting = asyncio.Semaphore(_MOST_STARTS)

    @classmethod
    async def connect(
        cls,
        address: str = "localhost:7233",
        *,
        sessions: SessionStore,
        namespace: str = "default",
        queue: str = DEFAULT_QUEUE,
        turns: int = 50,
        heartbeat_seconds: float = 10.0,
        attempts: int = 20,
    ) -> "Runs":
        """Connect to a server.

        Args:
            address: the server.
            sessions: the store that the agents of the workers use.
            namespace: the namespace on the server.
            queue: the task queue of the workers that are to run what is started here.
            turns: after so many turns, another worker may continue a run.
            heartbeat_seconds: a worker that gives no sign for this long counts as dead, and others continue its runs.
            attempts: how often a slice of turns is tried before the run fails.

        Raises:
            TemporalError: the server cannot be reached.
            UsageError: the store ends with the process, the address, the namespace or the queue is not valid, a number
                is not positive or not a number, or the heartbeat is longer than a day.
        """
        check_number("turns", turns, 1, whole=True)
        # A workflow that cannot pass a number on fails in a way that its server tries again for ever.
        check_number("attempts", attempts, 1, most=_MOST_ATTEMPTS, whole=True)
        check_number("heartbeat_seconds", heartbeat_seconds, _LEAST_HEARTBEAT_SECONDS, most=_MOST_HEARTBEAT_SECONDS)
        check_queue(queue)
        options = {"turns": turns, "heartbeat": heartbeat_seconds, "attempts": attempts}
        store = require_cluster_store(sessions)
        return cls(await connect_client(address, namespace), store, queue, options)

    async def start(self, agent: str, prompt: Prompt, *, session: str | None = None) -> "Run":
        """Start a run; a worker of the queue takes it, now or when there is one.

        Args:
            agent: the name of the agent.
            prompt: the user's message; of any size, since only a reference to it travels.
            session: the session to continue, or the id of the new one.

        Raises:
            SessionBusy: a run of this session has not ended.
            SessionError: the prompt cannot be stored.
            TemporalError: the server cannot be reached.
            UsageError: the name of the agent, the prompt or the session is not valid.
        """
        if not isinstance(cast(object, agent), str) or not agent:
            raise UsageError(f"expected the name of an agent of the workers, got {safe_repr(agent)}")
        check_prompt(prompt)
        session_id = check_session_id(session or secrets.token_hex(16))
        async with self._starting:
            reference = await keep_prompt(self._sessions, prompt)
            order: Data = {
                **self._options,
                "agent": agent,
                "session": session_id,
                "key": reference,
                "prompt": reference,
                "open": [],
                "expires": 0,
                "lapsed": False,
                "position": 0,
            }
            try:
                handle = await self._client.start_workflow(
                    WORKFLOW,
                    order,
                    id=f"{WORKFLOW_PREFIX}{session_id}",
                    task_queue=self._queue,
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                    memo={"agent": agent[:100]},
                    result_type=dict,
                )
            except WorkflowAlreadyStartedError:
                await self._sessions.delete_blobs([reference])
                raise SessionBusy(
                    f"session {session_id!r} has a run that has not ended; wait for it or cancel it"
                ) from None
            except RPCError as error:
                if error.status in _REFUSALS:  # otherwise the run may have been started, and will read its prompt
                    await self._sessions.delete_blobs([reference])
                raise explain_refusal(error) from error
        return Run(handle, self._sessions, session_id, reference)

    def get(self, session: str) -> "Run":
        """Return the latest run of a session; the server is not asked whether there is one."""
        handle: WorkflowHandle[Any, Data] = self._client.get_workflow_handle(
            f"{WORKFLOW_PREFIX}{check_session_id(session)}", result_type=dict
        )
        return Run(handle, self._sessions, session)

    async def list(self, *, limit: int = 100) -> Sequence[RunInfo]:
        """Return the runs that the server knows: those under way first, then those that ended last.

        Raises:
            TemporalError: the server cannot be reached.
        """
        query = f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus != 'ContinuedAsNew'"
        try:
            found = self._client.list_workflows(query, limit=limit)
            return [await describe_run(execution) async for execution in found]
        except RPCError as error:
            raise explain_refusal(error) from error

    async def waiting(self, *, limit: int = 100) -> Sequence[WaitingRun]:
        """Return the sessions that wait for answers, from the store: no worker needs to run.

        Raises:
            SessionError: the store cannot be read.
        """
        return await list_waiting(self._sessions, limit=limit)
