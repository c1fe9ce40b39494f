"""The results of a run, and the events that a streamed run yields."""

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from callwright.core._fast import frozen
from callwright.core.calls import Question
from callwright.core.events import Event
from callwright.core.messages import Usage
from callwright.providers.base import CallDelta, ProviderError, TextDelta, ThinkingDelta

if TYPE_CHECKING:  # with a default, so that a bare `Done` is a whole type; at run time from Python 3.13 only
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=Any)
    Value_co = TypeVar("Value_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    Value, Value_co = TypeVar("Value"), TypeVar("Value_co", covariant=True)

_NO_OUTPUT: Any = None
StopKind: TypeAlias = Literal[
    "turns",
    "calls",
    "tokens",
    "money",
    "seconds",
    "repeated",
    "halted",
    "cancelled",
    "handover",
    "provider",
    "refusal",
    "length",
    "output",
    "empty",
]
LIMIT_KINDS: tuple[StopKind, ...] = ("turns", "calls", "tokens", "money", "seconds", "repeated")
"""The kinds of stop that say that a limit of the run was reached."""


@frozen
class Done(Generic[Value_co]):
    """The model has answered."""

    text: str
    usage: Usage = Usage()
    """The tokens of this run's requests."""
    session_id: str = ""
    output: Value_co = _NO_OUTPUT
    """The answer as a value of the requested type."""
    turns: int = 0
    cost: float | None = None
    """The cost of the requests; None if the run limits have no prices."""


@frozen
class Paused:
    """An approval is needed; continue with `agent.resume(session_id, answers)`, in this process or another."""

    questions: tuple[Question, ...]
    usage: Usage = Usage()
    session_id: str = ""
    turns: int = 0
    cost: float | None = None

    @property
    def text(self) -> str:
        """The approval requests, one per line."""
        return "\n".join(question.summary for question in self.questions)


@frozen
class Stopped:
    """The run ended before the model answered; the session can be continued."""

    reason: str
    """For the user: the limit that was reached, or the provider's error."""
    kind: StopKind
    usage: Usage = Usage()
    session_id: str = ""
    text: str = ""
    """The last text of the model in this run."""
    turns: int = 0
    cost: float | None = None
    transient: bool = False
    """Whether the same may work later: the provider was overloaded, or could not be reached."""


Result: TypeAlias = Done | Paused | Stopped


@frozen
class ModelRetried:
    """A request failed and is retried; discard the deltas since the last turn ended."""

    error: ProviderError
    attempt: int
    delay_seconds: float


@frozen
class TurnEnded:
    """A model message and its outcomes have joined the conversation."""

    usage: Usage
    """The tokens of the run so far."""
    turn: int
    cost: float | None = None


AgentEvent: TypeAlias = TextDelta | ThinkingDelta | CallDelta | Event | ModelRetried | TurnEnded | Result
"""What `Agent.stream` yields: deltas, the executor's events, the ends of turns, and the result last."""
