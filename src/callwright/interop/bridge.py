"""The part that all adapters share: running calls through an executor, and importing a framework's tools."""

from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from callwright.core.calls import Answers, Failed, Interrupted, Outcome, Question, Reply, ToolCall
from callwright.core.content import Output, Part, Text
from callwright.core.errors import Halted
from callwright.core.json import Json, JsonObject, canonical, thaw
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn_context import Turn
from callwright.interop.approvals import CallOrder, PendingApprovals, ShownQuestions
from callwright.registry.catalog import Catalog, session_catalog
from callwright.tool.base import State
from callwright.tool.schema_tool import Handler, SchemaTool

_MAX_SESSIONS = 1024


class Bridge:
    """Runs a framework's calls one by one through the executor, with state and tools per session."""

    def __init__(self, executor: Executor, pending: MutableMapping[str, str] | None) -> None:
        self.executor = executor
        self.pending = PendingApprovals(pending)
        self._order = CallOrder()
        self._states: dict[str, State] = {}

    def state(self, session_id: str) -> State:
        """Return the state that a session's tools share; without a session, the executor's own."""
        if not session_id:
            return self.executor.state
        state = self._states.pop(session_id, None) or self.executor.state.copy()
        while len(self._states) >= _MAX_SESSIONS:
            del self._states[next(iter(self._states))]
        self._states[session_id] = state  # inserted last: the first key is the least recently used session
        return state

    def catalog(self, session_id: str) -> Catalog:
        """Return the tools of a session as they are now."""
        return session_catalog(self.executor.registry, self.state(session_id))

    async def call(
        self,
        call: ToolCall,
        session_id: str,
        batch: Hashable,
        *,
        answers: Answers | None = None,
        approval: tuple[ShownQuestions, Reply] | None = None,
        catalog: Catalog | None = None,
    ) -> Outcome:
        """Run a call after the calls of its batch that it conflicts with, and return its outcome.

        Args:
            call: The call.
            session_id: The session it belongs to.
            batch: Identifies the calls that were started together.
            answers: Answers to questions of this executor.
            approval: A reply to the questions that were shown, perhaps by another executor; it counts for the call's
                present questions where they are the same.
            catalog: The tools; by default those of the session.

        Raises:
            Halted: a hook ended the run. All other failures are outcomes.
        """
        tools = self.catalog(session_id) if catalog is None else catalog
        turn = Turn(session_id, state=self.state(session_id), catalog=tools)

        async def perform() -> Outcome:
            outcome = (await self.executor.execute((call,), answers=answers, turn=turn))[0]
            if approval is None or not isinstance(outcome, Interrupted):
                return outcome
            shown, reply = approval
            given = shown.answer_all(outcome.questions, reply)
            return (await self.executor.execute((call,), answers=given, turn=turn))[0] if len(given) else outcome

        outcome = await self._order.run(batch, call, tools, perform)
        if isinstance(outcome, Failed) and isinstance(outcome.error, Halted):
            raise outcome.error
        return outcome

    async def questions(self, call: ToolCall, session_id: str) -> tuple[Question, ...]:
        """Return the approval requests of a call. Changes nothing, so it may be called repeatedly."""
        return await self.executor.questions(call, turn=Turn(session_id, catalog=self.catalog(session_id)))


def describe_question(question: Question) -> dict[str, Any]:
    """Return a question as plain values, for a framework to show to its user."""
    return {
        "tool": question.tool,
        "arguments": thaw(question.arguments),
        "summary": question.summary,
        "reason": question.reason,
        "kind": question.kind,
        "url": question.url,
    }


def list_advertised(catalog: Catalog) -> list[tuple[str, ToolSpec]]:
    """Return the tools that a model is shown, each with a name that every provider accepts."""
    return [(catalog.wire_names[spec.name], spec) for spec in catalog.definitions]


UNKNOWN_TOOL = Annotations(Effect.DESTROY, open_world=True)
"""Annotations of imported tools without `claims`: the worst case, so that the default mode asks."""
Claims: TypeAlias = Annotations | Callable[[str], Annotations]
"""Annotations of imported tools: the same for all, or a function of the tool's name."""


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """The description of a tool by its own framework."""

    name: str
    description: str | None
    schema: JsonObject
    origin: str
    needs_approval: bool = False
    limits: Limits = field(default_factory=Limits)


def import_tool(foreign: ForeignTool, claims: Claims, handler: Handler) -> SchemaTool:
    """Return a tool that runs another framework's tool, with its schema unchanged."""
    annotations = claims if isinstance(claims, Annotations) else claims(foreign.name)
    if foreign.needs_approval:  # claims may not lift the approval that the tool's author requires
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
    """Return parts as an output; structured data that is not JSON is dropped."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    content = "\n".join(texts) if len(texts) == len(parts) else tuple(parts)
    return Output(content, _json_or_none(structured))


def _json_or_none(value: object) -> Json:
    try:
        canonical(value)
    except (TypeError, ValueError):
        return None
    return value  # type: ignore[return-value] - it could be written as JSON
