"""The events of agent runs and model requests that observers receive."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from callwright.core.content import Part
from callwright.core.messages import AssistantMessage, Message, Usage

RunEnd: TypeAlias = Literal["done", "paused", "stopped", "cancelled", "failed"]
"""As the result types; `cancelled` and `failed` are runs that were cancelled or raised an exception."""


@dataclass(frozen=True, slots=True)
class RunBegan:
    """An agent starts or continues a session."""

    session_id: str
    agent: str = ""
    model: str = ""
    vendor: str = ""
    """The vendor of the model's API."""
    prompt: str | tuple[Part, ...] | None = None
    """The user's message; None if the session continues without one."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has ended, in whatever way; there is one for every `RunBegan`."""

    began: RunBegan
    ended: RunEnd
    reason: str = ""
    """Why it ended early: the limit or the exception."""
    usage: Usage = Usage()
    turns: int = 0
    seconds: float = 0.0
    cost: float | None = None
    """In US dollars, or in the currency of `RunLimits.prices`; None if the model's prices are not known."""


@dataclass(frozen=True, slots=True)
class RequestBegan:
    """A model request is about to be sent."""

    session_id: str
    model: str
    vendor: str
    messages: Sequence[Message]
    """The messages of the request; the sequence may grow later."""
    system: str = ""
    max_tokens: int = 0
    shaped: bool = False
    """The answer must be JSON that matches a schema."""


@dataclass(frozen=True, slots=True)
class RequestRetried:
    """A request failed and will be repeated."""

    began: RequestBegan
    error: Exception
    attempt: int
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request has ended with a message or an error; there is one for every `RequestBegan`."""

    began: RequestBegan
    message: AssistantMessage | None
    error: BaseException | None = None
    reason: str = ""
    """Why there is no message: the provider's error, the run's limit, `cancelled` or an exception's name."""
    seconds: float = 0.0
    first_seconds: float | None = None
    """The time until the first part of the message arrived."""
    cost: float | None = None
    """As that of `RunEnded`."""


RunEvent: TypeAlias = RunBegan | RunEnded | RequestBegan | RequestRetried | RequestEnded
