"""Performance, the second half of a call: runs what was admitted and turns any result into an outcome.

run (deadline, retries) ─► normalise ─► after-hooks ─► clip
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from callwright.clip import READER, Outputs, clip_failed
from callwright.core._fast import make_constructor, replace
from callwright.core.calls import Completed, Failed, Interrupted, Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.decisions import AnswersNeeded, Approve, Question
from callwright.core.errors import (
    ApprovalRequired,
    AuthRequired,
    Cancelled,
    Crashed,
    TimedOut,
    ToolError,
    ToolFailed,
    list_leaves,
)
from callwright.core.events import CallAbandoned, CallBegan, CallEnded, CallRetried, Event
from callwright.core.raised import normalise
from callwright.executor.admitted import Admitted, ToolEntry
from callwright.executor.deadlines import Deadlines
from callwright.executor.driver import (
    Abandoned,
    as_coroutine,
    count_cancellations,
    drive_on,
    is_cancelling,
    next_order,
    take_first_step,
)
from callwright.retry import Clock, RetryPolicy
from callwright.stats import Stats
from callwright.tool.base import Invocation, Scope, ToolContext, leave_call
from callwright.tool.function import Bound
from callwright.tool.render import render

if TYPE_CHECKING:
    from callwright.executor.after_hooks import Showing
    from callwright.hooks.base import Hook

Observe = Callable[[Event], None]
_completed = make_constructor(Completed)
_output = make_constructor(Output)
_log = logging.getLogger("callwright")
_INNER_GRACE = 0.8
"""The grace period of a call made by another one, as a part of that one's."""
_MAX_ASKED = 20
"""How often a call may ask the user while it runs."""
Interruption = ApprovalRequired | AuthRequired
Ended: TypeAlias = "Outcome | Showing | ToolError | Interruption"
"""How a first attempt ended: with an outcome, with one that a hook may still change, or with an error."""


class AskingScope(Scope, Protocol):
    """The turn of a call, which can ask the user."""

    async def ask_running(self, admitted: Admitted, raised: Interruption) -> tuple[Question, Approve] | Interrupted:
        """Ask what a running tool wants to know.

        Returns:
            The question with the approval, or the outcome if the user cannot be asked now.

        Raises:
            Denied: The user did not approve.
        """
        ...


