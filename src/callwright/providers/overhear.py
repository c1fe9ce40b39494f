"""Listens in on a model: every event, at the moment it is there."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable

from callwright.providers.base import ModelEvent, ModelRequest, Provider, vendor_of
from callwright.providers.clients import close_provider


class Overheard:
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
