"""Where the names come from that xargs is fed: only what the line itself names can be told beforehand.

What an analysis has found so far: commands, accesses, objections to the proof, dangers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from callwright.core.access import Access, ReadPath
from callwright.shell.plan import SimpleCommand, Verdict
from callwright.shell.words import Folders, Word, places

Feed: TypeAlias = tuple[Access, ...] | None
"""What a command may be told to read on its input; None when that is the content of some file."""

NOTHING: Feed = ()
_READ_ONLY = Verdict.READ_ONLY
_LISTERS = frozenset(("find", "fd", "fdfind", "ls"))
_LISTING = {
    "git": ("ls-files", "--name-only", "-l", "--files-with-matches"),
    "rg": ("-l", "--files", "--files-with-matches", "--files-without-match"),
    "grep": ("-l", "-rl", "-lr", "-L", "-Rl", "-ril", "-rli", "--files-with-matches", "--files-without-match"),
}
_FILTERS = frozenset(("sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "tac", "shuf"))


def handed_on(commands: Sequence[SimpleCommand], before: Feed, folders: Folders) -> Feed:
    """Tell what the next command of a pipeline is fed, from the commands that write into the pipe."""
    if len(commands) != 1 or commands[0].verdict is not _READ_ONLY or not commands[0].words:
        return None
    command = commands[0]
    name, rest = command.words[0], command.words[1:]
    if name in _LISTERS or any(flag in rest for flag in _LISTING.get(name, ())):
        return NOTHING  # the names lie below folders that the lister itself is charged with
    if name in ("echo", "printf") and command.literal:
        names = [part for word in rest for part in word.replace("\\n", " ").split()]
        return tuple([ReadPath(path) for part in names for path in places(part, folders)])
    if name in _FILTERS and not command.accesses:
        return before
    return None


STDIN_SCRIPT = "it runs whatever it reads"


class Around(NamedTuple):
    """What a piece of script was found in, and the wrappers that lead to it."""

    inside: str = ""
    wrappers: tuple[str, ...] = ()
    wrapped: tuple[tuple[str, ...], ...] = ()
    doubt: str = ""
    """Why nothing in there can be called harmless."""


class Redirects(NamedTuple):
    """What the redirects of one command touch."""

    accesses: tuple[Access, ...] = ()
    doubt: str = ""
    present: bool = False
    fed: tuple[str, ...] = ()
    """Texts of heredocs and here-strings, which a shell would run."""


def merged(parts: Sequence[Redirects]) -> Redirects:
    """Join the redirects of one command."""
    accesses = tuple([access for part in parts for access in part.accesses])
    doubt = next((part.doubt for part in parts if part.doubt), "")
    fed = tuple([text for part in parts for text in part.fed])
    return Redirects(accesses, doubt, any(part.present for part in parts), fed)


class Found(NamedTuple):
    """A simple command as it stands in the line, before anybody judged it."""

    words: tuple[Word, ...]
    text: str
    folders: Folders
    around: Around = Around()
    assignments: tuple[tuple[str, str | None], ...] = ()
    redirects: Redirects = Redirects()
    feed: Feed = None


@dataclass(slots=True)
class Ledger:
    """Everything found in one line; scripts inside scripts write into the same ledger."""

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

    def object(self, reason: str) -> None:
        """Note why the line is not proven."""
        if reason and len(self.objections) < 8:  # a person reads the first few
            self.objections.append(reason)

    def doubt_parser(self, reason: str) -> None:
        """Note that the tree cannot be right: nothing is proven, and commands are searched for without it."""
        self.misread = True
        self.object(reason)

    def fear(self, danger: str) -> None:
        """Note what a guard must stop."""
        if danger and danger not in self.dangers:
            self.dangers.append(danger)
