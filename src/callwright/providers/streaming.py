"""The one way an answer is read: opened, taken in piece by piece, whole at the end or a `ProviderError`.

Listens in on a model: every event, at the moment it is there.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from callwright.core.messages import AssistantMessage
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, Provider, vendor_of
from callwright.providers.clients import close_provider
from callwright.providers.errors import vendor_errors


class Draft(Protocol):
    """A message that grows by what one vendor sends."""

    def take(self, piece: Any, /) -> Iterable[ModelEvent]:
        """Take in one piece; say what of it is news."""
        ...

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        ...


async def answer(
    draft: Draft, opened: AbstractAsyncContextManager[AsyncIterator[Any]], *, key: str
) -> AsyncIterator[ModelEvent]:
    """Read an answer into a draft; `key` is the variable a missing key is looked for in.

    Closing the iterator ends the request. Nothing is sent before the first event is asked for.
    """
    async with vendor_errors(key=key), opened as pieces:
        async for piece in pieces:
            for news in draft.take(piece):
                yield news
    yield MessageDone(draft.message())


class TappedProvider:
    """A provider whose events are also told to somebody."""

    def __init__(self, inner: Provider, tell: Callable[[ModelEvent], None]) -> None:
        self._inner = inner
        self._tell = tell

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def vendor(self) -> str:
        return vendor_of(self._inner)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model, and tell what it said before the agent goes on."""
        events = self._inner.stream(request)
        try:
            async for event in events:
                self._tell(event)
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def aclose(self) -> None:
        """Close the model's connections."""
        await close_provider(self._inner)
