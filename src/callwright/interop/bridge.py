"""The part that all adapters share: calls through an executor, their approvals, and a framework's tools."""

import json
from collections.abc import Callable, Hashable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from callwright.core.calls import Answers, Completed, Failed, Interrupted, Outcome, Question, Reply, ToolCall
from callwright.core.content import Output, Part, Text
from callwright.core.errors import Denied, Halted, ToolFailed, UsageError
from callwright.core.json import Json, JsonObject, canonical, compact, thaw
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn_context import Turn
from callwright.interop.call_order import CallOrder
from callwright.registry.catalog import Catalog, session_catalog
from callwright.sessions.message_encoding import decode_outcome, encode_outcome
from callwright.tool.arguments import from_text
from callwright.tool.base import State
from callwright.tool.schema_tool import Handler, SchemaTool

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
    written: Json = None
    """The arguments that would run, if the framework knows only what is shown of them."""

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

    def save(
        self,
        session_id: str,
        key: str,
        questions: Iterable[Question],
        arguments: Json = None,
        written: Json = None,
    ) -> None:
        """Save the questions that are shown to the user."""
        while self._bounded and len(self._kept) >= _MAX_PENDING:  # the oldest were never answered
            del self._kept[next(iter(self._kept))]
        ids = [question.id for question in questions]
        self._kept[_make_key(session_id, key)] = compact({"ids": ids, "arguments": arguments, "written": written})

    def find(self, session_id: str, key: str) -> ShownQuestions | None:
        """Return the questions that were shown, or None if they are no longer saved."""
        text = self._kept.get(_make_key(session_id, key))
        return None if text is None else _decode_shown(text)

    def take(self, session_id: str, key: str) -> ShownQuestions | None:
        """Return the questions that were shown, to use their answers; a second caller finds them marked as used.

        Executors and processes that share the mapping use an answer once if its `pop` is atomic, as that of a dict is.
        """
        text = self._kept.pop(_make_key(session_id, key), None)
        if text is None:
            return None
        self._kept[_make_key(session_id, key)] = _USED
        return _decode_shown(text)

    def claim(self, session_id: str, question_id: str) -> bool:
        """Use the answer to one saved question; False if a call has done so, here or in another process."""
        return self._kept.pop(_make_key(session_id, question_id), None) is not None

    def allow_claims(self, session_id: str, question_ids: Iterable[str]) -> None:
        """Let the answer to each of these questions be claimed once."""
        for question_id in question_ids:
            self._kept[_make_key(session_id, question_id)] = _OPEN

    def keep_outcomes(self, session_id: str, key: str, outcomes: Sequence[Completed | Failed]) -> None:
        """Keep outcomes of calls that must not run again, if other processes share the mapping."""
        if not self._bounded:
            self._kept[_make_key(session_id, key)] = compact([encode_outcome(outcome) for outcome in outcomes])

    def find_outcomes(self, session_id: str, key: str) -> list[Completed | Failed]:
        """Return the outcomes that another process has kept."""
        text = None if self._bounded else self._kept.get(_make_key(session_id, key))
        return [] if text is None else [decode_outcome(each) for each in cast("list[Any]", json.loads(text))]

    def drop(self, session_id: str, key: str) -> None:
        """Remove questions that have been answered, or outcomes that are not needed any more."""
        self._kept.pop(_make_key(session_id, key), None)


def _decode_shown(text: str) -> ShownQuestions:
    record: Any = from_text(text)
    used = record.get("used") is True
    return ShownQuestions(tuple(record["ids"]), record.get("arguments"), used, record.get("written"))


def plain_arguments(call: ToolCall) -> Any:
    """Return a call's arguments as plain values, also when the framework gave them as text."""
    return from_text(call.arguments) if isinstance(call.arguments, (str, bytes)) else thaw(call.arguments)


