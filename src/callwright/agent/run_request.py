"""The request for one run of an agent, and the two ways to drive it: as a stream of events, or blocking."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from callwright.agent.results import AgentEvent, Result
from callwright.agent.subagent import Lineage
from callwright.agent.transcript import Emit
from callwright.core.calls import Answers
from callwright.core.content import Part
from callwright.core.errors import UsageError
from callwright.tool.base import Cancellation

Value = TypeVar("Value")
Prompt = str | tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The parameters of one run."""

    session_id: str
    prompt: Prompt | None = None
    answers: Answers | None = None
    output: object = None
    cancellation: Cancellation | None = None
    emit: Emit | None = None
    lineage: Lineage | None = None
    name: str = ""
    """The name reported for an agent that has none."""


async def stream_events(start: Callable[[Emit], Awaitable[Result]]) -> AsyncGenerator[AgentEvent, None]:
    """Yield a run's events as they occur and its result last.

    Closing the generator early cancels the run and waits until it has ended.
    """
    # The run gets its own task: a consumer that is slow or leaves must not suspend it between two steps.
    events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
    run = asyncio.ensure_future(start(events.put_nowait))
    run.add_done_callback(lambda _: events.put_nowait(None))  # ends the loop also if the run raises
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await run
    finally:
        if not run.done():
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run


def run_blocking(start: Callable[[], Coroutine[Any, Any, Value]], instead: str) -> Value:
    """Run a coroutine to its end in a new event loop.

    Raises:
        UsageError: an event loop is already running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    raise UsageError(f"run_sync cannot be used inside a running event loop; use `{instead}` instead")
