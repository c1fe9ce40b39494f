"""Fakes: a clock that does not wait, a scripted hook and provider, tools that fail or count, a recorder of events.

`ScriptedProvider` is defined in `callwright.providers`, where it is available as the model `script:FILE`.
"""

import asyncio
from collections.abc import Callable, Sequence

from callwright.core.access import Access, ReadPath, WritePath
from callwright.core.calls import Outcome
from callwright.core.spec import Annotations, Effect, Limits
from callwright.hooks.base import Hook, PendingCall, Verdict
from callwright.providers.scripted import BrokenOff, Line, Script, ScriptedProvider
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe


class FakeClock:
    """A clock that records sleeps instead of waiting."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Record the sleep and return after other tasks had a turn."""
        self.slept.append(seconds)
        await asyncio.sleep(0)  # a retry loop that never yields would block the tasks it waits for


class ScriptedHook(Hook):
    """A hook with fixed results that records its calls.

    Args:
        verdict: Returned by `before`, or a function that returns it.
        after: Returns the outcome that replaces the one given to `after`.
    """

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


__all__ = ["BrokenOff", "Line", "Script", "ScriptedProvider"]


class FlakyArguments(Arguments):
    """No arguments."""


class Flaky(TypedTool[FlakyArguments]):
    """A tool that raises the given errors one after the other, then succeeds."""

    spec = describe("flaky", "Fail a few times, then say ok.", effect=Effect.READ)

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.keys: list[str] = []
        """The idempotency key of each attempt."""

    async def run(self, arguments: FlakyArguments, context: ToolContext) -> str:
        self.keys.append(context.idempotency_key)
        if self._errors:
            raise self._errors.pop(0)
        return "ok"


class GaugeArguments(Arguments):
    """The accesses that the gauge declares."""

    reads: tuple[str, ...] = ()
    """Paths to declare as read."""
    writes: tuple[str, ...] = ()
    """Paths to declare as written."""
    label: str = ""
    """Recorded in the log at the start and the end."""


class Gauge(TypedTool[GaugeArguments]):
    """A tool that records how many of its calls run at once, and in which order.

    Args:
        turns: How many turns of the event loop a call takes.
    """

    spec = describe("gauge", "Take a moment and record who else is running.")

    def __init__(self, *, turns: int = 3) -> None:
        self._turns = turns
        self.running = 0
        self.peak = 0
        self.log: list[str] = []

    @classmethod
    def with_spec(cls, annotations: Annotations, limits: Limits = Limits(), name: str = "gauge") -> "Gauge":
        """Return a gauge with other annotations, limits or another name.

        Args:
            annotations: What the tool claims about itself.
            limits: Its limits.
            name: Its name.
        """

        class GaugeWithSpec(Gauge):
            spec = describe(
                name, "Take a moment and record who else is running.", annotations=annotations, limits=limits
            )

        return GaugeWithSpec()

    def accesses(self, arguments: GaugeArguments) -> Sequence[Access]:
        return [*(ReadPath(path) for path in arguments.reads), *(WritePath(path) for path in arguments.writes)]

    async def run(self, arguments: GaugeArguments, context: ToolContext) -> str:
        self.running += 1
        self.peak = max(self.peak, self.running)
        self.log.append(f"+{arguments.label}")
        try:
            for _ in range(self._turns):  # turns, not seconds: independent of the speed of the machine
                await asyncio.sleep(0)
        finally:
            self.running -= 1
            self.log.append(f"-{arguments.label}")
        return arguments.label


class Recorder:
    """An observer that keeps all events."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def __call__(self, event: object) -> None:
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        """The class names of the events, in order."""
        return [type(event).__name__ for event in self.events]
