"""The calls that are running: one row each, with how far they are and how long they have taken."""

import time
from dataclasses import dataclass, field

from callwright.cli.columns import width_of
from callwright.cli.palette import Palette
from callwright.cli.progress import Progress
from callwright.cli.show import call_line
from callwright.core.call import ToolCall

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
