"""The second half of a call: runs what was admitted, and turns whatever happens into an outcome.

run (deadline, retries) ─► normalise ─► after-hooks ─► clip
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from time import perf_counter

from callwright.clip import READER, Outputs, clip_text
from callwright.core._fast import maker
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.errors import ApprovalRequired, AuthRequired, Cancelled, Crashed, TimedOut, ToolError, ToolFailed
from callwright.core.events import CallBegan, CallEnded, CallRetried, Event
from callwright.executor.admit import Admitted, Lane, pending_call
from callwright.executor.deadlines import Deadlines, being_cancelled
from callwright.hooks.base import Hook
from callwright.retry import Clock, RetryPolicy, from_exception
from callwright.stats import Stats
from callwright.tool.base import Scope, ToolContext
from callwright.tool.render import render

Observe = Callable[[Event], None]
_completed = maker(Completed)
_output = maker(Output)


class Runner:
    """Performs admitted calls; never raises for anything a tool or hook did."""

    def __init__(
        self, hooks: Sequence[Hook], *, retry: RetryPolicy, clock: Clock, stats: Stats, outputs: Outputs
    ) -> None:
        self.retry = retry
        self.clock = clock
        self.stats = stats
        self.outputs = outputs
        self.hooks = tuple(hook for hook in hooks if type(hook).after is not Hook.after)

    async def perform(
        self,
        admitted: Admitted,
        scope: Scope,
        deadlines: Deadlines,
        observe: Observe | None = None,
        parent: ToolContext | None = None,
    ) -> Outcome:
        """Bring an admitted call to its outcome; only a cancellation from outside passes through."""
        if admitted.error is not None:
            outcome: Outcome = Failed(admitted.call, admitted.error)
        elif admitted.answered is not None:
            outcome = Completed(admitted.call, admitted.answered, attempts=0)
        else:
            if observe is not None:
                observe(CallBegan(admitted.call))
            outcome = await self.attempt(admitted, scope, deadlines, observe, parent)
        if self.hooks and admitted.lane is not None:
            outcome = await self._polish(admitted, outcome, scope.turn_id, deadlines)
        return self.finish(admitted, outcome, observe)

    async def attempt(
        self,
        admitted: Admitted,
        scope: Scope,
        deadlines: Deadlines,
        observe: Observe | None = None,
        parent: ToolContext | None = None,
        failed: tuple[ToolError, float] | None = None,
    ) -> Outcome:
        """Run the tool until it succeeds or trying again is no use; `failed` is how and when a first attempt went."""
        call, lane, invocation = admitted.call, admitted.known, admitted.invocation
        error, began = failed or (None, perf_counter())
        attempt = 1
        while True:
            if error is None:
                context = _context(call, lane, scope, deadlines, attempt, parent)
                deadline = None if context.deadline is None else deadlines.start(context.deadline)
                try:
                    value = await invocation.run(context)  # type: ignore[union-attr] - an admitted call is bound
                    output = _output(value, None) if type(value) is str and value.isascii() else render(value)
                    return _completed(call, output, perf_counter() - began, attempt)
                except asyncio.CancelledError as stopped:
                    if deadline is not None and deadline.caused():
                        error = overdue(lane.limits.seconds, inherited=_inherited(context))
                    elif being_cancelled():
                        raise
                    else:
                        error = normalise(stopped)
                except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever a tool raises becomes a value
                    error = normalise(raised)
                finally:
                    if deadline is not None:
                        deadlines.stop(deadline)
            if not self.retry.again(error, attempt, lane.annotations):
                return Failed(call, _told(error, attempt), True, perf_counter() - began, attempt)
            await self._pause(call, error, attempt, observe)
            attempt, error = attempt + 1, None

    async def _pause(self, call: ToolCall, error: ToolError, attempt: int, observe: Observe | None) -> None:
        delay = self.retry.delay(error, attempt)
        if observe is not None:
            observe(CallRetried(call, error, attempt, delay))
        await self.clock.sleep(delay)

    def rendered(self, call: ToolCall, value: object, seconds: float) -> Outcome:
        """The outcome of a first attempt that gave a value."""
        try:
            return Completed(call, render(value), seconds, 1)
        except ToolError as error:
            return Failed(call, error, True, seconds, 1)

    def cancelled(self, admitted: Admitted, *, started: bool, observe: Observe | None = None) -> Outcome:
        """The outcome of a call that was stopped from outside."""
        said = "it had started, so it may have had an effect" if started else "it had not started"
        outcome = Failed(admitted.call, Cancelled(f"stopped before it was done; {said}"), started=started)
        return self.finish(admitted, outcome, observe)

    def finish(self, admitted: Admitted, outcome: Outcome, observe: Observe | None) -> Outcome:
        """Cut the outcome to size, count it and tell about it: the last thing that happens to every call, once."""
        if admitted.finished:  # its turn went on without it
            return outcome
        admitted.finished = True
        if admitted.lane is not None:
            outcome = self._fit(admitted.lane, outcome)
        self.stats.record(admitted.name, outcome)
        if observe is not None:
            observe(CallEnded(outcome))
        return outcome

    async def _polish(self, admitted: Admitted, outcome: Outcome, turn_id: str, deadlines: Deadlines) -> Outcome:
        pending = pending_call(admitted, turn_id)
        for hook in self.hooks:
            try:
                outcome = _replaced(outcome, await deadlines.limit(hook.seconds, hook.after(pending, outcome)))
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - a hook's failure is its call's failure
                error = Crashed(f"the output is withheld: the hook {type(hook).__name__} failed ({_named(raised)})")
                error.__cause__ = raised
                started = isinstance(outcome, Completed) or (isinstance(outcome, Failed) and outcome.started)
                return Failed(admitted.call, error, started=started)
        return outcome

    def _fit(self, lane: Lane, outcome: Outcome) -> Outcome:
        """Cut what is longer than the tool's limit; the whole stays readable."""
        chars = lane.limits.output_chars
        if isinstance(outcome, Completed):
            content = outcome.output.content
            if isinstance(content, str) and len(content) <= chars:
                return outcome
            fitting = self.outputs.clip(outcome.output, chars, readable=lane.name != READER)
            return outcome if fitting is outcome.output else replace(outcome, output=fitting)
        if isinstance(outcome, Failed) and len(outcome.error.message) > chars:
            note = f"[{len(outcome.error.message)} characters in all]"
            return replace(outcome, error=outcome.error.reworded(clip_text(outcome.error.message, chars, note)))
        return outcome


