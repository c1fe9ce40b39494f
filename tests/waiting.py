"""Waiting for conditions and for the end of time limits, without a number of seconds that a slow machine may exceed.

Also ports for servers that cannot choose one themselves.
"""

import asyncio
import random
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

LONG_SECONDS = 90.0
"""More than anything that is waited for takes on the slowest machine, and less than the time limit of a test."""


async def until(found: Callable[[], Any]) -> Any:
    """Wait until something is so, and return it."""
    deadline = time.monotonic() + LONG_SECONDS
    while not (result := found()):
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.005)
    return result


async def within(running: Awaitable[Any]) -> Any:
    """Await, and fail instead of hanging; not by `wait_for`, which the subject could ignore."""
    task = asyncio.ensure_future(running)
    done, _ = await asyncio.wait([task], timeout=LONG_SECONDS)
    assert done, "it hangs"
    return task.result()


def until_so(found: Callable[[], Any]) -> Any:
    """Do the same as `until` where there is no event loop."""
    deadline = time.monotonic() + LONG_SECONDS
    while not (result := found()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
    return result


async def close_stream(writer: asyncio.StreamWriter) -> None:
    """Close a connection and wait until it is: what the end of the event loop cuts off is reported in another test."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def find_port() -> int:
    """Find a port of loopback that is free and stays so until its server starts.

    It is below those that systems give to connections by themselves, of which other tests make many.
    """
    chance = random.SystemRandom()  # not the generator of tests, which is seeded alike in every worker
    while True:
        port = chance.randrange(20_000, 32_000)
        with socket.socket() as door, suppress(OSError):
            door.bind(("127.0.0.1", port))
            return port


class LoopClock:
    """The clock of the running event loop, which can be set forward.

    A time limit under test is long, so that a slow machine does not reach it, and passes when the test says so.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._real, self._ahead = loop.time, 0.0
        loop.time = self._time  # type: ignore[method-assign] - timers and deadlines ask the loop for the time

    def _time(self) -> float:
        return self._real() + self._ahead

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass at once; what was due in it happens in the loop's next turn."""
        self._ahead += seconds
