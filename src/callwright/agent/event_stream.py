"""A run as a stream of its events, which wait in a queue until the consumer reads them."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from callwright.agent.results import AgentEvent, Result
from callwright.agent.run_request import wait_for_end
from callwright.agent.transcript import Emit
from callwright.core.calls import ToolCall
from callwright.core.events import CallProgressed
from callwright.providers.base import CallDelta, TextDelta, ThinkingDelta

_MOST_WAITING = 1_000
"""How many events may wait before old progress reports are dropped."""
_MOST_PIECES = 1_000


async def stream_events(start: Callable[[Emit], Awaitable[Result]]) -> AsyncGenerator[AgentEvent, None]:
    """Yield a run's events as they occur and its result last.

    Closing the generator early cancels the run and waits until it has ended.
    """
    # The run gets its own task: a consumer that is slow or leaves must not suspend it between two steps.
    events = EventQueue()
    run = asyncio.ensure_future(start(events.put))
    run.add_done_callback(lambda _: events.end())  # also if the run raises
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await run
    finally:
        run.cancel()
        await wait_for_end(run)


class EventQueue:
    """The events of a run that its consumer has not read yet.

    Bounded without blocking the run: neighbouring deltas of one text are joined, and of many progress reports of a call
    the last one stays. What remains grows with the turns of the run, not with the length of its texts in pieces.
    """

    def __init__(self) -> None:
        self._events: deque[AgentEvent | _JoinedDeltas] = deque()
        self._arrived = asyncio.Event()
        self._ended = False

    def put(self, event: AgentEvent) -> None:
        """Add an event."""
        last = self._events[-1] if self._events else None
        if isinstance(event, (TextDelta, ThinkingDelta, CallDelta)):
            if isinstance(last, _JoinedDeltas) and last.add(event):
                return
            self._events.append(_JoinedDeltas(event))
        else:
            if isinstance(event, CallProgressed):
                self._drop_report(event.call)
            self._events.append(event)
        self._arrived.set()

    def end(self) -> None:
        """Let the consumer end when it has read everything."""
        self._ended = True
        self._arrived.set()

    async def get(self) -> AgentEvent | None:
        """Return the next event; None after the last one."""
        while not self._events:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        event = self._events.popleft()
        return event.join() if isinstance(event, _JoinedDeltas) else event

    def _drop_report(self, call: ToolCall) -> None:
        if len(self._events) < _MOST_WAITING:  # a consumer that keeps up receives every report
            return
        for index, event in enumerate(self._events):
            if isinstance(event, CallProgressed) and event.call is call:
                del self._events[index]
                return


class _JoinedDeltas:
    """Neighbouring deltas of one text, one thought or one call's arguments."""

    __slots__ = ("_first", "_pieces")

    def __init__(self, first: TextDelta | ThinkingDelta | CallDelta) -> None:
        self._first = first
        self._pieces = [_text_of(first)]

    def add(self, delta: TextDelta | ThinkingDelta | CallDelta) -> bool:
        """Join a delta, if it continues the same text."""
        if type(delta) is not type(self._first) or _source_of(delta) != _source_of(self._first):
            return False
        self._pieces.append(_text_of(delta))
        if len(self._pieces) >= _MOST_PIECES:  # pieces of a few characters are much larger than their text
            self._pieces = ["".join(self._pieces)]
        return True

    def join(self) -> AgentEvent:
        """Return one delta with the whole text."""
        if len(self._pieces) == 1 and self._pieces[0] is _text_of(self._first):
            return self._first
        text = "".join(self._pieces)
        return replace(self._first, **{"arguments" if isinstance(self._first, CallDelta) else "text": text})


def _text_of(delta: TextDelta | ThinkingDelta | CallDelta) -> str:
    return delta.arguments if isinstance(delta, CallDelta) else delta.text


def _source_of(delta: TextDelta | ThinkingDelta | CallDelta) -> object:
    return (delta.call_id, delta.name) if isinstance(delta, CallDelta) else None