def _replaced(outcome: Outcome, said: object) -> Outcome:
    """What an after-hook made of an outcome; whatever it is, it stays that of its own call."""
    match said:
        case None:
            return outcome
        case Completed(output=Output()) | Failed(error=ToolError()):
            return said if said.call is outcome.call else replace(said, call=outcome.call)
        case _:
            raise TypeError(f"it returned {type(said).__name__}, which is no finished outcome")


def _context(
    call: ToolCall, lane: Lane, scope: Scope, deadlines: Deadlines, attempt: int, parent: ToolContext | None
) -> ToolContext:
    """What the tool sees of this attempt; inside another tool its time is the outer one's at most."""
    seconds = lane.limits.seconds
    when = None if seconds == inf else deadlines.now() + seconds
    if parent is not None and parent.deadline is not None:
        when = parent.deadline if when is None else min(when, parent.deadline)
    return ToolContext(call, scope, attempt, when, parent)


def normalise(raised: BaseException) -> ToolError:
    """Make a `ToolError` of anything raised; the cause stays attached for operators."""
    if isinstance(raised, ToolError):
        return raised
    if isinstance(raised, (ApprovalRequired, AuthRequired)):
        error: ToolError = ToolFailed(f"{raised.reason}; asked too late, because the tool was running already")
    elif isinstance(raised, TimeoutError):
        error = TimedOut(
            f"the tool ran into a time-out of its own: {raised}" if str(raised) else "time-out in the tool"
        )
    else:
        error = from_exception(raised) or Crashed(_named(raised))
    error.__cause__ = raised
    return error


def _named(raised: BaseException) -> str:
    return f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__


def _told(error: ToolError, attempt: int) -> ToolError:
    """The last of several attempts says how many there were."""
    return error.reworded(f"{error.message} (tried {attempt} times)") if attempt > 1 else error


def _inherited(context: ToolContext) -> bool:
    return context.parent is not None and context.deadline == context.parent.deadline


def overdue(seconds: float, *, inherited: bool = False) -> TimedOut:
    """What a call that used up its time is told."""
    whose = "before the time of the call it is part of was up" if inherited else f"within its limit of {seconds:g} s"
    return TimedOut(f"not done {whose}; it was stopped or abandoned, and may have had an effect")
