"""How fast a server may talk: one that floods is read more slowly, which costs nobody else anything."""

import asyncio
import time

_PER_SECOND = 2_000
_BURST = 10_000


class Pace:
    """Lets a burst through at once and what follows at a steady rate."""

    def __init__(self, per_second: float = _PER_SECOND, burst: float = _BURST) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = burst
        self._stamp = time.monotonic()

    def allows(self) -> bool:
        """Count one message, unless there have been too many."""
        if self._left < 1:
            now = time.monotonic()
            self._left = min(self._burst, self._left + (now - self._stamp) * self._per_second)
            self._stamp = now
            if self._left < 1:
                return False
        self._left -= 1
        return True

    async def keep(self) -> None:
        """Count one message; wait if there have been too many."""
        while not self.allows():  # noqa: ASYNC110 - what is waited for is the clock
            await asyncio.sleep((1 - self._left) / self._per_second)
