"""The calls that are running: one row each, with how far they are and how long they have taken.

What a session has taken so far: tokens, money where prices are known, and how full the context is.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from callwright.agent.run_limits import Prices
from callwright.app.costs import cost_of_records
from callwright.cli.render.calls import Progress, call_line
from callwright.cli.render.text import Palette, width_of
from callwright.core.calls import ToolCall
from callwright.core.messages import Usage
from callwright.sessions.records import Record, sum_usage

_MOST_ROWS = 8
_LEAST_COLUMNS = 24
"""What a report needs to say anything."""


@dataclass(slots=True)
class _Run:
    call: ToolCall
    progress: Progress = field(default_factory=Progress)
    began: float = field(default_factory=time.monotonic)


class RunningCalls:
    """Knows what runs, and draws it; of a call that has ended nothing is left here."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._runs: dict[str, _Run] = {}

    def began(self, call: ToolCall) -> None:
        """A call is under way."""
        self._runs[call.id] = _Run(call)

    def progressed(self, call: ToolCall, report: object) -> None:
        """A call told something about itself; later than its end it does not count."""
        if call.id in self._runs:
            self._runs[call.id].progress = Progress.read(report)

    def ended(self, call: ToolCall) -> None:
        """A call is done."""
        self._runs.pop(call.id, None)

    def clear(self) -> None:
        """Nothing runs any more."""
        self._runs.clear()

    def rows(self, width: int) -> list[str]:
        """One row for each, none wider than that; beyond a handful the rest is counted."""
        runs = list(self._runs.values())
        shown = [self._row(run, width) for run in runs[:_MOST_ROWS]]
        more = len(runs) - _MOST_ROWS
        return [*shown, self._palette.paint(f"  … and {more} more are running", "dim")] if more > 0 else shown

    def _row(self, run: _Run, width: int) -> str:
        seconds = time.monotonic() - run.began
        told = run.progress.line(seconds, max(width // 2, _LEAST_COLUMNS))
        name = call_line(run.call, width - 3 - (width_of(told) + 3 if told else 0))
        more = self._palette.paint(f" · {told}", "dim") if told else ""
        return f"{self._palette.paint('●', 'yellow')} {name}{more}"


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
        self.usage, cost = sum_usage(records), cost_of_records(records, prices_of)
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
