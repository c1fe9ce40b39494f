"""The context of a turn: what its caller passes in, and what a cancelled turn leaves behind."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from callwright.core._fast import frozen
from callwright.core.calls import Outcome, ToolCall
from callwright.core.decisions import Answers, Question
from callwright.core.errors import CallwrightError, UsageError, check_kind, safe_repr
from callwright.core.events import BatchBegan, Event
from callwright.core.json import FrozenDict, Json
from callwright.registry.catalog import Catalog
from callwright.tool.base import Cancellation, InnerBatch, State, ToolContext

CANCELLED = "the turn was cancelled"
AskPerson: TypeAlias = Callable[[Sequence[Question]], Awaitable[Answers]]
"""Asks the user. Only an `Approve` in the returned answers approves; anything that is not understood declines."""
Journal: TypeAlias = Callable[[BatchBegan], Awaitable[None]]
Starting: TypeAlias = Callable[[ToolCall], Awaitable[None]]
Keep: TypeAlias = Callable[[str, Json, bool], Awaitable[None]]
"""Stores a note of the call with this path; if the last argument is true, it is stored on return."""
_FUNCTIONS = ("ask", "journal", "observe", "starting", "keep")
_NOTHING_KEPT: Mapping[str, Sequence[Json]] = FrozenDict()


@frozen
class Turn:
    """The context of a batch of calls; the default is a call outside of any conversation.

    Raises:
        UsageError: A part is of another kind, such as a text where a function is expected.
    """

    session_id: str = ""
    turn_id: str = ""
    state: State | None = None
    """Values that the session's tools share; None for the executor's own."""
    catalog: Catalog | None = None
    """The tools that were advertised to the model; None for the registry's current ones."""
    cancellation: Cancellation | None = None
    """Stops the turn; every call still gets an outcome."""
    ask: AskPerson | None = None
    """Asks the user at once; without it, questions are returned as `Interrupted`."""
    journal: Journal | None = None
    """Awaited before the calls run, to record that they are about to; if it raises, nothing runs."""
    observe: Callable[[Event], None] | None = None
    """Receives this turn's events, in addition to the executor's observers."""
    starting: Starting | None = None
    """Awaited before each call of a batch runs, to record its start; if it raises, that call does not run."""
    asked: Sequence[Question] = ()
    """Questions of an earlier process or executor that the caller has on record: their answers count here too.

    The caller answers for it that each is used once: by a lock on its record, or by removing the question first.
    """
    keep: Keep | None = None
    """Stores the notes of running tools; by default the executor has them, until the call has ended."""
    kept: Mapping[str, Sequence[Json]] = _NOTHING_KEPT
    """The notes that earlier runs of the calls kept, by the path of the call."""

    def __post_init__(self) -> None:
        check_kind("Turn.session_id", self.session_id, str, 'write session_id="s1"')
        check_kind("Turn.turn_id", self.turn_id, str, 'write turn_id="t1"')
        if self.state is not None:
            check_kind("Turn.state", self.state, State, "write state=State()")
        if self.catalog is not None:
            check_kind("Turn.catalog", self.catalog, Catalog, "write catalog=registry.snapshot()")
        if self.cancellation is not None:
            check_kind("Turn.cancellation", self.cancellation, Cancellation, "write cancellation=Cancellation()")
        for name in _FUNCTIONS:
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise UsageError(
                    f"expected a function as Turn.{name}, got {safe_repr(function)}; pass the function itself"
                )


class TurnCancelled(CallwrightError):
    """The cause of the `CancelledError` that ends a cancelled turn; `outcomes` has one outcome for every call.

    It is not a `CancelledError` itself, because `asyncio.timeout` and task groups recognise only that exact type.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__(CANCELLED)
        self.outcomes = list(outcomes)

    @classmethod
    def find(cls, error: BaseException | None) -> "TurnCancelled | None":
        """Return the cancelled turn behind an error: a `CancelledError`, or the `TimeoutError` of a time limit."""
        while error is not None and not isinstance(error, cls):
            error = error.__cause__
        return error


@frozen
class Inside:
    """Where the calls of a batch are made: by a tool, inside a call of the model."""

    call_id: str
    origins: Sequence[str]
    batch: InnerBatch | None


def describe_batch(parent: ToolContext, calls: Sequence[ToolCall], batch: InnerBatch) -> Inside:
    """Return where a batch of calls is made.

    Raises:
        UsageError: There are origins, but not one for each call.
    """
    if len(batch.origins) not in (0, len(calls)):
        raise UsageError(f"expected an origin for each of the {len(calls)} calls, got {len(batch.origins)}")
    return Inside(
        parent.path.partition("/")[0],
        batch.origins or [f"called by {parent.call.name}"] * len(calls),
        None if batch.starting is None and batch.ended is None else batch,
    )
