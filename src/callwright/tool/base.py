"""The tool contract: a tool is a spec and a `bind` that turns arguments into an invocation."""

import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from callwright.core._fast import frozen
from callwright.core.access import Access, Confinement
from callwright.core.calls import Outcome, ToolCall
from callwright.core.decisions import Approve, Question
from callwright.core.errors import UsageError, safe_repr
from callwright.core.json import Json, JsonObject, canonical, hash_text
from callwright.core.spec import ToolSpec

Kept = TypeVar("Kept")


class State:
    """Values that the tools of one session share, one per type."""

    __slots__ = ("_lock", "_values")

    def __init__(self) -> None:
        self._values: dict[type, object] = {}
        self._lock = threading.Lock()  # one each: a value that takes long to make must not hold up other sessions

    def copy(self) -> "State":
        """Return a new state with the same values."""
        other = State()
        other._values.update(self._values)
        return other

    def put(self, value: object) -> None:
        """Store a value under its type."""
        self._values[type(value)] = value

    def get(self, kind: Callable[[], Kept]) -> Kept:
        """Return the session's value of a class; the first call creates it by calling the class.

        Raises:
            UsageError: `kind` is not a class.
        """
        if not isinstance(kind, type):
            raise UsageError(f"expected a class, got {kind!r}; state is stored by class")
        found = self._values.get(kind)
        if found is None:
            with self._lock:  # two tools in two threads must not make two
                found = self._values.get(kind)
                if found is None:
                    found = self._values[kind] = kind()
        return found  # type: ignore[return-value] - stored under its own class


class OuterSession:
    """The session that an inner agent works for, in the state of its own; its user answers the questions of both.

    Args:
        session_id: The outermost session; empty in the state of that session itself.
    """

    __slots__ = ("session_id",)

    def __init__(self, session_id: str = "") -> None:
        self.session_id = session_id


OUTERMOST = OuterSession()
"""In the state of every session that is not inside another one."""


