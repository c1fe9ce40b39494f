"""What observers are told of an agent's runs and of the requests to its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from callwright.core.content import Part
from callwright.core.messages import AssistantMessage, Message, Usage

RunEnd: TypeAlias = Literal["done", "paused", "stopped", "cancelled", "failed"]
"""As the results say; `cancelled` and `failed` are runs that were broken off or raised."""


@dataclass(frozen=True, slots=True)
class RunBegan:
    """An agent takes up a session."""

    session_id: str
    agent: str = ""
    model: str = ""
    vendor: str = ""
    """Whose API the model is behind."""
    prompt: str | tuple[Part, ...] | None = None
    """What a person said; None where the session goes on without."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over, one way or another; every `RunBegan` has one."""

    began: RunBegan
    ended: RunEnd
    reason: str = ""
    """Why it did not come to its end: which limit, which exception."""
    usage: Usage = Usage()
    turns: int = 0
    seconds: float = 0.0
    cost: float | None = None
    """In US dollars; None where the model's prices are not known."""


@dataclass(frozen=True, slots=True)
class RequestBegan:
    """The model is about to be asked."""

    session_id: str
    model: str
    vendor: str
    messages: Sequence[Message]
    """As they are now; the sequence may grow later."""
    system: str = ""
    max_tokens: int = 0
    shaped: bool = False
    """The answer must be JSON of a given schema."""


@dataclass(frozen=True, slots=True)
class RequestRetried:
    """A request failed and is made again."""

    began: RequestBegan
    error: Exception
    attempt: int
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """The model gave its message, or it could not be had; every `RequestBegan` has one."""

    began: RequestBegan
    message: AssistantMessage | None
    error: BaseException | None = None
    reason: str = ""
    """Why there is no message, in a word: the provider's fault, the run's limit, `cancelled`, an exception's name."""
    seconds: float = 0.0
    first_seconds: float | None = None
    """Until the first piece of the message came."""
    cost: float | None = None
    """In US dollars; None where the model's prices are not known."""


RunEvent: TypeAlias = RunBegan | RunEnded | RequestBegan | RequestRetried | RequestEnded
