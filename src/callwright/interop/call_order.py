"""`CallOrder`: calls that a framework starts together and that conflict run in the order of the model."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import ContextVar
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias, TypeVar, cast

from callwright.core.access import Access
from callwright.core.calls import ToolCall
from callwright.core.errors import ToolError
from callwright.core.spec import Annotations, Effect
from callwright.executor.conflicts import find_conflicts
from callwright.registry.catalog import Catalog
from callwright.tool.base import Invocation, SessionTool, State, Tool

Claim: TypeAlias = tuple[Annotations, Sequence[Access]]
Session: TypeAlias = tuple[State, str]
Value = TypeVar("Value")
_HARMLESS: Claim = (Annotations(Effect.READ), ())
_MAX_BATCHES = 256


class _QueuedCall:
    """One call of a batch; its accesses are computed only when another call of the batch arrives."""

    def __init__(self, call: ToolCall, catalog: Catalog, session: Session | None) -> None:
        self._call = call
        self._catalog = catalog
        self._session = session
        self.call_id = call.id
        self.done = asyncio.Event()

    @cached_property
    def claim(self) -> Claim:
        tool = self._catalog.get(self._call.name)
        if tool is None:
            return _HARMLESS
        try:
            return tool.spec.annotations, tuple(self._bind(tool).accesses())
        except ToolError:  # its arguments are invalid, so it fails before it accesses anything
            return _HARMLESS
        except Exception:  # noqa: BLE001 - without accesses it conflicts with every write
            return tool.spec.annotations, ()

    def _bind(self, tool: Tool) -> Invocation:
        # hasattr: from Python 3.12 on, isinstance does not see what a renamed tool passes on
        if self._session is None or not hasattr(tool, "bind_in"):
            return tool.bind(self._call.arguments)
        return cast(SessionTool, tool).bind_in(self._call.arguments, *self._session)


_current_call: ContextVar[_QueuedCall | None] = ContextVar("callwright_interop_inside", default=None)
"""The call that makes the present one. It ends later, so waiting for it would be a deadlock."""


class CallOrder:
    """Queues of calls, one per batch; calls of different batches do not wait for each other."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, list[_QueuedCall]] = {}
        self._unapproved: dict[Hashable, dict[str, Claim]] = {}
        """For each batch its calls that wait for an approval, in their order."""

    async def run(
        self,
        batch: Hashable,
        call: ToolCall,
        catalog: Catalog,
        perform: Callable[[bool], Awaitable[Value]],
        waits: Callable[[Value], bool] = lambda _: False,
        session: Session | None = None,
    ) -> Value:
        """Run a call after all earlier calls of its batch that it conflicts with.

        Args:
            batch: Identifies the calls that were started together.
            call: The call.
            catalog: The tools.
            perform: Runs it; is told whether a call that it conflicts with waits for an approval.
            waits: Whether a result means that the call waits for an approval, and is run again after it.
            session: The state and id of its session, for tools whose calls depend on it.
        """
        key = (_current_call.get(), batch)
        queue = self._queues.setdefault(key, [])
        queued = _QueuedCall(call, catalog, session)
        conflicts = _find_conflicts(queue, queued)
        queue.append(queued)
        token = _current_call.set(queued)
        try:
            for other in conflicts:
                await other.done.wait()
            value = await perform(self._is_behind(key, queued))
            self._note(key, queued, waiting=waits(value))
            return value
        finally:
            _current_call.reset(token)
            queued.done.set()
            queue.remove(queued)
            if not queue:
                del self._queues[key]

    def _is_behind(self, key: Hashable, queued: _QueuedCall) -> bool:
        """Whether an earlier call of the batch that it conflicts with waits for an approval."""
        unapproved = self._unapproved.get(key)
        if not unapproved:
            return False
        earlier = [claim for _, claim in takewhile(lambda entry: entry[0] != queued.call_id, unapproved.items())]
        return bool(earlier) and bool(find_conflicts((*earlier, queued.claim))[-1])

    def _note(self, key: Hashable, queued: _QueuedCall, *, waiting: bool) -> None:
        """Note whether a call waits for an approval; one that is run again keeps its place."""
        if waiting:
            self._unapproved.setdefault(key, {})[queued.call_id] = queued.claim
            while len(self._unapproved) > _MAX_BATCHES:  # some are never run again: the user declines them
                del self._unapproved[next(iter(self._unapproved))]
        elif key in self._unapproved:
            self._unapproved[key].pop(queued.call_id, None)
            if not self._unapproved[key]:
                del self._unapproved[key]


def _find_conflicts(queue: Sequence[_QueuedCall], queued: _QueuedCall) -> list[_QueuedCall]:
    if not queue:
        return []
    return [queue[index] for index in sorted(find_conflicts(other.claim for other in (*queue, queued))[-1])]
