"""The approval dialog: shows everything a call would do, and parses the user's choice."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from callwright.app.questions import deciding_commands, look_alikes
from callwright.cli.render.text import Palette, mark_text, wrap_columns, wrap_line
from callwright.core.access import (
    Access,
    ReadPath,
    ReadResource,
    RunCommand,
    access_pairs,
)
from callwright.core.calls import Approve, Decline, Question, Reply
from callwright.core.decisions import make_reply, parse_answer
from callwright.core.json import parse_strictly, thaw
from callwright.policy.grants import can_last, propose_for

_LINE_CHARS = 160
_HELP = "y yes · s for this session · a always · e edit the arguments · n no; anything else is a no with that reason"
_UNFINISHED = "the answer is not complete: y, s, a, e or n, or a reason to decline"
_NAMES = {"session": "s", "always": "always"}
_NOT_OFFERED = "{} is not offered: this is asked about every time; y allows it once"
_SHORT_CHARS = 40


@dataclass(frozen=True, slots=True)
class DialogText:
    """The rows of a dialog for one width, by how they may be shown."""

    heading: list[str]
    body: list[str]
    """Everything the call would do; may be longer than the screen."""
    deciding: list[str]
    """The parts of the body that caused the question; shown on every page."""
    choices: list[str]
    rule: str = "  ── "
    """Starts the row that tells which part of the body is on the screen."""

    @property
    def rows(self) -> list[str]:
        """All rows, for a screen that scrolls."""
        return [*self.heading, *self.body, *self.choices]


@dataclass(frozen=True, slots=True)
class EditRequest:
    """The choice to edit the arguments first, with the current arguments."""

    arguments: dict[str, Any]

    @property
    def text(self) -> str:
        """The arguments as JSON in one line."""
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def indented_text(self) -> str:
        """The arguments as indented JSON, for an editor."""
        return json.dumps(self.arguments, ensure_ascii=False, indent=2) + "\n"

    @property
    def long(self) -> bool:
        """Whether the arguments are too long to edit on the input line."""
        return len(self.text) > _LINE_CHARS


def dialog_text(question: Question, palette: Palette, width: int = 80) -> DialogText:
    """Return the rows of a dialog.

    Every argument is shown whole. Characters that could hide or overwrite something are escaped, long runs of blanks
    are counted (`␠×300`), and a line break is shown as `⏎`; a row that continues the one above starts with `↪`.

    Args:
        question: The approval request.
        palette: The colours.
        width: The columns of the screen.
    """
    room = max(width - 4, 20)
    heading = "Sign in" if question.kind == "auth" else f"Allow {mark_text(question.tool)}?"
    rows = [f"open {mark_text(question.url)}"] if question.url else []
    rows += argument_rows(question.accesses, question.arguments)
    rows += [f"{verb} {mark_text(target)}" for verb, target in access_pairs(question.accesses)]
    if question.origin:
        rows += ["made by:", *(mark_text(line) for line in question.origin.split("\n"))]
    because = f"because {mark_text(question.reason)}" if question.reason else ""
    reason = [palette.paint(row, "dim") for row in _wrap(because, room)]
    warnings = [palette.paint(row, "yellow") for row in wrap_rows(look_alikes(question), room)]
    deciding = [palette.paint(row, "bold") for row in wrap_rows(deciding_texts(question), room)]
    first, *more = [palette.paint(row, "bold", "yellow") for row in _wrap(heading, room)]
    return DialogText(
        [first],
        _indent([*more, *_wrap_painted(rows, room, palette), *warnings, *reason]),
        _indent([*deciding, *warnings, *reason]),
        _choices(question, palette, room),
    )


def trust_text(project: str, requests: Sequence[str], palette: Palette, width: int = 80) -> DialogText:
    """Return the rows of the question whether to trust a folder.

    Args:
        project: The folder.
        requests: What its files request.
        palette: The colours.
        width: The columns of the screen.
    """
    room = max(width - 4, 20)
    conflicts = [request for request in requests if "; your allow rules do not apply" in request]
    first, *more = [palette.paint(row, "bold", "yellow") for row in _wrap(f"{mark_text(project)} requests:", room)]
    return DialogText(
        [first],
        _indent([*more, *wrap_rows(map(mark_text, requests), room)]),
        _indent(palette.paint(row, "yellow") for row in wrap_rows(map(mark_text, conflicts), room)),
        _indent(wrap_line("y trust this folder · n continue without these · q leave", room)),
    )


def _indent(rows: Iterable[str]) -> list[str]:
    return [f"  {row}" for row in rows]


def argument_rows(accesses: Iterable[Access], arguments: Mapping[str, Any]) -> list[str]:
    """Return one row for each line of the command and of the arguments; short arguments share a row."""
    commands = [access.line for access in accesses if isinstance(access, RunCommand)]
    rows = [row for line in commands for row in _command_rows(line)]
    short: list[str] = []
    for name, value in arguments.items():
        if isinstance(value, str) and value in commands:
            continue  # shown already, as the command itself
        shown = _value_rows(name, value)
        if len(shown) == 1 and len(shown[0]) <= _SHORT_CHARS:
            short.append(shown[0])
        else:
            rows += shown
    return [*rows, *([" · ".join(short)] if short else [])]


def _command_rows(line: str) -> list[str]:
    first, *more = line.split("\n")
    rows = [f"$ {mark_text(first)}", *(f"│ {mark_text(each)}" for each in more)]
    return [*(f"{row}⏎" for row in rows[:-1]), rows[-1]]


def _value_rows(name: str, value: object) -> list[str]:
    # quoted, so that no value can look like two arguments
    label = name if name.isascii() and name.isidentifier() else mark_text(json.dumps(name, ensure_ascii=False))
    mark = {"content": "+", "new_string": "+", "old_string": "-"}.get(name)
    if isinstance(value, str) and mark is not None:
        return [f"{label}:", *(f"{mark} {line}" for line in map(mark_text, value.removesuffix("\n").split("\n")))]
    if isinstance(value, str) and ("\n" in value or name == "code"):
        return [f"{label}:", *(f"│ {mark_text(line)}" for line in value.split("\n"))]
    return [f"{label}: {mark_text(json.dumps(thaw(cast('Any', value)), ensure_ascii=False, default=str))}"]


def _wrap(text: str, room: int) -> list[str]:
    """Break a row anywhere, not at words: every space of a command counts."""
    first, *_ = rows = wrap_columns(text, room)
    rest = text[len(first) :]
    return [first, *(f"↪ {row}" for row in wrap_columns(rest, room - 2))] if rows[1:] else [first] if first else []


def wrap_rows(texts: Iterable[str], room: int) -> Iterator[str]:
    """Break texts into rows anywhere; a row that continues the one above starts with `↪`."""
    for text in texts:
        yield from _wrap(text, room)


def _wrap_painted(rows: Iterable[str], room: int, palette: Palette) -> Iterator[str]:
    for row in rows:
        colour = {"+ ": "green", "- ": "red"}.get(row[:2], "")
        yield from (palette.paint(piece, colour) for piece in _wrap(row, room) or [""])


def deciding_texts(question: Question) -> list[str]:
    """Return what caused the question: commands that do more than read, and accesses that change or leave something."""
    found: list[str] = []
    for access in question.accesses:
        if isinstance(access, RunCommand):
            found += [row for line in deciding_commands(access) for row in _command_rows(line)]
        elif not isinstance(access, (ReadPath, ReadResource)):
            found += [f"{verb} {mark_text(target)}" for verb, target in access_pairs([access])]
    if not found:
        found = [f"{verb} {mark_text(target)}" for verb, target in access_pairs(question.accesses)]
    return list(dict.fromkeys(found)) or argument_rows(question.accesses, question.arguments)


def _choices(question: Question, palette: Palette, room: int) -> list[str]:
    if question.kind == "auth":
        return ["  y done · n no"]
    rules = propose_for(question).rules
    always = f"a always, as: {', '.join(map(mark_text, rules))}" if rules else "a always: not offered for this call"
    wider = propose_for(question, wider=True).rules
    more = [f"g always, also as: {', '.join(map(mark_text, wider))}"] if wider else []
    return [
        "  y once · s for this session" if can_last(question) else "  y once; it is asked about every time",
        *(f"  {row}" for text in (always, *more) for line in wrap_line(text, room) for row in wrap_columns(line, room)),
        f"  e edit the arguments · n no, {palette.paint('n and why', 'italic')} tells the model",
    ]


def read_choice(text: str, question: Question) -> Reply | EditRequest | str:
    """Parse the user's answer. Only a bare answer approves; a sentence declines, and the model reads it.

    Args:
        text: What the user typed.
        question: The question that was shown.

    Returns:
        The reply, the wish to edit the arguments, or a help text if the answer has to be given again.
    """
    typed = text.strip()
    if typed.lower() in ("e", "4"):
        return EditRequest(cast("dict[str, Any]", thaw(question.arguments)))
    if typed.lower() == "g" and typed.isascii():  # only where the wider rule is on the screen
        if propose_for(question, wider=True).rules:
            return make_reply(True, scope="pattern")
        if not can_last(question):
            return _NOT_OFFERED.format("g")
        return "g is not offered: no wider rule is safe for this call; a or s may be"
    reply = parse_answer(text)
    if isinstance(reply, Approve) and reply.scope != "once" and not can_last(question):
        return _NOT_OFFERED.format(_NAMES[reply.scope])
    if isinstance(reply, Approve) and reply.scope == "always" and not propose_for(question).rules:
        return "always is not offered: no narrow rule matches this call; s allows it for the session"
    if reply is not None:
        return reply
    if not typed:
        return _HELP
    # one strange word is more likely a slip than a reason
    return Decline(typed) if " " in typed else _UNFINISHED


def read_edit(text: str) -> Reply | str:
    """Parse edited arguments; return an error message if they are not a JSON object."""
    try:
        given = parse_strictly(text)
    except (ValueError, RecursionError) as error:
        return f"not valid JSON: {error}"
    if not isinstance(given, dict):
        return 'expected a JSON object, like {"path": "a.txt"}'
    return make_reply(True, arguments=cast("dict[str, Any]", given))
