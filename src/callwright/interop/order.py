"""Calls that a framework starts side by side, each by itself, kept in order where they conflict."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import TypeAlias, TypeVar

from callwright.core.access import Access
from callwright.core.call import ToolCall
from callwright.core.errors import ToolError
from callwright.core.spec import Annotations, Effect
from callwright.executor.schedule import waits
from callwright.registry.catalog import Catalog

Claim: TypeAlias = tuple[Annotations, Sequence[Access]]
Given = TypeVar("Given")
_HARMLESS: Claim = (Annotations(Effect.READ), ())


class _Place:
    """One call in the line; what it touches is worked out only when another call comes beside it."""

    def __init__(self, call: ToolCall, catalog: Catalog) -> None:
        self._call = call
        self._catalog = catalog
        self.done = asyncio.Event()

    @cached_property
    def claim(self) -> Claim:
        tool = self._catalog.get(self._call.name)
        if tool is None:
            return _HARMLESS
        try:
            return tool.spec.annotations, tuple(tool.bind(self._call.arguments).accesses())
        except ToolError:  # it will fail before it touches anything
            return _HARMLESS
        except Exception:  # noqa: BLE001 - what cannot say what it touches may touch anything
            return tool.spec.annotations, ()


_inside: ContextVar[_Place | None] = ContextVar("callwright_interop_inside", default=None)
"""The call the present one is made from. It holds its place meanwhile, so waiting for it would never end."""


class CallOrder:
    """The lines calls wait in, one per batch: calls of different batches do not wait for each other."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, list[_Place]] = {}

    async def run(
        self, batch: Hashable, call: ToolCall, catalog: Catalog, perform: Callable[[], Awaitable[Given]]
    ) -> Given:
        """Perform once every earlier call of the batch that this one conflicts with is done."""
        key = (_inside.get(), batch)
        line = self._lines.setdefault(key, [])
        place = _Place(call, catalog)
        before = _conflicting(line, place)
        line.append(place)
        entered = _inside.set(place)
        try:
            for other in before:
                await other.done.wait()
            return await perform()
        finally:
            _inside.reset(entered)
            place.done.set()
            line.remove(place)
            if not line:
                del self._lines[key]


def _conflicting(line: Sequence[_Place], place: _Place) -> list[_Place]:
    if not line:
        return []
    return [line[index] for index in sorted(waits(other.claim for other in (*line, place))[-1])]
