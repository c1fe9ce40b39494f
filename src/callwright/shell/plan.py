"""What a shell line would do, as values: the plan, its simple commands, their verdicts.

The answer to "what would this call do?", shared by everything that judges calls.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from callwright.core.access import Access
from callwright.shell.wrappers import Layer


class Verdict(StrEnum):
    """How much a command can change, from harmless to worst; what nobody can tell counts as worst."""

    READ_ONLY = "read-only"
    READS_NETWORK = "reads-network"
    WRITES = "writes"
    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Place in the order, so that the worst of several verdicts can be found."""
        return _ORDER.index(self)


_ORDER = tuple(Verdict)


def worst(*verdicts: Verdict) -> Verdict:
    """Return the verdict a line gets from its parts; no parts at all are harmless."""
    return max(verdicts, key=_ORDER.index, default=_ORDER[0])


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program call found anywhere in a line, also where it only might run."""

    words: tuple[str, ...]
    """Without quotes and wrappers; a word that is not literal stays as written."""
    text: str
    """The command as it stands in the line, redirects and wrappers included."""
    literal: bool = True
    """Every word is known to the letter."""
    wrappers: tuple[str, ...] = ()
    """Names of what was taken off in front (env, sudo, timeout, xargs), outermost first."""
    wrapped: tuple[tuple[str, ...], ...] = ()
    """The words as they stood before each wrapper was taken off, outermost first."""
    assignments: tuple[tuple[str, str | None], ...] = ()
    """Variables set for this command; None stands for a value that is not literal."""
    cwd: str | None = None
    """Where it runs, followed through cd; None when that cannot be known."""
    redirected: bool = False
    inside: str = ""
    """What it was found in: a substitution, a heredoc, bash -c, a function; empty at the top."""
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    accesses: tuple[Access, ...] = ()
    """Paths are absolute and lexically normalised. One that does not start with "/" could not be resolved;
    one with ``*``, ``?`` or ``[`` in it stands for everything it matches."""


@dataclass(frozen=True, slots=True)
class ShellPlan:
    """What a line would do, told twice: proven from below, feared from above.

    Allow only what is `proven`. Deny by `commands` and `accesses`, which name everything that might happen,
    also when the line as a whole could not be understood.
    """

    line: str
    commands: tuple[SimpleCommand, ...] = ()
    accesses: tuple[Access, ...] = ()
    """Everything the commands and redirects touch, each once."""
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    """Why the verdict, for a person."""
    proven: bool = False
    """The whole line is understood and every word that matters is literal: only then may anything be allowed."""
    dangers: tuple[str, ...] = ()
    """What must be stopped whatever the rules say: fork bombs, raw device writes, a root removed through a variable."""
    problem: str = ""
    """Why it could not be analysed, or empty."""


class Judgement(NamedTuple):
    """One call's verdict, why, and what it touches."""

    verdict: Verdict
    reason: str
    accesses: tuple[Access, ...] = ()
    layers: tuple[Layer, ...] = ()
    """Programs the call runs in turn (find -exec), to be judged like any other."""


def unknown(reason: str, accesses: tuple[Access, ...] = (), layers: tuple[Layer, ...] = ()) -> Judgement:
    """Judge a call nobody can vouch for."""
    return Judgement(Verdict.UNKNOWN, reason, accesses, layers)