def _make_key(session_id: str, key: str) -> str:
    return compact([session_id, key])


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
        resumes: bool = False,
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
            resumes: Whether a call that is interrupted waits for an approval; later calls of its batch that conflict
                with it fail instead of running before it.

        Raises:
            Halted: A hook ended the run. All other failures are outcomes.
        """
        tools = self.catalog(session_id) if catalog is None else catalog
        state = self.state(session_id)
        turn = Turn(session_id, state=state, catalog=tools)

        async def perform(behind: bool) -> Outcome:
            # a call that has to be asked about itself is asked about together with the one before it
            if behind and (answers or approval or not await self.executor.questions(call, turn=turn)):
                return Failed(call, _Behind(call.name))
            # by the ids that were shown, for this executor: a call that waits for its second answer has used the first
            given = answers if approval is None else Answers(dict.fromkeys(approval[0].ids, approval[1]))
            outcome = (await self.executor.execute((call,), answers=given, turn=turn))[0]
            if approval is None or not isinstance(outcome, Interrupted):
                return outcome
            shown, reply = approval
            given = shown.answer_all(outcome.questions, reply)
            return (await self.executor.execute((call,), answers=given, turn=turn))[0] if len(given) else outcome

        def waits(outcome: Outcome) -> bool:
            behind = isinstance(outcome, Failed) and isinstance(outcome.error, _Behind)
            return resumes and (behind or isinstance(outcome, Interrupted))

        outcome = await self._order.run(batch, call, tools, perform, waits, (state, session_id))
        if isinstance(outcome, Failed) and isinstance(outcome.error, Halted):
            raise outcome.error
        return outcome

    def edit_call(self, call: ToolCall, edited: JsonObject, questions: Sequence[Question], session_id: str) -> ToolCall:
        """Return a call with arguments that the user made from the shown ones; what is not shown stays.

        Args:
            call: The call.
            edited: The arguments.
            questions: Questions about the edited call.
            session_id: The session it belongs to.

        Raises:
            ToolError: It is not known what the questions do not show.
        """
        if not any(map(_hides_arguments, questions)):
            return replace(call, arguments=edited)
        tool = self.catalog(session_id).get(call.name)
        bound: Any = None if tool is None else tool.bind(call.arguments)
        restore = getattr(bound, "restore_concealed", None)
        if tool is None or restore is None:
            raise Denied(_EDIT_REFUSED)
        whole = restore(edited, bound.arguments, call.arguments)
        written = getattr(tool.bind(whole), "concealed", "")
        if not all(question.implementation.endswith(f".{written}") for question in questions):
            raise Denied(_EDIT_REFUSED)  # a hook changed it as well
        return replace(call, arguments=whole)

    async def questions(self, call: ToolCall, session_id: str) -> tuple[Question, ...]:
        """Return the approval requests of a call. Changes nothing, so it may be called repeatedly."""
        turn = Turn(session_id, state=self.state(session_id), catalog=self.catalog(session_id))
        return await self.executor.questions(call, turn=turn)


class _Behind(ToolFailed):
    """The call would run before one that it conflicts with."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "not run: an earlier call of the same message, which it must not overtake, waits for an approval;"
            f" call {name} again after it"
        )


_EDIT_REFUSED = "the call has arguments that are not shown, so its edit cannot be asked about; decline the call instead"


def _hides_arguments(question: Question) -> bool:
    """Whether a question shows something else for an argument, such as a mask for a secret."""
    return "." in question.implementation  # after the fingerprint of the tool: a digest of the arguments


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
    runs_alone: bool = False
    """No other call of the same message runs beside its calls."""


def require_foreign(tools: Iterable[object], kinds: type | tuple[type, ...], expected: str) -> None:
    """Refuse what cannot be imported.

    Raises:
        UsageError: One of the tools is of none of these kinds.
    """
    for tool in tools:
        if not isinstance(tool, kinds):
            raise UsageError(f"expected {expected}, got {tool!r:.100}")


def import_tool(foreign: ForeignTool, claims: Claims, handler: Handler) -> SchemaTool:
    """Return a tool that runs another framework's tool, with its schema unchanged."""
    annotations = claims if isinstance(claims, Annotations) else claims(foreign.name)
    if foreign.needs_approval:  # claims may not lift the approval that the tool's author requires
        annotations = replace(annotations, needs_approval=True)
    if foreign.runs_alone:
        annotations = replace(annotations, parallel=False)
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
    except (TypeError, ValueError, RecursionError):
        return None
    return value  # type: ignore[return-value] - it could be written as JSON
