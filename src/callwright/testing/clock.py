"""A clock nobody waits for."""

import asyncio


class FakeClock:
    """Remembers how long it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Return at once, after giving others a turn."""
        self.slept.append(seconds)
        await asyncio.sleep(0)
