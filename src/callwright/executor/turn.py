"""What belongs to one turn: whose it is, what it may call, how it is stopped, who is asked.

One turn on its way through the executor: admitted, asked about, performed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from callwright.clip import Outputs, clip_turn
from callwright.core.calls import Answers, Failed, Interrupted, Outcome, Question, ToolCall
from callwright.core.errors import Halted, ToolError, ToolFailed, UsageError
from callwright.core.events import BatchBegan, CallProgressed, Event, QuestionsRaised
from callwright.executor.admit import Admitted, Gate
from callwright.executor.deadlines import Deadlines, being_cancelled
from callwright.executor.perform import Observe, Runner
from callwright.executor.schedule import Batch
from callwright.registry.catalog import Catalog, Toolset
from callwright.tool.base import Cancellation, State, ToolContext

AskPerson: TypeAlias = Callable[[Sequence[Question]], Awaitable[Answers]]
Journal: TypeAlias = Callable[[BatchBegan], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TurnLimits:
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
            raise UsageError(f"TurnLimits must be at least 1 each: {self!r}")


@dataclass(frozen=True, slots=True)
class Turn:
    """The circumstances of a batch of calls; the default is a call outside of any conversation."""

    session_id: str = ""
    turn_id: str = ""
    state: State | None = None
    """Values the session's tools share; without one the executor's own is used."""
    catalog: Catalog | None = None
    """The tools as they were advertised; without one the registry's present ones."""
    cancellation: Cancellation | None = None
    ask: AskPerson | None = None
    """Answers questions on the spot; without one they come back as `Interrupted`."""
    journal: Journal | None = None
    """Told what is about to run, and awaited; if it raises, nothing runs."""
    observe: Callable[[Event], None] | None = None
    """Hears this turn's events, beside the executor's own observers."""


