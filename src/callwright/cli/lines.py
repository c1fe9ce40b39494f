"""Calls as lines on a screen: when they start, how they end, and what they changed."""

from collections.abc import Iterator

from callwright.cli.columns import cut, filled, visible
from callwright.cli.palette import Palette
from callwright.cli.show import call_line, one_line, outcome_line
from callwright.core.call import Completed, Failed, Outcome, ToolCall
from callwright.core.errors import Denied

_NOW = "\n\nnow:\n"
_EXIT_CODE = "exit code: "
_MOST_DIFF_LINES = 40
_MOST_REASON_ROWS = 4
_SLOW_SECONDS = 1.0


class CallLines:
    """Makes the lines, as wide as the screen is."""

    def __init__(self, palette: Palette, width: int = 80) -> None:
        self._palette = palette
        self.width = width

    def began(self, call: ToolCall) -> str:
        """The line for a call that is running."""
        return f"{self._palette.paint('●', 'yellow')} {call_line(call, self.width - 4)}"

    def ended(self, outcome: Outcome) -> list[str]:
        """The lines for a call that has ended: what came of it, of a denial the whole reason, of an edit the diff."""
        if not isinstance(outcome, (Completed, Failed)):
            return [f"? {call_line(outcome.call, self.width - 4)}"]
        worked = isinstance(outcome, Completed)
        mark = self._palette.paint("●", "green") if worked else self._palette.paint("✗", "red")
        slow = f" ({outcome.seconds:.1f} s)" if outcome.seconds >= _SLOW_SECONDS else ""
        first = f"{mark} {call_line(outcome.call, self.width - 4 - len(slow))}{slow}"
        diff = list(self._diff(outcome.text)) if worked else []
        rows = self._told(outcome, self.width - 6)
        return [first, *(diff or [f"  {self._palette.paint(row, *(() if worked else ('red',)))}" for row in rows])]

    def _told(self, outcome: Completed | Failed, room: int) -> list[str]:
        if isinstance(outcome, Failed) and isinstance(outcome.error, Denied):
            return filled(outcome_line(outcome, room * _MOST_REASON_ROWS), room)  # with the rule, and where it is
        lines = [line for line in outcome.text.splitlines() if any(map(str.isalnum, line))]
        if len(lines) > 1 and lines[-1].startswith(_EXIT_CODE):  # what a command said last tells more than its first
            return [one_line(" · ".join(lines[-2:]), room)]
        return [outcome_line(outcome, room)]

    def _diff(self, text: str) -> Iterator[str]:
        changed, found, _ = text.partition(_NOW)
        start = changed.find("--- ")
        if not found or start < 0:
            return
        lines = visible(changed[start:]).splitlines()[2:]
        for line in lines[:_MOST_DIFF_LINES]:
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            shown = cut(line.replace("\t", "    "), self.width - 2)
            yield f"  {self._palette.paint(shown, style) if style else shown}"
        if len(lines) > _MOST_DIFF_LINES:
            yield f"  … {len(lines) - _MOST_DIFF_LINES} more lines"
