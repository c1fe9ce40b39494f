"""The events of calls and registries that observers receive."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

from callwright.core._fast import frozen
from callwright.core.access import Access
from callwright.core.calls import Outcome, Question, Reply, ToolCall, digest_of
from callwright.core.errors import ToolError
from callwright.core.json import JsonObject

TYPE_CHECKING = False  # read as true by type checkers


class Digests(Sequence[str]):
    """The digests of several calls, computed when they are first read.

    Most observers never read them, and computing one takes longer than all else that is done to tell an observer.

    Args:
        calls: For each call the tool's name, a copy of the final arguments that nothing changes, and the accesses.
        session_id: The session the calls belong to.
    """

    __slots__ = ("_calls", "_session_id", "_texts")

    def __init__(self, calls: "Sequence[tuple[str, JsonObject, Sequence[Access]]]", session_id: str) -> None:
        self._calls = calls
        self._session_id = session_id
        self._texts: tuple[str, ...] | None = None

    def _read(self) -> tuple[str, ...]:
        if self._texts is None:
            self._texts = tuple(digest_of(*call, session_id=self._session_id) for call in self._calls)
        return self._texts

    def __len__(self) -> int:
        return len(self._calls)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._read()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        return self._read() == (other._read() if isinstance(other, Digests) else other)

    def __hash__(self) -> int:
        return hash(self._read())

    def __repr__(self) -> str:
        return repr(self._read())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._read(),)


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
    """The user must answer these questions before their calls run, or go on."""

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
    tool: str = ""
    """The tool's own name, which the call may have in another spelling; empty if there is no such tool."""


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
