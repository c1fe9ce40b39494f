"""What a model API is to us: a request in, a stream of events out, the finished message last."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from callwright.core.errors import CallwrightError
from callwright.core.json import FrozenDict, Json, JsonObject
from callwright.core.messages import AssistantMessage, Message
from callwright.core.spec import ToolSpec

ProviderFault: TypeAlias = Literal["transient", "invalid", "auth", "too_large", "unavailable"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything one turn of a model needs."""

    messages: Sequence[Message]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    """The same object every turn until the tools change, so that its encoding can be kept."""
    wire_names: Mapping[str, str] = field(default_factory=FrozenDict)
    """The name each tool has at the provider's edge, where it is not its own."""
    max_tokens: int = 8_192
    output_schema: JsonObject | None = None
    """The final answer must be JSON of this shape."""
    options: Mapping[str, Json] = field(default_factory=FrozenDict)
    """Passed to the provider as they are."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a call's arguments; the first one of a call names it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class MessageDone:
    """The whole message; always the last event of a stream that was not broken off."""

    message: AssistantMessage


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | CallDelta | MessageDone


class ProviderError(CallwrightError):
    """A request that failed, with what to do about it: `transient` may be tried again, the rest may not."""

    def __init__(self, message: str, *, fault: ProviderFault, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.retry_after = retry_after


class Provider(Protocol):
    """A model API."""

    @property
    def model(self) -> str:
        """The model's name as the provider knows it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        ...


def vendor_of(provider: Provider) -> str:
    """Whose API a provider speaks, as telemetry names it; empty where it does not say (`vendor`)."""
    return str(getattr(provider, "vendor", ""))
