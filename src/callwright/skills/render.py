"""Renders a skill's instructions: fills in arguments, runs embedded commands, attaches referenced files.

template ──► expand: arguments in, commands found ──► commands run ──► `@path` files appended

It is one pass: inserted text is never scanned again, so neither an argument nor a command's output can become a
placeholder or a command. Inside a command an argument is quoted for the shell and stays one word, whatever it holds.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from callwright.core.errors import ToolFailed
from callwright.skills.skill import Skill

# An argument is quoted according to the quotes around it. These constructs change what those quotes mean: a
# substitution starts afresh, a comment ends at a line break inside the argument, arithmetic evaluates its operands.
_NESTED = re.compile(r"\$\(|`|<<|[<>]\(|\$'|\$\"|\$\[|\(\(|\[\[|\$\{(?!\w+\})|(?:^|[\s;&|()])#")


def explain_unquotable(template: str, quote: str) -> str:
    """Explain why no argument can be inserted into a shell line; empty if it can. `quote` is open at its end."""
    if quote:
        return f"the quote {quote} is not closed"
    found = _NESTED.search(template)
    if found is None:
        return ""
    return f"it holds {found[0].strip()!r}, where an argument cannot be quoted safely; pass it to a plain command"


_COMMAND = re.compile(r"^```![ \t]*\n(?P<block>.*?)\n```[ \t]*$|(?<!\S)!`(?P<line>[^`\n]+)`", re.MULTILINE | re.DOTALL)
_LINE_COMMAND = re.compile(r"(?P<block>(?!))|(?<!\S)!`(?P<line>[^`\n]+)`")
_BLOCK_END = re.compile(r"\n```[ \t]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(
    r"\\?\$(?:ARGUMENTS\[(?P<index>[0-9]{1,3})\]|(?P<word>[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3})(?![A-Za-z0-9_])"
    r"|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3})\})"
)
_ALL = "ARGUMENTS"


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A shell command in the instructions, to be replaced by its output."""

    line: str
    refusal: str = ""
    """Why it must not run; empty if it may."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Instructions with arguments filled in and commands not run yet."""

    parts: tuple[str | CommandRequest, ...]

    @property
    def requests(self) -> tuple[CommandRequest, ...]:
        """The commands, in order."""
        return tuple(part for part in self.parts if isinstance(part, CommandRequest))

    def assemble(self, outputs: Sequence[str]) -> str:
        """Return the text with each command replaced by its output."""
        left = iter(outputs)
        return "".join(next(left) if isinstance(part, CommandRequest) else part for part in self.parts)


@dataclass(slots=True)
class _Placeholders:
    """The values of placeholders."""

    arguments: str
    names: Sequence[str]
    values: Mapping[str, str]
    words: list[str] = field(default_factory=list[str])
    used: bool = False
    """Whether a placeholder used the arguments; otherwise they are appended."""

    def __post_init__(self) -> None:
        try:
            self.words = shlex.split(self.arguments)
        except ValueError:  # an apostrophe: it's
            self.words = self.arguments.split()

    def value(self, match: re.Match[str]) -> str | None:
        """Return the value of a placeholder; None if the text stays as it is."""
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


def expand(
    template: str, arguments: str = "", *, names: Sequence[str] = (), values: Mapping[str, str] | None = None
) -> Expansion:
    """Fill in the arguments and find the commands.

    `$ARGUMENTS` is all of them, `$0` and `$ARGUMENTS[0]` the first word, `$name` the word of that name, `${NAME}` one
    of `values`. `\\$0` is not a placeholder. For a missing word `$2` stays as it is and `$name` becomes empty.

    Args:
        template: The instructions as written.
        arguments: What the user or model typed after the name of the skill.
        names: Names of the positional arguments.
        values: Values of `${NAME}` placeholders.
    """
    given = _Placeholders(arguments, names, values or {})
    parts = tuple(_expand_parts(template, given))
    if arguments.strip() and not given.used:
        parts = (*parts, f"\n\nARGUMENTS: {arguments}")
    return Expansion(parts)


def find_commands(template: str) -> Iterator[re.Match[str]]:
    """Find the commands in instructions: blocks that begin with ```!, and !`…` after a space."""
    end = max((found.end() for found in _BLOCK_END.finditer(template)), default=0)
    yield from _COMMAND.finditer(template, 0, end)
    # no block ends here: each one that begins would be read to the end of the file
    yield from _LINE_COMMAND.finditer(template, end)


def _expand_parts(template: str, given: _Placeholders) -> Iterator[str | CommandRequest]:
    at = 0
    for found in find_commands(template):
        yield _expand_text(template[at : found.start()], given)
        yield _expand_command(found["block"] or found["line"] or "", given)
        at = found.end()
    yield _expand_text(template[at:], given)


def _expand_text(template: str, given: _Placeholders) -> str:
    def put(match: re.Match[str]) -> str:
        if not _is_ours(match, "", given):
            return match[0]
        if match[0].startswith("\\"):
            return match[0][1:]
        value = given.value(match)
        return match[0] if value is None else value

    return _PLACEHOLDER.sub(put, template)


