"""What observers are told, once per stage."""

from dataclasses import dataclass
from typing import TypeAlias

from callwright.core.calls import Outcome, Question, ToolCall
from callwright.core.errors import ToolError

TYPE_CHECKING = False  # read as true by type checkers


@dataclass(frozen=True, slots=True)
class BatchBegan:
    """Every call was admitted; from here on a restart must not repeat one that is not idempotent."""

    calls: tuple[ToolCall, ...]
    digests: tuple[str, ...]
    session_id: str = ""
    turn_id: str = ""


@dataclass(frozen=True, slots=True)
class QuestionsRaised:
    """Nothing has run; these must be answered first."""

    questions: tuple[Question, ...]
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A tool is about to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A running tool reported something."""

    call: ToolCall
    progress: object


@dataclass(frozen=True, slots=True)
class CallRetried:
    """An attempt failed and another will follow."""

    call: ToolCall
    error: ToolError
    attempt: int
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its outcome."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A registry was changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


if TYPE_CHECKING:
    from callwright.core.run_events import RunEvent

    Event: TypeAlias = (
        BatchBegan | QuestionsRaised | CallBegan | CallProgressed | CallRetried | CallEnded | ToolsChanged | RunEvent
    )
else:  # the others come with the agent: whoever only runs tools should not wait for them to load
    Event = BatchBegan | QuestionsRaised | CallBegan | CallProgressed | CallRetried | CallEnded | ToolsChanged
