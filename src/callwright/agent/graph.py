"""A small typed graph for work of several steps: named async functions over one state, a checkpoint after each."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from callwright.core.errors import UsageError
from callwright.sessions.base import SessionHold, SessionStore, no_such_session
from callwright.sessions.memory import MemoryStore
from callwright.sessions.records import Checkpoint
from callwright.tool.schema import adapter_for

State = TypeVar("State")
_MAX_STEPS = 1_000
_END = ""


@dataclass(frozen=True, slots=True)
class Goto(Generic[State]):
    """Go on with another step."""

    step: str
    state: State


@dataclass(frozen=True, slots=True)
class Finish(Generic[State]):
    """There is nothing left to do."""

    state: State


@dataclass(frozen=True, slots=True)
class Interrupt(Generic[State]):
    """Wait to be told something; the named step is given the state and what was said."""

    question: str
    step: str
    state: State


Move: TypeAlias = Goto[State] | Finish[State] | Interrupt[State]
Step: TypeAlias = Callable[[State, str], Awaitable[Move[State]]]
"""Takes the state and, after an interruption, what was answered (else the empty text)."""


def goto(step: "str | Step[State]", state: State) -> Goto[State]:
    """Go on with another step, given by its function or its name."""
    return Goto(_step_name(step), state)


def halt(state: State) -> Finish[State]:
    """End the graph."""
    return Finish(state)


def interrupt(question: str, step: "str | Step[State]", state: State) -> Interrupt[State]:
    """Ask, and go on with `step` when there is an answer, in this process or another."""
    return Interrupt(question, _step_name(step), state)


@dataclass(frozen=True, slots=True)
class GraphFinished(Generic[State]):
    """The graph came to its end."""

    state: State
    session_id: str


@dataclass(frozen=True, slots=True)
class GraphWaiting(Generic[State]):
    """The graph waits to be told something; go on with `graph.resume(session_id, answer)`."""

    question: str
    state: State
    session_id: str


class Graph(Generic[State]):
    """Steps over a state that is a dataclass or a pydantic model.

    A step's result is durable before the next step begins: after a crash `resume` begins with the step that had not
    ended. A step that was cut short runs again, so what it does should be harmless to repeat, or be done by an agent
    in a session of its own.
    """

    def __init__(self, state: type[State], *, sessions: SessionStore | None = None) -> None:
        self.sessions: SessionStore = MemoryStore() if sessions is None else sessions
        self._kind = state
        self._adapter = adapter_for(state, about="Graph state")
        self._steps: dict[str, Step[State]] = {}

    def step(self, function: Step[State]) -> Step[State]:
        """Add a step under its function's name; the first one added is where the graph begins."""
        name = _step_name(function)
        if name in self._steps:
            raise UsageError(f"the graph has a step {name!r} already")
        self._steps[name] = function
        return function

    async def run(self, state: State, *, session: str) -> GraphFinished[State] | GraphWaiting[State]:
        """Begin with the first step; a session that has begun is taken up with `resume`."""
        if not self._steps:
            raise UsageError("the graph has no steps; add them with @graph.step")
        hold = await self.sessions.hold(session)
        try:
            if _last_checkpoint(hold) is not None:
                raise UsageError(f"session {session!r} has begun already; go on with resume({session!r})")
            return await self._walk(hold, await self._keep(hold, Goto(next(iter(self._steps)), state)))
        finally:
            await hold.release()

    async def resume(self, session: str, answer: str | None = None) -> GraphFinished[State] | GraphWaiting[State]:
        """Go on after the last step that ended; a graph that waits, waits until it is answered."""
        hold = await self.sessions.hold(session)
        try:
            last = _last_checkpoint(hold)
            if last is None:
                raise no_such_session(session)
            state: State = self._adapter.validate_python(last.state)
            if last.waiting and answer is None:
                return GraphWaiting(last.waiting, state, session)
            if last.step == _END:
                return GraphFinished(state, session)
            return await self._walk(hold, Goto(last.step, state), answer or "")
        finally:
            await hold.release()

    async def _walk(
        self, hold: SessionHold, move: Move[State], answer: str = ""
    ) -> GraphFinished[State] | GraphWaiting[State]:
        for _ in range(_MAX_STEPS):
            match move:
                case Finish(state):
                    return GraphFinished(state, hold.session_id)
                case Interrupt(question, _, state):
                    return GraphWaiting(question, state, hold.session_id)
                case Goto(step, state):
                    move = await self._keep(hold, await self._steps[step](state, answer))
                    answer = ""
        raise UsageError(f"the graph took {_MAX_STEPS} steps without an end; does it go in circles?")

    async def _keep(self, hold: SessionHold, move: Any) -> Move[State]:
        """Make a step's result durable; what is no move, or no state, is the step's mistake."""
        if not isinstance(move, (Goto, Finish, Interrupt)):
            raise UsageError(f"a step returns goto(…), halt(…) or interrupt(…), not {move!r}")
        known: Move[State] = move  # pyright: ignore[reportUnknownVariableType] - the state is checked next
        if not isinstance(known.state, self._kind):
            raise UsageError(f"the state must stay a {self._kind.__name__}, not {type(known.state).__name__}")
        step = _END if isinstance(known, Finish) else known.step
        if step != _END and step not in self._steps:
            raise UsageError(f"there is no step {step!r}; there are {', '.join(self._steps)}")
        written = self._adapter.dump_python(known.state, mode="json")
        waiting = known.question if isinstance(known, Interrupt) else ""
        await hold.append(Checkpoint(step, written, waiting))
        return known


def _step_name(step: Any) -> str:
    return step if isinstance(step, str) else step.__name__


def _last_checkpoint(hold: SessionHold) -> Checkpoint | None:
    return next((record for record in reversed(hold.records) if isinstance(record, Checkpoint)), None)
