"""The second half of a call: runs what was admitted, and turns whatever happens into an outcome.

run (deadline, retries) ─► normalise ─► after-hooks ─► clip
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from toolwright.clip import READER, Outputs, clip_text
from toolwright.core.call import Completed, Failed, Outcome
from toolwright.core.errors import ApprovalRequired, AuthRequired, Cancelled, Crashed, TimedOut, ToolError, ToolFailed
from toolwright.core.event import CallBegan, CallEnded, CallRetried, Event
from toolwright.executor.admit import Admitted, pending_call
from toolwright.executor.deadline import Deadlines
from toolwright.hooks.base import Hook, settled
from toolwright.retry import Clock, RetryPolicy, from_exception
from toolwright.stats import Stats
from toolwright.tool.base import Scope, ToolContext
from toolwright.tool.render import render

Observe = Callable[[Event], None]


class Runner:
    """Performs admitted calls; never raises for anything a tool or hook did."""

    def __init__(
        self, hooks: Sequence[Hook], *, retry: RetryPolicy, clock: Clock, stats: Stats, outputs: Outputs
    ) -> None:
        self.retry = retry
        self.clock = clock
        self.stats = stats
        self.outputs = outputs
        self._after = tuple(hook for hook in hooks if type(hook).after is not Hook.after)

    async def perform(
        self,
        admitted: Admitted,
        scope: Scope,
        deadlines: Deadlines,
        observe: Observe | None = None,
        parent: ToolContext | None = None,
    ) -> Outcome:
        """Bring an admitted call to its outcome. A cancellation from outside passes through after being recorded."""
        if admitted.error is not None:
            outcome: Outcome = Failed(admitted.call, admitted.error)
        elif admitted.answered is not None:
            outcome = Completed(admitted.call, admitted.answered, attempts=0)
        else:
            if observe is not None:
                observe(CallBegan(admitted.call))
            outcome = await self._run(admitted, scope, deadlines, observe, parent)
        if self._after and admitted.tool is not None:
            outcome = await self._polish(admitted, outcome, scope.turn_id)
        return self._finish(admitted, self._fit(admitted, outcome), observe)

    def cancelled(self, admitted: Admitted, *, started: bool, observe: Observe | None = None) -> Outcome:
        """The outcome of a call that was stopped from outside."""
        said = "it had started, so it may have had an effect" if started else "it had not started"
        outcome = Failed(admitted.call, Cancelled(f"stopped before it was done; {said}"), started=started)
        return self._finish(admitted, outcome, observe)

    def _finish(self, admitted: Admitted, outcome: Outcome, observe: Observe | None) -> Outcome:
        name = admitted.call.name if admitted.tool is None else admitted.spec.name
        self.stats.record(name, outcome)
        if observe is not None:
            observe(CallEnded(outcome))
        return outcome

    async def _run(
        self,
        admitted: Admitted,
        scope: Scope,
        deadlines: Deadlines,
        observe: Observe | None,
        parent: ToolContext | None,
    ) -> Outcome:
        began = perf_counter()
        attempt = 1
        while True:
            try:
                value = await self._attempt(admitted, scope, deadlines, attempt, parent)
                return Completed(admitted.call, render(value), perf_counter() - began, attempt)
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever a tool raises becomes a value
                error = normalise(raised)
            if not self.retry.again(error, attempt, admitted.annotations):
                return Failed(admitted.call, _told(error, attempt), True, perf_counter() - began, attempt)
            delay = self.retry.delay(error, attempt)
            if observe is not None:
                observe(CallRetried(admitted.call, error, attempt, delay))
            await self.clock.sleep(delay)
            attempt += 1

    async def _attempt(
        self, admitted: Admitted, scope: Scope, deadlines: Deadlines, attempt: int, parent: ToolContext | None
    ) -> object:
        seconds = admitted.limits.seconds
        when = deadlines.now() + seconds
        depth, holding = 0, ()
        if parent is not None:
            when = when if parent.deadline is None else min(when, parent.deadline)
            depth, holding = parent.depth + 1, (*parent.holding, admitted.spec.name)
        context = ToolContext(admitted.call, scope, attempt=attempt, depth=depth, deadline=when, holding=holding)
        invocation = admitted.invocation
        if invocation is None:
            raise Crashed("the call was never bound to a tool")
        deadline = deadlines.start(when)
        try:
            return await invocation.run(context)
        except asyncio.CancelledError:
            if deadline.caused():
                raise TimedOut(_overdue(seconds, when - deadlines.now(), parent)) from None
            raise
        finally:
            deadlines.stop(deadline)

    async def _polish(self, admitted: Admitted, outcome: Outcome, turn_id: str) -> Outcome:
        pending = pending_call(admitted, turn_id)
        for hook in self._after:
            try:
                async with asyncio.timeout(hook.seconds):
                    outcome = await settled(hook.after(pending, outcome)) or outcome
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - a hook's failure is its call's failure
                error = Crashed(f"the output is withheld: the hook {type(hook).__name__} failed ({_named(raised)})")
                error.__cause__ = raised
                started = isinstance(outcome, Completed) or (isinstance(outcome, Failed) and outcome.started)
                return Failed(admitted.call, error, started=started)
        return outcome

    def _fit(self, admitted: Admitted, outcome: Outcome) -> Outcome:
        if admitted.tool is None:
            return outcome
        chars = admitted.limits.output_chars
        if isinstance(outcome, Completed):
            content = outcome.output.content
            if isinstance(content, str) and len(content) <= chars:
                return outcome
            fitting = self.outputs.clip(outcome.output, chars, readable=admitted.spec.name != READER)
            return outcome if fitting is outcome.output else replace(outcome, output=fitting)
        if isinstance(outcome, Failed) and len(outcome.error.message) > chars:
            note = f"[{len(outcome.error.message)} characters in all]"
            outcome.error.message = clip_text(outcome.error.message, chars, note)
        return outcome


def normalise(raised: BaseException) -> ToolError:
    """Make a `ToolError` of anything raised; the cause stays attached for operators."""
    if isinstance(raised, ToolError):
        return raised
    if isinstance(raised, (ApprovalRequired, AuthRequired)):
        error: ToolError = ToolFailed(f"{raised.reason}; asked too late, because the tool was running already")
    elif isinstance(raised, TimeoutError):
        error = TimedOut(f"the tool ran into a time-out of its own: {raised}" if str(raised) else "time-out in the tool")
    else:
        error = from_exception(raised) or Crashed(_named(raised))
    error.__cause__ = raised
    return error


def _named(raised: BaseException) -> str:
    return f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__


def _told(error: ToolError, attempt: int) -> ToolError:
    """The last of several attempts says how many there were."""
    if attempt > 1:
        error.message = f"{error.message} (tried {attempt} times)"
    return error


def _overdue(seconds: float, left: float, parent: ToolContext | None) -> str:
    whose = f"within its limit of {seconds:g} s" if parent is None or left <= 0 else "before the call it is part of"
    return f"not done {whose}; it was stopped or abandoned, and may have had an effect"
