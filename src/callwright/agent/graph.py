"""A typed graph of steps: named async functions over one state, with a checkpoint after each step."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic_core import ValidationError

from callwright.agent.run_request import release_hold
from callwright.core.errors import UsageError
from callwright.sessions.base import SessionHold, SessionStore, no_such_session, require_store
from callwright.sessions.memory import MemoryStore
from callwright.sessions.records import Checkpoint
from callwright.tool.arguments import describe_first_problem
from callwright.tool.schema import adapter_for

State = TypeVar("State")
_MAX_STEPS = 1_000
_NO_QUESTION = "(no question)"
_END = ""  # stored as the next step of a finished graph; no function can have this name


@dataclass(frozen=True, slots=True)
class Goto(Generic[State]):
    """Continue with another step."""

    step: str
    state: State


@dataclass(frozen=True, slots=True)
class Finish(Generic[State]):
    """End the graph."""

    state: State


@dataclass(frozen=True, slots=True)
class Interrupt(Generic[State]):
    """Wait for an answer; the named step receives the state and the answer."""

    question: str
    step: str
    state: State


Move: TypeAlias = Goto[State] | Finish[State] | Interrupt[State]
Step: TypeAlias = Callable[[State, str], Awaitable[Move[State]]]
"""Takes the state and the answer to an interruption (otherwise an empty string)."""


def goto(step: "str | Step[State]", state: State) -> Goto[State]:
    """Continue with another step.

    Args:
        step: The function of the step, or its name.
        state: The state it is called with.
    """
    return Goto(_step_name(step), state)


def halt(state: State) -> Finish[State]:
    """End the graph."""
    return Finish(state)


def interrupt(question: str, step: "str | Step[State]", state: State) -> Interrupt[State]:
    """Ask a question and continue with `step` when it is answered, in this process or another.

    Args:
        question: What the user is asked.
        step: The function of the step that gets the answer, or its name.
        state: The state it is called with.
    """
    return Interrupt(question, _step_name(step), state)


@dataclass(frozen=True, slots=True)
class GraphFinished(Generic[State]):
    """The result of a graph that has ended."""

    state: State
    session_id: str


@dataclass(frozen=True, slots=True)
class GraphWaiting(Generic[State]):
    """The result of a graph that waits for an answer; continue with `graph.resume(session_id, answer, question=…)`."""

    question: str
    state: State
    session_id: str


class Graph(Generic[State]):
    """Runs steps over a state and stores the state after each of them.

    After a crash `resume` begins with the step that had not ended. That step runs again from its start, so it should
    be idempotent, or run an agent in a session of its own.

    Args:
        state: The type of the state, a dataclass or a pydantic model.
        sessions: Where checkpoints are stored; by default in memory.
    """

    def __init__(self, state: type[State], *, sessions: SessionStore | None = None) -> None:
        self.sessions: SessionStore = MemoryStore() if sessions is None else require_store(sessions)
        if not isinstance(state, type):  # pyright: ignore[reportUnnecessaryIsInstance] - such as dict[str, int]
            raise UsageError(f"the state of a graph must be a dataclass or a pydantic model, got {state!r}")
        self._state_type = state
        self._adapter = adapter_for(state, about="Graph state")
        self._steps: dict[str, Step[State]] = {}

    def step(self, function: Step[State]) -> Step[State]:
        """Add a step under its function's name; the graph begins with the step added first.

        Raises:
            UsageError: The graph already has a step of this name.
        """
        name = _step_name(function)
        if name in self._steps:
            raise UsageError(f"the graph already has a step {name!r}")
        self._steps[name] = function
        return function

    async def run(self, state: State, *, session: str) -> GraphFinished[State] | GraphWaiting[State]:
        """Run the graph from its first step until it ends or waits for an answer.

        Args:
            state: The initial state.
            session: The id of a new session for the checkpoints.

        Raises:
            UsageError: The graph has no steps, the session exists, a step returned something else than a move, or a
                state is not valid or cannot be stored as JSON.
        """
        if not self._steps:
            raise UsageError("the graph has no steps; add them with @graph.step")
        hold = await self.sessions.hold(session)
        try:
            if _last_checkpoint(hold) is not None:
                raise UsageError(f"session {session!r} has already started; continue it with resume({session!r})")
            # The first step is stored too, so that `resume` works after a crash inside it.
            return await self._walk(hold, await self._save(hold, Goto(next(iter(self._steps)), state)))
        finally:
            await release_hold(hold)

    async def resume(
        self, session: str, answer: str | None = None, *, question: str | None = None
    ) -> GraphFinished[State] | GraphWaiting[State]:
        """Continue after the last step that ended; without an answer, a waiting graph stays waiting.

        Args:
            session: The session of the graph.
            answer: The answer to the question of a waiting graph.
            question: The question that the answer is for, as `GraphWaiting` has it. A graph that waits for another one
                by now stays waiting: an answer that is sent twice must not answer the next question too.

        Raises:
            SessionError: There is no such session.
            UsageError: The graph has no such step any more, or its state is of another type.
        """
        hold = await self.sessions.hold(session)
        try:
            last = _last_checkpoint(hold)
            if last is None:
                raise no_such_session(session)
            state = self._read_state(session, last)
            if last.waiting and (answer is None or question not in (None, last.waiting)):
                return GraphWaiting(last.waiting, state, session)
            if last.step == _END:
                return GraphFinished(state, session)
            # a step that runs again after a crash has asked nothing: an answer that was sent twice is not for it
            return await self._walk(hold, Goto(last.step, state), answer or "" if last.waiting else "")
        finally:
            await release_hold(hold)

    def _read_state(self, session: str, last: Checkpoint) -> State:
        """Return the state on record; the program may have changed since it was stored."""
        if last.step != _END and last.step not in self._steps:
            raise UsageError(f"session {session!r} goes on with a step that is gone: {self._describe_gone(last.step)}")
        try:
            return self._decode(last.state)
        except ValidationError as error:
            fault = describe_first_problem(error)
            raise UsageError(
                f"the state of session {session!r} is no {self._state_type.__name__} any more: {fault}"
            ) from None

    def _describe_gone(self, step: str) -> str:
        return f"there is no step {step!r}; the steps are {', '.join(self._steps)}"

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
                    moving = self._steps[step](state, answer)
                    if not isawaitable(moving):
                        raise UsageError(f"the step {step!r} must be an async function")
                    move = await self._save(hold, await moving)
                    answer = ""
        raise UsageError(f"the graph did not end within {_MAX_STEPS} steps; check it for an endless loop")

    async def _save(self, hold: SessionHold, move: Any) -> Move[State]:
        """Check a step's result and store it as a checkpoint."""
        if not isinstance(move, (Goto, Finish, Interrupt)):
            raise UsageError(f"a step must return goto(…), halt(…) or interrupt(…), got {move!r}")
        checked: Move[State] = move  # pyright: ignore[reportUnknownVariableType] - the state is checked next
        if type(checked.state) is not self._state_type:  # of a subclass, only the fields of its base would be stored
            raise UsageError(f"the state must be a {self._state_type.__name__}, got a {type(checked.state).__name__}")
        step = _END if isinstance(checked, Finish) else checked.step
        if step != _END and step not in self._steps:
            raise UsageError(self._describe_gone(step))
        encoded = self._encode(checked.state)
        if isinstance(checked, Interrupt) and not isinstance(checked.question, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a mistake
            raise UsageError(f"the question of a step must be text, got {checked.question!r}")
        if isinstance(checked, Interrupt) and not checked.question.strip():
            checked = replace(checked, question=_NO_QUESTION)  # an empty one on record would mean: not waiting
        waiting = checked.question if isinstance(checked, Interrupt) else ""
        await hold.append(Checkpoint(step, encoded, waiting))
        return checked

    def _encode(self, state: State) -> Any:
        """Return the state as JSON; one that `resume` could not read must not be stored."""
        try:
            encoded = self._adapter.dump_python(state, mode="json", round_trip=True, warnings="none")
            self._decode(encoded)
        except ValidationError as error:
            fault = describe_first_problem(error)
            raise UsageError(f"the state is no valid {self._state_type.__name__}: {fault}") from None
        except ValueError as error:  # bytes that are no text, an object of another library
            raise UsageError(f"the state cannot be stored as JSON: {error}") from error
        return encoded

    def _decode(self, encoded: Any) -> State:
        return self._adapter.validate_python(encoded, by_alias=True, by_name=True)


def _step_name(step: Any) -> str:
    name = step if isinstance(step, str) else getattr(step, "__name__", None)
    if not isinstance(name, str):
        raise UsageError(f"a step must be an async function with a name, got {step!r}")
    return name


def _last_checkpoint(hold: SessionHold) -> Checkpoint | None:
    return next((record for record in reversed(hold.records) if isinstance(record, Checkpoint)), None)
