"""`Executor`: admit, then perform. One outcome per call, in call order, always."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias

from callwright.clip import Outputs
from callwright.core._fast import maker
from callwright.core.calls import Answers, Outcome, ToolCall
from callwright.core.errors import UsageError
from callwright.core.events import Event
from callwright.core.json import FrozenDict, JsonObject
from callwright.executor.admit import Gate
from callwright.executor.deadlines import Deadlines
from callwright.executor.fast_path import Express
from callwright.executor.perform import Runner
from callwright.executor.turn import LoopParts, Turn, TurnLimits, TurnScope
from callwright.hooks.base import Hook
from callwright.policy.base import Policy
from callwright.policy.decide import Policies
from callwright.policy.modes import ByMode
from callwright.registry.catalog import Toolset
from callwright.retry import Clock, RetryPolicy, WallClock
from callwright.stats import Stats
from callwright.tool.base import State

Observer: TypeAlias = Callable[[Event], None]
_NO_ARGUMENTS: JsonObject = FrozenDict()
_LONE = Turn()
_call = maker(ToolCall)
_log = logging.getLogger("callwright")


class Executor:
    """Runs calls against a toolset under policies, hooks and limits.

    Without policies the mode is `default`: what reads runs, everything else asks.
    """

    def __init__(
        self,
        registry: Toolset,
        policies: Policy | Policies | None = None,
        *,
        hooks: Hook | Iterable[Hook] = (),
        observe: Observer | Iterable[Observer] | None = None,
        width: int | None = None,
        bounds: TurnLimits = TurnLimits(),
        retry: RetryPolicy = RetryPolicy(),
        clock: Clock | None = None,
        outputs: Outputs | None = None,
        state: State | None = None,
    ) -> None:
        if not hasattr(registry, "snapshot"):
            raise UsageError(f"{registry!r} is no toolset; write Executor(Registry(*tools))")
        self.registry = registry
        self.bounds = (
            bounds if width is None else TurnLimits(width, bounds.depth, bounds.turn_chars, bounds.question_seconds)
        )
        self.policies = policies if isinstance(policies, Policies) else Policies(policies or ByMode("default"))
        self.hooks = _checked((hooks,) if isinstance(hooks, Hook) else hooks)
        self.stats = Stats()
        self.outputs = outputs or Outputs()
        self.state = state or State()
        self.observers = (observe,) if callable(observe) else tuple(observe or ())
        self.observe = self.tell if self.observers else None
        """The one observation point; None when nobody watches."""
        self.gate = Gate(self.policies, self.hooks, question_seconds=self.bounds.question_seconds)
        self.runner = Runner(
            self.hooks, retry=retry, clock=clock or WallClock(), stats=self.stats, outputs=self.outputs
        )
        self._express = Express(self)
        self._ids = itertools.count(1)
        self._parts: LoopParts | None = None

    def run(
        self,
        name: str,
        arguments: JsonObject | str | bytes = _NO_ARGUMENTS,
        *,
        answers: Answers | None = None,
        turn: Turn = _LONE,
    ) -> Coroutine[Any, Any, Outcome]:
        """Make one call: `await executor.run("read", {"path": "README.md"})`."""
        call = _call(f"run-{next(self._ids)}", name, arguments)
        return self._alone(call, answers, turn)

    async def execute(
        self, calls: Sequence[ToolCall], *, answers: Answers | None = None, turn: Turn = _LONE
    ) -> list[Outcome]:
        """Make the calls of one turn; never raises for anything a model, tool, hook or person did.

        Cancelling the task that awaits this raises `TurnCancelled`, which carries an outcome for every call;
        a `Cancellation` in the turn returns them instead.
        """
        if isinstance(calls, ToolCall):
            raise UsageError("execute takes the calls of a turn; write execute([call]), or run(name, arguments)")
        if len(calls) == 1:
            return [await self._alone(calls[0], answers, turn)]
        return await TurnScope(self, turn).run_all(calls, answers)

    def _alone(self, call: ToolCall, answers: Answers | None, turn: Turn) -> Coroutine[Any, Any, Outcome]:
        lane = self._express.lane(call.name, turn) if answers is None else None
        return TurnScope(self, turn).run(call, answers) if lane is None else self._express.run(call, lane, turn)

    def run_sync(
        self, name: str, arguments: JsonObject | str | bytes = _NO_ARGUMENTS, *, answers: Answers | None = None
    ) -> Outcome:
        """Make one call and block until it is done."""
        return self.execute_sync((ToolCall(f"run-{next(self._ids)}", name, arguments),), answers=answers)[0]

    def execute_sync(self, calls: Sequence[ToolCall], *, answers: Answers | None = None) -> list[Outcome]:
        """Make the calls of one turn and block until they are done."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.execute(calls, answers=answers))
        raise UsageError("run_sync blocks, and an event loop is running here; write `await executor.run(…)` instead")

    def tell(self, event: Event) -> None:
        """Pass an event to the observers; they have no say, but their failures must not go unseen."""
        for observer in self.observers:
            try:
                observer(event)
            except Exception:  # noqa: BLE001 - an observer that fails must not fail the call
                _log.exception("an observer failed on %s", type(event).__name__)

    def home(self) -> asyncio.AbstractEventLoop:
        """The loop calls were last made on, for what worker threads have to say."""
        if self._parts is None:
            raise UsageError("nothing has been executed yet")
        return self._parts.loop

    def local(self) -> LoopParts:
        """The running loop's own timer and limits."""
        loop = asyncio.get_running_loop()
        if self._parts is None or loop is not self._parts.loop:
            self._parts = LoopParts(loop, Deadlines(loop))
        return self._parts


def _checked(hooks: Iterable[object]) -> tuple[Hook, ...]:
    """A hook that could never be asked is told to the programmer now: what it guards would be open."""
    listed = list[Hook]()
    for hook in hooks:
        if not isinstance(hook, Hook):
            raise UsageError(f"{hook!r} is no hook; pass an instance of a subclass of callwright.hooks.Hook")
        listed.append(hook)
    return tuple(listed)
