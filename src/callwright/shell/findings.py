"""What the analysis of one line has found so far, and which paths a pipeline hands to xargs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from callwright.core.access import Access, ReadPath
from callwright.shell.plan import SimpleCommand, Verdict
from callwright.shell.words import Folders, Word, resolve_paths

XargsInput: TypeAlias = tuple[Access, ...] | None
"""The paths that a pipeline may hand to xargs; None when they come from the content of a file and are unknown."""

NO_INPUT: XargsInput = ()
_READ_ONLY = Verdict.READ_ONLY
_LISTERS = frozenset(("find", "fd", "fdfind", "ls"))
_LISTING = {
    "git": ("ls-files", "--name-only", "-l", "--files-with-matches"),
    "rg": ("-l", "--files", "--files-with-matches", "--files-without-match"),
    "grep": ("-l", "-rl", "-lr", "-L", "-Rl", "-ril", "-rli", "--files-with-matches", "--files-without-match"),
}
_FILTERS = frozenset(("sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "tac", "shuf"))


def find_xargs_input(commands: Sequence[SimpleCommand], before: XargsInput, folders: Folders) -> XargsInput:
    """Return the paths that the next command of a pipeline receives from the commands before it."""
    if len(commands) != 1 or commands[0].verdict is not _READ_ONLY or not commands[0].words:
        return None
    command = commands[0]
    name, rest = command.words[0], command.words[1:]
    if name in _LISTERS or any(flag in rest for flag in _LISTING.get(name, ())):
        return NO_INPUT  # the names lie below folders that already count as accesses of the listing command
    if name in ("echo", "printf") and command.literal:
        names = [part for word in rest for part in word.replace("\\n", " ").split()]
        return tuple([ReadPath(path) for part in names for path in resolve_paths(part, folders)])
    if name in _FILTERS and not command.accesses:
        return before
    return None


STDIN_SCRIPT = "it runs a script from standard input"


class ScriptContext(NamedTuple):
    """Where a script was found, and the wrappers around it."""

    inside: str = ""
    wrappers: tuple[str, ...] = ()
    wrapped: tuple[tuple[str, ...], ...] = ()
    doubt: str = ""
    """Why no command in this context can count as read-only; empty when there is no reason."""


class Redirects(NamedTuple):
    """The accesses of the redirects of one command."""

    accesses: tuple[Access, ...] = ()
    doubt: str = ""
    present: bool = False
    stdin_texts: tuple[str, ...] = ()
    """Texts of heredocs and here-strings; a shell that reads them runs them as a script."""


def merge_redirects(parts: Sequence[Redirects]) -> Redirects:
    """Merge the redirects of one command."""
    accesses = tuple([access for part in parts for access in part.accesses])
    doubt = next((part.doubt for part in parts if part.doubt), "")
    stdin_texts = tuple([text for part in parts for text in part.stdin_texts])
    return Redirects(accesses, doubt, any(part.present for part in parts), stdin_texts)


class FoundCommand(NamedTuple):
    """A simple command as it stands in the line, not yet judged."""

    words: tuple[Word, ...]
    text: str
    folders: Folders
    context: ScriptContext = ScriptContext()
    assignments: tuple[tuple[str, str | None], ...] = ()
    redirects: Redirects = Redirects()
    xargs_input: XargsInput = None


@dataclass(slots=True)
class Findings:
    """Everything found in one line; scripts inside scripts add to the same findings."""

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    objections: list[str] = field(default_factory=list[str])
    dangers: list[str] = field(default_factory=list[str])
    variables: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Literal values set by the line itself; None once a value is not literal."""
    scripts: int = 0
    misread: bool = False
    """The parser took two commands for one, as it sometimes does around redirects."""
    start: Folders = None
    """Where the line begins to run."""

    def add_objection(self, reason: str) -> None:
        """Record why the line is not proven."""
        if reason and len(self.objections) < 8:  # more than a person reads
            self.objections.append(reason)

    def doubt_parser(self, reason: str) -> None:
        """Record that the syntax tree is wrong: nothing is proven, and a rough split adds to the commands."""
        self.misread = True
        self.add_objection(reason)

    def add_danger(self, danger: str) -> None:
        """Record a danger that a guard must stop whatever the rules allow."""
        if danger and danger not in self.dangers:
            self.dangers.append(danger)
