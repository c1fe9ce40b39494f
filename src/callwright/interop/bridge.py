"""An executor as frameworks use it: one call at a time, tools per session, questions that wait for an answer.

Other frameworks' tools as ours: what is taken over of them, and what they are taken to do.
"""

from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from callwright.core.calls import Answers, Failed, Outcome, Question, ToolCall
from callwright.core.content import Output, Part, Text
from callwright.core.errors import Halted
from callwright.core.json import Json, JsonObject, canonical, thaw
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn import Turn
from callwright.interop.approvals import CallOrder, PendingApprovals
from callwright.registry.catalog import Catalog, session_catalog
from callwright.tool.base import State
from callwright.tool.schema_tool import Handler, SchemaTool

_MAX_SESSIONS = 1024


class Bridge:
    """What the adapters of all frameworks share. Every call goes through the executor, as in our own loop."""

    def __init__(self, executor: Executor, pending: MutableMapping[str, str] | None) -> None:
        self.executor = executor
        self.pending = PendingApprovals(pending)
        self._order = CallOrder()
        self._states: dict[str, State] = {}

    def state(self, session_id: str) -> State:
        """The values a session's tools share; without a session, the executor's own."""
        if not session_id:
            return self.executor.state
        state = self._states.pop(session_id, None) or self.executor.state.copy()
        while len(self._states) >= _MAX_SESSIONS:
            del self._states[next(iter(self._states))]
        self._states[session_id] = state  # last, so that the one unused the longest goes first
        return state

    def catalog(self, session_id: str) -> Catalog:
        """The tools as they are now for a session."""
        return session_catalog(self.executor.registry, self.state(session_id))

    async def call(
        self,
        call: ToolCall,
        session_id: str,
        batch: Hashable,
        *,
        answers: Answers | None = None,
        catalog: Catalog | None = None,
    ) -> Outcome:
        """Bring a call to its outcome, after the calls of its batch that it conflicts with.

        Raises only what ends a run: a cancellation, and `Halted` where a hook said so.
        """
        tools = self.catalog(session_id) if catalog is None else catalog
        turn = Turn(session_id, state=self.state(session_id), catalog=tools)

        async def perform() -> Outcome:
            return (await self.executor.execute((call,), answers=answers, turn=turn))[0]

        outcome = await self._order.run(batch, call, tools, perform)
        if isinstance(outcome, Failed) and isinstance(outcome.error, Halted):
            raise outcome.error
        return outcome

    async def questions(self, call: ToolCall, session_id: str) -> tuple[Question, ...]:
        """What a person would be asked about a call. Changes nothing, so it may be asked again."""
        return await self.executor.questions(call, turn=Turn(session_id, catalog=self.catalog(session_id)))


def describe_question(question: Question) -> dict[str, Any]:
    """A question as plain values, for a framework to carry to its person."""
    return {
        "tool": question.tool,
        "arguments": thaw(question.arguments),
        "summary": question.summary,
        "reason": question.reason,
        "kind": question.kind,
        "url": question.url,
    }


def list_advertised(catalog: Catalog) -> list[tuple[str, ToolSpec]]:
    """The tools a model is shown, each under a name every provider allows."""
    return [(catalog.wire_names[spec.name], spec) for spec in catalog.definitions]


UNKNOWN_TOOL = Annotations(Effect.DESTROY, open_world=True)
"""What a tool is taken to do while nobody says better: it may destroy and reach anything, so the default mode asks."""
Claims: TypeAlias = Annotations | Callable[[str], Annotations]
"""What imported tools do: the same for all of them, or asked by name."""


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """What another framework says about a tool of its own."""

    name: str
    description: str | None
    schema: JsonObject
    origin: str
    needs_approval: bool = False
    limits: Limits = field(default_factory=Limits)


def import_tool(foreign: ForeignTool, claims: Claims, handler: Handler) -> SchemaTool:
    """A tool of ours that runs another framework's; its schema is kept to the letter."""
    annotations = claims if isinstance(claims, Annotations) else claims(foreign.name)
    if foreign.needs_approval:  # whatever else is claimed, its author wanted a person asked
        annotations = replace(annotations, needs_approval=True)
    spec = ToolSpec(
        foreign.name,
        foreign.description or f"{foreign.name}, a tool from {foreign.origin}",
        foreign.schema,
        annotations=annotations,
        limits=foreign.limits,
        group=foreign.origin,
        origin=foreign.origin,
    )
    return SchemaTool(spec, handler)


def make_output(parts: list[Part], structured: object = None) -> Output:
    """Parts as an output; structured data that is not JSON stays behind."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    content = "\n".join(texts) if len(texts) == len(parts) else tuple(parts)
    return Output(content, _json_or_none(structured))


def _json_or_none(value: object) -> Json:
    try:
        canonical(value)
    except (TypeError, ValueError):
        return None
    return value  # type: ignore[return-value] - it could be written as JSON
