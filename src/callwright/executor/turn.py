"""A turn: the calls of one model message on their way to one outcome each.

admit every call ─► ask the user ─► announce ─► perform
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from callwright.clip import clip_turn
from callwright.core.calls import Answers, Failed, Interrupted, Outcome, Question, ToolCall
from callwright.core.errors import Cancelled, Halted, ToolError, ToolFailed, Unanswered, UsageError
from callwright.core.events import BatchBegan, CallProgressed, Event, QuestionsRaised
from callwright.executor.admit import Admitted, Gate
from callwright.executor.deadlines import LoopLocal, LoopParts, is_cancelling
from callwright.executor.perform import Observe, Runner
from callwright.executor.schedule import Batch
from callwright.registry.catalog import Catalog, Toolset
from callwright.tool.base import Cancellation, State, ToolContext

AskPerson: TypeAlias = Callable[[Sequence[Question]], Awaitable[Answers]]
Journal: TypeAlias = Callable[[BatchBegan], Awaitable[None]]
Starting: TypeAlias = Callable[[ToolCall], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of one turn; the defaults suit one agent on one machine.

    Raises:
        UsageError: `width`, `depth` or `turn_chars` is below 1.
    """

    width: int = 16
    """How many calls of a turn run at the same time."""
    depth: int = 8
    """How deep tools may call other tools."""
    turn_chars: int = 200_000
    """The length of all outputs of a turn together."""
    question_seconds: float | None = 3600.0
    """How long a question may be answered; None for no limit."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1 or self.turn_chars < 1:
            raise UsageError(f"width, depth and turn_chars must be at least 1, got {self!r}")


@dataclass(frozen=True, slots=True)
class Turn:
    """The context of a batch of calls; the default is a call outside of any conversation."""

    session_id: str = ""
    turn_id: str = ""
    state: State | None = None
    """Values that the session's tools share; None for the executor's own."""
    catalog: Catalog | None = None
    """The tools that were advertised to the model; None for the registry's current ones."""
    cancellation: Cancellation | None = None
    """Stops the turn; every call still gets an outcome."""
    ask: AskPerson | None = None
    """Asks the user at once; without it, questions are returned as `Interrupted`."""
    journal: Journal | None = None
    """Awaited before the calls run, to record that they are about to; if it raises, nothing runs."""
    observe: Callable[[Event], None] | None = None
    """Receives this turn's events, in addition to the executor's observers."""
    starting: Starting | None = None
    """Awaited before each call of a batch runs, to record its start; if it raises, that call does not run."""


class TurnCancelled(asyncio.CancelledError):
    """The task that executed a turn was cancelled; `outcomes` has one outcome for every call."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__("the turn was cancelled")
        self.outcomes = list(outcomes)


_log = logging.getLogger("callwright")
_MAX_EDITS = 20
"""How often in a row a user may change the arguments in question."""


@dataclass(slots=True, eq=False)
class Runtime:
    """The parts of an executor that its turns use."""

    registry: Toolset
    gate: Gate
    runner: Runner
    state: State
    observe: Observe | None
    limits: TurnLimits
    loops: LoopLocal = field(default_factory=LoopLocal)
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    """Takes the place of a turn id in idempotency keys, so that two processes never make the same key."""
    _changes: int = -1
    _catalog: Catalog | None = None

    def catalog(self) -> Catalog:
        """Return the registry's current tools."""
        catalog, changes = self._catalog, self.registry.changes
        if catalog is None or changes != self._changes:
            catalog = self.registry.snapshot()
            # the count from before the snapshot: a change made meanwhile by another thread must not be lost
            self._changes, self._catalog = changes, catalog
        return catalog


