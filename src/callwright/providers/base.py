"""The provider protocol: a request in, a stream of events out, the finished message last."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Literal, Protocol, TypeAlias

from callwright.core._fast import frozen
from callwright.core.errors import CallwrightError, UsageError, check_members
from callwright.core.json import FrozenDict, Json, JsonObject
from callwright.core.messages import AssistantMessage, Message
from callwright.core.spec import ToolSpec

ProviderFault: TypeAlias = Literal["transient", "invalid", "auth", "too_large", "unavailable"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a model needs for one turn."""

    messages: Sequence[Message]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    """The same object every turn until the tools change, so that its encoding can be cached."""
    wire_names: Mapping[str, str] = field(default_factory=FrozenDict)
    """The name a tool is sent under, where it differs from its own."""
    max_tokens: int = 8_192
    output_schema: JsonObject | None = None
    """JSON schema of the final answer."""
    options: Mapping[str, Json] = field(default_factory=FrozenDict)
    """Sent to the provider unchanged."""
    shown: bool = True
    """Whether the user is shown the answer while it arrives: not that of a summary."""


@frozen
class TextDelta:
    """A piece of the answer's text."""

    text: str


@frozen
class ThinkingDelta:
    """A piece of the reasoning."""

    text: str


@frozen
class CallDelta:
    """A piece of a call's arguments; the first one of a call has its name."""

    call_id: str
    name: str
    arguments: str


@frozen
class MessageDone:
    """The finished message; always the last event of a complete stream."""

    message: AssistantMessage


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | CallDelta | MessageDone


class ProviderError(CallwrightError):
    """A failed request.

    Args:
        message: What went wrong, for the operator.
        fault: The kind of failure; only `transient` may be retried.
        retry_after: The wait in seconds that the server asked for.
    """

    def __init__(self, message: str, *, fault: ProviderFault, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.fault: ProviderFault = fault
        self.retry_after = retry_after


class Provider(Protocol):
    """A model API."""

    @property
    def model(self) -> str:
        """The model's name as the provider knows it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        ...


def require_provider(given: Provider) -> Provider:
    """Return a provider unchanged.

    Raises:
        UsageError: It is not a provider, or its `stream` cannot be iterated.
    """
    check_members(given, Provider, "a model name such as 'anthropic:claude-sonnet-5-5' or a Provider")
    if iscoroutinefunction(given.stream):
        raise UsageError(f"{type(given).__name__}.stream returns a coroutine; yield the events: async def with yield")
    return given


def vendor_of(provider: Provider) -> str:
    """Return the vendor of a provider as telemetry names it; empty where it has no `vendor`."""
    return str(getattr(provider, "vendor", ""))


async def close_provider(provider: object) -> None:
    """Close the connections that a provider holds for the running event loop, if any."""
    close = getattr(provider, "aclose", None)
    if close is not None:
        await close()


@asynccontextmanager
async def closing_events(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
    """Close a stream at the end of the block, if it can be closed: `async for` does not when it is left early."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


class ProviderWrapper:
    """A provider in front of another one, which answers for all but `stream`."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        """The name of the model behind it."""
        return self._inner.model

    @property
    def vendor(self) -> str:
        """The vendor of the model behind it."""
        return vendor_of(self._inner)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await close_provider(self._inner)
