"""An executor as frameworks use it: one call at a time, tools per session, questions that wait for an answer."""

from collections.abc import Hashable, MutableMapping
from typing import Any

from callwright.core.call import Answers, Failed, Outcome, Question, ToolCall
from callwright.core.errors import Halted
from callwright.core.event import QuestionsRaised
from callwright.core.json import thaw
from callwright.core.spec import ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn import Turn
from callwright.interop.order import CallOrder
from callwright.interop.pending import Pending
from callwright.registry.catalog import Catalog, session_catalog
from callwright.tool.base import State

_MOST_SESSIONS = 1024


class Bridge:
    """What the adapters of all frameworks share. Every call goes through the executor, as in our own loop."""

    def __init__(self, executor: Executor, pending: MutableMapping[str, str] | None) -> None:
        self.executor = executor
        self.pending = Pending(pending)
        self._order = CallOrder()
        self._states: dict[str, State] = {}

    def state(self, session_id: str) -> State:
        """The values a session's tools share; without a session, the executor's own."""
        if not session_id:
            return self.executor.state
        state = self._states.pop(session_id, None) or self.executor.state.copy()
        while len(self._states) >= _MOST_SESSIONS:
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
        gate = self.executor.gate
        item = gate.bind(call, self.catalog(session_id), session_id)
        if gate.hooks:
            await gate.consult(item, "", self.executor.local().deadlines)
        gate.judge(item, None)
        if item.questions:
            self.executor.tell(QuestionsRaised(item.questions, session_id))
        return item.questions


def described(question: Question) -> dict[str, Any]:
    """A question as plain values, for a framework to carry to its person."""
    return {
        "tool": question.tool,
        "arguments": thaw(question.arguments),
        "summary": question.summary,
        "reason": question.reason,
        "kind": question.kind,
        "url": question.url,
    }


def advertised(catalog: Catalog) -> list[tuple[str, ToolSpec]]:
    """The tools a model is shown, each under a name every provider allows."""
    return [(catalog.wire_names[spec.name], spec) for spec in catalog.definitions]