class Cancellation:
    """A switch that stops a turn; every call still gets its outcome."""

    __slots__ = ("_listeners", "reason", "requested")

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._listeners: list[Callable[[], None]] = []

    def cancel(self, reason: str = "") -> None:
        """Cancel; a second call changes nothing."""
        if self.requested:
            return
        self.requested, self.reason = True, reason
        for listener in list(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on cancellation, at once if it has happened. Return a function that removes the listener."""
        self._listeners.append(listener)
        if self.requested:
            listener()
        return lambda: self._listeners.remove(listener)


@frozen
class InnerBatch:
    """What a tool says about calls that it makes."""

    origins: Sequence[str] = ()
    """For each call where it comes from, shown to a user who is asked about it."""
    starting: Callable[[ToolCall], Awaitable[None]] | None = None
    """Awaited before each call runs; if it raises, that call does not run.

    A tool that gives it keeps its own record: the executor then does not remember which calls were made.
    """
    ended: Callable[[Outcome], Awaitable[None]] | None = None
    """Awaited after each call, with its outcome."""
    output_chars: int = 0
    """How long an output may be for the tool that makes the calls, if longer than the limit of the tool called."""


class Scope(Protocol):
    """What the executor provides to running tools, shared by the calls of one turn."""

    session_id: str
    turn_id: str
    run_id: str
    """Random, the same for all calls of one executor."""
    state: State

    @property
    def cancelled(self) -> bool: ...

    def report(self, call: ToolCall, progress: object) -> None: ...

    def execute(
        self, context: "ToolContext", calls: Sequence[ToolCall], batch: InnerBatch
    ) -> Awaitable[list[Outcome]]: ...

    def keep(self, path: str, note: Json, *, wait: bool) -> Awaitable[None]: ...

    def find_kept(self, path: str) -> Sequence[Json]: ...


NO_DETAILS = InnerBatch()


class ToolContext:
    """What a running tool can read and do. It does not expose the event loop or the executor.

    Args:
        call: The call.
        scope: What the executor provides: state, progress, cancellation and questions.
        attempt: 1 for the first attempt, more after retries.
        deadline: When the call's time is over, by the clock of the event loop; None without a limit.
        parent: The context of the call that made this one, for calls inside calls.
        confinement: How far the policies let the call reach.
        answered: The question of this call that the user approved, with the approval.
    """

    __slots__ = ("_answered", "_left", "_scope", "attempt", "call", "confinement", "deadline", "parent")

    def __init__(
        self,
        call: ToolCall,
        scope: Scope,
        attempt: int = 1,
        deadline: float | None = None,
        parent: "ToolContext | None" = None,
        confinement: Confinement = Confinement.READ_ONLY,
        answered: tuple[Question, Approve] | None = None,
    ) -> None:
        self.call = call
        self.attempt = attempt
        self.deadline = deadline
        """The event-loop time at which this call times out."""
        self.parent = parent
        """The call this one was made from, for a tool that calls tools."""
        self.confinement = confinement
        """What the commands of this call may use, as the policies and the user allowed it."""
        self._scope = scope
        self._answered = answered
        self._left = False  # whether the executor has stopped waiting for the call

    @property
    def answer(self) -> Approve | None:
        """The approval of what this call asked while it ran before; None if it runs for the first time.

        A tool asks by raising `ApprovalRequired` or `AuthRequired`. The call then runs again from its start, with the
        same idempotency key. It does not run again after a no.
        """
        return None if self._answered is None else self._answered[1]

    @property
    def question(self) -> Question | None:
        """The question that `answer` approves; its `reason` is the one the tool gave."""
        return None if self._answered is None else self._answered[0]

    @property
    def depth(self) -> int:
        """How many tools are between the model and this one."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def call_id(self) -> str:
        """The id the model gave the call."""
        return self.call.id

    @property
    def session_id(self) -> str:
        """The conversation this call belongs to; empty outside of one."""
        return self._scope.session_id

    @property
    def turn_id(self) -> str:
        """The model message this call came with; empty outside of one."""
        return self._scope.turn_id

    @property
    def idempotency_key(self) -> str:
        """A key equal for every attempt at this call, also after a restart, for services that deduplicate."""
        scope, call = self._scope, self.call
        if self.parent is None:
            # Outside of a turn nothing else tells two processes apart, so the executor's own id takes its place.
            names = (scope.session_id, scope.turn_id or scope.run_id, call.id)
        else:
            # With the arguments: a tool may use one id for all the calls it makes.
            arguments = call.arguments if isinstance(call.arguments, (str, bytes)) else canonical(call.arguments)
            names = ("", self.parent.idempotency_key, call.id, call.name, str(arguments))
        return hash_text("\0".join(names))[:32]

    @property
    def state(self) -> State:
        """Values shared by the tools of this session, by type."""
        return self._scope.state

    @property
    def cancelled(self) -> bool:
        """Whether the call is out of time or is being cancelled; long synchronous work should check it regularly."""
        return self._left or self._scope.cancelled

    def report(self, progress: object) -> None:
        """Report progress to observers, until the call has ended. Thread-safe."""
        if not self._left:
            self._scope.report(self.call, progress)

    async def execute(self, *calls: ToolCall, batch: InnerBatch = NO_DETAILS) -> list[Outcome]:
        """Call other tools through the same executor, hooks, policies and deadline.

        Args:
            calls: The calls; those made together are one batch, as the calls of one model message are.
            batch: Where the calls come from, and what to await before and after each.

        Raises:
            UsageError: There are no calls, or something that is not a call.
        """
        for call in calls or (None,):
            if not isinstance(call, ToolCall):
                raise UsageError(f"context.execute needs calls, got {safe_repr(call)}; write execute(ToolCall(…), …)")
        return await self._scope.execute(self, calls, batch)

    @property
    def path(self) -> str:
        """The ids of the calls from the model's down to this one; identifies the call within its turn."""
        return self.call.id if self.parent is None else f"{self.parent.path}/{self.call.id}"

    async def keep(self, note: Json, *, wait: bool = True) -> None:
        """Keep a note about this call on the session's record, for when the call runs again.

        A call runs again after a question that it asked, after an error that is retried, and after a restart if it is
        idempotent. Once it has its outcome it does not, and what it left running, in a task for example, keeps nothing.

        Args:
            note: What to keep, as JSON.
            wait: Return when the note is stored; otherwise it is stored a little later, in order.
        """
        await self._scope.keep(self.path, note, wait=wait)

    @property
    def kept(self) -> Sequence[Json]:
        """The notes that this call has kept, in earlier runs and in this one, in order."""
        return self._scope.find_kept(self.path)


def leave_call(context: ToolContext) -> None:
    """Tell what still runs of a call, in a thread for example, that nothing waits for it any more."""
    context._left = True  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - for executors, not for tools


@runtime_checkable
class Invocation(Protocol):
    """One call, validated and ready to run."""

    @property
    def arguments(self) -> JsonObject:
        """The final arguments, with defaults filled in."""
        ...

    def accesses(self) -> Sequence[Access]:
        """Return what a run would access. Changes nothing, so it may be called again."""
        ...

    def run(self, context: ToolContext) -> Coroutine[Any, Any, object]:
        """Run the call.

        Raises:
            ToolError: The call failed; the model sees the message.
        """
        ...


@runtime_checkable
class Tool(Protocol):
    """A spec and a way to bind arguments to it."""

    @property
    def spec(self) -> ToolSpec:
        """The description of the tool for models and policies."""
        ...

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        """Validate arguments and return an invocation. Has no side effects.

        Raises:
            InvalidArguments: The arguments do not fit; the message names each field.
        """
        ...


@runtime_checkable
class SessionTool(Protocol):
    """A tool whose calls depend on its session, such as a shell that remembers its folder."""

    def bind_in(self, arguments: JsonObject | str | bytes, state: State, session_id: str) -> Invocation:
        """Bind as `bind` does, for a session. Has no side effects."""
        ...


@frozen
class PreviewRow:
    """One row of a preview: a line of a file, or a note about lines."""

    text: str
    mark: str = ""
    """`+` or `-` for a line that is added or removed, a blank for one that stays; empty for a note."""
    old: int = 0
    """The number of the line in the file as it is; 0 if it has none or it is not known."""
    new: int = 0
    """The number of the line after the call."""


@frozen
class Preview:
    """What a call would change, to show it before the call runs."""

    path: str
    """The file that would change."""
    rows: tuple[PreviewRow, ...]
    shown: frozenset[str] = frozenset()
    """The names of the arguments that the rows show whole."""


@runtime_checkable
class PreviewTool(Protocol):
    """A tool that can show what a call would change."""

    def preview(self, arguments: JsonObject) -> Preview | None:
        """Return what a call with these final arguments would change; None if there is nothing to show.

        Has no side effects, and does not raise for a file that cannot be read.
        """
        ...


class LazyTool:
    """A tool whose name is available before its schema has been derived."""

    name: str
    aliases: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def require_bound(self) -> None:
        """Raise a `UsageError` if the tool lacks the instance that its calls need."""


class WrapperTool(LazyTool):
    """A tool around another one, which does everything that the wrapper does not."""

    inner: Tool

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # missing while the object is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)


def identify(tool: Tool) -> tuple[str, tuple[str, ...]]:
    """Return the name and aliases of a tool, without deriving its schema if possible."""
    if isinstance(tool, LazyTool):
        return tool.name, tool.aliases
    return tool.spec.name, tool.spec.aliases
