"""`Executor`: admit, then perform. One outcome per call, in call order, always."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TypeAlias

from toolwright.clip import Outputs, clip_turn
from toolwright.core.call import Answers, Failed, Interrupted, Outcome, Question, ToolCall
from toolwright.core.errors import Halted, ToolFailed, UsageError
from toolwright.core.event import BatchBegan, CallProgressed, Event, QuestionsRaised
from toolwright.core.json import FrozenDict, JsonObject
from toolwright.executor.admit import Admitted, Gate
from toolwright.executor.batch import Batch
from toolwright.executor.deadline import Deadlines
from toolwright.executor.perform import Runner
from toolwright.executor.turn import Turn, TurnCancelled
from toolwright.hooks.base import Hook
from toolwright.policy.decide import Policies, Policy
from toolwright.policy.mode import ByMode
from toolwright.registry.catalog import Toolset
from toolwright.retry import Clock, RetryPolicy, WallClock
from toolwright.stats import Stats
from toolwright.tool.base import State, ToolContext

Observer: TypeAlias = Callable[[Event], None]
_NO_ARGUMENTS: JsonObject = FrozenDict()
_LONE = Turn()
_log = logging.getLogger("toolwright")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one turn may take; the defaults suit one agent on one machine."""

    width: int = 16
    """Calls of one turn that run at the same time."""
    depth: int = 8
    """Tools that may be inside each other."""
    turn_chars: int = 200_000
    """What the outputs of one turn may come to together."""
    question_seconds: float | None = 3600.0
    """How long an answer to a question counts."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1 or self.turn_chars < 1:
            raise UsageError(f"Bounds must be at least 1 each: {self!r}")


@dataclass(slots=True)
class _LoopParts:
    """What must not be shared between event loops."""

    deadlines: Deadlines
    limits: dict[str, asyncio.Semaphore] = field(default_factory=dict[str, asyncio.Semaphore])


class Executor:
    """Runs calls against a toolset under policies, hooks and limits.

    Without policies the mode is `default`: what reads runs, everything else asks.
    """

    def __init__(
        self,
        registry: Toolset,
        policies: Policy | Policies | None = None,
        *,
        hooks: Iterable[Hook] = (),
        observe: Observer | Iterable[Observer] = (),
        width: int | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - frozen
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        clock: Clock | None = None,
        outputs: Outputs | None = None,
        state: State | None = None,
    ) -> None:
        self.registry = registry
        self.bounds = bounds if width is None else Bounds(width, bounds.depth, bounds.turn_chars, bounds.question_seconds)
        self.policies = policies if isinstance(policies, Policies) else Policies(policies or ByMode("default"))
        self.hooks = tuple(hooks)
        self.stats = Stats()
        self.outputs = outputs or Outputs()
        self.state = state or State()
        self._observers = (observe,) if callable(observe) else tuple(observe)
        self._observe = self._tell if self._observers else None
        self._gate = Gate(self.policies, self.hooks, question_seconds=self.bounds.question_seconds)
        self._runner = Runner(
            self.hooks, retry=retry, clock=clock or WallClock(), stats=self.stats, outputs=self.outputs
        )
        self._scope = _TurnScope(self, _LONE)
        self._ids = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._parts: _LoopParts | None = None

    async def run(
        self,
        name: str,
        arguments: JsonObject | str | bytes = _NO_ARGUMENTS,
        *,
        answers: Answers | None = None,
        turn: Turn = _LONE,
        call_id: str = "",
    ) -> Outcome:
        """Make one call."""
        call = ToolCall(call_id or f"run-{next(self._ids)}", name, arguments)
        return (await self.execute((call,), answers=answers, turn=turn))[0]

    async def execute(
        self, calls: Sequence[ToolCall], *, answers: Answers | None = None, turn: Turn = _LONE
    ) -> list[Outcome]:
        """Make the calls of one turn; never raises for anything a model, tool, hook or person did.

        Cancelling the task that awaits this raises `TurnCancelled`, which carries an outcome for every call;
        a `Cancellation` in the turn returns them instead.
        """
        scope = self._scope if turn is _LONE else _TurnScope(self, turn)
        return await scope.carry_out(calls, answers)

    def run_sync(
        self, name: str, arguments: JsonObject | str | bytes = _NO_ARGUMENTS, *, answers: Answers | None = None
    ) -> Outcome:
        """Make one call and block until it is done."""
        return self.execute_sync((ToolCall(f"run-{next(self._ids)}", name, arguments),), answers=answers)[0]

    def execute_sync(self, calls: Sequence[ToolCall], *, answers: Answers | None = None) -> list[Outcome]:
        """Make the calls of one turn and block until they are done."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.execute(calls, answers=answers))
        raise UsageError("run_sync blocks, and an event loop is running here; write `await executor.run(…)` instead")

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:  # noqa: BLE001 - an observer has no say, but its failure must not go unseen
                _log.exception("an observer failed on %s", type(event).__name__)

    def parts(self) -> _LoopParts:
        """The running loop's own timer and limits."""
        loop = asyncio.get_running_loop()
        if self._parts is None or loop is not self._loop:
            self._loop, self._parts = loop, _LoopParts(Deadlines(loop))
        return self._parts


