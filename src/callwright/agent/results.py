"""How a run ends, and what is heard of it on the way."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from callwright.core.calls import Question
from callwright.core.events import Event
from callwright.core.messages import Usage
from callwright.providers.base import CallDelta, ProviderError, TextDelta, ThinkingDelta

StopKind: TypeAlias = Literal[
    "turns", "tokens", "money", "seconds", "repeated", "halted", "cancelled", "provider", "refusal", "length", "output"
]


@dataclass(frozen=True, slots=True)
class Done:
    """The model gave its answer."""

    text: str
    usage: Usage = Usage()
    """What this run's requests came to."""
    session_id: str = ""
    output: Any = None
    """The answer as the type that was asked for."""
    turns: int = 0
    cost: float | None = None
    """What the requests came to in money; None where the budget has no prices."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A person must decide; go on with `agent.resume(session_id, answers)`, in this process or another."""

    questions: tuple[Question, ...]
    usage: Usage = Usage()
    session_id: str = ""
    turns: int = 0
    cost: float | None = None

    @property
    def text(self) -> str:
        """What must be decided, a line each."""
        return "\n".join(question.summary for question in self.questions)


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ended before the model was done; the session can be continued."""

    reason: str
    """For people: what the limit was, what the provider said."""
    kind: StopKind
    usage: Usage = Usage()
    session_id: str = ""
    text: str = ""
    """The last thing the model said in this run."""
    turns: int = 0
    cost: float | None = None


Result: TypeAlias = Done | Paused | Stopped


@dataclass(frozen=True, slots=True)
class ModelRetried:
    """A request failed and is made again; deltas since the last turn's end are void."""

    error: ProviderError
    attempt: int
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A model message and its outcomes are part of the conversation now."""

    usage: Usage
    """What the run has come to so far."""
    turn: int
    cost: float | None = None


AgentEvent: TypeAlias = TextDelta | ThinkingDelta | CallDelta | Event | ModelRetried | TurnEnded | Result
"""What `Agent.stream` gives: deltas, the executor's events, the ends of turns, and the result last."""
