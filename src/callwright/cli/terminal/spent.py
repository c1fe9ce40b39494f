"""What a session has taken so far: tokens, money where prices are known, and how full the context is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from callwright.agent.budget import Prices
from callwright.app.costs import cost_of_records
from callwright.core.message import Usage
from callwright.sessions.records import Record, usage_of


@dataclass(slots=True)
class Spent:
    """Adds up run by run; money at the prices of the model that took it."""

    usage: Usage = Usage()
    usd: float | None = None
    context_tokens: int = 0
    _running: Usage = Usage()
    _running_usd: float | None = None

    def recall(self, records: Sequence[Record], prices_of: Callable[[str], Prices | None]) -> None:
        """Begin with what the session took before."""
        self.usage, cost = usage_of(records), cost_of_records(records, prices_of)
        self.usd = None if cost.unpriced_tokens and not cost.usd else cost.usd

    def count(self, usage: Usage, usd: float | None) -> None:
        """What the run that is under way came to so far."""
        self._running, self._running_usd = usage, usd

    def settle(self, usage: Usage, usd: float | None) -> None:
        """A run has come to its end with this."""
        self.count(usage, usd)
        self.usage += self._running
        if self._running_usd is not None:
            self.usd = (self.usd or 0.0) + self._running_usd
        self._running, self._running_usd = Usage(), None

    def told(self, room_tokens: int) -> list[str]:
        """The parts of a status line; what is not known is not mentioned."""
        parts: list[str] = []
        if self.context_tokens:
            share = f" ({self.context_tokens / room_tokens:.0%})" if room_tokens else ""
            parts.append(f"{self.context_tokens / 1000:.1f}k context{share}")
        if self.usd is not None or self._running_usd is not None:
            parts.append(f"${(self.usd or 0.0) + (self._running_usd or 0.0):.2f}")
        return parts
