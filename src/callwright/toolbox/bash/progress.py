"""Reports the output of a running command to observers."""

import time
from collections.abc import Callable

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
