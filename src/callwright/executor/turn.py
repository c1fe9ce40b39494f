"""A turn: the calls of one model message on their way to one outcome each.

admit every call ─► ask the user ─► announce ─► perform
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from callwright.clip import clip_turn
from callwright.core.access import Ask, Deny
from callwright.core.calls import Failed, Interrupted, Outcome, ToolCall
from callwright.core.decisions import Answers, Approve, Decline, Question
from callwright.core.errors import Cancelled, Declined, Denied, Halted, ToolFailed, Unanswered
from callwright.core.events import BatchBegan, CallProgressed, Digests, QuestionsRaised, QuestionsSettled
from callwright.core.json import Json
from callwright.executor.admit import require_approval
from callwright.executor.admitted import Admitted
from callwright.executor.deadlines import LoopParts
from callwright.executor.driver import is_cancelling
from callwright.executor.ledger import TurnAnswers
from callwright.executor.perform import Ended, Interruption
from callwright.executor.runtime import Runtime, add_observer, observe_in_loop
from callwright.executor.turn_context import CANCELLED, AskPerson, Inside, Starting, Turn, TurnCancelled, describe_batch
from callwright.registry.catalog import Catalog
from callwright.tool.base import NO_DETAILS, InnerBatch, ToolContext

if TYPE_CHECKING:
    from callwright.executor.before_hooks import Begun

_log = logging.getLogger("callwright")
_NOT_STARTED = "stopped before it was done; it had not started"
_MAX_EDITS = 20  # how often in a row a user may change the arguments in question


class TurnScope:
    """One turn in progress; running tools see it as their `tool.base.Scope`."""

    def __init__(self, runtime: Runtime, turn: Turn) -> None:
        self._runtime = runtime
        self._turn = turn
        self.session_id = turn.session_id
        self.turn_id = turn.turn_id
        self.run_id = runtime.run_id
        self.state = turn.state or runtime.state
        self._observe = runtime.observe if turn.observe is None else add_observer(runtime.observe, turn.observe)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: Sequence[str] = ()  # ids of the calls that will not run again
        self._inner = None
        if turn.keep is not None:
            from callwright.executor.inner_record import InnerRecord  # loaded with the first turn on record

            self._inner = InnerRecord(turn.keep, turn.kept)
        self._answers: TurnAnswers | None = None

    @property
    def cancelled(self) -> bool:
        return self._turn.cancellation is not None and self._turn.cancellation.requested

    def report(self, call: ToolCall, progress: object) -> None:
        if self._observe is not None and self._loop is not None:
            observe_in_loop(self._observe, CallProgressed(call, progress), self._loop)

    async def keep(self, path: str, note: Json, *, wait: bool) -> None:
        if path.partition("/")[0] in self._ended:  # from what it left running: a later call may have the same id
            return
        if self._inner is not None:
            await self._inner.keep(path, note, wait=wait)
        else:
            self._runtime.notes.add(self.session_id, path, note)

    def find_kept(self, path: str) -> Sequence[Json]:
        if self._inner is not None:
            return self._inner.find(path)
        return self._runtime.notes.find(self.session_id, path)

    def execute(
        self, context: ToolContext, calls: Sequence[ToolCall], batch: InnerBatch
    ) -> Coroutine[Any, Any, list[Outcome]]:  # not async itself: another coroutine would cost every call
        if self._inner is None or batch.starting is not None:
            return self.run_all(calls, None, context, batch)
        return self._inner.execute(context, calls, batch, self._catalog(), self.run_all)

    async def run(self, call: ToolCall, answers: Answers | None, begun: "Begun | None" = None) -> Outcome:
        """Bring a lone call to its outcome."""
        return (await self.run_all((call,), answers, begun=begun))[0]

    async def ask_running(self, admitted: Admitted, raised: Interruption) -> tuple[Question, Approve] | Interrupted:
        """Ask what a running tool wants to know, or interrupt the call if the user cannot be asked now."""
        settled = self._runtime.gate.policies.settle(Ask(raised.reason, f"tool {admitted.name}", firm=True))
        if isinstance(settled, Deny):  # a mode that never asks
            raise Denied(settled.reason)
        question = self._runtime.gate.make_running_question(admitted, raised)
        self._raise_questions((question,))
        self._runtime.ledger.add(question, admitted.require_entry().tool)
        if self._turn.ask is None:
            return Interrupted(admitted.call, (question,))
        try:
            answers = dict(await self._ask_user(self._turn.ask, (question,)))
        except Unanswered:
            return Interrupted(admitted.call, (question,))
        if not self._runtime.ledger.take(question.id):
            raise Denied("the answer was used by another call meanwhile; ask again")
        approve = require_approval(question, answers.get(question.id, Decline("the user gave no answer")))
        admitted.resumed = True
        return question, approve

    async def run_all(
        self,
        calls: Sequence[ToolCall],
        answers: Answers | None,
        parent: ToolContext | None = None,
        batch: InnerBatch = NO_DETAILS,
        begun: "Begun | None" = None,
    ) -> list[Outcome]:
        """Bring the calls of a turn to one outcome each, in call order."""
        depth = self._runtime.limits.depth
        if parent is not None and parent.depth + 1 >= depth:
            error = ToolFailed(f"tools call each other {depth} levels deep; make the call from the model instead")
            return [Failed(call, error) for call in calls]
        local = self._runtime.loops.get()
        self._loop = self._loop or local.loop
        ledger = self._runtime.ledger
        if answers is not None:
            self._answers = given = TurnAnswers(answers, ledger, self._turn.asked)
        else:  # a turn that goes on after a question may have answers for the calls that its tools make
            given = None if parent is None or self._answers is None else self._answers.for_inner_calls()
        inside = None if parent is None else describe_batch(parent, calls, batch)
        admitted, questions = await self._admit(calls, given, local, inside, begun)
        if questions:
            self._note_questions(admitted)
            self._raise_questions(questions)
            if self._turn.ask is None:
                return [Interrupted(item.call, item.questions) for item in admitted]
            given = given or TurnAnswers(Answers(), ledger, self._turn.asked)
            try:
                admitted = await self._ask_and_admit(self._turn.ask, admitted, questions, given, local, inside)
            except Unanswered:
                return [Interrupted(item.call, item.questions) for item in admitted]
        if given is not None:
            self._runtime.gate.consume_answers(admitted, given)
        if self._observe is not None or self._turn.journal is not None:
            await self._announce(calls, admitted)
        alone = len(admitted) == 1 and self._turn.cancellation is None
        if alone:
            outcomes = [await self._perform_alone(admitted[0], local, parent)]
        else:
            outcomes = await self._run_batch(admitted, local, parent)
        if given is not None:
            given.settle(admitted, outcomes)
        if parent is None and not alone:  # what a tool reads is not for the model
            outcomes = clip_turn(outcomes, self._runtime.runner.outputs, self._runtime.limits.turn_chars)
        return self._drop_notes(outcomes, parent)

    def _drop_notes(self, outcomes: list[Outcome], parent: ToolContext | None) -> list[Outcome]:
        """Forget the notes of calls of the model that will not run again; return the same outcomes."""
        if parent is None:
            self._ended = [outcome.call.id for outcome in outcomes if not isinstance(outcome, Interrupted)]
            for call_id in self._ended if len(self._runtime.notes) else ():
                self._runtime.notes.drop(self.session_id, call_id)
        return outcomes

    async def questions(self, call: ToolCall) -> tuple[Question, ...]:
        """Return what the user would be asked about a call. Runs nothing, so it may be repeated."""
        gate = self._runtime.gate
        item = gate.bind(call, self._catalog(), self.session_id, self.state)
        await gate.admit((item,), None, self.turn_id, self._runtime.loops.get().deadlines)
        if item.questions:
            self._note_questions((item,))
            self._raise_questions(item.questions)
        return item.questions

    async def finish_from(self, item: Admitted, ended: Ended, began: float) -> Outcome:
        """Finish a lone call whose first attempt, begun at that time, failed, or whose outcome a hook may change."""
        runner, local = self._runtime.runner, self._runtime.loops.get()
        try:
            if isinstance(ended, BaseException):
                tried = await runner.attempt(item, self, local.deadlines, self._observe, failed=(ended, began))
                ended = runner.run_after_hooks(item, tried, self.turn_id, local.deadlines)
            outcome = ended if isinstance(ended, Outcome) else await ended
        except asyncio.CancelledError:
            raise asyncio.CancelledError(CANCELLED) from self.cancel_alone(item)
        return runner.finish(item, outcome, self._observe)

    def cancel_alone(self, item: Admitted, parent: ToolContext | None = None) -> TurnCancelled:
        """Finish a lone call that was cancelled while it ran, and return the cause of the cancellation."""
        return TurnCancelled(self._drop_notes([self._finish_cancelled(item, True)], parent))

    def _catalog(self) -> Catalog:
        return self._runtime.catalog() if self._turn.catalog is None else self._turn.catalog

    async def _admit(
        self,
        calls: Sequence[ToolCall],
        answers: TurnAnswers | None,
        local: LoopParts,
        inside: Inside | None,
        begun: "Begun | None" = None,
    ) -> tuple[Sequence[Admitted], tuple[Question, ...]]:
        """Admit one call or many, and collect their questions; a hook that halts the run stops all of them."""
        gate, catalog = self._runtime.gate, self._catalog()
        if begun is None:
            admitted, asking = [gate.bind(call, catalog, self.session_id, self.state) for call in calls], None
        else:
            admitted, asking = [begun[0]], begun[1]
        if answers is not None:
            answers.begin_pass(admitted)
        if inside is not None:
            for item, origin in zip(admitted, inside.origins, strict=True):
                item.within, item.origin, item.batch = inside.call_id, origin, inside.batch
        try:
            if not gate.hooks:
                for item in admitted:
                    while gate.judge(item, answers):
                        pass
            else:
                admission = gate.admit(admitted, answers, self.turn_id, local.deadlines, asking)
                if self._turn.cancellation is not None:
                    from callwright.executor.asking import race  # loaded with the first hook or question

                    admission = race(self._turn.cancellation, admission)
                await admission
        except asyncio.CancelledError:
            if is_cancelling():
                raise asyncio.CancelledError(CANCELLED) from self._cancel_before_start(admitted)
            for item in admitted:  # the turn was cancelled while a hook was waited for
                item.error, item.questions = item.error or Cancelled(_NOT_STARTED), ()
        questions: tuple[Question, ...] = ()
        halted: Halted | None = None
        for item in admitted:
            if item.questions:
                questions += item.questions
            if item.error is not None and isinstance(item.error, Halted):
                halted = halted or item.error
        if halted is None:
            return admitted, questions
        for item in admitted:
            item.error, item.questions = item.error or Halted(halted.message), ()
        return admitted, ()

    def _note_questions(self, admitted: Sequence[Admitted]) -> None:
        """Note what is asked, because only answers to these questions count."""
        for item in admitted:
            for question in item.questions:
                self._runtime.ledger.add(question, item.require_entry().tool)

    def _raise_questions(self, questions: tuple[Question, ...]) -> None:
        if self._observe is not None:
            self._observe(QuestionsRaised(questions, self.session_id))

    async def _ask_and_admit(
        self,
        ask: AskPerson,
        admitted: Sequence[Admitted],
        questions: Sequence[Question],
        answers: TurnAnswers,
        local: LoopParts,
        inside: Inside | None,
    ) -> Sequence[Admitted]:
        """Ask the user and admit the calls again; a question left unanswered declines its call."""
        calls = [item.call for item in admitted]
        answers.merge(await self._ask(ask, questions, admitted))
        admitted = (await self._admit(calls, answers, local, inside))[0]
        for _ in range(_MAX_EDITS):
            # only edited calls are asked about again: the user has not seen what these would do now
            edited = [question for item in admitted if item.shown is not None for question in item.questions]
            if not edited:
                break
            self._note_questions(admitted)
            answers.merge(await self._ask(ask, edited, admitted))
            admitted = (await self._admit(calls, answers, local, inside))[0]
        for item in admitted:
            if item.questions:
                item.error, item.questions = item.error or Declined("declined: the user gave no answer"), ()
        return admitted

    async def _ask(self, ask: AskPerson, questions: Sequence[Question], admitted: Sequence[Admitted]) -> Answers:
        """Return the user's answers to the questions of calls that have not started."""
        try:
            return await self._ask_user(ask, questions)
        except asyncio.CancelledError:
            raise asyncio.CancelledError(CANCELLED) from self._cancel_before_start(admitted)

    async def _ask_user(self, ask: AskPerson, questions: Sequence[Question]) -> Answers:
        from callwright.executor.asking import ask_user  # as above

        answers = await ask_user(ask, questions, self._turn.cancellation, self._runtime.limits.grace_seconds)
        if self._observe is not None:
            self._observe(QuestionsSettled(dict(answers), self.session_id))
        return answers

    async def _announce(self, calls: Sequence[ToolCall], admitted: Sequence[Admitted]) -> None:
        parts = [(item.name, item.copy_arguments(), item.accesses) for item in admitted]
        began = BatchBegan(tuple(calls), Digests(parts, self.session_id), self.session_id, self.turn_id)
        if self._turn.journal is not None:
            await self._turn.journal(began)
        if self._observe is not None:
            self._observe(began)

    async def _perform_alone(self, item: Admitted, local: LoopParts, parent: ToolContext | None) -> Outcome:
        """Perform a call in this task, because a new one costs more than the pipeline."""
        task = asyncio.current_task(local.loop)
        cancellations = 0 if task is None else task.cancelling()
        try:
            outcome = await self._perform(local, parent, item)
        except asyncio.CancelledError:
            raise asyncio.CancelledError(CANCELLED) from self.cancel_alone(item, parent)
        # a tool that ended well in spite of a cancellation: its caller must not go on
        if task is not None and task.cancelling() > cancellations:
            raise asyncio.CancelledError(CANCELLED) from TurnCancelled(self._drop_notes([outcome], parent))
        return outcome

    def _perform(self, local: LoopParts, parent: ToolContext | None, item: Admitted) -> Coroutine[Any, Any, Outcome]:
        # not async itself: another coroutine would cost every call
        if item.batch is not None:
            batch, item.batch = item.batch, None
            item.output_chars = batch.output_chars
            return self._perform_on_record(item, batch.starting, local, parent, batch.ended)
        limit = None if item.entry is None else item.entry.limits.concurrency
        if limit is None or item.error is not None or item.hook_output is not None:
            return self._runtime.runner.perform(item, self, local.deadlines, self._observe, parent)
        return self._perform_limited(item, limit, local, parent)

    async def _perform_on_record(
        self,
        item: Admitted,
        starting: Starting | None,
        local: LoopParts,
        parent: ToolContext | None,
        ended: Callable[[Outcome], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Perform a call after its start was recorded, and record its end; a call that does not run needs no start."""
        if starting is not None and item.error is None and item.hook_output is None:
            try:
                await starting(item.call)
            except Exception as error:  # noqa: BLE001 - a start that is not on record must not happen
                _log.exception("the start of %s could not be recorded", item.name)
                item.error = Cancelled(f"not done: its start could not be recorded ({type(error).__name__})")
        outcome = await self._perform(local, parent, item)
        if ended is not None:
            await ended(outcome)
        return outcome

    async def _perform_limited(
        self, item: Admitted, limit: int, local: LoopParts, parent: ToolContext | None
    ) -> Outcome:
        """Perform a call of a tool with a concurrency limit."""
        item.hold = hold = self._runtime.hold(item.require_entry(), limit)
        try:
            await hold.take()
        except ToolFailed as error:
            item.error = error
        try:
            return await self._runtime.runner.perform(item, self, local.deadlines, self._observe, parent)
        finally:
            hold.give_back()

    async def _run_batch(
        self, admitted: Sequence[Admitted], local: LoopParts, parent: ToolContext | None
    ) -> list[Outcome]:
        """Perform the calls in tasks of their own, so that the turn's cancellation can stop them."""
        from callwright.executor.schedule import Batch  # loaded with the first turn of several calls

        starting = None if parent is not None else self._turn.starting
        batch = Batch(
            admitted,
            partial(self._perform, local, parent)
            if starting is None
            else (lambda item: self._perform_on_record(item, starting, local, parent)),
            self._finish_cancelled,
            width=self._runtime.limits.width,
            grace_seconds=local.deadlines.grace_seconds,
            observe=self._observe,
        )
        cancellation, unsubscribe = self._turn.cancellation, None
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
            raise asyncio.CancelledError(CANCELLED) from TurnCancelled(self._drop_notes(batch.outcomes(), parent))
        finally:
            if unsubscribe is not None:
                unsubscribe()

    def _cancel_before_start(self, admitted: Sequence[Admitted]) -> TurnCancelled:
        """Finish the calls of a turn that was cancelled during admission, and return the cause of the cancellation."""
        return TurnCancelled([self._finish_cancelled(item, False) for item in admitted])

    def _finish_cancelled(self, item: Admitted, started: bool) -> Outcome:
        return self._runtime.runner.finish_cancelled(item, started=started, observe=self._observe)