class TurnScope:
    """One turn in progress; running tools see it as their `tool.base.Scope`."""

    def __init__(self, runtime: Runtime, turn: Turn) -> None:
        self._runtime = runtime
        self._turn = turn
        self.session_id = turn.session_id
        self.turn_id = turn.turn_id
        self.run_id = runtime.run_id
        self.state = turn.state or runtime.state
        self._observe = runtime.observe if turn.observe is None else _add_observer(runtime.observe, turn.observe)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def cancelled(self) -> bool:
        return self._turn.cancellation is not None and self._turn.cancellation.requested

    def report(self, call: ToolCall, progress: object) -> None:
        observe = self._observe
        if observe is None:
            return
        event = CallProgressed(call, progress)
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # in a worker thread: observers are called on the loop's thread only
            if self._loop is not None:
                self._loop.call_soon_threadsafe(observe, event)
        else:
            observe(event)

    async def execute(self, context: ToolContext, calls: Sequence[ToolCall]) -> list[Outcome]:
        depth = self._runtime.limits.depth
        if context.depth + 1 >= depth:
            error = ToolFailed(f"tools call each other {depth} levels deep; make the call from the model instead")
            return [Failed(call, error) for call in calls]
        return await self.run_all(calls, None, context)

    async def run(self, call: ToolCall, answers: Answers | None) -> Outcome:
        """Bring a lone call to its outcome."""
        return (await self.run_all((call,), answers))[0]

    async def run_all(
        self, calls: Sequence[ToolCall], answers: Answers | None, parent: ToolContext | None = None
    ) -> list[Outcome]:
        """Bring the calls of a turn to one outcome each, in call order."""
        local = self._runtime.loops.get()
        self._loop = self._loop or local.loop
        admitted, questions = await self._admit(calls, answers, local)
        if questions:
            self._raise_questions(questions)
            if self._turn.ask is None:
                return [Interrupted(item.call, item.questions) for item in admitted]
            try:
                admitted = await self._ask_and_admit(self._turn.ask, admitted, questions, answers, local)
            except Unanswered:
                return [Interrupted(item.call, item.questions) for item in admitted]
        if questions or answers is not None:
            self._runtime.gate.consume_answers(admitted)
        if self._observe is not None or self._turn.journal is not None:
            await self._announce(calls, admitted)
        if len(admitted) == 1 and self._turn.cancellation is None:
            try:  # in this task, because a new one costs more than the pipeline
                return [await self._perform(admitted[0], local, parent)]
            except asyncio.CancelledError:
                raise self.cancel_alone(admitted[0]) from None
        outcomes = await self._run_batch(admitted, local, parent)
        return clip_turn(outcomes, self._runtime.runner.outputs, self._runtime.limits.turn_chars)

    async def questions(self, call: ToolCall) -> tuple[Question, ...]:
        """Return what the user would be asked about a call. Runs nothing, so it may be repeated."""
        gate = self._runtime.gate
        item = gate.bind(call, self._catalog(), self.session_id, self.state)
        await gate.admit(item, None, self.turn_id, self._runtime.loops.get().deadlines)
        if item.questions:
            self._raise_questions(item.questions)
        return item.questions

    async def retry_from(self, item: Admitted, failed: tuple[ToolError, float]) -> Outcome:
        """Continue a lone, unobserved call after a first attempt with that error, begun at that time."""
        runner, local = self._runtime.runner, self._runtime.loops.get()
        try:
            outcome = await runner.attempt(item, self, local.deadlines, failed=failed)
        except asyncio.CancelledError:
            raise self.cancel_alone(item) from None
        return runner.finish(item, outcome, None)

    def cancel_alone(self, item: Admitted) -> TurnCancelled:
        """Finish a lone call that was cancelled while it ran, and return what to raise."""
        return TurnCancelled([self._finish_cancelled(item, True)])

    def _catalog(self) -> Catalog:
        return self._runtime.catalog() if self._turn.catalog is None else self._turn.catalog

    async def _admit(
        self, calls: Sequence[ToolCall], answers: Answers | None, local: LoopParts
    ) -> tuple[Sequence[Admitted], tuple[Question, ...]]:
        """Admit one call or many, and collect their questions; a hook that halts the run stops all of them."""
        gate, catalog = self._runtime.gate, self._catalog()
        admitted = [gate.bind(call, catalog, self.session_id, self.state) for call in calls]
        questions: tuple[Question, ...] = ()
        halted: Halted | None = None
        try:
            for item in admitted:
                await gate.admit(item, answers, self.turn_id, local.deadlines)
                questions += item.questions
                if isinstance(item.error, Halted):
                    halted = halted or item.error
        except asyncio.CancelledError:
            raise self._cancel_before_start(admitted) from None
        if halted is None:
            return admitted, questions
        for item in admitted:
            item.error, item.questions = item.error or Halted(halted.message), ()
        return admitted, ()

    def _raise_questions(self, questions: tuple[Question, ...]) -> None:
        if self._observe is not None:
            self._observe(QuestionsRaised(questions, self.session_id))

    async def _ask_and_admit(
        self,
        ask: AskPerson,
        admitted: Sequence[Admitted],
        questions: Sequence[Question],
        answers: Answers | None,
        local: LoopParts,
    ) -> Sequence[Admitted]:
        """Ask the user and admit the calls again; a question left unanswered declines its call."""
        calls = [item.call for item in admitted]
        answers = _merge_answers(answers, await self._ask(ask, questions, admitted))
        admitted, questions = await self._admit(calls, answers, local)
        for _ in range(_MAX_EDITS):
            # only edited calls are asked about again: the user has not seen what these would do now
            edited = [question for item in admitted if item.shown is not None for question in item.questions]
            if not edited:
                break
            answers = _merge_answers(answers, await self._ask(ask, edited, admitted))
            admitted, questions = await self._admit(calls, answers, local)
        for question in questions:
            answers.decline(question, "the user gave no answer")
        return (await self._admit(calls, answers, local))[0] if questions else admitted

    async def _ask(self, ask: AskPerson, questions: Sequence[Question], admitted: Sequence[Admitted]) -> Answers:
        """Return the user's answers; if asking fails, every question is declined."""
        try:
            return Answers(dict(await ask(questions)))
        except Unanswered:
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a failure to ask is not a yes
            if is_cancelling():
                raise self._cancel_before_start(admitted) from None
            _log.exception("asking the user failed")
            answers = Answers()
            for question in questions:
                answers.decline(question, f"asking the user failed ({type(error).__name__}: {error})")
            return answers

    async def _announce(self, calls: Sequence[ToolCall], admitted: Sequence[Admitted]) -> None:
        began = BatchBegan(tuple(calls), tuple(item.digest for item in admitted), self.session_id, self.turn_id)
        if self._turn.journal is not None:
            await self._turn.journal(began)
        if self._observe is not None:
            self._observe(began)

    def _perform(
        self, item: Admitted, local: LoopParts, parent: ToolContext | None
    ) -> Coroutine[Any, Any, Outcome]:  # not async itself: another coroutine would cost every call
        limit = None if item.entry is None else item.entry.limits.concurrency
        if limit is None or item.error is not None:
            return self._runtime.runner.perform(item, self, local.deadlines, self._observe, parent)
        return self._perform_limited(item, limit, local, parent)

    async def _perform_on_record(
        self, item: Admitted, starting: Starting, local: LoopParts, parent: ToolContext | None
    ) -> Outcome:
        """Perform a call after its start was recorded; a call that does not run needs no record."""
        if item.error is None and item.hook_output is None:
            try:
                await starting(item.call)
            except Exception as error:  # noqa: BLE001 - a start that is not on record must not happen
                _log.exception("the start of %s could not be recorded", item.name)
                item.error = Cancelled(f"not done: its start could not be recorded ({type(error).__name__})")
        return await self._perform(item, local, parent)

    async def _perform_limited(
        self, item: Admitted, limit: int, local: LoopParts, parent: ToolContext | None
    ) -> Outcome:
        """Perform a call of a tool with a concurrency limit."""
        perform = self._runtime.runner.perform
        if _is_running_outside(item.name, parent):
            item.error = ToolFailed(f"{item.name} is limited to {limit} at a time and would wait for itself")
            return await perform(item, self, local.deadlines, self._observe, parent)
        async with local.semaphores.setdefault(item.name, asyncio.Semaphore(limit)):
            return await perform(item, self, local.deadlines, self._observe, parent)

    async def _run_batch(
        self, admitted: Sequence[Admitted], local: LoopParts, parent: ToolContext | None
    ) -> list[Outcome]:
        """Perform the calls in tasks of their own, so that the turn's cancellation can stop them."""
        starting = None if parent is not None else self._turn.starting
        batch = Batch(
            admitted,
            lambda item: (
                self._perform(item, local, parent)
                if starting is None
                else self._perform_on_record(item, starting, local, parent)
            ),
            self._finish_cancelled,
            width=self._runtime.limits.width,
        )
        cancellation = self._turn.cancellation
        unsubscribe = None
        if cancellation is not None:
            if cancellation.requested:
                return batch.outcomes()

            def stop() -> None:  # by way of the loop, because a cancellation may come from any thread
                local.loop.call_soon_threadsafe(batch.stop)

            unsubscribe = cancellation.subscribe(stop)
        try:
            return await batch.run()
        except asyncio.CancelledError:
            await batch.drain()
            raise TurnCancelled(batch.outcomes()) from None
        finally:
            if unsubscribe is not None:
                unsubscribe()

    def _cancel_before_start(self, admitted: Sequence[Admitted]) -> TurnCancelled:
        """Finish the calls of a turn that was cancelled during admission, and return what to raise."""
        return TurnCancelled([self._finish_cancelled(item, False) for item in admitted])

    def _finish_cancelled(self, item: Admitted, started: bool) -> Outcome:
        return self._runtime.runner.finish_cancelled(item, started=started, observe=self._observe)


def _add_observer(executor_observe: Observe | None, turn_observe: Observe) -> Observe:
    """Combine the executor's observers, which cannot raise, with the turn's own, which may."""

    def observe(event: Event) -> None:
        if executor_observe is not None:
            executor_observe(event)
        try:
            turn_observe(event)
        except Exception:  # noqa: BLE001 - an observer that fails must not fail the call
            _log.exception("an observer failed on %s", type(event).__name__)

    return observe


def _is_running_outside(name: str, parent: ToolContext | None) -> bool:
    """Whether a tool is already running further out in the same chain of calls."""
    while parent is not None:
        if parent.call.name == name:
            return True
        parent = parent.parent
    return False


def _merge_answers(first: Answers | None, second: Answers) -> Answers:
    return Answers({**dict(first or ()), **dict(second)})
