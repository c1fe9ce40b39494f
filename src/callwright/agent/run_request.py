"""The request for one run of an agent: its parts, checked, its session, and the time it has taken already."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from callwright.agent.compaction import Compaction
from callwright.agent.handover import Handover
from callwright.agent.model_request import Requests
from callwright.agent.run_limits import RunLimits
from callwright.agent.subagent import Lineage
from callwright.agent.transcript import Emit, Transcript
from callwright.core.calls import Answers
from callwright.core.content import Part
from callwright.core.errors import UsageError, check_kind, describe_raised, safe_repr
from callwright.executor.executor import Executor
from callwright.policy.decide import Policies
from callwright.registry.catalog import Toolset, require_toolset
from callwright.registry.registry import Registry
from callwright.sessions.base import SessionHold, SessionMissing, SessionStore, StoredRecord
from callwright.sessions.memory import MemoryHold
from callwright.sessions.records import OpenQuestions, is_prompt
from callwright.tool.base import Cancellation, Tool

_log = logging.getLogger("callwright")
Value = TypeVar("Value")
Prompt = str | tuple[Part, ...]


@dataclass(slots=True)
class RunRequest:
    """The parameters of one run."""

    session_id: str
    """Empty for a session without a name; it gets one when the run begins."""
    prompt: Prompt | None = None
    answers: Answers | None = None
    output: object = None
    cancellation: Cancellation | None = None
    emit: Emit | None = None
    lineage: Lineage | None = None
    name: str = ""
    """The name reported for an agent that has none."""
    key: str = ""
    handover: Handover | None = None

    def __post_init__(self) -> None:
        if self.cancellation is not None:  # checked here: once the session is held, a mistake would leave it busy
            check_kind("cancellation", self.cancellation, Cancellation, "write cancellation=Cancellation()")

    @property
    def outer_handover(self) -> Handover | None:
        """The handover of the outermost run: what it says of the process holds for inner runs too."""
        return self.handover if self.lineage is None else self.lineage.handover

    @property
    def owner(self) -> str:
        """Who holds the session; inner runs belong to the owner of the outer one."""
        handover = self.outer_handover
        return "" if handover is None else handover.owner


def check_prompt(given: object, key: object = "") -> None:
    """Check that a prompt is one, and its key a text.

    Raises:
        UsageError: It is neither a text nor a tuple of parts, or the key is no text.
    """
    if not isinstance(key, str):
        raise UsageError(f"expected the key of a prompt as text, got {safe_repr(key)}")
    if isinstance(given, str):
        return
    if not isinstance(given, tuple):
        raise UsageError(f"expected a prompt as text or a tuple of content parts, got {safe_repr(given)}")
    for part in cast("tuple[object, ...]", given):
        if not isinstance(part, Part):
            raise UsageError(f"a part of a prompt must be Text, Image or File, got {safe_repr(part)}")


def check_parts(
    executor: object, system: object, limits: object, ask: object, compaction: object, requests: object
) -> None:
    """Check the parts of an agent where they are given.

    Raises:
        UsageError: One is not of its kind; the message says what to write.
    """
    if executor is not None:
        check_kind("executor", executor, Executor, "write executor=Executor(Registry(*tools))")
    check_kind("system", system or "", str, "write the system prompt as one text")
    check_kind("limits", limits, RunLimits, "write limits=RunLimits(turns=20)")
    if ask is not None and not callable(ask):
        raise UsageError(f"expected a function as ask, got {safe_repr(ask)}; it takes questions and returns Answers")
    if compaction is not None:
        check_kind("compaction", compaction, Compaction, "write compaction=Compaction(at_tokens=50_000), or None")
    check_kind("requests", requests, Requests, "write requests=Requests(max_tokens=4_000)")


def make_toolset(given: Toolset | Iterable[Tool], executor: Executor | None) -> Toolset:
    """Return the tools of an agent: its own, or those of its executor.

    Raises:
        UsageError: They are no tools, or there are some beside those of the executor.
    """
    if hasattr(given, "snapshot"):
        return require_toolset(cast("Toolset", given))
    if not isinstance(given, Iterable):
        raise UsageError(f"expected tools, got {safe_repr(given)}; write Agent(model, [tool])")
    tools = tuple(cast("Iterable[Any]", given))
    if executor is None:
        return Registry(*tools)
    if tools:
        raise UsageError(
            "got tools and an executor with tools of its own; write Agent(model, executor=Executor(Registry(*tools)))"
        )
    return executor.registry


async def hold_for(sessions: SessionStore, request: RunRequest) -> SessionHold:
    """Take the session of a request.

    Who holds the outer session makes its calls, so an inner one is taken at once from a process that died: its lease
    may last longer than that of the outer session.
    """
    owner = request.owner or (request.session_id if request.lineage is not None and sessions.durable else "")
    if owner:  # only then: a store in memory may not know owners
        return await sessions.hold(request.session_id, owner=owner)
    return await sessions.hold(request.session_id)


def restore_approvals(policies: Policies, transcript: Transcript) -> None:
    """Take up the approvals on the record of a session, and drop those of a deleted one that had its id."""
    session_id = transcript.session_id
    if not transcript.hold.records:
        policies.forget(session_id)
    for question, answer in transcript.grants:
        try:
            if question.is_of_session(session_id):  # a fork is another session
                policies.restore(question, answer, session=session_id)
        except Exception as error:  # noqa: BLE001 - the user is asked again instead
            _log.warning("an approval on record could not be restored: %s", describe_raised(error))


async def release_hold(hold: SessionHold) -> None:
    """Let others write the session, also when the task is being cancelled."""
    if type(hold) is MemoryHold:
        await hold.release()  # waits for nothing, so a cancellation cannot interrupt it
    else:
        # Shielded: a cancelled run that kept the lock would leave the session busy until the process ends.
        await asyncio.shield(asyncio.ensure_future(hold.release()))


async def wait_for_end(task: "asyncio.Future[Any]") -> None:
    """Wait until a task has ended, however it does; a cancellation of the waiting task is raised after that."""
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            interrupted = error
    if not task.cancelled():
        task.exception()  # read, so that asyncio does not report it as forgotten
    if interrupted is not None:
        raise interrupted


async def find_used_seconds(sessions: SessionStore, request: RunRequest) -> float:
    """Return how long the run of a request has taken already, in this process and others, by the times on record.

    Only runs with an owner are continued by other processes as a matter of course; resuming another one is a new start.
    """
    if not request.owner:
        return 0.0
    try:
        stored = await sessions.read_from(request.session_id)
    except SessionMissing:
        return 0.0
    begun = max((index for index, item in enumerate(stored) if is_prompt(item.record)), default=-1)
    heard = begun >= 0 and (request.lineage is not None or getattr(stored[begun].record, "key", "") == request.key)
    if begun < 0 or (request.prompt is not None and not heard):
        return 0.0
    return count_active_seconds(stored[begun:], time.time())


def count_active_seconds(stored: Sequence[StoredRecord], now: float) -> float:
    """Return how long a run has taken, without the time in which its questions waited for an answer.

    Args:
        stored: Its records, from the prompt on.
        now: The present time; clocks of other machines may be ahead of it.
    """
    if not stored or not stored[0].at:  # a store that does not know the times
        return 0.0
    waited, questions = 0.0, OpenQuestions()
    until = [*(item.at for item in stored[1:]), now]
    for item, end in zip(stored, until, strict=True):
        questions.follow((), (item.record,))
        if questions:
            waited += max(end - item.at, 0.0)
    return max(now - stored[0].at - waited, 0.0)


def run_blocking(start: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """Run a coroutine to its end in a new event loop.

    Raises:
        UsageError: An event loop is already running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    raise UsageError("run_sync cannot be used inside a running event loop; use `await agent.run(…)` instead")
