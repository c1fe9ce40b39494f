"""Renders calls, outcomes, progress reports and messages as lines of text, with control characters escaped."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from callwright.cli.render.text import Palette, cut, visible, visible_line, width_of, wrap_line
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import Output, Part, Text
from callwright.core.errors import Denied
from callwright.core.json import read_object
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.providers.encoding import read_arguments

_MAIN_ARGUMENTS = ("command", "code", "path", "file_path", "pattern", "url", "query", "name", "id", "question", "agent")
_LINE_CHARS = 100


def one_line(text: str, chars: int = _LINE_CHARS) -> str:
    """Return the first line of a text, cut to fit, with the number of further lines."""
    lines = visible(text).strip().splitlines()
    if not lines:
        return ""
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    first = lines[0].replace("\t", " ")
    return cut(first, chars - width_of(more)) + more


def call_line(call: ToolCall, chars: int = _LINE_CHARS) -> str:
    """Return a call in one line: the tool and its most telling argument."""
    read = read_arguments(call)
    name = cut(visible_line(call.name), max(chars // 2, 20))  # the model may invent any name
    if not isinstance(read, dict):
        return f"{name} {one_line(str(read), chars)}".strip()
    given = cast("dict[str, object]", read)
    main = next((given[key] for key in _MAIN_ARGUMENTS if key in given), None)
    shown = str(main) if main is not None else json.dumps(given, ensure_ascii=False) if given else ""
    return f"{name} {one_line(shown, chars - width_of(name) - 1)}".strip()


def outcome_line(outcome: Completed | Failed, chars: int = _LINE_CHARS) -> str:
    """Return the outcome of a call in one line."""
    if isinstance(outcome, Failed):
        return f"{outcome.error.code}: {one_line(outcome.text, chars - len(outcome.error.code) - 2)}"
    return one_line(outcome.text, chars) or _count_media(outcome.output) or "(no output)"


def _count_media(output: Output) -> str:
    kinds = [type(part).__name__.lower() for part in output.parts if not isinstance(part, Text)]
    return ", ".join(
        f"{kinds.count(kind)} {kind}{'s' if kinds.count(kind) > 1 else ''}" for kind in dict.fromkeys(kinds)
    )


def transcript(messages: list[Message], chars: int = _LINE_CHARS) -> Iterator[str]:
    """Yield a conversation as text, message by message; calls and their outcomes in lines of so many characters."""
    for message in messages:
        match message:
            case UserMessage(content):
                yield f"> {visible(_prompt_text(content))}\n"
            case AssistantMessage():
                if message.text:
                    yield f"{visible(message.text)}\n"
            case ToolMessage(outcomes):
                for outcome in outcomes:
                    mark = "✗" if isinstance(outcome, Failed) else "●"
                    yield f"{mark} {call_line(outcome.call, chars)}\n  {outcome_line(outcome, chars)}\n"


def _prompt_text(content: str | tuple[Part, ...]) -> str:
    """Return the typed part of a prompt, which names the attachments that follow it."""
    if isinstance(content, str):
        return content
    return next((part.text for part in content if isinstance(part, Text)), "")


_NOW = "\n\nnow:\n"
_EXIT_CODE = "exit code: "
_MOST_DIFF_LINES = 40
_MOST_PROGRAM_LINES = 12
_MOST_REASON_ROWS = 4
_SLOW_SECONDS = 1.0


class CallLines:
    """Renders calls and their outcomes as wide as the screen."""

    def __init__(self, palette: Palette, width: int = 80) -> None:
        self._palette = palette
        self.width = width

    def end_lines(self, outcome: Outcome) -> list[str]:
        """Return the lines of an ended call: its program, and its result, the reason of a denial or an edit's diff."""
        if not isinstance(outcome, (Completed, Failed)):
            return [f"? {call_line(outcome.call, self.width - 4)}"]
        worked = isinstance(outcome, Completed)
        mark = self._palette.paint("●", "green") if worked else self._palette.paint("✗", "red")
        slow = f" ({outcome.seconds:.1f} s)" if outcome.seconds >= _SLOW_SECONDS else ""
        program = list(self._program(read_arguments(outcome.call)))
        room = self.width - 4 - len(slow)
        shown = cut(visible_line(outcome.call.name), room) if program else call_line(outcome.call, room)
        first = f"{mark} {shown}{slow}"
        diff = list(self._diff(outcome.text)) if worked else []
        rows = self._result_rows(outcome, self.width - 6)
        result = diff or [f"  {self._palette.paint(row, '' if worked else 'red')}" for row in rows]
        return [first, *program, *result]

    def _program(self, arguments: object) -> Iterator[str]:
        """Yield the first lines of a program of several lines, as code."""
        code: object = read_object(arguments).get("code")
        lines = visible(code.replace("\r\n", "\n")).strip("\n").split("\n") if isinstance(code, str) else []
        if len(lines) < 2:
            return
        for line in lines[:_MOST_PROGRAM_LINES]:
            yield self._palette.paint(cut(f"  │ {line.replace(chr(9), '    ')}".rstrip(), self.width - 2), "dim")
        if len(lines) > _MOST_PROGRAM_LINES:
            yield f"  … {len(lines) - _MOST_PROGRAM_LINES} more lines"

    def _result_rows(self, outcome: Completed | Failed, room: int) -> list[str]:
        if isinstance(outcome, Failed) and isinstance(outcome.error, Denied):
            # whole, because it ends with the rule and its file
            return wrap_line(outcome_line(outcome, room * _MOST_REASON_ROWS), room)
        lines = [line for line in outcome.text.splitlines() if any(map(str.isalnum, line))]
        # the end of a command's output says more than its start
        if len(lines) > 1 and lines[-1].startswith(_EXIT_CODE):
            return [one_line(" · ".join(lines[-2:]), room)]
        return [outcome_line(outcome, room)]

    def _diff(self, text: str) -> Iterator[str]:
        changed, found, _ = text.partition(_NOW)
        start = changed.find("--- ")
        if not found or start < 0:
            return
        lines = visible(changed[start:]).splitlines()[2:]
        for line in lines[:_MOST_DIFF_LINES]:
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            yield f"  {self._palette.paint(cut(line.replace(chr(9), '    '), self.width - 2), style)}"
        if len(lines) > _MOST_DIFF_LINES:
            yield f"  … {len(lines) - _MOST_DIFF_LINES} more lines"


