"""The one way an answer is read: opened, taken in piece by piece, whole at the end or a `ProviderError`."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from callwright.core.message import AssistantMessage
from callwright.providers.base import MessageDone, ModelEvent
from callwright.providers.vendor import vendor_errors


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