class Runner:
    """Performs admitted calls; raises nothing that a tool or hook raised, only a cancellation from outside."""

    def __init__(
        self, hooks: "Sequence[Hook]", *, retry: RetryPolicy, clock: Clock, stats: Stats, outputs: Outputs
    ) -> None:
        self.retry = retry
        self.clock = clock
        self.stats = stats
        self.outputs = outputs
        self.hooks: tuple[Hook, ...] = ()
        if hooks:
            from callwright.executor.after_hooks import show_outcome  # loaded with the first hook
            from callwright.hooks.base import select_hooks

            self.hooks, self._show_outcome = select_hooks(hooks, "after"), show_outcome

    async def perform(
        self,
        admitted: Admitted,
        scope: AskingScope,
        deadlines: Deadlines,
        observe: Observe | None,
        parent: ToolContext | None,
    ) -> Outcome:
        """Bring an admitted call to its outcome: attempts, after-hooks, clipping, statistics."""
        if admitted.error is not None:
            outcome: Outcome = Failed(admitted.call, admitted.error, started=admitted.resumed)
        elif admitted.hook_output is not None:
            outcome = Completed(admitted.call, admitted.hook_output, attempts=0)
        else:
            if observe is not None:
                observe(CallBegan(admitted.call))
            outcome = await self.attempt(admitted, scope, deadlines, observe, parent)
        if self.hooks:
            shown = self.run_after_hooks(admitted, outcome, scope.turn_id, deadlines)
            outcome = shown if isinstance(shown, Outcome) else await shown
        return self.finish(admitted, outcome, observe)

    async def attempt(
        self,
        admitted: Admitted,
        scope: AskingScope,
        deadlines: Deadlines,
        observe: Observe | None = None,
        parent: ToolContext | None = None,
        failed: tuple[ToolError | Interruption, float] | None = None,
    ) -> Outcome:
        """Run the tool until it succeeds or the retry policy gives up.

        `failed` is the error of a first attempt made elsewhere, with the time at which that attempt began.
        """
        call, entry = admitted.call, admitted.entry
        if entry is None or admitted.invocation is None:
            return Failed(call, Crashed("the call was never bound to a tool"))
        invocation: Invocation = admitted.invocation
        error, began = failed or (None, perf_counter())
        attempt, answered, asked = 1, admitted.answered, 0
        while True:
            if error is None:
                deadline: int | None = None
                cancellations, when = 0, None
                context: ToolContext | None = None
                order, starts = next_order(), perf_counter()
                try:
                    if type(invocation) is Bound and invocation.tool.direct is not None:
                        running = invocation.tool.direct(**invocation.values)  # needs no context
                    else:
                        when = _find_deadline(entry, parent, deadlines)
                        context = ToolContext(call, scope, attempt, when, parent, admitted.confinement, answered)
                        running = invocation.run(context)
                    if type(running) is not CoroutineType:
                        running = as_coroutine(running)
                    steps, ended, waits_for = take_first_step(running)
                    if not ended:  # most calls have, and nothing has to watch them
                        late = perf_counter() - starts
                        when = context.deadline if context else _find_deadline(entry, parent, deadlines, late)
                        if when is not None:
                            deadline = deadlines.start(when, order)
                        cancellations = count_cancellations()
                        grace_seconds = _find_grace(entry, parent, deadlines)
                        await drive_on(steps, ended, waits_for, grace_seconds, order, cancellations)
                    return _completed(call, _render(ended[0]), perf_counter() - began, attempt, ())
                except asyncio.CancelledError as stopped:
                    if context is not None:
                        leave_call(context)
                    if isinstance(stopped, Abandoned):
                        self.report_abandoned(admitted, deadlines.grace_seconds, observe)
                    if deadline is not None and deadlines.claim_cancellation(deadline, cancellations):
                        error = make_timeout(
                            entry.limits.seconds,
                            inherited=parent is not None and when == parent.deadline,
                            abandoned=admitted.abandoned,
                        )
                    elif is_cancelling():
                        raise
                    else:  # the tool awaited something that was cancelled by other code: its failure, not the end
                        error = normalise(stopped)
                except (KeyboardInterrupt, GeneratorExit):  # the tool's own `GeneratorExit` is a `RuntimeError` by now
                    raise
                except BaseException as raised:  # noqa: BLE001 - anything else a tool raises becomes a value
                    if questions := _find_questions(raised):
                        return Interrupted(call, questions)
                    error = find_interruption(raised) or normalise(raised)
                finally:
                    if deadline is not None:
                        deadlines.stop(deadline)
            if not isinstance(error, ToolError):
                admitted.bind_again()
                asked, waits_since = asked + 1, perf_counter()
                reply = await self._ask_running(admitted, error, scope, asked)
                if isinstance(reply, Interrupted):
                    return reply
                began += perf_counter() - waits_since  # the user's time is not the tool's
                if not isinstance(reply, ToolError):
                    answered, error = reply, None
                    continue
                error = reply
            final = await self._prepare_retry(admitted, entry, error, attempt, observe)
            if final is not None:
                try:
                    return Failed(call, final, True, perf_counter() - began, attempt)
                finally:  # its traceback leads to this frame: a cycle
                    error = final = failed = None
            attempt, error = attempt + 1, None

    async def _prepare_retry(
        self, admitted: Admitted, entry: ToolEntry, error: ToolError, attempt: int, observe: Observe | None
    ) -> ToolError | None:
        """Wait until a failed call may run again; return the error that it ends with if it may not."""
        wait_seconds = self.retry.find_excessive_wait(error)
        if wait_seconds is not None:
            error = error.with_message(f"{error.message} (asked to wait {wait_seconds:g} s, too long to retry)")
        hopeless = wait_seconds is not None or not self.retry.should_retry(error, attempt, entry.annotations)
        if hopeless or is_cancelling():
            return _add_attempts(error, attempt)
        delay = self.retry.delay(error, attempt)
        if observe is not None:
            observe(CallRetried(admitted.call, error, attempt, delay))
        await self.clock.sleep(delay)
        admitted.bind_again()
        if admitted.hold is not None:  # the attempt before may have left a thread behind, which counts too
            try:
                await admitted.hold.take()
            except ToolFailed as refused:
                return refused
        return None

    async def _ask_running(
        self, admitted: Admitted, raised: Interruption, scope: AskingScope, asked: int
    ) -> tuple[Question, Approve] | Interrupted | ToolError:
        """Ask the user what a running tool wants to know; an error means no."""
        if asked > _MAX_ASKED:
            return ToolFailed(f"the tool asked {_MAX_ASKED} times and was not content: {raised.reason}")
        try:
            return await scope.ask_running(admitted, raised)
        except ToolError as error:
            return error

    def report_abandoned(self, admitted: Admitted, grace_seconds: float, observe: Observe | None) -> None:
        """Report a tool that was left behind: to operators, and by its outcome."""
        admitted.abandoned = True
        _log.warning("the tool %s ignored its cancellation for %g s and was abandoned", admitted.name, grace_seconds)
        if observe is not None:
            observe(CallAbandoned(admitted.call, grace_seconds))

    def finish_cancelled(self, admitted: Admitted, *, started: bool, observe: Observe | None) -> Outcome:
        """Finish a call that was cancelled from outside."""
        if admitted.hold is not None and not admitted.hold.taken:  # it waited for a place among the calls of its tool
            started = admitted.resumed
        effect = "it had started, so it may have had an effect" if started else "it had not started"
        if admitted.abandoned:
            effect = f"it ignored the cancellation and was abandoned; {effect}"
        outcome = Failed(admitted.call, Cancelled(f"stopped before it was done; {effect}"), started=started)
        return self.finish(admitted, outcome, observe)

    def finish(self, admitted: Admitted, outcome: Outcome, observe: Observe | None) -> Outcome:
        """Clip the outcome, count it and report it: the last step of every call, taken once."""
        if admitted.finished:  # a cancelled tool that ended after its turn was over
            return outcome
        admitted.finished = True
        entry, whole = admitted.entry, outcome
        if entry is not None:
            content = outcome.output.content if type(outcome) is Completed else None
            if type(content) is not str or len(content) > entry.limits.output_chars:  # most outputs are short texts
                outcome = self._clip(entry, outcome, entry.limits.output_chars)
        if admitted.edited_by or admitted.repairs:
            outcome = _tell_changes(admitted, outcome)
        self.stats.record(admitted.name, outcome)
        if observe is not None:
            observe(make_constructor(CallEnded)(outcome, admitted.call, "" if entry is None else entry.name))
        if outcome is whole or entry is None or not admitted.output_chars:
            return outcome
        # what made the call reads the output as data: longer than a model does, and without notes for a model
        data = self._clip(entry, whole, max(admitted.output_chars, entry.limits.output_chars))
        if isinstance(outcome, Completed) and isinstance(data, Completed):
            return replace(outcome, output=data.output)
        return _tell_changes(admitted, data)

    def run_after_hooks(
        self, admitted: Admitted, outcome: Outcome, turn_id: str, deadlines: Deadlines
    ) -> "Outcome | Showing":
        """Show the outcome to the after-hooks; return it, or what must be awaited for it."""
        return self._show_outcome(self.hooks, admitted, outcome, turn_id, deadlines) if self.hooks else outcome

    def _clip(self, entry: ToolEntry, outcome: Outcome, chars: int) -> Outcome:
        """Cut an output or message to a limit; the whole output stays readable in a file."""
        if isinstance(outcome, Completed):
            clipped = self.outputs.clip(outcome.output, chars, readable=entry.name != READER)
            return outcome if clipped is outcome.output else replace(outcome, output=clipped)
        return clip_failed(outcome, chars) if isinstance(outcome, Failed) else outcome


