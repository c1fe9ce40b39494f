"""When to try again, and how long to wait before."""

import asyncio
import random
from dataclasses import dataclass
from typing import Protocol

from callwright.core.errors import TimedOut, ToolError, Transient, UsageError
from callwright.core.spec import Annotations, Effect

_TRANSIENT_STATUS = frozenset({408, 425, 429})


class Clock(Protocol):
    """Where waiting happens, so that tests need not wait."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class WallClock:
    """Really waits."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Up to three attempts with exponential backoff, for errors that may pass."""

    max_attempts: int = 3
    initial_seconds: float = 0.5
    backoff: float = 2.0
    longest_seconds: float = 30.0
    jitter: float = 0.25
    """Each delay is shortened by up to this share, so that many callers do not come back at once."""

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise UsageError(f"RetryPolicy.max_attempts must be at least 1, not {self.max_attempts!r}")
        if self.initial_seconds < 0 or self.backoff < 1 or not 0 <= self.jitter <= 1:
            raise UsageError(f"RetryPolicy needs initial_seconds >= 0, backoff >= 1 and jitter from 0 to 1: {self!r}")

    def again(self, error: ToolError, attempt: int, annotations: Annotations) -> bool:
        """Whether the attempt of that number, failed with that error, should be followed by another."""
        if attempt >= self.max_attempts:
            return False
        harmless = annotations.idempotent or annotations.effect is Effect.READ
        if isinstance(error, Transient):
            return not error.inferred or harmless
        return isinstance(error, TimedOut) and annotations.idempotent

    def delay(self, error: ToolError, attempt: int) -> float:
        """Seconds to wait after that attempt; what the other side asked for counts if it is longer."""
        planned = min(self.initial_seconds * self.backoff ** (attempt - 1), self.longest_seconds)
        planned *= 1 - self.jitter * random.random()
        asked = error.retry_after if isinstance(error, Transient) else None
        return max(planned, asked or 0.0)


def is_transient_status(status: int) -> bool:
    """Whether an HTTP status may pass by itself: too many requests, time-outs, anything from 500 on."""
    return status in _TRANSIENT_STATUS or 500 <= status <= 599


def from_exception(error: BaseException) -> Transient | None:
    """Recognise a broken connection as something that may pass."""
    if isinstance(error, (ConnectionError, asyncio.IncompleteReadError)):
        found = Transient(f"{type(error).__name__}: {error}")
        found.inferred = True
        return found
    return None
