"""The fast path for the commonest call: a plain async function, allowed by the policies.

It does what `TurnScope` would do, with nothing in between, and hands over whatever is not plain success: a call with
invalid arguments starts again there; a failed attempt, and a call that a hook does not simply let go on, are continued
there.
"""

import asyncio
from collections.abc import Callable, Coroutine
from inspect import CO_COROUTINE
from math import inf
from time import perf_counter
from typing import Any

from callwright.core._fast import make_constructor
from callwright.core.calls import Completed, Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.errors import ToolError
from callwright.core.events import BatchBegan, CallBegan, CallEnded, Digests
from callwright.core.json import copy_json
from callwright.core.raised import normalise
from callwright.executor.admitted import Admitted, ToolEntry
from callwright.executor.driver import Abandoned, count_cancellations, drive_on, is_cancelling, next_order, take_steps
from callwright.executor.perform import Ended, Interruption, complete, find_interruption, make_timeout
from callwright.executor.runtime import Runtime
from callwright.executor.turn import TurnScope
from callwright.executor.turn_context import Turn, TurnCancelled
from callwright.registry.catalog import Catalog
from callwright.stats import MOST_NOTED, Tally, count_argument_chars
from callwright.tool.function import Bound, FunctionTool

_completed = make_constructor(Completed)
_output = make_constructor(Output)


class FastTool:
    """The facts about a tool that the fast path needs."""

    __slots__ = (
        "_entry",
        "_tool",
        "allowed_key",
        "check_unseen",
        "count_keys",
        "extra",
        "function",
        "name",
        "noted",
        "output_chars",
        "parse",
        "parse_strict",
        "seconds",
        "tally",
    )

    def __init__(
        self,
        tool: FunctionTool,
        function: Callable[..., Coroutine[Any, Any, object]],
        tally: Tally,
        allowed_key: str | None,
    ) -> None:
        self._tool = tool
        self._entry = ToolEntry(tool)
        self.allowed_key = allowed_key
        """The cache key of the policies that allow it."""
        self.name = tool.name
        parser = tool.contract.parser
        self.parse, self.check_unseen, self.extra = parser.parse, parser.check_unseen, parser.extra
        self.parse_strict = parser.strict_validator
        """Parses JSON text in one step of the validator, without explaining errors; None if that is not enough."""
        self.count_keys = parser.count_keys or len
        """Counts the keys of parsed values; used with `parse_strict` only, which is None where it cannot."""
        self.function = function
        self.seconds = tool.spec.limits.seconds
        self.output_chars = tool.spec.limits.output_chars
        self.tally, self.noted = tally, tally.noted

    def admit(self, call: ToolCall, values: dict[str, Any], session_id: str) -> Admitted:
        """Return the call as `TurnScope` needs it: of this tool, even if the registry has changed meanwhile."""
        item = Admitted(call, self._entry, session_id)
        item.invocation = Bound(self._tool, values)
        return item

    def announce(self, call: ToolCall, values: dict[str, Any], turn: Turn) -> BatchBegan:
        """Return the event that the call is about to run."""
        digests = Digests(((self.name, copy_json(self._tool.complete(values)), ()),), turn.session_id)
        return make_constructor(BatchBegan)((call,), digests, turn.session_id, turn.turn_id)


class _Known:
    """The tools of one state of registry and policies; one value, because several threads may share a fast path."""

    __slots__ = ("catalog", "changes", "policy_key", "tools")

    def __init__(self, changes: int, policy_key: str | None, catalog: Catalog) -> None:
        self.changes = changes
        self.policy_key = policy_key
        self.catalog = catalog
        self.tools: dict[str, FastTool] = {}


