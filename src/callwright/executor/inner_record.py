"""Keeps notes of tools and the calls that they make on record, so that the next run of a tool repeats no write.

Every tool may run again: after a question, or an error that is retried; one that may be repeated after a crash, too.
Only the turns of an agent are on record: an executor alone cannot tell a repetition from another call of the same id.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, cast

from callwright.core._fast import replace
from callwright.core.calls import Completed, Failed, Interrupted, Outcome, ToolCall
from callwright.core.errors import Cancelled
from callwright.core.json import FrozenDict, Json, canonical, hash_text
from callwright.executor.turn_context import Keep
from callwright.registry.catalog import Catalog
from callwright.tool.base import InnerBatch, ToolContext

_UNKNOWN = "not done again: an earlier run ended while this call ran; it had started, so it may have had an effect"
_BEGUN: Json = FrozenDict({"begun": True})
_WAITS: Json = FrozenDict({"waits": True})
"""The last note of a call that is made again: it has asked a question."""
_RunAll: TypeAlias = Callable[[Sequence[ToolCall], None, ToolContext, InnerBatch], Awaitable[list[Outcome]]]


class _ToolRun:
    """One run of a tool that makes calls. The next run of the same call counts from the start again."""

    __slots__ = ("_made", "_numbers", "context", "path")

    def __init__(self, context: ToolContext, path: str) -> None:
        self.context = context
        self.path = path
        """As that of the context; a call that is made again with the same id has another one."""
        self._made: dict[str, int] = {}
        self._numbers: dict[int, tuple[ToolCall, int]] = {}

    def count(self, kind: str) -> int:
        """Return how many calls of a kind were made, this one included."""
        number = self._made[kind] = self._made.get(kind, 0) + 1
        return number

    def add(self, call: ToolCall) -> None:
        """Add a call that is made now."""
        self._numbers[id(call)] = call, self.count(f"/{call.id}")

    def find_path(self, call: ToolCall) -> str:
        """Return the path of a call that this run makes."""
        number = self._numbers.get(id(call), (call, 1))[1]
        return f"{self.path}/{call.id}" if number == 1 else f"{self.path}/{call.id}//{number}"


class InnerRecord:
    """The notes of a turn that is on record, and the calls that its tools make.

    Args:
        keep: Stores a note.
        kept: The notes from before this turn was begun or continued, by path.
    """

    def __init__(self, keep: Keep, kept: Mapping[str, Sequence[Json]]) -> None:
        self._store = keep
        self._kept = kept
        self._noted: dict[str, list[Json]] = {}
        """All notes of the paths that have new ones: a call may run again in the same turn."""
        self._runs: dict[int, _ToolRun] = {}

    async def keep(self, path: str, note: Json, *, wait: bool) -> None:
        """Keep a note; with `wait`, it is stored on return."""
        if path not in self._noted:
            self._noted[path] = list(self._kept.get(path, ()))
        self._noted[path].append(note)
        await self._store(path, note, wait)

    def find(self, path: str) -> Sequence[Json]:
        """Return the notes of a call, those of this turn included."""
        return tuple(self._noted.get(path) or self._kept.get(path, ()))

    async def execute(
        self, context: ToolContext, calls: Sequence[ToolCall], batch: InnerBatch, catalog: Catalog, run: _RunAll
    ) -> list[Outcome]:
        """Make calls with `run`, except those that an earlier run of the tool has made; return all outcomes."""
        if len({id(call) for call in calls}) < len(calls):  # told apart by identity
            calls = [replace(call) for call in calls]
        done, recording = self._split(context, calls, catalog, batch)
        if batch.ended is not None:
            for outcome in done.values():
                await batch.ended(outcome)
        left = [call for index, call in enumerate(calls) if index not in done]
        outcomes = iter(await run(left, None, context, recording) if left else ())
        return [done[index] if index in done else next(outcomes) for index in range(len(calls))]

    def _split(
        self, context: ToolContext, calls: Sequence[ToolCall], catalog: Catalog, batch: InnerBatch
    ) -> tuple[dict[int, Outcome], InnerBatch]:
        """Return the outcomes of calls that must not run again, and the batch of the others, which are recorded."""
        done: dict[int, Outcome] = {}
        paths: dict[int, str] = {}
        made_by = self._find_run(context)
        for index, call in enumerate(calls):
            made_by.add(call)
            tool = catalog.get(call.name)
            if tool is None or tool.spec.annotations.repeatable:
                continue
            path = _next_path(made_by, call)
            notes = self.find(path)
            if notes and notes[-1] != _WAITS:
                done[index] = _read_outcome(call, notes[-1])
            else:
                paths[id(call)] = path

        async def starting(call: ToolCall) -> None:
            if (path := paths.get(id(call))) is not None:
                await self.keep(path, _BEGUN, wait=True)

        async def ended(outcome: Outcome) -> None:
            path = paths.get(id(outcome.call))
            if path is None:  # its arguments were changed
                path = next(
                    (paths[id(call)] for call in calls if call.id == outcome.call.id and id(call) in paths), None
                )
            if isinstance(outcome, Interrupted):
                # it asked while it ran, and runs again with the answer
                if path is not None and self.find(path)[-1:] == (_BEGUN,):
                    await self.keep(path, _WAITS, wait=True)
            elif path is not None and _has_run(outcome):
                from callwright.sessions.message_encoding import encode_outcome

                await self.keep(path, cast(Json, encode_outcome(outcome)), wait=True)
            if batch.ended is not None:
                await batch.ended(outcome)

        origins = [origin for index, origin in enumerate(batch.origins) if index not in done]
        return done, InnerBatch(origins, starting, ended, batch.output_chars)

    def _find_run(self, context: ToolContext) -> _ToolRun:
        """Return the run of a tool that a context is of."""
        found = self._runs.get(id(context))
        if found is None:
            parent, call = context.parent, context.call
            path = call.id if parent is None else self._find_run(parent).find_path(call)
            found = self._runs[id(context)] = _ToolRun(context, path)  # it holds the context, whose id stays its own
        return found


def _next_path(made_by: _ToolRun, call: ToolCall) -> str:
    """Return where a call is noted: by what it is, and the how many-th of its kind."""
    arguments = call.arguments if isinstance(call.arguments, (str, bytes)) else canonical(call.arguments)
    what = "\0".join((call.id, call.name, str(arguments)))
    key = f"{made_by.path}//{hash_text(what)[:24]}"
    return f"{key}-{made_by.count(key)}"


def _has_run(outcome: Completed | Failed) -> bool:
    return isinstance(outcome, Completed) or outcome.started


def _read_outcome(call: ToolCall, note: Json) -> Outcome:
    from callwright.sessions.message_encoding import UnreadableRecord, decode_outcome

    if isinstance(note, Mapping) and note != _BEGUN:
        try:
            return decode_outcome(cast("dict[str, object]", dict(note)))
        except (UnreadableRecord, KeyError, TypeError, ValueError):
            pass
    return Failed(call, Cancelled(_UNKNOWN), started=True)
