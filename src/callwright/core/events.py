"""The events of calls and registries that observers receive."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from callwright.core._fast import frozen
from callwright.core.calls import Outcome, Question, Reply, ToolCall
from callwright.core.errors import ToolError

TYPE_CHECKING = False  # read as true by type checkers


@frozen
class BatchBegan:
    """Every call of a turn was admitted and is about to run.

    After a restart, a call that is not idempotent must not be repeated once this was recorded.
    """

    calls: tuple[ToolCall, ...]
    digests: Sequence[str]
    """Identify exactly what will run, in the order of the calls; see `digest_of`."""
    session_id: str = ""
    turn_id: str = ""


@frozen
class QuestionsRaised:
    """The user must answer these questions first; nothing has run."""

    questions: tuple[Question, ...]
    session_id: str = ""


@frozen
class QuestionsSettled:
    """The user has answered questions, in whatever place they were shown; a question without a reply is declined."""

    replies: Mapping[str, Reply]
    """By question id."""
    session_id: str = ""


@frozen
class CallWaits:
    """A call of a turn cannot start yet."""

    call: ToolCall
    on: tuple[ToolCall, ...] = ()
    """The earlier calls that it conflicts with; empty if it waits because enough calls are running already."""


@frozen
class CallBegan:
    """A tool is about to run."""

    call: ToolCall


@frozen
class CallProgressed:
    """A running tool reported progress."""

    call: ToolCall
    progress: object


@frozen
class CallRetried:
    """An attempt failed and will be repeated."""

    call: ToolCall
    error: ToolError
    attempt: int
    delay_seconds: float


@frozen
class CallAbandoned:
    """A tool ignored its cancellation for the whole grace period; its turn goes on without it."""

    call: ToolCall
    grace_seconds: float


@frozen
class CallEnded:
    """A call has an outcome."""

    outcome: Outcome
    call: ToolCall
    """The call that was made; the outcome has the arguments that ran, which a hook or the user may have changed."""


@frozen
class ToolsChanged:
    """A registry was changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


CallEvent: TypeAlias = (
    BatchBegan
    | QuestionsRaised
    | QuestionsSettled
    | CallWaits
    | CallBegan
    | CallProgressed
    | CallRetried
    | CallAbandoned
    | CallEnded
    | ToolsChanged
)

if TYPE_CHECKING:
    from callwright.core.run_events import RunEvent

    Event: TypeAlias = CallEvent | RunEvent
else:  # run events belong to agents: a program that only runs tools does not load them
    Event = CallEvent