def _expand_command(template: str, given: _Placeholders) -> CommandRequest:
    """Fill in the arguments of a command, quoted according to the quotes around each."""
    parts, quote, at, placed = list[str](), "", 0, False
    while at < len(template):
        match = _PLACEHOLDER.match(template, at)
        if match is not None and not match[0].startswith("\\") and _is_ours(match, quote, given):
            parts.append(_quote(given.value(match), quote))
            placed, at = True, match.end()
            continue
        step = 2 if template[at] == "\\" and quote != "'" else 1  # a backslash escapes, except in single quotes
        if template[at] in "'\"" and quote in ("", template[at]):
            quote = "" if quote else template[at]
        parts.append(template[at : at + step])
        at += step
    return CommandRequest("".join(parts), explain_unquotable(template, quote) if placed else "")


def _is_ours(match: re.Match[str], quote: str, given: _Placeholders) -> bool:
    """Tell whether a placeholder is the skill's, not the shell's; `$1` in single quotes is for awk or perl."""
    name = match["index"] or match["word"] or match["braced"]
    if match["index"] is None and name.isdigit():
        return quote != "'"
    if match["braced"] is not None and name in given.values:
        return True
    return match["index"] is not None or name == _ALL or name in given.names


def _quote(value: str | None, quote: str) -> str:
    if not value:
        return ""
    if quote == "'":
        return value.replace("'", "'\\''")
    return re.sub(r'([\\"$`])', r"\\\1", value) if quote else shlex.quote(value)


RunLine: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs one shell line under the session's permissions and returns its output or why it did not run."""
ReadFile: TypeAlias = Callable[[Path], Awaitable[str]]
"""Reads one file under the session's permissions and returns its text or why it cannot be read."""

DISABLED = "[shell command execution disabled by policy]"
_MAX_COMMANDS = 20


@dataclass(frozen=True, slots=True)
class ExpansionContext:
    """Where a skill is rendered, and the functions that run its commands and read its files."""

    project: Path | None = None
    cwd: Path | None = None
    """The folder `@path` references are relative to; the project by default."""
    session: str = ""
    run: RunLine | None = None
    read: ReadFile | None = None
    attached: Collection[Path] = ()
    """Files that are attached already."""
    piped: str = ""
    """Appended to the arguments, but its `@path` references are ignored: it may not be from the user."""


async def prepare(
    skill: Skill, arguments: str = "", *, run: RunLine | None = None, project: Path | None = None, session: str = ""
) -> str:
    """Render a skill for arguments.

    Args:
        skill: The skill.
        arguments: What to apply it to.
        run: Runs its commands; without it they are replaced by a notice.
        project: The folder for `${PROJECT_DIR}` and file references; the working folder by default.
        session: The session id for `${SESSION_ID}`.

    Raises:
        ToolFailed: The arguments hold a NUL character, or the skill runs too many commands.
    """
    return await render_skill(skill, arguments, ExpansionContext(project, session=session, run=run))


async def render_skill(skill: Skill, arguments: str, context: ExpansionContext) -> str:
    """Render a skill for arguments, followed by the files referenced as `@path`; see `prepare`."""
    given = arguments + context.piped
    if "\0" in given:  # no process can be started with it
        raise ToolFailed("the arguments hold a NUL character; remove it")
    project, body = context.project or Path.cwd(), skill.body()
    values = _values(skill, project, context.session)
    expansion = expand(body, given, names=skill.arguments, values=values)
    count = len(expansion.requests)
    if count > _MAX_COMMANDS:
        raise ToolFailed(f"the skill {skill.name} has {count} commands; at most {_MAX_COMMANDS} are allowed")
    text = expansion.assemble([await _run_command(request, context.run) for request in expansion.requests])
    if context.read is not None:
        typed = expand(body, arguments, names=skill.arguments, values=values) if context.piped else expansion
        for path in find_references(typed, context.cwd or project):
            if path not in context.attached:
                text += format_attachment(path, await context.read(path))
    return text


async def _run_command(request: CommandRequest, run: RunLine | None) -> str:
    if run is None:
        return DISABLED
    if request.refusal:
        return f"[not run: {request.refusal}]"
    return await run(request.line)


def _values(skill: Skill, project: Path, session: str) -> dict[str, str]:
    own = {"SKILL_DIR": str(skill.folder), "PROJECT_DIR": str(project), "SESSION_ID": session}
    return own | {f"CLAUDE_{name}": value for name, value in own.items()}


MAX_FILES = 10
_CODE_SPAN = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"(?<![^\s(\[\"'])@([^\s@`'\"<>()\[\]]+)")
_AFTER_REFERENCE = ".,;:!?"


def find_references(expansion: Expansion, folder: Path) -> tuple[Path, ...]:
    """Return the existing files named as `@path`, relative to `folder`; code and command output are not searched."""
    text = "\n".join(part for part in expansion.parts if isinstance(part, str))
    named = (word.rstrip(_AFTER_REFERENCE) for word in _REFERENCE.findall(_CODE_SPAN.sub(" ", text)))
    return tuple(dict.fromkeys(_existing_files(named, folder)))[:MAX_FILES]


def _existing_files(names: Iterable[str], folder: Path) -> Iterable[Path]:
    for name in names:
        path = Path(folder, name)
        try:
            if name and path.is_file():  # @user and @decorator are not files
                yield path
        except (OSError, ValueError):  # too long, or with a NUL in it
            continue


def format_attachment(path: Path, text: str) -> str:
    """Format one file for the end of the instructions."""
    return f'\n\n<file path="{path}">\n{text}\n</file>'
