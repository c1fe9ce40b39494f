"""Calls that a framework starts side by side, each by itself, kept in order where they conflict.

What people have been shown, until they answer: an approval counts for that and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from callwright.core.access import Access
from callwright.core.calls import Answers, Question, Reply, ToolCall
from callwright.core.errors import ToolError
from callwright.core.json import Json, compact, thaw
from callwright.core.spec import Annotations, Effect
from callwright.executor.schedule import find_conflicts
from callwright.registry.catalog import Catalog
from callwright.tool.arguments import from_text

Claim: TypeAlias = tuple[Annotations, Sequence[Access]]
Given = TypeVar("Given")
_HARMLESS: Claim = (Annotations(Effect.READ), ())


class _QueuedCall:
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


_current_call: ContextVar[_QueuedCall | None] = ContextVar("callwright_interop_inside", default=None)
"""The call the present one is made from. It holds its place meanwhile, so waiting for it would never end."""


class CallOrder:
    """The lines calls wait in, one per batch: calls of different batches do not wait for each other."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, list[_QueuedCall]] = {}

    async def run(
        self, batch: Hashable, call: ToolCall, catalog: Catalog, perform: Callable[[], Awaitable[Given]]
    ) -> Given:
        """Perform once every earlier call of the batch that this one conflicts with is done."""
        key = (_current_call.get(), batch)
        line = self._lines.setdefault(key, [])
        place = _QueuedCall(call, catalog)
        before = _find_conflicts(line, place)
        line.append(place)
        entered = _current_call.set(place)
        try:
            for other in before:
                await other.done.wait()
            return await perform()
        finally:
            _current_call.reset(entered)
            place.done.set()
            line.remove(place)
            if not line:
                del self._lines[key]


def _find_conflicts(line: Sequence[_QueuedCall], place: _QueuedCall) -> list[_QueuedCall]:
    if not line:
        return []
    return [line[index] for index in sorted(find_conflicts(other.claim for other in (*line, place))[-1])]


_MAX_PENDING = 4096


@dataclass(frozen=True, slots=True)
class ShownQuestions:
    """Questions as they were put to a person; each id is bound to exactly what would have run."""

    ids: tuple[str, ...]
    arguments: Json = None
    """Of the call they are about, as the framework gave them."""

    def replied(self, reply: Reply) -> Answers:
        """The same reply to all of them."""
        return Answers(dict.fromkeys(self.ids, reply))


class PendingApprovals:
    """Shown questions by session and a key of the adapter's, in a mapping of texts: a persistent one outlives us."""

    def __init__(self, kept: MutableMapping[str, str] | None = None) -> None:
        self._own = kept is None
        self._kept: MutableMapping[str, str] = {} if kept is None else kept

    def keep(self, session_id: str, key: str, questions: Iterable[Question], arguments: Json = None) -> None:
        """Remember what is being asked."""
        while self._own and len(self._kept) >= _MAX_PENDING:  # nobody came back to the oldest
            del self._kept[next(iter(self._kept))]
        ids = [question.id for question in questions]
        self._kept[_make_key(session_id, key)] = compact({"ids": ids, "arguments": arguments})

    def find(self, session_id: str, key: str) -> ShownQuestions | None:
        """What was asked; None where nobody remembers."""
        text = self._kept.get(_make_key(session_id, key))
        if text is None:
            return None
        record: Any = from_text(text)
        return ShownQuestions(tuple(record["ids"]), record["arguments"])

    def drop(self, session_id: str, key: str) -> None:
        """Forget what has been answered."""
        self._kept.pop(_make_key(session_id, key), None)


def plain_arguments(call: ToolCall) -> Any:
    """A call's arguments as plain values, however the framework gave them."""
    return from_text(call.arguments) if isinstance(call.arguments, (str, bytes)) else thaw(call.arguments)


def _make_key(session_id: str, key: str) -> str:
    return compact([session_id, key])
