"""The output of a command that has ended, and what its exit code means."""

import re

from callwright.core.content import Output
from callwright.core.errors import TimedOut, ToolFailed
from callwright.shell.plan import ShellPlan
from callwright.system.output_capture import OutputLimits
from callwright.system.process import CommandResult
from callwright.system.sandbox.wall import Confined

MAX_SECONDS = 600.0
"""The longest time limit of a command."""
LEFT = re.compile(r"\nleft (\d+)\n\Z")
"""How a shell behind a wall reports the processes it left running."""
_EXIT_1_MEANS_NO = frozenset(
    {"grep", "egrep", "fgrep", "zgrep", "rg", "diff", "cmp", "test", "[", "[[", "find", "pgrep"}
)
_GIT_EXIT_1_MEANS_NO = frozenset({"diff", "grep"})
_NEUTRAL = frozenset({"echo", "printf", "true", ":", "cd", "head", "tail", "wc", "sort", "cat"})


class CommandFailed(ToolFailed):
    """A command that ended with an error code; the message contains its output."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def build_output(ended: CommandResult, notes: str, plan: ShellPlan, seconds: float, caps: OutputLimits) -> Output:
    """Return what the model reads about a command that has ended.

    Args:
        ended: How it ended.
        notes: Further lines for the model.
        plan: The analysis of its line.
        seconds: Its time limit.
        caps: How much it may write.

    Raises:
        TimedOut: It was stopped at its time limit.
        CommandFailed: It ended with an error code, or wrote too much.
    """
    output = ended.output.text.rstrip("\n") or "(no output)"
    counted = LEFT.search(ended.report)
    leftovers = ended.leftovers or (int(counted[1]) if counted else 0)
    left = f"[processes it left running were stopped: {leftovers}; use background=true to keep one]\n"
    text = f"{output}\n{left if leftovers else ''}{notes}"
    if ended.reason == "timed_out":
        raise TimedOut(
            f"{text}timed out after {seconds:g} s and was stopped with all its processes; it may have had effects."
            f" pass timeout_seconds (at most {MAX_SECONDS:g}) or background=true for longer commands"
        )
    if ended.reason == "flooded":
        raise CommandFailed(f"{text}stopped: it wrote more than {caps.flood_bytes} bytes", ended.exit_code)
    text = f"{text}exit code: {ended.exit_code}"
    if ended.exit_code and not (ended.exit_code == 1 and _means_no(plan)):
        raise CommandFailed(text, ended.exit_code)
    return Output(text, {"exit_code": ended.exit_code})


def _means_no(plan: ShellPlan) -> bool:
    # exit code 1 is a result (nothing found, files differ) if the last command that sets it is one of these
    words = [command.words for command in plan.commands if command.words and not command.inside]
    deciding = [each for each in words if each[0] not in _NEUTRAL]
    if not deciding:
        return False
    name, *rest = deciding[-1]
    return name in _EXIT_1_MEANS_NO or (name == "git" and bool(_GIT_EXIT_1_MEANS_NO.intersection(rest[:1])))


def describe_removed(confined: Confined) -> str:
    """Return the note about protected paths that a command made and that were moved away; empty without any."""
    if not confined.removed:
        return ""
    paths = ", ".join(confined.removed)
    return f"[moved away, because it configures other programs and it was not approved: {paths}]\n"
