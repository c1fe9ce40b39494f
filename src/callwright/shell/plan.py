"""The result of an analysis: a plan, its simple commands, their verdicts."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from callwright.core._fast import frozen
from callwright.core.access import Access


class Verdict(StrEnum):
    """How much a command can change, from harmless to worst; an unknown effect counts as worst."""

    READ_ONLY = "read-only"
    READS_NETWORK = "reads-network"
    WRITES = "writes"
    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"

    __hash__ = str.__hash__  # the one of Enum is a Python function, and thousands of commands are compared

    @property
    def rank(self) -> int:
        """The position in the order, so that verdicts can be compared."""
        return _ORDER.index(self)


_ORDER = tuple(Verdict)


def worst(*verdicts: Verdict) -> Verdict:
    """Return the worst of several verdicts, which is the verdict of a line; without any it is `READ_ONLY`."""
    return max(verdicts, key=_ORDER.index, default=_ORDER[0])


# a variable, a command, braces that were not expanded, the home folder of another user
_COMPUTED = r"[$`]|\{[^{}]*(?:,|\.\.)|/~"


def is_computed(path: str) -> bool:
    """Whether the path of an access is known only when the line runs."""
    return not path.startswith("/") or re.search(_COMPUTED, path) is not None


COMMITTED = "the files that a commit names"
"""The folder of a tree whose names only a repository knows."""


class Tree(NamedTuple):
    """The files below a folder, restricted to names that match a pattern."""

    folder: str
    """Absolute and normalized; one that does not start with "/" could not be resolved."""
    pattern: str = "*"
    split: bool = False
    """The names are split at white space before the command receives them."""
    bare: bool = False
    """The names are handed over without a folder before them, so that `-r` is an option: `ls | xargs cat`."""
    follows: bool = False
    """A link among the files is read like a file."""
    enters: bool = False
    """Links to folders are walked too."""
    visible: bool = False
    """Hidden files are passed over."""
    secrets: bool = True
    """Secrets may be shown; git hides those that it tracks, formatters read sources, and only rules apply to these."""
    tracked: bool = False
    """Only files that git tracks count."""
    whole: bool = False
    """Those of the whole repository count, not only those below the folder."""
    unless: tuple[str, ...] = ()
    """If one of these exists, the call is restricted to it, and the tree is not read."""


@frozen
class SimpleCommand:
    """One program call found anywhere in a line, including places where it may never run."""

    words: tuple[str, ...]
    """Without quotes and wrappers; a word that is not literal stays as written."""
    text: str
    """The command as it stands in the line, redirects and wrappers included."""
    literal: bool = True
    """Whether every word is known exactly."""
    wrappers: tuple[str, ...] = ()
    """The names of the removed wrappers (env, sudo, timeout, xargs), outermost first."""
    wrapped: tuple[tuple[str, ...], ...] = ()
    """The words before each wrapper was removed, outermost first."""
    assignments: tuple[tuple[str, str | None], ...] = ()
    """Variables set for this command; None stands for a value that is not literal."""
    cwd: str | None = None
    """The folder it runs in, followed through cd; None when it is unknown."""
    redirected: bool = False
    inside: str = ""
    """The construct it was found in: a substitution, a heredoc, bash -c, a function; empty at the top level."""
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    accesses: tuple[Access, ...] = ()
    """Paths are absolute and lexically normalized. One that does not start with "/" could not be resolved;
    one with ``*``, ``?`` or ``[`` in it stands for everything it matches."""
    trees: tuple[Tree, ...] = ()
    """Folders whose files it may read without naming them: `grep -r`, `find -exec`, names piped into xargs."""
    copied: tuple[Tree, ...] = ()
    """Folders whose files it writes elsewhere under the same names."""

    @property
    def program(self) -> str:
        """The plain name of the program, without its folder; empty without one."""
        return self.words[0].rpartition("/")[2] if self.words else ""


@frozen
class ShellPlan:
    """What a line would do, estimated from below and from above.

    Allow a line only when it is `proven`. Deny by `commands` and `accesses`, which name everything that might happen,
    even when the line as a whole could not be understood.
    """

    line: str
    commands: tuple[SimpleCommand, ...] = ()
    accesses: tuple[Access, ...] = ()
    """All accesses of the commands and redirects, without duplicates."""
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    """The reason for the verdict, shown to the user."""
    proven: bool = False
    """Whether the whole line is understood and every word that decides the effect is literal."""
    dangers: tuple[str, ...] = ()
    """What to stop whatever the rules allow: fork bombs, raw device writes, a root removed through a variable,
    variables that stand for more text than can be checked."""
    problem: str = ""
    """Why the line could not be analyzed, or empty."""
    unread: str = ""
    """Why it may run commands that are not listed: the analysis gave up on a part of it; empty if it did not."""


def starts_with(command: SimpleCommand, beginnings: Iterable[str]) -> str:
    """Return the first of several beginnings, such as `docker` or `git push *`, that a command has; empty if none.

    The command is compared as it runs and as each wrapper around it was written.
    """
    from fnmatch import fnmatchcase

    for words in (command.words, *command.wrapped):
        plain = (words[0].rpartition("/")[2], *words[1:]) if words else ()
        for beginning in beginnings:
            wanted = beginning.removesuffix(":*").removesuffix(" *").split()
            if wanted and len(plain) >= len(wanted) and all(map(fnmatchcase, plain, wanted)):
                return beginning
    return ""


ENVIRONMENT_SHOWN = "it prints the environment"
"""The reason of a command that shows every variable; a policy decides whether there is one to hide."""
