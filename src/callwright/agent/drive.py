"""Ways to drive a run: as a stream of its events, or blocking."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from callwright.agent.result import AgentEvent, Result
from callwright.core.errors import UsageError

Value = TypeVar("Value")
Emit = Callable[[AgentEvent], None]


async def streamed(perform: Callable[[Emit], Awaitable[Result]]) -> AsyncGenerator[AgentEvent, None]:
    """Give a run's events as they come and its result last; leaving early cancels the run and waits for its end.

    The run has a task of its own, so that a slow reader or one that leaves cannot stop it between two steps.
    """
    events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
    run = asyncio.ensure_future(perform(events.put_nowait))
    run.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await run
    finally:
        if not run.done():
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run


def blocking(work: Callable[[], Coroutine[Any, Any, Value]], instead: str) -> Value:
    """Run to the end in an event loop of its own; refuse inside a running one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    raise UsageError(f"run_sync blocks, and an event loop is running here; write `{instead}` instead")
