"""The model of the conversation, and the others that skills ask for."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeAlias

from callwright.core.errors import UsageError
from callwright.providers.base import ModelEvent, ModelRequest, Provider
from callwright.providers.clients import close_provider

OpenModel: TypeAlias = Callable[[str], Provider]
"""Makes the provider of a model by its name; raises `UsageError`."""


def named_model(name: str) -> Provider:
    """Make the provider of a model by the name it has in settings."""
    from callwright.providers.names import provider_for  # few skills ask for a model

    return provider_for(name)


class Models:
    """The conversation's own model and others by name, each opened once."""

    def __init__(self, own: Provider, open_model: OpenModel = named_model, *, switching: bool = True) -> None:
        """Without `switching` only agents inside the conversation may have another model: its own is being watched."""
        self.own = own
        self.switching = switching
        self.main = SwitchedModel(own)
        """The model the conversation is led with: its own, or the one it was switched to."""
        self._open = open_model
        self._opened: dict[str, Provider] = {}

    def get(self, name: str) -> Provider:
        """The provider of a model; raises `UsageError`."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def switch(self, name: str = "") -> None:
        """Go on with another model, or without a name with the conversation's own."""
        if name and not self.switching:
            raise UsageError("only a skill that runs as an agent of its own can have another model here: context: fork")
        self.main.current = self.get(name) if name else self.own

    async def aclose(self) -> None:
        """Close what was opened here; the conversation's own model is closed with its agent."""
        while self._opened:
            await close_provider(self._opened.popitem()[1])


class SwitchedModel:
    """A provider another one can stand in for."""

    def __init__(self, own: Provider) -> None:
        self._own = own
        self.current = own

    @property
    def model(self) -> str:
        return self.current.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask whichever model is in force."""
        events = self.current.stream(request)
        try:
            async for event in events:
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def aclose(self) -> None:
        """Close the conversation's own model."""
        await close_provider(self._own)

    def __getattr__(self, name: str) -> Any:
        if name in ("_own", "current"):  # not there yet, as while being copied
            raise AttributeError(name)
        return getattr(self.current, name)
