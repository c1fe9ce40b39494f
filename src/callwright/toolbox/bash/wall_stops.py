"""Recognizes that the sandbox stopped a command, and says what the command tried."""

import os
import re
from collections.abc import Sequence

from callwright.core.access import Confinement, ReadPath, is_below
from callwright.shell.plan import ShellPlan, Verdict, is_computed
from callwright.system.process import CommandResult
from callwright.system.sandbox.wall import Wall
from callwright.tool.base import ToolContext

OUTSIDE = "; run it from the start, outside the sandbox?"
"""The end of every question whose yes takes the wall away."""
_SHOWN_CHARS = 300
_SEARCHED_CHARS = 20_000
_REFUSED = "Read-only file system|Device or resource busy|Invalid cross-device link"
_WRITE_STOPS = (
    re.compile(rf"(?:{_REFUSED}): ['\"](?P<path>[^'\"\n]{{1,300}})"),  # Python
    re.compile(r"(?:EROFS|EBUSY|EXDEV): [^'\n]{0,80}'(?P<path>[^'\n]{1,300})"),  # node
    re.compile(rf"'(?P<path>[^'\n]{{1,300}})' failed: (?:{_REFUSED})"),  # git
    re.compile(r"[‘'\"`](?P<path>[^‘'\"`\n]{1,300})[’'\"`]: (?:Read-only file system|Device or resource busy)"),
    re.compile(r"(?P<path>[^\s:'\"]{1,300}): (?:Read-only file system|Device or resource busy)"),
    re.compile(r"(?P<path>[^\s:'\"]{1,300})['\"]?: Invalid cross-device link"),
    re.compile(r"(?P<path>)Read-only file system|EROFS"),
)
_NETWORK = re.compile(
    r"(?:Could not resolve host:?|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|Failed to connect to|Could not resolve hostname"
    r"|failed to lookup address information|Network is unreachable|Temporary failure in name resolution|ENETUNREACH"
    r"|Name or service not known)[ :]*(?P<host>[\w.-]{1,200})?"
)
_SERVICE = re.compile(
    r"Cannot connect to the Docker daemon|Permission denied \(publickey|Could not open a connection to your"
)
# what may run unasked where no sandbox can be used: programs without options that run others or write
_HARMLESS = frozenset(
    "ls cat head tail wc grep egrep fgrep rg pwd echo printf cd true false : test [ [[ which type whoami id date uname"
    " stat file du df sort uniq cut tr basename dirname realpath readlink diff cmp nl tac sleep".split()
)
_HARMLESS_GIT = frozenset("status log diff show branch rev-parse ls-files blame remote describe tag".split())


def is_allowed_outside(context: ToolContext) -> bool:
    """Whether the user said yes to running this call outside the sandbox."""
    question = context.question
    return context.answer is not None and question is not None and question.reason.endswith(OUTSIDE)


def find_wall_failure(ended: CommandResult) -> str:
    """Return why the wall itself did not start, so that nothing was run; empty if it stood."""
    if ended.exit_code not in (1, 126) or ended.report:
        return ""
    text = ended.output.text
    failed = text.startswith(("bwrap: ", "cannot run bash in the sandbox", "sandbox-exec: "))
    return text.strip()[:500] if failed else ""


def make_outside_question(ended: CommandResult, confinement: Confinement, cwd: str) -> str:
    """Return the question whether to run a line again without the wall that stopped it; empty if none did."""
    if not ended.exit_code or ended.reason != "exited":
        return ""
    stop = describe_stop(ended.output.text, confinement, cwd)
    last = " ".join(ended.output.text.split())[-_SHOWN_CHARS:]
    return f"the sandbox stopped it: {stop} (exit code {ended.exit_code}: {last}){OUTSIDE}" if stop else ""


def describe_stop(text: str, confinement: Confinement, cwd: str) -> str:
    """Return what a failed command tried and the sandbox stopped; empty if the sandbox was not the reason.

    Args:
        text: The command's output.
        confinement: What it was allowed to use.
        cwd: The folder it ran in.
    """
    searched = text[-_SEARCHED_CHARS:]
    if Confinement.UNCONFINED in confinement:
        return ""
    if Confinement.NETWORK not in confinement and (found := _NETWORK.search(searched)):
        host = found["host"]
        return f"it tried to reach {host} over the network" if host else "it tried to use the network"
    named = False
    for pattern in _WRITE_STOPS:
        for found in pattern.finditer(searched):
            path = found["path"] or ""
            if not path and named:
                break  # the messages named their paths, and none of them could be written without the sandbox
            named = True
            if _would_be_writable(path, cwd):
                return f"it tried to write to {path}" if path else "it tried to write where it may not"
    if _SERVICE.search(searched):
        return "it tried to use a service or a key that the sandbox hides"
    return ""


def _would_be_writable(path: str, cwd: str) -> bool:
    """Whether a path can be written without the sandbox; then the sandbox was the reason."""
    place = os.path.join(cwd, path)  # noqa: PTH118 - text from an error message
    while place and not os.path.lexists(place):
        place = os.path.dirname(place)  # noqa: PTH120 - as above
    return os.access(place, os.W_OK)


def is_harmless_without_wall(plan: ShellPlan) -> bool:
    """Whether a line may run unasked where nothing confines it."""
    if not plan.proven or plan.verdict is not Verdict.READ_ONLY:
        return False
    return all(_is_harmless(command.words) for command in plan.commands if command.words)


def _is_harmless(words: Sequence[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and words[1] in _HARMLESS_GIT
    return words[0] in _HARMLESS


def why_unmasked(plan: ShellPlan, wall: Wall | None) -> str:
    """Return why a line must not run unasked: it could read secrets that its wall does not mask; empty if not."""
    if wall is None or not wall.unsearched:
        return ""
    understood = plan.proven and all(command.verdict is not Verdict.UNKNOWN for command in plan.commands)
    # the guards cannot judge a path that is computed, such as `"$name"` in a loop
    named = not any(is_computed(access.path) for access in plan.accesses if isinstance(access, ReadPath))
    trees = [tree.folder for command in plan.commands for tree in command.trees if tree.secrets]
    named = named and not any(map(is_computed, trees))
    whole = [os.path.realpath(folder) for folder in trees]
    large = [path for path in whole if is_below(path, wall.unsearched) and not is_below(path, wall.searched)]
    if understood and named and not large:
        return ""  # the guards have judged the files that it names
    shown = (large or wall.unsearched)[0]
    return f"{shown} has too many folders to search all of them for secrets, so some may not be masked{OUTSIDE}"
