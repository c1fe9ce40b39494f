"""A hook that says what it was told to say."""

from collections.abc import Callable

from callwright.core.call import Outcome
from callwright.hooks.base import Hook, PendingCall, Verdict


class ScriptedHook(Hook):
    """Answers `before` with a verdict and `after` with a function's outcome, and remembers what it saw."""

    def __init__(
        self,
        verdict: Verdict | Callable[[PendingCall], Verdict | None] | None = None,
        after: Callable[[PendingCall, Outcome], Outcome | None] | None = None,
    ) -> None:
        self._verdict = verdict
        self._after = after
        self.saw: list[PendingCall] = []
        self.outcomes: list[Outcome] = []

    async def before(self, pending: PendingCall) -> Verdict | None:
        self.saw.append(pending)
        return self._verdict(pending) if callable(self._verdict) else self._verdict

    async def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        self.outcomes.append(outcome)
        return None if self._after is None else self._after(pending, outcome)