class TurnCancelled(asyncio.CancelledError):
    """The task that was executing a turn was cancelled; every call still has its outcome here."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__("the turn was cancelled")
        self.outcomes = list(outcomes)


_log = logging.getLogger("callwright")
_MOST_EDITS = 20
"""How often in a row a person may change what they are asked about."""


@dataclass(slots=True)
class LoopParts:
    """What must not be shared between event loops."""

    loop: asyncio.AbstractEventLoop
    deadlines: Deadlines
    limits: dict[str, asyncio.Semaphore] = field(default_factory=dict[str, asyncio.Semaphore])


class Machine(Protocol):
    """The executor as a turn sees it."""

    registry: Toolset
    gate: Gate
    runner: Runner
    outputs: Outputs
    state: State
    observe: Observe | None
    bounds: TurnLimits

    def local(self) -> LoopParts: ...

    def home(self) -> asyncio.AbstractEventLoop: ...


class TurnScope:
    """One turn; what running tools see of it is `tool.base.Scope`."""

    def __init__(self, machine: Machine, turn: Turn) -> None:
        self._machine = machine
        self._turn = turn
        self.session_id = turn.session_id
        self.turn_id = turn.turn_id
        self.state = turn.state or machine.state
        self._observe = _heard_by(machine.observe, turn.observe)
        self._eventful = turn.cancellation is not None or turn.journal is not None

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
        except RuntimeError:  # from a worker thread: observers hear everything on the loop's thread
            self._machine.home().call_soon_threadsafe(observe, event)
        else:
            observe(event)

    async def execute(self, context: ToolContext, calls: Sequence[ToolCall]) -> list[Outcome]:
        depth = self._machine.bounds.depth
        if context.depth + 1 >= depth:
            error = ToolFailed(f"tools are inside each other {depth} deep; make the call from the model instead")
            return [Failed(call, error) for call in calls]
        return await self.run_all(calls, None, context)

    async def run(self, call: ToolCall, answers: Answers | None) -> Outcome:
        """Bring a lone call to its outcome; in this task, because a new one costs more than the pipeline."""
        machine, gate = self._machine, self._machine.gate
        local = machine.local()
        item = gate.bind(call, self._catalog(), self.session_id)
        try:
            if gate.hooks:
                await gate.consult(item, self.turn_id, local.deadlines)
            while gate.judge(item, answers):  # a person changed the arguments, and hooks have a say in what will run
                await gate.consult(item, self.turn_id, local.deadlines)
        except asyncio.CancelledError:
            raise self._never_ran((item,)) from None
        if item.questions or item.spent or self._eventful:
            return (await self._proceed((item,), answers, None))[0]
        if self._observe is not None:
            await self._announce((item,))
        if item.lane is None or item.lane.limits.concurrency is not None:
            return await self._inline(item, local, None)
        try:
            return await machine.runner.perform(item, self, local.deadlines, self._observe)
        except asyncio.CancelledError:
            raise self.cancelled_alone(item) from None

    async def go_on(self, item: Admitted, failed: tuple[ToolError, float]) -> Outcome:
        """The outcome of a lone call whose first attempt failed."""
        machine = self._machine
        try:
            outcome = await machine.runner.attempt(item, self, machine.local().deadlines, failed=failed)
        except asyncio.CancelledError:
            raise self.cancelled_alone(item) from None
        return machine.runner.finish(item, outcome, None)

    def _catalog(self) -> Catalog:
        return self._machine.registry.snapshot() if self._turn.catalog is None else self._turn.catalog

    async def run_all(
        self, calls: Sequence[ToolCall], answers: Answers | None, parent: ToolContext | None = None
    ) -> list[Outcome]:
        """Bring the calls of a turn to one outcome each, in call order."""
        return await self._proceed(await self._admit(calls, answers), answers, parent)

    async def _admit(self, calls: Sequence[ToolCall], answers: Answers | None) -> list[Admitted]:
        machine = self._machine
        catalog = self._catalog()
        local, gate = machine.local(), machine.gate
        admitted = [gate.bind(call, catalog, self.session_id) for call in calls]
        try:
            for item in admitted:
                if gate.hooks:
                    await gate.consult(item, self.turn_id, local.deadlines)
                while gate.judge(item, answers):
                    await gate.consult(item, self.turn_id, local.deadlines)
        except asyncio.CancelledError:
            raise self._never_ran(admitted) from None
        halted = next((item.error for item in admitted if isinstance(item.error, Halted)), None)
        if halted is not None:
            for item in admitted:
                item.error, item.questions = item.error or Halted(halted.message), ()
        return admitted

    async def _proceed(
        self, admitted: Sequence[Admitted], answers: Answers | None, parent: ToolContext | None
    ) -> list[Outcome]:
        questions = tuple(question for item in admitted for question in item.questions)
        if questions:
            self._observed(QuestionsRaised(questions, self.session_id))
            if self._turn.ask is None:
                return [Interrupted(item.call, item.questions) for item in admitted]
            replies = await self._asked(self._turn.ask, questions, admitted)
            admitted = await self._answered(admitted, _joined(answers, replies))
        return await self._perform(admitted, parent)

    async def _asked(self, ask: AskPerson, questions: Sequence[Question], admitted: Sequence[Admitted]) -> Answers:
        """What the person says; a way of asking that fails is a no to everything."""
        try:
            return Answers(dict(await ask(questions)))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - nobody above the executor needs except
            if being_cancelled():
                raise self._never_ran(admitted) from None
            _log.exception("a person could not be asked")
            answers = Answers()
            for question in questions:
                answers.decline(question, f"nobody could be asked ({type(error).__name__}: {error})")
            return answers

    async def _answered(self, admitted: Sequence[Admitted], answers: Answers) -> Sequence[Admitted]:
        """Admit again with the answers; what somebody changed may be asked about again, silence is a no."""
        calls = [item.call for item in admitted]
        for _ in range(_MOST_EDITS):
            admitted = await self._admit(calls, answers)
            changed = [question for item in admitted if item.shown is not None for question in item.questions]
            if not changed or self._turn.ask is None:
                break
            answers = _joined(answers, await self._asked(self._turn.ask, changed, admitted))
        unanswered: list[Question] = [question for item in admitted for question in item.questions]
        for question in unanswered:
            answers.decline(question, "nobody answered")
        return await self._admit(calls, answers) if unanswered else admitted

    async def _perform(self, admitted: Sequence[Admitted], parent: ToolContext | None) -> list[Outcome]:
        machine = self._machine
        machine.gate.spend(admitted)
        if self._observe is not None or self._turn.journal is not None:
            await self._announce(admitted)
        if len(admitted) == 1 and self._turn.cancellation is None:
            return [await self._inline(admitted[0], machine.local(), parent)]
        outcomes = await self._together(admitted, parent)
        return clip_turn(outcomes, machine.outputs, machine.bounds.turn_chars)

    async def _announce(self, admitted: Sequence[Admitted]) -> None:
        calls, digests = tuple(item.call for item in admitted), tuple(item.digest for item in admitted)
        began = BatchBegan(calls, digests, self.session_id, self.turn_id)
        if self._turn.journal is not None:
            await self._turn.journal(began)
        self._observed(began)

    async def _inline(self, item: Admitted, local: LoopParts, parent: ToolContext | None) -> Outcome:
        try:
            return await self._one(item, local, parent)
        except asyncio.CancelledError:
            raise self.cancelled_alone(item) from None

    def cancelled_alone(self, item: Admitted) -> TurnCancelled:
        """The end of a lone call that was stopped from outside."""
        return TurnCancelled([self._stopped(item, True)])

    def _never_ran(self, admitted: Sequence[Admitted]) -> TurnCancelled:
        """The end of a turn that was stopped from outside while hooks or a person were being heard."""
        return TurnCancelled([self._stopped(item, False) for item in admitted])

    def _stopped(self, item: Admitted, started: bool) -> Outcome:
        return self._machine.runner.cancelled(item, started=started, observe=self._observe)

    async def _together(self, admitted: Sequence[Admitted], parent: ToolContext | None) -> list[Outcome]:
        machine, local = self._machine, self._machine.local()
        batch = Batch(
            admitted,
            lambda item: self._one(item, local, parent),
            self._stopped,
            width=machine.bounds.width,
        )
        cancellation = self._turn.cancellation
        leave = None
        if cancellation is not None:
            if cancellation.requested:
                return batch.outcomes()
            leave = cancellation.subscribe(partial(_call_soon, local.loop, batch.stop))
        try:
            return await batch.run()
        except asyncio.CancelledError:
            await batch.drain()
            raise TurnCancelled(batch.outcomes()) from None
        finally:
            if leave is not None:
                leave()

    async def _one(self, item: Admitted, local: LoopParts, parent: ToolContext | None) -> Outcome:
        machine = self._machine
        limit = None if item.lane is None else item.lane.limits.concurrency
        if limit is None or item.error is not None:
            return await machine.runner.perform(item, self, local.deadlines, self._observe, parent)
        if _waits_for_itself(item.name, parent):
            item.error = ToolFailed(f"{item.name} runs {limit} at a time and would wait for itself")
            return await machine.runner.perform(item, self, local.deadlines, self._observe, parent)
        async with local.limits.setdefault(item.name, asyncio.Semaphore(limit)):
            return await machine.runner.perform(item, self, local.deadlines, self._observe, parent)

    def _observed(self, event: Event) -> None:
        if self._observe is not None:
            self._observe(event)


def _heard_by(first: Observe | None, second: Observe | None) -> Observe | None:
    """The executor's observers, which cannot fail, and then the turn's own, which must not."""
    if second is None:
        return first

    def observe(event: Event) -> None:
        if first is not None:
            first(event)
        try:
            second(event)
        except Exception:  # noqa: BLE001 - an observer that fails must not fail the call
            _log.exception("an observer failed on %s", type(event).__name__)

    return observe


def _waits_for_itself(name: str, parent: ToolContext | None) -> bool:
    """Whether a tool with a limit is already running further out in the same chain of calls."""
    while parent is not None:
        if parent.call.name == name:
            return True
        parent = parent.parent
    return False


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """From whichever thread the cancellation comes."""
    loop.call_soon_threadsafe(callback)


def _joined(first: Answers | None, second: Answers) -> Answers:
    return Answers({**dict(first or ()), **dict(second)})
