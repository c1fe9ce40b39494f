"""Calls as lines on a screen: when they start, how they end, and what they changed.

How calls, outcomes and messages are shown to people: one line each, with nothing in them that hides.

How far a running call is, in one line: a bar where it reported numbers, its last words where it reported text.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from callwright.cli.render.text import Palette, cut, filled, visible, width_of
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import Part, Text
from callwright.core.errors import Denied
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage

_TELLING = ("command", "path", "file_path", "pattern", "url", "query", "name", "id")
_LINE_CHARS = 100


def one_line(text: str, chars: int = _LINE_CHARS) -> str:
    """The first line of a text, cut where it grows too long, with a mark where something was left out."""
    lines = visible(text).strip().splitlines()
    if not lines:
        return ""
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    first = lines[0].replace("\t", " ")
    return cut(first, chars - width_of(more)) + more


def tell(text: str) -> None:
    """Say something to the person on stderr; what of it others wrote, a terminal does not obey."""
    print(f"callwright: {visible(text)}", file=sys.stderr)


def arguments_of(call: ToolCall) -> Any:
    """A call's arguments as an object, or as the text the model wrote where that is none."""
    if not isinstance(call.arguments, (str, bytes)):
        return thaw(call.arguments)
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments if isinstance(call.arguments, str) else call.arguments.decode(errors="replace")


def call_line(call: ToolCall, chars: int = _LINE_CHARS) -> str:
    """A call as a person would say it: the tool and the one argument that tells."""
    read = arguments_of(call)
    if not isinstance(read, dict):
        return f"{call.name} {one_line(str(read), chars)}".strip()
    given = cast("dict[str, object]", read)
    told = next((given[key] for key in _TELLING if key in given), None)
    shown = str(told) if told is not None else json.dumps(given, ensure_ascii=False) if given else ""
    return f"{call.name} {one_line(shown, chars - len(call.name) - 1)}".strip()


def outcome_line(outcome: Completed | Failed, chars: int = _LINE_CHARS) -> str:
    """How a call ended, in one line."""
    if isinstance(outcome, Failed):
        return f"{outcome.error.code}: {one_line(outcome.text, chars - len(outcome.error.code) - 2)}"
    return one_line(outcome.text, chars) or "(no output)"


def transcript(messages: list[Message]) -> Iterator[str]:
    """A conversation as text, message by message."""
    for message in messages:
        match message:
            case UserMessage(content):
                yield f"> {visible(_said(content))}\n"
            case AssistantMessage():
                if message.text:
                    yield f"{visible(message.text)}\n"
            case ToolMessage(outcomes):
                for outcome in outcomes:
                    mark = "✗" if isinstance(outcome, Failed) else "●"
                    yield f"{mark} {call_line(outcome.call)}\n  {outcome_line(outcome)}\n"


def _said(content: str | tuple[Part, ...]) -> str:
    """What a person typed; files that were attached to it come after it and are named in it."""
    if isinstance(content, str):
        return content
    return next((part.text for part in content if isinstance(part, Text)), "")


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


_BAR_COLUMNS = 20
_DONE = ("progress", "done", "current", "completed")
_TOLD = ("message", "text", "status", "step")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a tool reported: a share of the whole if that is known, and words if there were some."""

    share: float | None = None
    text: str = ""

    @classmethod
    def read(cls, report: object) -> "Progress":
        """Understand a share from 0 to 1, a pair (done, total), an object with such fields, or anything as text."""
        match report:
            case Mapping():
                return _of_fields(cast("Mapping[str, object]", report))
            case (int() | float() as done, int() | float() as total):
                return cls(_share(done, total), f"{done:g} of {total:g}")
            case float() if 0 <= report <= 1:
                return cls(report)
            case Text(text):
                return cls(None, _last_line(text))
            case _:
                return cls(None, _last_line(str(report)))

    def line(self, seconds: float, width: int) -> str:
        """The report in at most that many columns: bar, share, time gone and time left, then words."""
        parts = [f"{int(seconds)} s"] if seconds >= 1 else []
        if self.share is not None:
            left = f", {seconds / self.share - seconds:.0f} s left" if seconds >= 1 and 0 < self.share < 1 else ""
            parts = [f"{_bar(self.share)} {self.share:4.0%}", *(f"{part}{left}" for part in parts)]
        return cut(" · ".join([*parts, *filter(None, [self.text])]), width)


def _of_fields(report: Mapping[str, object]) -> Progress:
    done = next((report[name] for name in _DONE if isinstance(report.get(name), (int, float))), None)
    told = _last_line(next((str(report[name]) for name in _TOLD if report.get(name)), ""))
    match done, report.get("total"):
        case (int() | float() as done, int() | float() as total):
            return Progress(_share(done, total), told or f"{done:g} of {total:g}")
        case (int() | float() as done, _):
            return Progress(None, " · ".join(filter(None, [f"{done:g}", told])))
        case _:
            return Progress(None, told or _last_line(str(dict(report))))


def _share(done: float, total: float) -> float | None:
    share = done / total if total else math.nan
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else None


def _bar(share: float) -> str:
    full = round(share * _BAR_COLUMNS)
    return "█" * full + "░" * (_BAR_COLUMNS - full)


def _last_line(text: str) -> str:
    return visible(text.strip().rpartition("\n")[2].rpartition("\r")[2].strip()).replace("\t", " ")
