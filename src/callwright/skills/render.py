"""A skill's instructions with the arguments put in and the commands taken out, in one pass.

What is put in is never looked at again: neither an argument nor a command's output can become a placeholder or a
command. Inside a command an argument is quoted for the shell, so it stays one word whatever it holds.

Where in a shell line an argument can be put so that it stays an argument.

From a skill and its arguments to the text a model is given: expanded, its commands run by whoever may run them.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from callwright.core.errors import ToolFailed
from callwright.skills.skill import Skill

# Quoting is by the quotes around a place. In each of these they are not what they seem: a substitution begins afresh,
# a comment ends at a line break inside the argument, arithmetic evaluates what it is given.
_NESTED = re.compile(r"\$\(|`|<<|[<>]\(|\$'|\$\"|\$\[|\(\(|\[\[|\$\{(?!\w+\})|(?:^|[\s;&|()])#")


def unplaceable(template: str, quote: str) -> str:
    """Say why no argument can be put into a line; empty if it can. `quote` is the one left open at its end."""
    if quote:
        return f"the quote {quote} is not closed"
    found = _NESTED.search(template)
    if found is None:
        return ""
    return f"it holds {found[0].strip()!r}, where an argument cannot be quoted safely; give it to a plain command"


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


RunLine: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs one shell line where permissions are asked for, and returns its output or why there is none."""
ReadFile: TypeAlias = Callable[[Path], Awaitable[str]]
"""Reads one file where permissions are asked for, and returns what it holds or why that is not to be had."""

DISABLED = "[shell command execution disabled by policy]"
_MOST_COMMANDS = 20


@dataclass(frozen=True, slots=True)
class ExpansionContext:
    """Where a skill is used, and who does for it what it may not do itself."""

    project: Path | None = None
    cwd: Path | None = None
    """The folder `@files` are taken from; without one the project's."""
    session: str = ""
    run: RunLine | None = None
    read: ReadFile | None = None
    attached: Collection[Path] = ()
    """Files that are handed over already."""
    piped: str = ""
    """Goes with the arguments and names no files: whoever wrote it is not who called the skill."""


async def prepare(
    skill: Skill, arguments: str = "", *, run: RunLine | None = None, project: Path | None = None, session: str = ""
) -> str:
    """Return the instructions for these arguments; without `run` no command is run, and the text says so."""
    return await prepared(skill, arguments, ExpansionContext(project, session=session, run=run))


async def prepared(skill: Skill, arguments: str, around: ExpansionContext) -> str:
    """Return the instructions for these arguments, followed by the files they name as `@path`."""
    given = arguments + around.piped
    if "\0" in given:
        raise ToolFailed("the arguments hold a NUL character; leave it out")
    project, body = around.project or Path.cwd(), skill.body()
    values = _values(skill, project, around.session)
    expansion = expanded(body, given, names=skill.arguments, values=values)
    count = len(expansion.requests)
    if count > _MOST_COMMANDS:
        raise ToolFailed(f"the skill {skill.name} wants to run {count} commands; at most {_MOST_COMMANDS} are allowed")
    text = expansion.assembled([await _output(request, around.run) for request in expansion.requests])
    if around.read is not None:
        naming = expanded(body, arguments, names=skill.arguments, values=values) if around.piped else expansion
        for path in references(naming, around.cwd or project):
            if path not in around.attached:
                text += attachment(path, await around.read(path))
    return text


async def _output(request: Request, run: RunLine | None) -> str:
    if run is None:
        return DISABLED
    if request.refusal:
        return f"[not run: {request.refusal}]"
    return await run(request.line)


def _values(skill: Skill, project: Path, session: str) -> dict[str, str]:
    own = {"SKILL_DIR": str(skill.folder), "PROJECT_DIR": str(project), "SESSION_ID": session}
    return own | {f"CLAUDE_{name}": value for name, value in own.items()}


MOST_FILES = 10
_CODE_SPAN = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"(?<![^\s(\[\"'])@([^\s@`'\"<>()\[\]]+)")
_AFTER_REFERENCE = ".,;:!?"


def references(expansion: Expansion, folder: Path) -> tuple[Path, ...]:
    """Return the files that are there, relative names taken from `folder`; neither code nor output names any."""
    text = "\n".join(part for part in expansion.parts if isinstance(part, str))
    named = (word.rstrip(_AFTER_REFERENCE) for word in _REFERENCE.findall(_CODE_SPAN.sub(" ", text)))
    return tuple(dict.fromkeys(_existing_files(named, folder)))[:MOST_FILES]


def _existing_files(names: Iterable[str], folder: Path) -> Iterable[Path]:
    for name in names:
        path = Path(folder, name)
        try:
            if name and path.is_file():  # @user and @decorator are no files
                yield path
        except (OSError, ValueError):  # too long, or with a NUL in it
            continue


def attachment(path: Path, text: str) -> str:
    """One file as it stands below the instructions."""
    return f'\n\n<file path="{path}">\n{text}\n</file>'
