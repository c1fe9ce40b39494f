"""The approval dialog: shows everything a call would do, and parses the user's choice."""

import json
from dataclasses import dataclass
from typing import Any, cast

from callwright.cli.render.text import Palette, visible, wrap_columns, wrap_line
from callwright.core.access import (
    Access,
    DeletePath,
    DeleteResource,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.calls import Approve, Decline, Question, Reply
from callwright.core.json import thaw
from callwright.policy.grants import propose

_MOST_LINES = 30
_LINE_CHARS = 160
_HELP = "y yes · s for this session · a always · e edit the arguments · n no, or n and why"


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


def dialog_lines(question: Question, palette: Palette, width: int = 80) -> list[str]:
    """Return the lines of a dialog: the call, everything it would access, the reason, and the possible answers.

    Characters that could hide or overwrite something are shown escaped.

    Args:
        question: The approval request.
        palette: The colours.
        width: The columns of the screen.
    """
    room = max(width - 4, 20)
    heading = "Sign in" if question.kind == "auth" else f"Allow {visible(question.tool)}?"
    lines = [palette.paint(heading, "bold", "yellow")]
    if question.url:
        lines.append(f"  open {visible(question.url)}")
    lines += [f"  {line}" for line in _content_lines(question, palette, room)]
    # not wrapped, so that a path can be copied
    lines += _clip([f"  {verb} {visible(target)}" for verb, target in _access_pairs(question)])
    if question.reason:
        lines += [palette.paint(f"  {line}", "dim") for line in _wrap(visible(f"because {question.reason}"), room)]
    return [*lines, *_choices(question, palette, room)]


def _content_lines(question: Question, palette: Palette, room: int) -> list[str]:
    line = next((access.line for access in question.accesses if isinstance(access, RunCommand)), None)
    if line is not None:
        return _wrap(visible(line), room)
    given = question.arguments
    match given.get("content"), given.get("old_string"), given.get("new_string"):
        case str() as content, _, _:
            return _paint_lines(content, "+", "green", palette, room)
        case _, str() as old, str() as new:
            return [*_paint_lines(old, "-", "red", palette, room), *_paint_lines(new, "+", "green", palette, room)]
        case _:
            shown = {name: value for name, value in given.items() if value not in (None, "", False)}
            return _wrap(visible(json.dumps(thaw(shown), ensure_ascii=False)), room)


def _paint_lines(text: str, mark: str, colour: str, palette: Palette, room: int) -> list[str]:
    return [palette.paint(f"{mark} {line}", colour) for line in _wrap(visible(text.removesuffix("\n")), room - 2)]


def _wrap(text: str, room: int) -> list[str]:
    return _clip(wrap_columns(text.replace("\t", "    "), room))  # not at words: every space of a command counts


def _clip(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2  # a dangerous command may hide at the end as well as at the start
    return [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]


def _access_pairs(question: Question) -> list[tuple[str, str]]:
    touched: list[Access] = []
    for access in question.accesses:
        touched += [access, *access.touches] if isinstance(access, RunCommand) else [access]
    return [pair for pair in map(_describe_access, touched) if pair is not None]


def _describe_access(access: Access) -> tuple[str, str] | None:
    match access:
        case RunCommand(cwd=cwd):
            return "in", cwd
        case ReadPath(target) | ReadResource(target):
            return "reads", target
        case WritePath(target) | WriteResource(target):
            return "writes", target
        case DeletePath(target) | DeleteResource(target):
            return "deletes", target
        case Reach(url):
            return "reaches", url
        case UseTool():
            return None


def _choices(question: Question, palette: Palette, room: int) -> list[str]:
    if question.kind == "auth":
        return ["  y done · n no"]
    rules = propose(question.accesses).rules
    always = f"a always, as: {', '.join(map(visible, rules))}" if rules else "a always: not offered for this call"
    return [
        "  y once · s for this session",
        *(f"  {row}" for row in wrap_line(always, room)),
        f"  e edit the arguments · n no, {palette.paint('n and why', 'italic')} tells the model",
    ]


def read_choice(text: str, question: Question) -> Reply | EditRequest | str:
    """Parse the user's answer; return a help text if it is not an answer."""
    word, _, rest = text.strip().partition(" ")
    match word.lower():
        case "y" | "yes" | "1":
            return Approve()
        case "s" | "2":
            return Approve(scope="session")
        case "a" | "3":
            if not propose(question.accesses).rules:
                return "always is not offered: no narrow rule matches this call; s allows it for the session"
            return Approve(scope="always")
        case "e" | "4":
            return EditRequest(cast("dict[str, Any]", thaw(question.arguments)))
        case "n" | "no" | "5":
            return Decline(rest.strip())
        case _:
            return _HELP


def read_edit(text: str) -> Approve | str:
    """Parse edited arguments; return an error message if they are not a JSON object."""
    try:
        given: object = json.loads(text)
    except ValueError as error:
        return f"not valid JSON: {error}"
    if not isinstance(given, dict):
        return 'expected a JSON object, like {"path": "a.txt"}'
    return Approve(cast("dict[str, Any]", given))
