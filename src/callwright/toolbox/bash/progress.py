"""Shows a running command: its output to observers, or the command itself in a terminal of another program."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from callwright.system.output_capture import OutputLimits
from callwright.system.process import Command, CommandResult

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
