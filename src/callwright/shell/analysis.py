"""The door of the package: a line in, what it would do out."""

import os
import re
from functools import lru_cache

from callwright.core.access import Access
from callwright.shell.dangers import fork_bomb
from callwright.shell.folders import normal
from callwright.shell.ledger import Around, Ledger
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict, worst
from callwright.shell.report import NOT_BASH, Reporter
from callwright.shell.words import home

MAX_PROVEN_CHARS = 10_000
"""A longer line is never proven: nobody can read it before agreeing to it."""
MAX_READ_CHARS = 120_000
"""Of a longer line only the beginning and the end are searched for commands."""
_EDGE_CHARS = 2_500

# what bash does not take for white space but a reader may, what hides text, and what is not text at all
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_CONTINUED = re.compile(r"(?<!\\)\\\n")


def analyse(line: str, cwd: str | os.PathLike[str]) -> ShellPlan:
    """Say what a bash line would do if it ran in a folder. Runs nothing, reads no file, never raises."""
    folder = normal(os.path.join("/", os.fspath(cwd)))  # noqa: PTH118 - lexical: the disk is not asked
    if len(line) > MAX_PROVEN_CHARS:  # seldom and large: not worth the memory
        return analyse_anew(line, folder)
    return _remembered(line, folder, home())


@lru_cache(maxsize=256)
def _remembered(line: str, folder: str, _home: str) -> ShellPlan:
    """A call's line is looked at by the tool, by each policy that asks, and often again on the next turn."""
    return analyse_anew(line, folder)


def analyse_anew(line: str, folder: str) -> ShellPlan:
    """Analyse without looking at what was analysed before, for a folder that is absolute and tidy."""
    ledger = Ledger(start=frozenset((folder,)))
    problem = _problem(line)
    reporter = Reporter(ledger)
    for script in _scripts(line, ledger):
        try:
            reporter.script(script, ledger.start, Around())
        except (RecursionError, MemoryError, ValueError):
            problem = problem or "it is too tangled to be analysed"
    ledger.fear(fork_bomb(line))
    return _plan(line, ledger, problem)


def _problem(line: str) -> str:
    if len(line) > MAX_PROVEN_CHARS:
        return f"it is {len(line):,} characters long; split it into lines of at most {MAX_PROVEN_CHARS:,}"
    if _UNREADABLE.search(line):
        return "it holds characters that are not text"
    if hidden := _HIDDEN.search(line):
        return f"it holds the invisible or control character U+{ord(hidden[0]):04X}"
    return ""


def _scripts(line: str, ledger: Ledger) -> list[str]:
    """Return what to read: the line as bash reads it, in pieces when it is far too long."""
    if len(line) > MAX_READ_CHARS:
        return [line[:_EDGE_CHARS], line[-_EDGE_CHARS:]]
    line = line.replace("\x00", "").replace("\r\n", "\n")
    if "\\\n" in line:
        if any(mark in line for mark in ("'", "#", "<<", "\\\\")):
            ledger.object("it continues over several lines in a way that is hard to follow")
        line = _CONTINUED.sub("", line)
    return [line]


def _plan(line: str, ledger: Ledger, problem: str) -> ShellPlan:
    commands = tuple(ledger.commands)
    verdict = worst(*{command.verdict for command in commands})
    if not problem and NOT_BASH in ledger.objections:
        problem = NOT_BASH
    proven = not problem and not ledger.objections
    reason = _reason(commands, verdict)
    if not proven and verdict is not Verdict.UNKNOWN:
        verdict, reason = Verdict.UNKNOWN, problem or ledger.objections[0]
    return ShellPlan(
        line, commands, _accesses(commands), verdict, problem or reason, proven, tuple(ledger.dangers), problem
    )


def _accesses(commands: tuple[SimpleCommand, ...]) -> tuple[Access, ...]:
    return tuple(dict.fromkeys(access for command in commands for access in command.accesses))


def _reason(commands: tuple[SimpleCommand, ...], verdict: Verdict) -> str:
    return next((command.reason for command in commands if command.verdict is verdict), "it does nothing")
