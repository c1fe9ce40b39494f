"""The workflow: one run of an agent, driven slice by slice. It carries references and counts, never content.

This module imports nothing of callwright, and decides nothing about calls: a change of prompts, tools or policies
cannot break the replay of a run that is under way. What the agent did is in its session.

    start ─► advance ─► more ──────────────► advance …
                   ├──► paused ─► all answered, or the timer ─► advance …
                   └──► done | stopped
"""

import asyncio
from datetime import timedelta
from hashlib import sha256
from typing import Any, cast

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

WORKFLOW = "callwright-run"
ACTIVITY = "callwright-advance"
SIGNAL = "answered"
_KEY_CHARS = 16
_MOST_ANSWERS = 100
"""How many keys of questions that are not known yet are kept."""
_MOST_HISTORY_BYTES = 5_000
"""Above this the workflow continues as a new one, so that its history stays below 10 KB."""
_SLICE_HOURS = 24.0

Data = dict[str, Any]


def question_key(question_id: str) -> str:
    """Return what identifies a question in the workflow: its digest and its call, in short.

    A question that is asked again, by another worker after a crash, has the same key.
    """
    about = question_id.rsplit(".", 2)[0].encode(errors="surrogatepass")  # a model may send any id for a call
    return sha256(about).hexdigest()[:_KEY_CHARS]


@workflow.defn(name=WORKFLOW, sandboxed=False)  # it does nothing a sandbox would have to prevent
class RunWorkflow:
    """One run, from its prompt to its result."""

    @workflow.init
    def __init__(self, order: Data) -> None:
        self._open = frozenset(cast("list[str]", order["open"]))
        self._answered = cast("list[str]", order.get("answered", []))
        """Keys of questions whose answers are said to be on record; one may come before the pause is known."""

    @workflow.signal(name=SIGNAL)
    def note_answered(self, given: Any) -> None:
        """Take the keys of answered questions. They only wake the run: the answers that count are in its session."""
        keys = cast("Data", given).get("keys") if isinstance(given, dict) else None
        sent = cast("list[object]", keys) if isinstance(keys, list) else []
        fresh = [key for key in sent if isinstance(key, str) and len(key) == _KEY_CHARS]
        self._answered = list(dict.fromkeys([*self._answered, *fresh]))  # any client may send very many
        early = [key for key in self._answered if key not in self._open]
        dropped = {*early[:-_MOST_ANSWERS]}
        self._answered = [key for key in self._answered if key not in dropped]

    @workflow.run
    async def run(self, order: Data) -> Data:
        """Drive the run to its end and return its last report."""
        order.pop("answered", None)
        try:
            return await self._drive(order)
        except BaseException as error:
            # The worker of the activity may have been killed before it could say that it was cancelled.
            lost = isinstance(error, ActivityError) and _is_cancelling()
            if not lost and not is_cancelled_exception(error):
                raise
            # In its own scope, which the cancellation has not reached: an open turn must not wait for ever.
            await asyncio.shield(_advance({**order, "cancel": True}))
            raise asyncio.CancelledError from None

    async def _drive(self, order: Data) -> Data:
        while True:
            if order["open"]:
                order["lapsed"] = not await self._wait_for_answers(order)
            self._answered = [key for key in self._answered if key not in order["open"]]
            report = await _advance(order)
            order |= {"prompt": "", "lapsed": False, "open": report["open"], "expires": report["expires"]}
            order["position"], self._open = report["position"], frozenset(report["open"])
            if report["state"] not in ("more", "paused"):
                return report
            if _is_cancelling():
                raise asyncio.CancelledError
            if workflow.info().get_current_history_size() > _MOST_HISTORY_BYTES:
                workflow.continue_as_new({**order, "answered": self._answered})

    async def _wait_for_answers(self, order: Data) -> bool:
        """Wait until every open question has an answer; False if the first of them expired before."""
        missing = set(order["open"])
        left = None if not order["expires"] else timedelta(seconds=max(order["expires"] - workflow.time(), 0.0))
        try:
            await workflow.wait_condition(lambda: missing <= {*self._answered}, timeout=left)
        except TimeoutError:
            return False
        return True


def _is_cancelling() -> bool:
    """Whether the run was asked to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _advance(order: Data) -> Data:
    """Run a slice of turns on any worker; a retry continues from the record of the session."""
    report: Data = await workflow.execute_activity(
        ACTIVITY,
        {name: order[name] for name in order if name not in ("heartbeat", "attempts", "expires")},
        start_to_close_timeout=timedelta(hours=_SLICE_HOURS),
        heartbeat_timeout=timedelta(seconds=order["heartbeat"]),
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=1.5,
            maximum_interval=timedelta(seconds=10),
            maximum_attempts=order["attempts"],
        ),
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        result_type=dict,
    )
    return report
