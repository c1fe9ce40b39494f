"""The output of a command: shown while it runs, and its result with what the exit code means."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from callwright.core.content import Output
from callwright.core.errors import TimedOut, ToolFailed
from callwright.shell.plan import ShellPlan
from callwright.system.output_capture import OutputLimits
from callwright.system.process import Command, CommandResult
from callwright.system.sandbox.wall import Confined

_REPORTS_PER_SECOND = 20
_REPORT_CHARS = 4_000


class Progress:
    """Reports output as it comes, at a bounded rate, so that reporting never costs more than the command."""

    def __init__(self, report: Callable[[object], None]) -> None:
        self._report = report
        self._pending = ""
        self._second = 0
        self._reports = 0

    def __call__(self, text: str) -> None:
        self._pending = (self._pending + text)[-_REPORT_CHARS:]  # an observer needs the latest output only
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._reports = second, 0
        if self._reports < _REPORTS_PER_SECOND:
            self._reports += 1
            self.flush()

    def flush(self) -> None:
        """Report pending output."""
        if self._pending:
            self._report(self._pending)
            self._pending = ""


class CommandTerminals(Protocol):
    """Terminals of another program, such as an editor; nothing confines or supervises commands there."""

    async def run(
        self, command: Command, seconds: float, report: Callable[[object], None], caps: OutputLimits
    ) -> CommandResult | None:
        """Run a command to its end; None if it was not started, so that it runs as usual."""
        ...


async def run_shown(
    terminals: CommandTerminals | None,
    command: Command,
    line: str,
    seconds: float,
    report: Callable[[object], None],
    caps: OutputLimits,
) -> CommandResult | None:
    """Run a line in a terminal that the user sees; None without one.

    Args:
        terminals: Where to run it.
        command: The command of the line, for its folder and environment.
        line: The line itself; what this package adds to it needs descriptors that a terminal lacks.
        seconds: The time limit.
        report: Reports progress of the call.
        caps: How much output is kept.
    """
    if terminals is None:
        return None
    plain = replace(command, argv=("bash", "--noprofile", "--norc", "-c", line))
    return await terminals.run(plain, seconds, report, caps)


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
    why = "it configures other programs or a rule is about it, and it was not approved"
    return f"[moved away, because {why}: {paths}]\n"
