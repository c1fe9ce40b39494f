"""The order of conflicting calls that a framework starts in parallel, and the approvals that are pending."""

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
Value = TypeVar("Value")
_HARMLESS: Claim = (Annotations(Effect.READ), ())


class _QueuedCall:
    """One call of a batch; its accesses are computed only when another call of the batch arrives."""

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
        except ToolError:  # its arguments are invalid, so it fails conflicts it accesses anything
            return _HARMLESS
        except Exception:  # noqa: BLE001 - without accesses it conflicts with every write
            return tool.spec.annotations, ()


_current_call: ContextVar[_QueuedCall | None] = ContextVar("callwright_interop_inside", default=None)
"""The call that makes the present one. It ends later, so waiting for it would be a deadlock."""


class CallOrder:
    """Queues of calls, one per batch; calls of different batches do not wait for each other."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, list[_QueuedCall]] = {}

    async def run(
        self, batch: Hashable, call: ToolCall, catalog: Catalog, perform: Callable[[], Awaitable[Value]]
    ) -> Value:
        """Run a call after all earlier calls of its batch that it conflicts with."""
        key = (_current_call.get(), batch)
        queue = self._queues.setdefault(key, [])
        queued = _QueuedCall(call, catalog)
        conflicts = _find_conflicts(queue, queued)
        queue.append(queued)
        token = _current_call.set(queued)
        try:
            for other in conflicts:
                await other.done.wait()
            return await perform()
        finally:
            _current_call.reset(token)
            queued.done.set()
            queue.remove(queued)
            if not queue:
                del self._queues[key]


def _find_conflicts(queue: Sequence[_QueuedCall], queued: _QueuedCall) -> list[_QueuedCall]:
    if not queue:
        return []
    return [queue[index] for index in sorted(find_conflicts(other.claim for other in (*queue, queued))[-1])]


_MAX_PENDING = 4096
_USED = compact({"ids": [], "used": True})
_OPEN = compact({"ids": []})


@dataclass(frozen=True, slots=True)
class ShownQuestions:
    """Questions shown to the user; each id is bound to exactly what would have run."""

    ids: tuple[str, ...]
    arguments: Json = None
    """The arguments of the call, as the framework gave them."""
    used: bool = False
    """A call has used the answers."""

    def match(self, questions: Sequence[Question]) -> dict[str, str]:
        """Return the id under which each of these questions was shown, perhaps by another process.

        Args:
            questions: The questions now; one that differs from what was shown is left out.
        """
        found: dict[str, str] = {}
        left = list(self.ids)
        for question in questions:
            same = next((shown for shown in left if question.matches(shown)), None)
            if same is not None:
                left.remove(same)
                found[question.id] = same
        return found

    def answer_all(self, questions: Sequence[Question], reply: Reply) -> Answers:
        """Return the same reply to each of the questions that was shown."""
        return Answers(dict.fromkeys(self.match(questions), reply))


class PendingApprovals:
    """Shown questions by session and adapter key. Values are text, so a persistent mapping survives the process."""

    def __init__(self, kept: MutableMapping[str, str] | None = None) -> None:
        self._bounded = kept is None  # the size of the caller's mapping is up to the caller
        self._kept: MutableMapping[str, str] = {} if kept is None else kept

    def save(self, session_id: str, key: str, questions: Iterable[Question], arguments: Json = None) -> None:
        """Save the questions that are shown to the user."""
        while self._bounded and len(self._kept) >= _MAX_PENDING:  # the oldest were never answered
            del self._kept[next(iter(self._kept))]
        ids = [question.id for question in questions]
        self._kept[_make_key(session_id, key)] = compact({"ids": ids, "arguments": arguments})

    def find(self, session_id: str, key: str) -> ShownQuestions | None:
        """Return the questions that were shown, or None if they are no longer saved."""
        text = self._kept.get(_make_key(session_id, key))
        if text is None:
            return None
        record: Any = from_text(text)
        return ShownQuestions(tuple(record["ids"]), record["arguments"])

    def take(self, session_id: str, key: str) -> ShownQuestions | None:
        """Return the questions that were shown, to use their answers; a second caller finds them marked as used.

        Executors and processes that share the mapping use an answer once if its `pop` is atomic, as that of a dict is.
        """
        text = self._kept.pop(_make_key(session_id, key), None)
        if text is None:
            return None
        self._kept[_make_key(session_id, key)] = _USED
        record: Any = from_text(text)
        return ShownQuestions(tuple(record["ids"]), record.get("arguments"), record.get("used") is True)

    def claim(self, session_id: str, question_id: str) -> bool:
        """Use the answer to one saved question; False if a call has done so, here or in another process."""
        return self._kept.pop(_make_key(session_id, question_id), None) is not None

    def allow_claims(self, session_id: str, question_ids: Iterable[str]) -> None:
        """Let the answer to each of these questions be claimed once."""
        for question_id in question_ids:
            self._kept[_make_key(session_id, question_id)] = _OPEN

    def drop(self, session_id: str, key: str) -> None:
        """Remove questions that have been answered."""
        self._kept.pop(_make_key(session_id, key), None)


def plain_arguments(call: ToolCall) -> Any:
    """Return a call's arguments as plain values, also when the framework gave them as text."""
    return from_text(call.arguments) if isinstance(call.arguments, (str, bytes)) else thaw(call.arguments)


def _make_key(session_id: str, key: str) -> str:
    return compact([session_id, key])
