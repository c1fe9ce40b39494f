"""Keeps the calls that a repeatable tool makes on record, so that a repetition after a crash does not repeat writes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, cast

from callwright.core.calls import Completed, Failed, Interrupted, Outcome, ToolCall
from callwright.core.errors import Cancelled
from callwright.core.json import Json, canonical, hash_text
from callwright.executor.turn_context import Keep
from callwright.registry.catalog import Catalog
from callwright.tool.base import InnerBatch, ToolContext

_UNKNOWN = "not done again: the process ended while this call ran; it had started, so it may have had an effect"


_Run: TypeAlias = Callable[[Sequence[ToolCall], None, ToolContext, InnerBatch], Awaitable[list[Outcome]]]


class InnerRecord:
    """The calls that the tools of one turn make, where the turn is on record.

    Args:
        keep: Stores a note.
        kept: The notes from before a restart, by path.
    """

    def __init__(self, keep: Keep, kept: Mapping[str, Sequence[Json]]) -> None:
        self._keep = keep
        self._kept = kept
        self._made: dict[str, int] = {}

    async def execute(
        self, context: ToolContext, calls: Sequence[ToolCall], batch: InnerBatch, catalog: Catalog, run: _Run
    ) -> list[Outcome]:
        """Make calls with `run`, except those that were made before the process ended; return all outcomes."""
        if not self._is_needed(context, catalog):
            return await run(calls, None, context, batch)
        done, recording = self._split(context, calls, catalog, batch)
        if batch.ended is not None:
            for outcome in done.values():
                await batch.ended(outcome)
        left = [call for index, call in enumerate(calls) if index not in done]
        outcomes = iter(await run(left, None, context, recording) if left else ())
        return [done[index] if index in done else next(outcomes) for index in range(len(calls))]

    def _is_needed(self, context: ToolContext, catalog: Catalog) -> bool:
        """Whether the model's call would be repeated after a crash, and with it the calls inside."""
        while context.parent is not None:
            context = context.parent
        tool = catalog.get(context.call.name)
        return tool is not None and tool.spec.annotations.repeatable

    def _split(
        self, context: ToolContext, calls: Sequence[ToolCall], catalog: Catalog, batch: InnerBatch
    ) -> tuple[dict[int, Outcome], InnerBatch]:
        """Return the outcomes of calls that must not run again, and the batch of the others, which are recorded."""
        done: dict[int, Outcome] = {}
        paths: dict[int, str] = {}
        for index, call in enumerate(calls):
            tool = catalog.get(call.name)
            if tool is None or tool.spec.annotations.repeatable:
                continue
            path = self._next_path(context, call)
            notes = self._kept.get(path, ())
            if notes:
                done[index] = _read_outcome(call, notes)
            else:
                paths[id(call)] = path

        async def starting(call: ToolCall) -> None:
            if (path := paths.get(id(call))) is not None:
                await self._keep(path, {"begun": True}, True)

        async def ended(outcome: Outcome) -> None:
            path = paths.get(id(outcome.call))
            if path is None:  # its arguments were changed
                path = next(
                    (paths[id(call)] for call in calls if call.id == outcome.call.id and id(call) in paths), None
                )
            if path is not None and not isinstance(outcome, Interrupted) and _has_run(outcome):
                from callwright.sessions.record_encoding import encode_outcome

                await self._keep(path, cast(Json, encode_outcome(outcome)), True)
            if batch.ended is not None:
                await batch.ended(outcome)

        origins = [origin for index, origin in enumerate(batch.origins) if index not in done]
        return done, InnerBatch(origins, starting, ended, batch.output_chars)

    def _next_path(self, context: ToolContext, call: ToolCall) -> str:
        """Return where a call is noted: by what it is, and the how many-th of its kind."""
        arguments = call.arguments if isinstance(call.arguments, (str, bytes)) else canonical(call.arguments)
        what = "\0".join((call.id, call.name, str(arguments)))
        key = f"{context.path}//{hash_text(what)[:24]}"
        number = self._made[key] = self._made.get(key, 0) + 1
        return f"{key}-{number}"


def _has_run(outcome: Outcome) -> bool:
    return isinstance(outcome, Completed) or (isinstance(outcome, Failed) and outcome.started)


def _read_outcome(call: ToolCall, notes: Sequence[Json]) -> Outcome:
    from callwright.sessions.record_encoding import UnreadableRecord, decode_outcome

    for note in notes:
        if isinstance(note, Mapping) and "begun" not in note:
            try:
                return decode_outcome(cast("dict[str, object]", dict(note)))
            except (UnreadableRecord, KeyError, TypeError, ValueError):
                break
    return Failed(call, Cancelled(_UNKNOWN), started=True)
