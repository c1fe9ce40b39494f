"""What a run may cost, and what it has cost so far."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from callwright.agent.results import StopKind
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.errors import UsageError
from callwright.core.messages import Usage
from callwright.providers.pricing import Prices


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may take; a limit that is reached is a result, not an error. None means no limit."""

    turns: int = 50
    tokens: int | None = None
    money: float | None = None
    """In the currency of `prices`, which must be given with it."""
    seconds: float | None = None
    """Wall time; also ends a request or a batch of calls that is under way."""
    same_failures: int | None = 5
    """How often in a row the same call, with the same arguments, may fail."""
    same_calls: int | None = 50
    """How often in a row the same call may give the same outcome: asking again and again is how one waits."""
    prices: Prices | None = None

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise UsageError(f"RunLimits.turns must be at least 1, not {self.turns!r}")
        if self.money is not None and self.prices is None:
            raise UsageError("RunLimits.money needs RunLimits.prices: Prices(input=…, output=…) per million tokens")


class Spending:
    """What one run has taken, held against its budget."""

    __slots__ = ("_counts", "_fields", "budget", "cost", "deadline", "tokens", "turns")

    def __init__(self, budget: RunLimits) -> None:
        self.budget = budget
        self.turns = 0
        self.tokens = 0
        self.cost = 0.0
        """In the currency of the budget's prices; nothing where it has none."""
        self._fields = (0, 0, 0, 0)
        self.deadline = None if budget.seconds is None else monotonic() + budget.seconds
        self._counts: dict[tuple[str, str], tuple[str, int]] = {}

    @property
    def known_cost(self) -> float | None:
        """The cost, where it is known."""
        return None if self.budget.prices is None else self.cost

    @property
    def usage(self) -> Usage:
        """What the run's requests came to."""
        return Usage(*self._fields)

    def add(self, usage: Usage, *, whole_run: bool = False) -> None:
        """Count what a request came to, or all those of another run."""
        if (prices := self.budget.prices) is not None:
            self.cost += prices.cost(usage) if whole_run else prices.request_cost(usage)
        fresh, said, read, written = self._fields
        self._fields = (
            fresh + usage.input_tokens,
            said + usage.output_tokens,
            read + usage.cache_read_tokens,
            written + usage.cache_write_tokens,
        )
        self.tokens = sum(self._fields)

    def exceeded(self) -> tuple[StopKind, str] | None:
        """Which limit has been reached, in words, before another turn begins."""
        budget = self.budget
        if self.turns >= budget.turns:
            return "turns", f"the limit of {budget.turns} turn{'' if budget.turns == 1 else 's'} is reached"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return "tokens", f"the limit of {budget.tokens} tokens is reached: {self.tokens} were used"
        if budget.money is not None and self.cost >= budget.money:
            return "money", f"the limit of {budget.money:g} is reached: {self.cost:.4f} was spent"
        if self.deadline is not None and monotonic() >= self.deadline:
            return "seconds", f"the limit of {budget.seconds:g} s is reached"
        return None

    def repeated(self, outcomes: Sequence[Completed | Failed]) -> str | None:
        """Count a turn's outcomes; say so where the model goes round in circles.

        Counted by tool and arguments: call ids are new every time. A call that is not made in a turn is forgotten.
        """
        seen: dict[tuple[str, str], tuple[str, int]] = {}
        said: str | None = None
        for outcome in outcomes:
            key, text = (outcome.call.name, _arguments_text(outcome.call)), outcome.text
            before, count = self._counts.get(key, ("", 0))
            count = count + 1 if text == before else 1
            seen[key] = (text, count)
            failed = isinstance(outcome, Failed)
            limit = self.budget.same_failures if failed else self.budget.same_calls
            if limit is not None and count >= limit:
                said = f"{outcome.call.name} was called {count} times in a row with the same arguments and " + (
                    f"failed each time: {text}" if failed else "gave the same outcome"
                )
        self._counts = seen
        return said


def _arguments_text(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    if isinstance(call.arguments, bytes):
        return call.arguments.decode(errors="replace")
    return json.dumps(call.arguments, sort_keys=True, default=str)