def complete(call: ToolCall, value: object, seconds: float) -> Outcome:
    """Return the outcome of a call whose first attempt returned a value."""
    try:
        return _completed(call, _render(value), seconds, 1, ())
    except ToolError as error:
        return Failed(call, error, True, seconds, 1)


def _render(value: object) -> Output:
    """Return what the model is shown of a value; plain text needs no check."""
    return _output(value, None) if type(value) is str and value.isascii() else render(value)


def _tell_changes(admitted: Admitted, outcome: Outcome) -> Outcome:
    if not admitted.edited_by and not admitted.repairs:
        return outcome
    from callwright.executor.repair import tell_edit, tell_repairs  # loaded with the first change

    if admitted.edited_by:
        outcome = tell_edit(outcome, admitted.edited_by, admitted.arguments)
    return tell_repairs(outcome, admitted.repairs) if admitted.repairs else outcome


def _find_deadline(
    entry: ToolEntry, parent: ToolContext | None, deadlines: Deadlines, late: float = 0.0
) -> float | None:
    """Return when an attempt that began `late` seconds ago must end; an inner call has at most the outer one's time."""
    seconds = entry.limits.seconds
    when = None if seconds == inf else deadlines.now() + seconds - late
    if parent is not None and parent.deadline is not None:
        when = parent.deadline if when is None else min(when, parent.deadline)
    return when


def _find_grace(entry: ToolEntry, parent: ToolContext | None, deadlines: Deadlines) -> float:
    """Return how long a cancelled call may take to end: longer than the calls that it makes itself."""
    seconds = deadlines.grace_seconds
    if parent is not None:
        seconds *= _INNER_GRACE ** (parent.depth + 1)
    return 2 * seconds if entry.annotations.delegates else seconds


def find_interruption(raised: BaseException) -> Interruption | None:
    """Return what a tool asks for, also from a task group of its own; None if it failed."""
    leaves = list_leaves(raised)
    asked = [leaf for leaf in leaves if isinstance(leaf, (ApprovalRequired, AuthRequired))]
    return asked[0] if len(asked) == len(leaves) else None  # with the answer it runs again, and asks for the next


def _find_questions(raised: BaseException) -> tuple[Question, ...]:
    """Return the questions of calls inside that a tool waits for; none if it failed."""
    leaves = list_leaves(raised)
    needed = [leaf for leaf in leaves if isinstance(leaf, AnswersNeeded)]
    return tuple(question for leaf in needed for question in leaf.questions) if len(needed) == len(leaves) else ()


def _add_attempts(error: ToolError, attempts: int) -> ToolError:
    """Say in the message how often the call was tried, if more than once."""
    return error.with_message(f"{error.message} (tried {attempts} times)") if attempts > 1 else error


def make_timeout(seconds: float, *, inherited: bool = False, abandoned: bool = False) -> TimedOut:
    """Make the error of a call that used up its own time, or that of the call it is part of."""
    limit = "before the time of the call it is part of was up" if inherited else f"within its limit of {seconds:g} s"
    end = "it ignored the cancellation and was abandoned" if abandoned else "it was stopped or abandoned"
    return TimedOut(f"not done {limit}; {end}, and may have had an effect")