class FastPath:
    """Runs calls of the tools that may take the fast path while registry and policies stay as they are."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._registry, self._policies = runtime.registry, runtime.gate.policies
        self._hooked = bool(runtime.gate.hooks or runtime.runner.hooks)
        if self._hooked:
            from callwright.executor.before_hooks import ask_hooks, make_pending_call  # loaded with the first hook

            self._ask_hooks, self._make_pending_call = ask_hooks, make_pending_call
        self._known = _Known(-1, None, Catalog({}))

    def start(self, call: ToolCall, turn: Turn) -> Coroutine[Any, Any, Outcome] | None:
        """Return what brings a call to its outcome; None if it may not take the fast path in this turn."""
        if turn.cancellation is not None or turn.observe is not None:
            return None
        # compared on every call: a removed tool or a switched mode must not be missed
        known, mode = self._known, self._policies.cacheable
        if mode is None:
            return None
        if self._registry.changes != known.changes or mode.cache_key != known.policy_key:
            changes, policy_key = self._registry.changes, self._policies.cache_key
            known = self._known = _Known(changes, policy_key, self._runtime.catalog())
        if turn.catalog is not None and turn.catalog is not known.catalog:
            return None
        tool = known.tools.get(call.name) or self._add(call.name, known)
        return None if tool is None else self._run(call, tool, turn)

    def _add(self, name: str, known: "_Known") -> FastTool | None:
        tool = known.catalog.get(name)
        if not isinstance(tool, FunctionTool) or tool.direct is None or tool.traits.accesses is not None:
            return None
        if tool.contract.special:  # such a call must know how its arguments were written, or keep them for a retry
            return None
        if not _makes_coroutines(tool.direct):
            return None
        # the first call goes the long way: only there do the policies decide
        if tool.traits.limits.concurrency is not None:
            return None
        if not self._runtime.gate.is_allowed(name, known.catalog, known.policy_key):
            return None
        fast = FastTool(tool, tool.direct, self._runtime.runner.stats.tally(tool.name), known.policy_key)
        known.tools[name] = fast
        return fast

    async def _run(self, call: ToolCall, tool: FastTool, turn: Turn) -> Outcome:
        """Bring a call to its outcome."""
        item: Admitted | None = None
        arguments = call.arguments
        as_text = type(arguments) is str
        # Python calls what is in a variable faster than a field
        parse, count_keys, function = tool.parse_strict, tool.count_keys, tool.function
        try:
            if as_text and parse is not None:
                if tool.extra is None:  # naming it costs a call of plain values a thirtieth of its time
                    values = parse(arguments, strict=True)
                else:
                    values = parse(arguments, strict=True, extra=tool.extra)
                if arguments.count(":") > count_keys(values):  # as many colons as keys: none is repeated
                    tool.check_unseen(arguments)
            else:
                values = tool.parse(arguments)
            if self._hooked:
                item = tool.admit(call, values, turn.session_id)
                self._make_pending_call(item, turn.turn_id)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - the message that explains it is made on the long way
            return await TurnScope(self._runtime, turn).run(call, None)
        if item is not None and self._runtime.gate.hooks:
            asking = self._ask_hooks(self._runtime.gate.hooks, item, turn.turn_id, self._runtime.loops.get().deadlines)
            if asking is not None or self._policies.cache_key != tool.allowed_key:  # a hook may switch the mode
                return await TurnScope(self._runtime, turn).run(call, None, (item, asking or _ask_no_more()))
        observe = self._runtime.observe
        if observe is not None or turn.journal is not None:
            try:
                announced = tool.announce(call, values, turn)
            except Exception:  # noqa: BLE001 - arguments that cannot be shown fail their call, on the long way
                return await TurnScope(self._runtime, turn).run(call, None)
            if turn.journal is not None:
                await turn.journal(announced)
            if observe is not None:
                observe(announced)
                observe(CallBegan(call))
        order, began = next_order(), perf_counter()
        ended: list[object] = []
        task = cancellations = None
        try:  # the first step here: most calls end with it, and nothing has to watch them
            steps = take_steps(function(**values), ended)
            waits_for = next(steps, None)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001 - whatever else a tool raises becomes a value
            item = item or tool.admit(call, values, turn.session_id)
            return await self._finish(item, turn, self._settle(item, turn, raised), began, count_cancellations())
        if not ended:  # here too: a coroutine of its own would live as long as the call waits
            parts, deadline, failed = self._runtime.loops.get(), None, None
            task, deadlines = asyncio.current_task(parts.loop), parts.deadlines
            cancellations = 0 if task is None else task.cancelling()
            if tool.seconds != inf:  # only now: no deadline can pass while the event loop stands still
                deadline = deadlines.start(deadlines.now() + tool.seconds - (perf_counter() - began), order, task)
            try:
                await drive_on(steps, ended, waits_for, deadlines.grace_seconds, order, cancellations)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as raised:  # noqa: BLE001 - as above
                item = item or tool.admit(call, values, turn.session_id)
                failed = self._settle(item, turn, raised, deadline, cancellations)
            finally:
                if deadline is not None:
                    deadlines.stop(deadline)
            if item is not None and failed is not None:
                try:
                    return await self._finish(item, turn, failed, began, cancellations)
                finally:  # its traceback leads to this frame: a cycle
                    failed = None
        value, seconds = ended[0], perf_counter() - began
        if item is not None or type(value) is not str or len(value) > tool.output_chars or not value.isascii():
            item = item or tool.admit(call, values, turn.session_id)
            known = count_cancellations() if cancellations is None else cancellations
            return await self._finish(item, turn, complete(call, value, seconds), began, known)
        outcome = _completed(call, _output(value, None), seconds, 1, ())
        chars_in = len(arguments) if as_text else count_argument_chars(arguments)
        noted = tool.noted  # as `Tally.note` does, without the call
        noted.extend(("completed", 1, seconds, chars_in, len(value)))
        if len(noted) >= MOST_NOTED:
            tool.tally.add_up()
        if observe is not None:
            observe(make_constructor(CallEnded)(outcome, call, tool.name))
        if task is None or cancellations is None or task.cancelling() <= cancellations:
            return outcome
        return _return_unless_cancelled(outcome, cancellations)

    def _settle(
        self,
        item: Admitted,
        turn: Turn,
        raised: BaseException,
        deadline: int | None = None,
        cancellations: int = 0,
    ) -> ToolError | Interruption:
        """Return the error that an attempt ended with, or raise a cancellation that came from outside."""
        if not isinstance(raised, asyncio.CancelledError):
            return find_interruption(raised) or normalise(raised)
        if isinstance(raised, Abandoned):
            self._runtime.runner.report_abandoned(item, self._runtime.limits.grace_seconds, self._runtime.observe)
        deadlines = self._runtime.loops.get().deadlines
        if deadline is not None and deadlines.claim_cancellation(deadline, cancellations):
            return make_timeout(item.require_entry().limits.seconds, abandoned=item.abandoned)
        if is_cancelling():
            cause = TurnScope(self._runtime, turn).cancel_alone(item)
            raise asyncio.CancelledError(str(cause)) from cause
        return normalise(raised)

    async def _finish(
        self,
        item: Admitted,
        turn: Turn,
        ended: Ended,
        began: float,
        cancellations: int,
    ) -> Outcome:
        """Finish a call that failed, whose output is not plain text, or that has hooks."""
        runner = self._runtime.runner
        if runner.hooks and isinstance(ended, Outcome):
            ended = runner.run_after_hooks(item, ended, turn.turn_id, self._runtime.loops.get().deadlines)
        if isinstance(ended, Outcome):
            outcome = runner.finish(item, ended, self._runtime.observe)
        else:
            outcome = await TurnScope(self._runtime, turn).finish_from(item, ended, began)
        return _return_unless_cancelled(outcome, cancellations)


def _return_unless_cancelled(outcome: Outcome, cancellations: int) -> Outcome:
    """Return an outcome; raise if the task was cancelled meanwhile and the tool or a hook ended in spite of it."""
    if cancellations < count_cancellations():
        cause = TurnCancelled([outcome])
        raise asyncio.CancelledError(str(cause)) from cause
    return outcome


async def _ask_no_more() -> None:
    """Stand for hooks that were all asked."""


def _makes_coroutines(function: Callable[..., object]) -> bool:
    """Whether calling a function gives a coroutine; one that is only marked as such may give any awaitable."""
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & CO_COROUTINE)
