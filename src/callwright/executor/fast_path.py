"""The short way for the commonest call: a plain async function that nobody watches and the policies have allowed.

It does what the long way would do, with nothing in between. Whatever is not plain success is handed back: arguments
that do not fit go the long way from the start, a failed attempt goes on where the long way would be.
"""

import asyncio
from collections.abc import Callable, Coroutine
from math import inf
from time import perf_counter
from typing import Any

from callwright.core._fast import maker
from callwright.core.calls import Completed, Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.errors import InvalidArguments
from callwright.executor.admit import Admitted, Lane
from callwright.executor.deadlines import being_cancelled
from callwright.executor.perform import normalise, overdue
from callwright.executor.turn import Machine, Turn, TurnScope
from callwright.registry.catalog import Catalog
from callwright.stats import Tally
from callwright.tool.function import FunctionTool

_completed = maker(Completed)
_output = maker(Output)


class ExpressLane:
    """What the short way needs to know of a tool."""

    __slots__ = ("_lane", "function", "output_chars", "parse", "seconds", "strictly", "tally")

    def __init__(self, tool: FunctionTool, function: Callable[..., Coroutine[Any, Any, object]], tally: Tally) -> None:
        self._lane = Lane(tool)
        self.parse = tool.contract.parser.parse
        self.strictly = tool.contract.parser.strictly
        self.function = function
        self.seconds = tool.spec.limits.seconds
        self.output_chars = tool.spec.limits.output_chars
        self.tally = tally

    def admitted(self, call: ToolCall) -> Admitted:
        """The call as the long way knows it: of this tool, whatever the registry has become meanwhile."""
        item = Admitted(call, self._lane, "")
        item.bind(call.arguments)
        return item


class Express:
    """Knows which tools may go the short way, as long as registry and policies stay as they are."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._registry, self._policies = machine.registry, machine.gate.policies
        self._open = machine.observe is None and not machine.gate.hooks and not machine.runner.hooks
        self._changes = -1
        self._catalog = Catalog({})
        self._standing: str | None = None
        self._lanes: dict[str, ExpressLane] = {}

    def lane(self, name: str, turn: Turn) -> ExpressLane | None:
        """The short way to a tool, once the long way has allowed it as such."""
        if not self._open or turn.cancellation is not None or turn.journal is not None or turn.observe is not None:
            return None
        if self._registry.changes != self._changes or self._policies.standing != self._standing:
            self._changes, self._standing, self._lanes = self._registry.changes, self._policies.standing, {}
            self._catalog = self._registry.snapshot()
        if turn.catalog is not None and turn.catalog is not self._catalog:
            return None
        return self._lanes.get(name) or self._lay(name, self._catalog)

    def _lay(self, name: str, catalog: Catalog) -> ExpressLane | None:
        tool = catalog.get(name)
        if not isinstance(tool, FunctionTool) or tool.direct is None or tool.traits.accesses is not None:
            return None
        if tool.traits.limits.concurrency is not None or not self._machine.gate.granted(name, catalog):
            return None
        lane = ExpressLane(tool, tool.direct, self._machine.runner.stats.tally(tool.name))
        self._lanes[name] = lane
        return lane

    async def run(self, call: ToolCall, lane: ExpressLane, turn: Turn) -> Outcome:
        """Bring the call to its outcome."""
        try:
            if lane.strictly is not None and type(call.arguments) is str:
                values = lane.strictly(call.arguments, strict=True)
            else:
                values = lane.parse(call.arguments)
        except (InvalidArguments, ValueError):
            return await TurnScope(self._machine, turn).run(call, None)  # the long way says what is wrong with them
        deadlines = self._machine.local().deadlines
        deadline = None if lane.seconds == inf else deadlines.start(deadlines.now() + lane.seconds)
        began = perf_counter()
        try:
            value = await lane.function(**values)
        except asyncio.CancelledError as stopped:
            if deadline is not None and deadline.caused():
                return await TurnScope(self._machine, turn).go_on(lane.admitted(call), (overdue(lane.seconds), began))
            if being_cancelled():
                raise TurnScope(self._machine, turn).cancelled_alone(lane.admitted(call)) from None
            return await TurnScope(self._machine, turn).go_on(lane.admitted(call), (normalise(stopped), began))
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever a tool raises becomes a value
            return await TurnScope(self._machine, turn).go_on(lane.admitted(call), (normalise(raised), began))
        finally:
            if deadline is not None:
                deadlines.stop(deadline)
        seconds = perf_counter() - began
        if type(value) is not str or len(value) > lane.output_chars or not value.isascii():
            runner = self._machine.runner
            return runner.finish(lane.admitted(call), runner.rendered(call, value, seconds), None)
        chars_in = len(call.arguments) if type(call.arguments) is str else 0
        lane.tally.note("completed", 1, seconds, chars_in, len(value))
        return _completed(call, _output(value, None), seconds, 1)
