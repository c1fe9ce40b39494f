"""The approval dialog: what would happen, in full and with nothing hidden, and what a person may say to it."""

import json
from dataclasses import dataclass
from typing import Any, cast

from callwright.cli.render.text import Palette, filled, visible, wrapped
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
class Edit:
    """The person wants to change the arguments first; this is what they are now."""

    arguments: dict[str, Any]

    @property
    def text(self) -> str:
        """As JSON in one line."""
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def indented(self) -> str:
        """As JSON for an editor."""
        return json.dumps(self.arguments, ensure_ascii=False, indent=2) + "\n"

    @property
    def long(self) -> bool:
        """Whether one line is no place to change them."""
        return len(self.text) > _LINE_CHARS


def dialog(question: Question, palette: Palette, width: int = 80) -> list[str]:
    """The lines of a question: the call, everything it would touch, why it is asked, and the possible answers."""
    room = max(width - 4, 20)
    heading = "Sign in" if question.kind == "auth" else f"Allow {visible(question.tool)}?"
    lines = [palette.paint(heading, "bold", "yellow")]
    if question.url:
        lines.append(f"  open {visible(question.url)}")
    lines += [f"  {line}" for line in _what(question, palette, room)]
    # whole, so that a path can be copied: the terminal breaks them where it must
    lines += _clipped([f"  {verb} {visible(target)}" for verb, target in _touched(question)])
    if question.reason:
        lines += [palette.paint(f"  {line}", "dim") for line in _wrapped(visible(f"because {question.reason}"), room)]
    return [*lines, *_choices(question, palette, room)]


def _what(question: Question, palette: Palette, room: int) -> list[str]:
    line = next((access.line for access in question.accesses if isinstance(access, RunCommand)), None)
    if line is not None:
        return _wrapped(visible(line), room)
    given = question.arguments
    match given.get("content"), given.get("old_string"), given.get("new_string"):
        case str() as content, _, _:
            return _painted(content, "+", "green", palette, room)
        case _, str() as old, str() as new:
            return [*_painted(old, "-", "red", palette, room), *_painted(new, "+", "green", palette, room)]
        case _:
            shown = {name: value for name, value in given.items() if value not in (None, "", False)}
            return _wrapped(visible(json.dumps(thaw(shown), ensure_ascii=False)), room)


def _painted(text: str, mark: str, colour: str, palette: Palette, room: int) -> list[str]:
    return [palette.paint(f"{mark} {line}", colour) for line in _wrapped(visible(text.removesuffix("\n")), room - 2)]


def _wrapped(text: str, room: int) -> list[str]:
    return _clipped(wrapped(text.replace("\t", "    "), room))  # not by words: every space of a command counts


def _clipped(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2  # the end must be seen as well as the beginning
    return [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]


def _touched(question: Question) -> list[tuple[str, str]]:
    touched: list[Access] = []
    for access in question.accesses:
        touched += [access, *access.touches] if isinstance(access, RunCommand) else [access]
    return [pair for pair in map(_pair, touched) if pair is not None]


def _pair(access: Access) -> tuple[str, str] | None:
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
    always = f"a always, as: {', '.join(map(visible, rules))}" if rules else "a always: not offered for this"
    return [
        "  y once · s for this session",
        *(f"  {row}" for row in filled(always, room)),
        f"  e edit the arguments · n no, {palette.paint('n and why', 'italic')} tells the model",
    ]


def read_choice(text: str, question: Question) -> Reply | Edit | str:
    """Understand what was typed; text that is no answer comes back as the help that is to be shown."""
    word, _, rest = text.strip().partition(" ")
    match word.lower():
        case "y" | "yes" | "1":
            return Approve()
        case "s" | "2":
            return Approve(scope="session")
        case "a" | "3":
            if not propose(question.accesses).rules:
                return "always cannot be offered here: no narrow rule says this; s allows it for the session"
            return Approve(scope="always")
        case "e" | "4":
            return Edit(cast("dict[str, Any]", thaw(question.arguments)))
        case "n" | "no" | "5":
            return Decline(rest.strip())
        case _:
            return _HELP


def read_edit(text: str) -> Approve | str:
    """Understand edited arguments; what is not an object comes back as what is wrong with it."""
    try:
        given: object = json.loads(text)
    except ValueError as error:
        return f"not valid JSON: {error}"
    return Approve(cast("dict[str, Any]", given)) if isinstance(given, dict) else "arguments are an object"
