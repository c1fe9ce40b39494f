"""`Executor`: runs tool calls and returns one outcome per call, in call order."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from callwright.clip import READER, Outputs
from callwright.core._fast import make_constructor, replace
from callwright.core.calls import Outcome, ToolCall
from callwright.core.decisions import Answers, Question, check_answers
from callwright.core.errors import UsageError, check_kind, check_members, safe_repr
from callwright.core.events import Event
from callwright.core.json import FrozenDict, JsonObject
from callwright.executor.admit import Gate
from callwright.executor.deadlines import LoopLocal
from callwright.executor.fast_path import FastPath
from callwright.executor.perform import Runner
from callwright.executor.runtime import Runtime, TurnLimits
from callwright.executor.turn import TurnScope
from callwright.executor.turn_context import Turn
from callwright.policy.base import Policy
from callwright.policy.decide import Policies
from callwright.policy.modes import ByMode
from callwright.registry.catalog import Catalog, Toolset, require_toolset
from callwright.retry import Clock, RetryPolicy, WallClock
from callwright.stats import Stats
from callwright.tool.base import State

if TYPE_CHECKING:
    from callwright.executor.repair import RepairMode
    from callwright.hooks.base import Hook

Observer: TypeAlias = Callable[[Event], None]
_NO_ARGUMENTS: JsonObject = FrozenDict()
_NO_TURN = Turn()
_call = make_constructor(ToolCall)
_log = logging.getLogger("callwright")


class Executor:
    """Runs calls of a registry's tools under policies, hooks and limits.

    Args:
        registry: The tools: a `Registry` or another toolset.
        policies: Decide what runs, what asks and what is denied; by default the mode `default`, in which reading is
            allowed and everything else asks.
        hooks: May change, answer or stop calls.
        observe: Called with every event; may not change anything.
        width: How many calls of a turn run at the same time; short for `limits=TurnLimits(width=…)`.
        limits: Limits of a turn.
        retry: When failed attempts are repeated.
        clock: Where retries wait; for tests.
        outputs: Where outputs are kept that were too long for the model; by default a temporary folder.
        state: Values that tools share outside of a session.
        repairs: Whether calls with an obvious slip are repaired ("on"), only reported ("report") or left ("off").

    Raises:
        UsageError: An argument is not of its kind.
    """

    def __init__(
        self,
        registry: Toolset,
        policies: Policy | Policies | None = None,
        *,
        hooks: "Hook | Iterable[Hook]" = (),
        observe: Observer | Iterable[Observer] | None = None,
        width: int | None = None,
        limits: TurnLimits = TurnLimits(),
        retry: RetryPolicy = RetryPolicy(),
        clock: Clock | None = None,
        outputs: Outputs | None = None,
        state: State | None = None,
        repairs: "RepairMode" = "on",
    ) -> None:
        if repairs not in ("on", "report", "off"):
            raise UsageError(f'repairs must be "on", "report" or "off", got {repairs!r}')
        self.registry = require_toolset(registry)
        check_kind("limits", limits, TurnLimits, "write limits=TurnLimits(width=4)")
        check_kind("retry", retry, RetryPolicy, "write retry=RetryPolicy(max_attempts=1)")
        if outputs is not None:
            check_kind("outputs", outputs, Outputs, "write outputs=Outputs(folder)")
        if state is not None:
            check_kind("state", state, State, "write state=State()")
        if clock is not None:
            check_members(clock, Clock, "a clock")
        self.limits = limits if width is None else replace(limits, width=width)
        self.policies = policies if isinstance(policies, Policies) else Policies(policies or ByMode("default"))
        self.hooks = _check_hooks(hooks)
        self.stats = Stats()
        self.outputs = outputs or Outputs()
        self.state = state or State()
        self.observers = _check_observers(observe)
        self.observe = self.notify if self.observers else None
        """Passes an event to the observers; None if there are none, so that no event is made for them."""
        self.retry = retry
        self.clock = clock or WallClock()
        self.repairs: RepairMode = repairs
        gate = Gate(self.policies, self.hooks, question_seconds=self.limits.question_seconds, repairs=repairs)
        runner = Runner(self.hooks, retry=retry, clock=self.clock, stats=self.stats, outputs=self.outputs)
        self._runtime = Runtime(
            registry, gate, runner, self.state, self.observe, self.limits, LoopLocal(self.limits.grace_seconds)
        )
        self._fast_path = FastPath(self._runtime)
        self._ids = itertools.count(1)
        self._readable: tuple[Catalog, Catalog] | None = None

    def run(
        self,
        name: str,
        arguments: JsonObject | str | bytes = _NO_ARGUMENTS,
        *,
        answers: Answers | None = None,
        turn: Turn = _NO_TURN,
    ) -> Coroutine[Any, Any, Outcome]:
        """Make one call: `await executor.run("read", {"path": "README.md"})`.

        Args:
            name: The tool's name.
            arguments: As a mapping or as JSON text.
            answers: Answers to the questions of an earlier `Interrupted` outcome.
            turn: The session, state and callbacks the call belongs to.

        Raises:
            UsageError: `answers` is not `Answers`.
        """
        if answers is not None:
            return self.make_call(_call(self._resumed_id(answers, name), name, arguments), answers, turn)
        call = _call(f"run-{next(self._ids)}", name, arguments)
        running = self._fast_path.start(call, turn)
        return self.make_call(call, None, turn) if running is None else running

    async def execute(
        self, calls: Sequence[ToolCall], *, answers: Answers | None = None, turn: Turn = _NO_TURN
    ) -> list[Outcome]:
        """Make the calls of one turn; nothing that a model, tool, hook or user does is raised.

        Args:
            calls: The calls of one model message.
            answers: Answers to the questions of earlier `Interrupted` outcomes.
            turn: The session, state and callbacks the calls belong to.

        Raises:
            UsageError: `calls` is not a sequence of calls, or `answers` is not `Answers`.
            CancelledError: The awaiting task was cancelled; `TurnCancelled.find(error)` has an outcome for every call.
                A `Cancellation` in the turn returns them instead.
        """
        if not isinstance(cast(object, calls), (list, tuple, Sequence)) or _find_others(calls):
            advice = "write execute([ToolCall(id, name, arguments)]) or run(name, arguments)"
            raise UsageError(f"expected a sequence of calls, got {safe_repr(calls)}; {advice}")
        if len(calls) == 1:
            return [await self.make_call(calls[0], answers, turn)]
        checked = None if answers is None else check_answers(answers)
        return await TurnScope(self._runtime, turn).run_all(calls, checked)

    def make_call(self, call: ToolCall, answers: Answers | None, turn: Turn) -> Coroutine[Any, Any, Outcome]:
        """Make the only call of a turn, as `execute` does.

        Args:
            call: The call, with the model's id.
            answers: The answers to questions it has asked; None if it has asked none.
            turn: What the call runs in.

        Raises:
            UsageError: `answers` is not `Answers`.
        """
        if answers is None:
            running = self._fast_path.start(call, turn)
            if running is not None:
                return running
        return TurnScope(self._runtime, turn).run(call, None if answers is None else check_answers(answers))

    def run_sync(
        self, name: str, arguments: JsonObject | str | bytes = _NO_ARGUMENTS, *, answers: Answers | None = None
    ) -> Outcome:
        """Make one call and block until it is done.

        Args:
            name: The tool's name.
            arguments: As a mapping or as JSON text.
            answers: Answers to the questions of an earlier `Interrupted` outcome.

        Raises:
            UsageError: An event loop is running in this thread, or `answers` is not `Answers`.
        """
        call_id = f"run-{next(self._ids)}" if answers is None else self._resumed_id(answers, name)
        return self.execute_sync((ToolCall(call_id, name, arguments),), answers=answers)[0]

    def _resumed_id(self, answers: Answers, name: str) -> str:
        """Return the id of the call that the answers are for, because an answer counts for its own call only."""
        for question_id, _ in check_answers(answers):
            asked = self._runtime.ledger.find(question_id)
            if asked is not None and asked[0].within:
                return asked[0].within
            if asked is not None and asked[0].tool == name:
                return asked[0].call_id
        return f"run-{next(self._ids)}"

    def execute_sync(self, calls: Sequence[ToolCall], *, answers: Answers | None = None) -> list[Outcome]:
        """Make the calls of one turn and block until they are done.

        Args:
            calls: The calls of one model message.
            answers: Answers to the questions of earlier `Interrupted` outcomes.

        Raises:
            UsageError: An event loop is running in this thread.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            try:
                return asyncio.run(self.execute(calls, answers=answers))
            finally:
                self._runtime.loops.forget_closed()
        raise UsageError("run_sync blocks, and an event loop is running here; write `await executor.run(…)` instead")

    async def questions(self, call: ToolCall, *, turn: Turn = _NO_TURN) -> tuple[Question, ...]:
        """Return what the user would be asked about a call. Runs nothing, so it may be repeated.

        Args:
            call: The call; it is judged with hooks and policies, as if it were to run.
            turn: The session and state the call belongs to.
        """
        return await TurnScope(self._runtime, turn).questions(call)

    def accept_again(self, question_ids: Iterable[str]) -> None:
        """Let answers count that calls have used, as another process would, which knows the caller's record only.

        Args:
            question_ids: The questions of calls that are continued from a record, which says what must not run again.
        """
        self._runtime.ledger.give_back(question_ids)

    def with_reader(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the tool that reads cut outputs, if it is not among its tools."""
        if READER in catalog.tools:
            return catalog
        if self._readable is None or self._readable[0] is not catalog:  # kept, as callers compare catalogs by identity
            reader = self.outputs.reader()
            self._readable = (catalog, Catalog({**catalog.tools, READER: reader}, catalog.revealed, catalog.withheld))
        return self._readable[1]

    def notify(self, event: Event) -> None:
        """Pass an event to the observers; one that raises is logged and changes nothing."""
        for observer in self.observers:
            try:
                observer(event)
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001 - an observer that fails must not fail the call
                _log.exception("an observer failed on %s", type(event).__name__)


def _find_others(calls: Sequence[object]) -> list[object]:
    """Return what is not a call."""
    return [given for given in calls if not isinstance(given, ToolCall)]


def _check_hooks(hooks: "Hook | Iterable[object]") -> "tuple[Hook, ...]":
    """Refuse anything that is not a hook: it would never be asked, and what it should guard would be open."""
    if isinstance(hooks, tuple) and not hooks:
        return ()
    from callwright.hooks.base import Hook  # loaded with the first hook

    checked = list[Hook]()
    for hook in hooks if isinstance(hooks, Iterable) else (hooks,):
        if not isinstance(hook, Hook):
            raise UsageError(f"expected a Hook, got {hook!r}; pass an instance of a subclass of callwright.hooks.Hook")
        checked.append(hook)
    return tuple(checked)


def _check_observers(given: Observer | Iterable[Observer] | None) -> tuple[Observer, ...]:
    """Refuse what could not be called with an event: its failures would only be logged, event after event."""
    several = given is None or (not callable(given) and hasattr(given, "__iter__"))
    observers = tuple(cast("Iterable[Observer]", given or ())) if several else (cast(Observer, given),)
    for observer in list[object](observers):
        if isinstance(observer, type) or not callable(observer):
            raise UsageError(
                f"expected an observer, got {observer!r}; pass a function that takes an event, or an instance with "
                "__call__(self, event)"
            )
        if iscoroutinefunction(observer) or iscoroutinefunction(getattr(observer, "__call__", None)):  # noqa: B004 - an object with an async __call__ is async too
            raise UsageError(f"the observer {observer!r} is async and would never run; write it with plain def")
    return observers
