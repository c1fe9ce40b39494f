"""The live rows and the status line: progress of running calls, and the session's tokens and cost."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from callwright.agent.run_limits import Prices
from callwright.app.costs import cost_of_records
from callwright.cli.render.calls import ShownProgress, call_line
from callwright.cli.render.text import Palette, cut, visible_line, width_of
from callwright.cli.terminal.frame import LOADING
from callwright.cli.terminal.ui import Terminal
from callwright.core.calls import ToolCall
from callwright.core.content import tokens_for
from callwright.core.messages import Usage
from callwright.sessions.records import Record, sum_usage
from callwright.toolbox.todo import TodoItem

_MOST_ROWS = 8
_LEAST_COLUMNS = 24
"""The minimum width of a progress report."""


@dataclass(slots=True)
class _Run:
    call: ToolCall
    progress: ShownProgress = field(default_factory=ShownProgress)
    started: float = field(default_factory=time.monotonic)


class RunningCalls:
    """Renders one row for each running call, with its progress and duration."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._runs: dict[str, _Run] = {}

    def add(self, call: ToolCall) -> None:
        """Add a call that has started."""
        self._runs[call.id] = _Run(call)

    def report(self, call: ToolCall, report: object) -> None:
        """Store a call's latest progress report; reports after its end are ignored."""
        if call.id in self._runs:
            self._runs[call.id].progress = ShownProgress.read(report)

    def remove(self, call: ToolCall) -> None:
        """Remove a call that has ended."""
        self._runs.pop(call.id, None)

    def clear(self) -> None:
        """Remove all calls."""
        self._runs.clear()

    def rows(self, width: int) -> list[str]:
        """Return one row per call, none wider than `width`; calls beyond the first few are counted in the last row."""
        runs = list(self._runs.values())
        shown = [self._row(run, width) for run in runs[:_MOST_ROWS]]
        more = len(runs) - _MOST_ROWS
        return [*shown, self._palette.paint(f"  … and {more} more are running", "dim")] if more > 0 else shown

    def _row(self, run: _Run, width: int) -> str:
        seconds = time.monotonic() - run.started
        progress = run.progress.line(seconds, max(width // 2, _LEAST_COLUMNS))
        name = call_line(run.call, width - 3 - (width_of(progress) + 3 if progress else 0))
        more = self._palette.paint(f" · {progress}", "dim") if progress else ""
        return f"{self._palette.paint('●', 'yellow')} {name}{more}"


_MOST_TODOS = 10
_TODO_MARKS = {"pending": "☐", "in_progress": "▸", "completed": "☑"}
_TODO_STYLES = {"pending": "", "in_progress": "bold", "completed": "dim"}


class TodoRows:
    """Renders the model's list of steps, which is redrawn in place while the model works."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self.items: Sequence[TodoItem] = ()
        self.changed = False
        """Whether the list changed since it was last left on the screen."""

    def update(self, items: Sequence[TodoItem]) -> None:
        """Set the list."""
        self.changed = self.changed or items != self.items
        self.items = items

    def rows(self, width: int, most: int = _MOST_TODOS) -> list[str]:
        """Return the steps; of a long list, those around the first that is not done."""
        if not self.items:
            return []
        done = sum(item.status == "completed" for item in self.items)
        current = next((at for at, item in enumerate(self.items) if item.status != "completed"), 0)
        first = max(0, min(current - 2, len(self.items) - most))
        shown = [self._row(item, width) for item in self.items[first : first + most]]
        more = f" · {len(self.items) - len(shown)} more" if len(self.items) > len(shown) else ""
        return [self._palette.paint(f"todo: {done} of {len(self.items)} done{more}", "dim"), *shown]

    def _row(self, item: TodoItem, width: int) -> str:
        text = cut(f"  {_TODO_MARKS[item.status]} {visible_line(item.content)}", width)
        return self._palette.paint(text, _TODO_STYLES[item.status])


_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 5


class WaitingRow:
    """Renders the row that shows that the model is at work: a spinner, the elapsed time and the tokens so far."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._started: float | None = None
        self._chars = 0
        self.context_tokens = 0
        """The size of the request, if it is known."""

    def start(self) -> None:
        """Start to count: a request was sent to the model."""
        self._started, self._chars = time.monotonic(), 0

    def stop(self) -> None:
        """Show nothing from now on."""
        self._started = None

    def add(self, text: str) -> None:
        """Count a piece of the model's message."""
        self._chars += len(text)

    def row(self, width: int) -> list[str]:
        """Return the row, or none if the program does not wait for the model."""
        if self._started is None:
            return []
        seconds = time.monotonic() - self._started
        sign = _SPINNER[int(seconds * _FRAMES_PER_SECOND) % len(_SPINNER)]
        parts = ["waiting for the model", f"{int(seconds)} s"]
        parts += [f"{self.context_tokens / 1000:.1f}k tokens in"] if self.context_tokens else []
        parts += [f"about {tokens_for(self._chars)} tokens out"] if self._chars else []
        return [self._palette.paint(cut(f"{sign} {' · '.join(parts)}", width), "dim")]


def show_loading(terminal: Terminal, waiting: str) -> None:
    """Show in the status line what the program waits for before it is ready; empty for nothing in particular."""
    terminal.status = f"{LOADING} {visible_line(waiting)}".rstrip()
    terminal.refresh()
    if waiting and terminal.scrolls_only:  # no status line
        terminal.show(f"! {visible_line(waiting)}")


@dataclass(slots=True)
class SessionUsage:
    """Tokens and cost of a session, added up run by run at the prices of the model of each run."""

    usage: Usage = Usage()
    usd: float | None = None
    context_tokens: int = 0
    _running_usd: float | None = None

    def load(self, records: Sequence[Record], prices_of: Callable[[str], Prices | None]) -> None:
        """Start from the usage in a session's records."""
        self.usage, cost = sum_usage(records), cost_of_records(records, prices_of)
        free = self.usage.total and not cost.unpriced_tokens  # of a session without tokens no price is known
        self.usd = cost.usd if cost.usd or free else None

    def update_run(self, usd: float | None) -> None:
        """Set the cost of the current run so far."""
        self._running_usd = usd

    def finish_run(self, usage: Usage, usd: float | None) -> None:
        """Add the usage of a run that has ended."""
        self.usage += usage
        if usd is not None:
            self.usd = (self.usd or 0.0) + usd
        self._running_usd = None

    def status_parts(self, context_tokens_limit: int) -> list[str]:
        """Return the parts of the status line that are known: context size and cost."""
        parts: list[str] = []
        if self.context_tokens:
            share = f" ({self.context_tokens / context_tokens_limit:.0%})" if context_tokens_limit else ""
            parts.append(f"{self.context_tokens / 1000:.1f}k context{share}")
        if self.usd is not None or self._running_usd is not None:
            parts.append(f"${(self.usd or 0.0) + (self._running_usd or 0.0):.2f}")
        return parts