_BAR_COLUMNS = 20
_DONE = ("progress", "done", "current", "completed")
_TEXT = ("message", "text", "status", "step")


@dataclass(frozen=True, slots=True)
class ShownProgress:
    """A progress report of a tool: the share that is done, if known, and a text."""

    share: float | None = None
    text: str = ""

    @classmethod
    def read(cls, report: object) -> "ShownProgress":
        """Parse a share from 0 to 1, a pair (done, total), an object with such fields, or anything else as text."""
        match report:
            case Mapping():
                return _read_fields(cast("Mapping[str, object]", report))
            case (int() | float() as done, int() | float() as total):
                return cls(_share(done, total), f"{done:g} of {total:g}")
            case float() if 0 <= report <= 1:
                return cls(report)
            case Text(text):
                return cls(None, _last_line(text))
            case _:
                return cls(None, _last_line(str(report)))

    def line(self, seconds: float, width: int) -> str:
        """Render the report in at most `width` columns: bar, share, elapsed and remaining time, then the text."""
        parts = [f"{int(seconds)} s"] if seconds >= 1 else []
        if self.share is not None:
            left = f", {seconds / self.share - seconds:.0f} s left" if seconds >= 1 and 0 < self.share < 1 else ""
            parts = [f"{_bar(self.share)} {self.share:4.0%}", *(f"{part}{left}" for part in parts)]
        return cut(" · ".join([*parts, *filter(None, [self.text])]), width)


def _read_fields(report: Mapping[str, object]) -> ShownProgress:
    done = next((report[name] for name in _DONE if isinstance(report.get(name), (int, float))), None)
    text = _last_line(next((str(report[name]) for name in _TEXT if report.get(name)), ""))
    match done, report.get("total"):
        case (int() | float() as done, int() | float() as total):
            return ShownProgress(_share(done, total), text or f"{done:g} of {total:g}")
        case (int() | float() as done, _):
            return ShownProgress(None, " · ".join(filter(None, [f"{done:g}", text])))
        case _:
            return ShownProgress(None, text or _last_line(str(dict(report))))


def _share(done: float, total: float) -> float | None:
    share = done / total if total else math.nan
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else None


def _bar(share: float) -> str:
    full = round(share * _BAR_COLUMNS)
    return "█" * full + "░" * (_BAR_COLUMNS - full)


def _last_line(text: str) -> str:
    return visible(text.strip().rpartition("\n")[2].rpartition("\r")[2].strip()).replace("\t", " ")
