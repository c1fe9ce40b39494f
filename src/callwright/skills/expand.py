"""A skill's instructions with the arguments put in and the commands taken out, in one pass.

What is put in is never looked at again: neither an argument nor a command's output can become a placeholder or a
command. Inside a command an argument is quoted for the shell, so it stays one word whatever it holds.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from callwright.skills.place import unplaceable

COMMAND = re.compile(r"^```![ \t]*\n(?P<block>.*?)\n```[ \t]*$|(?<!\S)!`(?P<line>[^`\n]+)`", re.MULTILINE | re.DOTALL)
"""A command in instructions: a block that begins with ```!, or !`…` after a space."""
_PLACEHOLDER = re.compile(
    r"\\?\$(?:ARGUMENTS\[(?P<index>[0-9]{1,3})\]|(?P<word>[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3})(?![A-Za-z0-9_])"
    r"|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3})\})"
)
_ALL = "ARGUMENTS"


@dataclass(frozen=True, slots=True)
class Request:
    """A command the instructions want the output of."""

    line: str
    refusal: str = ""
    """Why it must not be run, if so."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Instructions whose commands are still to be run."""

    parts: tuple[str | Request, ...]

    @property
    def requests(self) -> tuple[Request, ...]:
        """The commands, in order."""
        return tuple(part for part in self.parts if isinstance(part, Request))

    def assembled(self, outputs: Sequence[str]) -> str:
        """The instructions with one output per command in its place."""
        left = iter(outputs)
        return "".join(next(left) if isinstance(part, Request) else part for part in self.parts)


@dataclass(slots=True)
class _Given:
    """What placeholders stand for."""

    arguments: str
    names: Sequence[str]
    values: Mapping[str, str]
    words: list[str] = field(default_factory=list[str])
    used: bool = False
    """Whether any placeholder took the arguments; else they are added at the end."""

    def __post_init__(self) -> None:
        try:
            self.words = shlex.split(self.arguments)
        except ValueError:  # a quote without its partner, as in: it's
            self.words = self.arguments.split()

    def value(self, match: re.Match[str]) -> str | None:
        """What a placeholder stands for; None for one that stands for itself."""
        name = match["index"] or match["word"] or match["braced"]
        if match["index"] is None and name == _ALL:
            self.used = True
            return self.arguments
        if name.isdigit():
            return self._word(int(name))
        if name in self.names:
            return self._word(self.names.index(name)) or ""
        return self.values.get(name)

    def _word(self, index: int) -> str | None:
        self.used = True
        return self.words[index] if index < len(self.words) else None


def expanded(
    template: str, arguments: str = "", *, names: Sequence[str] = (), values: Mapping[str, str] | None = None
) -> Expansion:
    """Put in the arguments and find the commands.

    `$ARGUMENTS` is all of them, `$0` and `$ARGUMENTS[0]` the first word, `$name` the word of that name, `${NAME}` one
    of `values`. `\\$0` is not a placeholder. A word that was not given leaves `$2` as it stands and `$name` empty.
    """
    given = _Given(arguments, names, values or {})
    parts = tuple(_parts(template, given))
    if arguments.strip() and not given.used:
        parts = (*parts, f"\n\nARGUMENTS: {arguments}")
    return Expansion(parts)


def _parts(template: str, given: _Given) -> Iterator[str | Request]:
    at = 0
    for found in COMMAND.finditer(template):
        yield _text(template[at : found.start()], given)
        yield _request(found["block"] or found["line"] or "", given)
        at = found.end()
    yield _text(template[at:], given)


def _text(template: str, given: _Given) -> str:
    def put(match: re.Match[str]) -> str:
        if not _is_ours(match, "", given):
            return match[0]
        if match[0].startswith("\\"):
            return match[0][1:]
        value = given.value(match)
        return match[0] if value is None else value

    return _PLACEHOLDER.sub(put, template)


def _request(template: str, given: _Given) -> Request:
    """Put the arguments in as the shell's quoting at each place demands."""
    line, quote, at, placed = "", "", 0, False
    while at < len(template):
        match = _PLACEHOLDER.match(template, at)
        if match is not None and not match[0].startswith("\\") and _is_ours(match, quote, given):
            line += _quoted(given.value(match), quote)
            placed, at = True, match.end()
            continue
        step = 2 if template[at] == "\\" and quote != "'" else 1
        if template[at] in "'\"" and quote in ("", template[at]):
            quote = "" if quote else template[at]
        line += template[at : at + step]
        at += step
    return Request(line, unplaceable(template, quote) if placed else "")


def _is_ours(match: re.Match[str], quote: str, given: _Given) -> bool:
    """Whether a placeholder is the skill's; others are the shell's, and `$1` in single quotes is awk's or perl's."""
    name = match["index"] or match["word"] or match["braced"]
    if match["index"] is None and name.isdigit():
        return quote != "'"
    if match["braced"] is not None and name in given.values:
        return True
    return match["index"] is not None or name == _ALL or name in given.names


def _quoted(value: str | None, quote: str) -> str:
    if not value:
        return ""
    if quote == "'":
        return value.replace("'", "'\\''")
    return re.sub(r'([\\"$`])', r"\\\1", value) if quote else shlex.quote(value)
