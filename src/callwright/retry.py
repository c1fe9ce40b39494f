"""Retries: which errors are retried, and after which delay."""

import asyncio
from typing import Protocol

from callwright.core._fast import frozen
from callwright.core.errors import TimedOut, ToolError, Transient, check_number, read_wait
from callwright.core.spec import Annotations


class Clock(Protocol):
    """Waits; replaced in tests, so that they need not."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


class WallClock:
    """Waits in real time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@frozen
class RetryPolicy:
    """How often transient errors are retried, and with which exponential backoff.

    Raises:
        UsageError: A value is out of range.
    """

    max_attempts: int = 3
    initial_seconds: float = 0.5
    backoff: float = 2.0
    longest_seconds: float = 30.0
    jitter: float = 0.25
    """Each delay is shortened by up to this share, so that many callers do not retry at the same moment."""

    def __post_init__(self) -> None:
        check_number("RetryPolicy.max_attempts", self.max_attempts, 1, whole=True)
        check_number("RetryPolicy.initial_seconds", self.initial_seconds, 0)
        check_number("RetryPolicy.backoff", self.backoff, 1)
        check_number("RetryPolicy.longest_seconds", self.longest_seconds, 0)
        check_number("RetryPolicy.jitter", self.jitter, 0, most=1)

    def should_retry(self, error: ToolError, attempt: int, annotations: Annotations) -> bool:
        """Whether to repeat a call after an attempt failed.

        Args:
            error: The error of the attempt.
            attempt: Its number, from 1.
            annotations: The tool's; they say whether repeating is harmless.
        """
        if attempt >= self.max_attempts:
            return False
        harmless = annotations.repeatable
        if isinstance(error, Transient):
            return not error.inferred or harmless
        return isinstance(error, TimedOut) and annotations.idempotent

    def find_excessive_wait(self, error: ToolError) -> float | None:
        """Return the wait that the server asked for if it is longer than `longest_seconds`, else None."""
        requested = _read_requested(error)
        return requested if requested > self.longest_seconds else None

    def delay(self, error: ToolError, attempt: int) -> float:
        """Return the seconds to wait after an attempt: the backoff, or the server's `retry_after` if it is longer.

        Args:
            error: The error of the attempt.
            attempt: Its number, from 1.
        """
        from random import random  # loaded with the first retry

        try:
            planned = min(self.initial_seconds * self.backoff ** (attempt - 1), self.longest_seconds)
        except OverflowError:  # after a thousand attempts
            planned = self.longest_seconds if self.initial_seconds else 0.0
        planned *= 1 - self.jitter * random()
        return max(planned, _read_requested(error))


def _read_requested(error: ToolError) -> float:
    """Return the seconds that the server asked for, 0 if none; a subclass may have set them itself."""
    return (read_wait(error.retry_after) or 0.0) if isinstance(error, Transient) else 0.0