class _TurnScope:
    """One turn on its way through the executor; what running tools see of it."""

    __slots__ = ("_executor", "_turn", "session_id", "state", "turn_id")

    def __init__(self, executor: Executor, turn: Turn) -> None:
        self._executor = executor
        self._turn = turn
        self.session_id = turn.session_id
        self.turn_id = turn.turn_id
        self.state = turn.state or executor.state

    @property
    def cancelled(self) -> bool:
        return self._turn.cancellation is not None and self._turn.cancellation.requested

    def report(self, call: ToolCall, progress: object) -> None:
        observe, loop = self._executor._observe, self._executor._loop  # noqa: SLF001 - one unit with its executor
        if observe is None or loop is None:
            return
        event = CallProgressed(call, progress)
        try:
            asyncio.get_running_loop()
            observe(event)
        except RuntimeError:  # from a worker thread: observers hear everything on the loop's thread
            loop.call_soon_threadsafe(observe, event)

    async def execute(self, context: ToolContext, calls: Sequence[ToolCall]) -> list[Outcome]:
        depth = self._executor.bounds.depth
        if context.depth + 1 >= depth:
            error = ToolFailed(f"tools are inside each other {depth} deep; make the call from the model instead")
            return [Failed(call, error) for call in calls]
        return await self.carry_out(calls, None, parent=context)

    async def carry_out(
        self, calls: Sequence[ToolCall], answers: Answers | None, parent: ToolContext | None = None
    ) -> list[Outcome]:
        admitted = await self._admit(calls, answers)
        questions = tuple(question for item in admitted for question in item.questions)
        if questions:
            self._observed(QuestionsRaised(questions, self.session_id))
            if self._turn.ask is None:
                return [Interrupted(item.call, item.questions) for item in admitted]
            replies = await self._turn.ask(questions)
            return await self._after_asking(calls, _joined(answers, replies), questions, parent)
        return await self._perform(admitted, parent)

    async def _admit(self, calls: Sequence[ToolCall], answers: Answers | None) -> list[Admitted]:
        executor = self._executor
        catalog = self._turn.catalog or executor.registry.snapshot()
        gate = executor._gate  # noqa: SLF001 - one unit with its executor
        admitted = [
            await gate.admit(call, catalog, session_id=self.session_id, turn_id=self.turn_id, answers=answers)
            for call in calls
        ]
        halted = next((item.error for item in admitted if isinstance(item.error, Halted)), None)
        if halted is not None:
            for item in admitted:
                item.error, item.questions = item.error or Halted(halted.message), ()
        return admitted

    async def _after_asking(
        self,
        calls: Sequence[ToolCall],
        answers: Answers,
        asked: Sequence[Question],
        parent: ToolContext | None,
    ) -> list[Outcome]:
        """Admit again with the answers; a question that was answered by nobody counts as declined."""
        admitted = await self._admit(calls, answers)
        open_questions = [question for item in admitted for question in item.questions]
        for question in open_questions:
            answers.decline(question, "nobody answered")
        if open_questions:
            admitted = await self._admit(calls, answers)
        return await self._perform(admitted, parent)

    async def _perform(self, admitted: Sequence[Admitted], parent: ToolContext | None) -> list[Outcome]:
        executor = self._executor
        executor._gate.spend(admitted)  # noqa: SLF001 - one unit with its executor
        if executor._observe is not None or self._turn.journal is not None:  # noqa: SLF001 - one unit
            await self._announce(admitted)
        if len(admitted) == 1 and self._turn.cancellation is None:
            return [await self._inline(admitted[0], parent)]  # a task costs more than the whole pipeline
        outcomes = await self._together(admitted, parent)
        return clip_turn(outcomes, executor.outputs, executor.bounds.turn_chars)

    async def _announce(self, admitted: Sequence[Admitted]) -> None:
        began = BatchBegan(
            tuple(item.call for item in admitted),
            tuple(item.digest for item in admitted),
            self.session_id,
            self.turn_id,
        )
        if self._turn.journal is not None:
            await self._turn.journal(began)
        self._observed(began)

    async def _inline(self, item: Admitted, parent: ToolContext | None) -> Outcome:
        try:
            return await self._one(item, parent)
        except asyncio.CancelledError:
            executor = self._executor
            outcome = executor._runner.cancelled(item, started=True, observe=executor._observe)  # noqa: SLF001 - one unit
            raise TurnCancelled([outcome]) from None

    async def _together(self, admitted: Sequence[Admitted], parent: ToolContext | None) -> list[Outcome]:
        executor = self._executor
        runner, observe = executor._runner, executor._observe  # noqa: SLF001 - one unit with its executor

        def stopped(item: Admitted, started: bool) -> Outcome:  # noqa: FBT001 - the batch's own word for it
            return runner.cancelled(item, started=started, observe=observe)

        batch = Batch(admitted, lambda item: self._one(item, parent), stopped, width=executor.bounds.width)
        cancellation = self._turn.cancellation
        loop = asyncio.get_running_loop()
        unsubscribe = (
            None if cancellation is None else cancellation.subscribe(lambda: loop.call_soon_threadsafe(batch.stop))
        )
        try:
            return await batch.run()
        except asyncio.CancelledError:
            await batch.drain()
            raise TurnCancelled(batch.outcomes()) from None
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def _one(self, item: Admitted, parent: ToolContext | None) -> Outcome:
        executor = self._executor
        parts = executor.parts()
        runner, observe = executor._runner, executor._observe  # noqa: SLF001 - one unit with its executor
        if item.error is not None or item.limits.concurrency is None:
            return await runner.perform(item, self, parts.deadlines, observe, parent)
        name = item.spec.name
        if parent is not None and name in parent.holding:
            item.error = ToolFailed(f"{name} may run {item.limits.concurrency} at a time and would wait for itself")
            return await runner.perform(item, self, parts.deadlines, observe, parent)
        limit = parts.limits.setdefault(name, asyncio.Semaphore(item.limits.concurrency))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(limit)
            return await runner.perform(item, self, parts.deadlines, observe, parent)

    def _observed(self, event: Event) -> None:
        observe = self._executor._observe  # noqa: SLF001 - one unit with its executor
        if observe is not None:
            observe(event)


def _joined(first: Answers | None, second: Answers) -> Answers:
    return Answers({**dict(first or ()), **dict(second)})
