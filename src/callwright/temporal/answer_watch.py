"""Wakes runs whose questions were answered in the store, by programs that do not know the Temporal server."""

import asyncio
import logging
from collections.abc import Iterable

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from callwright.core.errors import describe_raised
from callwright.sessions.base import SessionMissing, SessionStore
from callwright.sessions.records import Answered
from callwright.sessions.waiting import find_answered
from callwright.temporal.run import WORKFLOW_PREFIX
from callwright.temporal.workflow import SIGNAL, WORKFLOW, question_key

_log = logging.getLogger("callwright")
_LOOK_SECONDS = 1.0
_SCAN_SECONDS = 60.0
_MOST_SESSIONS = 10_000


class AnswerWatch:
    """Looks for answered sessions while a worker runs.

    At its start, and from time to time, it looks among all runs of the queue; in between among those that paused in
    this process or were seen waiting.

    Args:
        queue: the task queue of the worker.
        stores: the stores of its agents.
    """

    def __init__(self, queue: str, stores: Iterable[SessionStore]) -> None:
        self._queue = queue
        self._stores = {id(store): store for store in stores}
        self._paused: dict[int, set[str]] = {key: set() for key in self._stores}

    def add(self, store: SessionStore, session_id: str) -> None:
        """Look for the answers of a run that has paused: it may be answered before it was seen waiting."""
        self._paused[id(store)].add(session_id)

    async def run(self, client: Client) -> None:
        """Watch until it is cancelled; what fails is tried again."""
        await asyncio.gather(*(self._watch(client, store) for store in self._stores.values()))

    async def _watch(self, client: Client, store: SessionStore) -> None:
        paused, version, told = self._paused[id(store)], "", ""
        loop = asyncio.get_running_loop()
        scan_at = loop.time()
        while True:
            try:
                if loop.time() >= scan_at:
                    paused |= await self._find_answered_runs(client, store)
                    scan_at = loop.time() + _SCAN_SECONDS
                current = await store.version()
                if paused or current != version:
                    await self._look(client, store, paused)
                    version = current
            except Exception as error:  # noqa: BLE001 - answers must be noticed again when what failed is back
                message = describe_raised(error)
                if message != told:  # once, not once a second, while a server is away
                    _log.warning("answers in the store cannot be looked for: %s", message)
                told = message
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self, client: Client, store: SessionStore, paused: set[str]) -> None:
        """Wake the runs that paused and do not wait any more; look at the others again, and at those that wait now."""
        seen = {*paused}
        waiting = {entry.session_id for entry in await store.list(limit=_MOST_SESSIONS, waiting=True)}
        for session_id in seen - waiting:
            paused.discard(session_id)  # before: it may go on and pause again meanwhile
            try:
                await self._wake(client, store, session_id)
            except BaseException:
                paused.add(session_id)
                raise
        paused |= waiting

    async def _find_answered_runs(self, client: Client, store: SessionStore) -> set[str]:
        """Return the runs of the queue whose last record is an answer: nothing has taken it up."""
        sizes = {entry.session_id: entry.records for entry in await store.list(limit=_MOST_SESSIONS)}
        query = f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'"
        found: set[str] = set()
        async for execution in client.list_workflows(query):
            if execution.task_queue != self._queue:
                continue
            session_id = execution.id.removeprefix(WORKFLOW_PREFIX)
            size = sizes.get(session_id, 0)
            last = await store.read_from(session_id, size - 1, limit=1) if size else ()
            if last and isinstance(last[0].record, Answered):
                found.add(session_id)
        return found

    async def _wake(self, client: Client, store: SessionStore, session_id: str) -> None:
        try:
            answered = find_answered(await store.read(session_id))
        except SessionMissing:
            return
        if answered:
            handle = client.get_workflow_handle(f"{WORKFLOW_PREFIX}{session_id}")
            try:
                await handle.signal(SIGNAL, {"keys": [question_key(each) for each in answered]})
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # a session that no workflow runs is not ours
                    raise
