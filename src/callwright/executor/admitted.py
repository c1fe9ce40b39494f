"""A call on its way through the executor, with the facts about its tool."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from callwright.core.access import Access, Ask, Confinement, UseTool
from callwright.core.calls import Repair, ToolCall
from callwright.core.content import Output
from callwright.core.decisions import Approve, Question, digest_of
from callwright.core.errors import ApprovalRequired, AuthRequired, Crashed, ToolError, describe_raised, safe_repr
from callwright.core.json import FrozenDict, JsonObject, check_json, copy_json
from callwright.core.spec import Effect, ToolSpec
from callwright.tool.base import InnerBatch, Invocation, SessionTool, State, Tool
from callwright.tool.function import Bound

if TYPE_CHECKING:  # otherwise loaded with the first hook or limit
    from callwright.hooks.base import PendingCall
    from callwright.tool.concurrency import Hold

_NO_ARGUMENTS: JsonObject = FrozenDict()
RepairPaths: TypeAlias = Callable[[Invocation], tuple[JsonObject, tuple[Repair, ...]] | None]
"""The method of a tool with paths among its arguments: the arguments to change and the repairs, or None for paths that
are right or unclear."""


class ToolEntry:
    """The facts about a tool that every call of it needs, read once per catalog."""

    __slots__ = (
        "_fingerprint",
        "allowed_key",
        "annotations",
        "bind",
        "bind_in",
        "default_accesses",
        "independent",
        "limits",
        "name",
        "repair_paths",
        "spec",
        "tool",
    )

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._fingerprint = ""
        self.spec = tool.spec
        self.bind = tool.bind
        # hasattr: from Python 3.12 on, isinstance does not see what a renamed tool passes on
        self.bind_in = cast(SessionTool, tool).bind_in if hasattr(tool, "bind_in") else None
        self.repair_paths: RepairPaths | None = getattr(tool, "repair_paths", None)
        self.name = self.spec.name
        self.annotations = self.spec.annotations
        self.limits = self.spec.limits
        self.independent = self.annotations.effect is Effect.READ and self.annotations.parallel is not False
        """Conflicts with nothing, unless a call of it declares accesses."""
        self.default_accesses: tuple[Access, ...] = (UseTool(self.name, self.annotations.effect),)
        """Judged when a call declares no accesses."""
        self.allowed_key: str | None = None
        """The policies' cache key under which they last allowed every call without accesses."""

    @property
    def fingerprint(self) -> str:
        """Identifies the tool's spec and code."""
        if not self._fingerprint:
            from callwright.tool.identity import fingerprint  # loaded with the first question

            self._fingerprint = fingerprint(self.tool)
        return self._fingerprint


class Admitted:
    """A call during and after admission, with its result so far; policies see it as their subject."""

    # Defaults on the class, not in __init__: most calls keep most of them, and every call makes one of these.
    invocation: Invocation | None = None
    changed_arguments: JsonObject | str | bytes | None = None
    """What was bound last, if not the arguments of the call itself."""
    accesses: Sequence[Access] = ()
    asks: tuple[Ask, ...] = ()
    hook_output: Output | None = None
    """The output a hook gave in place of a run; policies still judge the call."""
    error: ToolError | None = None
    questions: tuple[Question, ...] = ()
    used_answers: tuple[str, ...] = ()
    """Ids of the questions whose answers were applied; they are used up when the call runs."""
    approved: tuple[str, ...] = ()
    """The reasons to ask that the user has approved for this call."""
    carried: "CarriedApproval | None" = None
    """The approval from when it ran before and waited for answers about calls inside it."""
    answered: tuple[Question, Approve] | None = None
    """The tool's own question, from when it ran before, with the approval."""
    resumed: bool = False
    """The tool has run before and asked a question, so the call may have had an effect."""
    sign_in: AuthRequired | None = None
    """The tool cannot bind the arguments before the user has signed in."""
    shown: tuple[frozenset[Access], frozenset[str]] | None = None
    """The accesses and reasons in the question whose answer changed the arguments."""
    confinement: Confinement = Confinement.READ_ONLY
    """What its commands may use: all that the decisions about them allow."""
    state: State | None = None
    """The session's state, for a tool that binds by it."""
    hold: "Hold | None" = None
    """Its places among the running calls of a tool with a concurrency limit."""
    abandoned: bool = False
    """The tool ignored its cancellation and was left behind."""
    finished: bool = False
    """Its outcome was counted and reported."""
    lasting_grant: tuple[Question, Approve] | None = None
    """An approval for the session or permanently, remembered when the call runs."""
    edited_by: str = ""
    """Who changed the arguments last: `the user`, or a hook."""
    within: str = ""
    """The id of the model's call inside which a tool makes this one."""
    origin: str = ""
    """Where a call that a tool makes comes from, for the user."""
    output_chars: int = 0
    """For a call that a tool makes: how long its output may be, if longer than the limit of its own tool."""
    batch: InnerBatch | None = None
    """For a call that a tool makes: what to await before and after it."""
    repairs: tuple[Repair, ...] = ()
    """What was changed before the call was judged."""
    pending: "PendingCall | None" = None
    """What hooks see of it."""

    def __init__(self, call: ToolCall, entry: ToolEntry | None, session_id: str) -> None:
        self.call = call
        self.entry = entry
        """None if there is no such tool."""
        self.name = call.name if entry is None else entry.name
        """The tool's own name, which may differ from the alias the model used."""
        self.session_id = session_id

    @property
    def spec(self) -> ToolSpec:
        return self.require_entry().spec

    @property
    def arguments(self) -> JsonObject:
        return _NO_ARGUMENTS if self.invocation is None else self.invocation.arguments

    def copy_arguments(self) -> JsonObject:
        """Return the final arguments as they are now: a function may change the lists and objects that it is given.

        A call whose arguments cannot be shown fails.
        """
        try:
            return copy_json(dict(self.arguments))
        except Exception as error:  # noqa: BLE001 - serializers are code of the tool's author
            if self.error is None:
                self.error = Crashed(describe_raised(error))
                self.error.__cause__ = error
            return _NO_ARGUMENTS

    @property
    def approval_digest(self) -> str:
        """Identifies exactly what would run, the tool's code included: an answer is for this only."""
        return digest_of(
            self.name, self.arguments, self.accesses, session_id=self.session_id, implementation=self.implementation
        )

    @property
    def implementation(self) -> str:
        """Identifies the tool's spec and code, and what the arguments do not show; empty if there is no such tool."""
        if self.entry is None:
            return ""
        concealed: object = getattr(self.invocation, "concealed", "")
        return f"{self.entry.fingerprint}.{concealed}" if concealed else self.entry.fingerprint

    def require_entry(self) -> ToolEntry:
        """Return the tool's entry; raise `LookupError` if there is no such tool."""
        if self.entry is None:
            raise LookupError(f"{self.call.name} is not a tool")
        return self.entry

    def bind(self, entry: ToolEntry, arguments: JsonObject | str | bytes) -> None:
        """Bind arguments; a tool may require approval here, together with the invocation that would run."""
        if self.invocation is not None:  # what was derived from the arguments before
            self.pending = None
        if arguments is not self.call.arguments:
            self.changed_arguments = arguments
        try:
            if entry.bind_in is None:
                invocation = entry.bind(arguments)
            else:
                invocation = entry.bind_in(arguments, self.state or State(), self.session_id)
            if type(invocation) not in _OWN_KINDS:
                _check_invocation(invocation, self.name)
            self.invocation = invocation
        except ApprovalRequired as error:
            if not isinstance(error.invocation, Invocation):
                raise Crashed(f"{self.name} raised ApprovalRequired in bind without an invocation to run") from error
            _check_invocation(error.invocation, self.name)
            self.invocation = error.invocation
            self.asks = (*self.asks, Ask(error.reason, source=f"tool {self.name}"))

    def edit(self, entry: ToolEntry, arguments: JsonObject) -> None:
        """Bind arguments that were made from the shown ones; what these do not show stays as it was written.

        Raises:
            Denied: It is not clear which value is meant.
        """
        restore = getattr(self.invocation, "restore_concealed", None)
        if restore is not None:
            written = self.call.arguments if self.changed_arguments is None else self.changed_arguments
            arguments = restore(arguments, self.arguments, written)
        self.bind(entry, arguments)

    def recall_defaults(self, shown: JsonObject) -> None:
        """Bind once more with the defaults of an earlier question about this call, if they are made for each call.

        Otherwise the call that runs would never be the one that was shown. It is judged as any other one.
        """
        before, entry = self.invocation, self.entry
        recall = getattr(before, "recall_defaults", None)
        if recall is None or entry is None:
            return
        kept = self.asks, self.changed_arguments, self.pending
        try:
            arguments = recall(shown, self.call.arguments if self.changed_arguments is None else self.changed_arguments)
            if arguments is not None:
                self.asks = ()
                self.bind(entry, arguments)
                if type(self.invocation) is type(before):  # what is not shown is still as it was written
                    cast("Any", self.invocation).concealed = cast("Any", before).concealed
        except Exception:  # noqa: BLE001 - without them the user is asked again
            self.invocation = before
            self.asks, self.changed_arguments, self.pending = kept

    def bind_again(self) -> None:
        """Bind the same arguments after a run: a function may have changed the lists and objects that it was given."""
        from callwright.tool.typed import TypedInvocation  # loaded already, if this is one

        entry, kind = self.entry, type(self.invocation)
        if entry is None or entry.bind_in is not None or not issubclass(kind, (Bound, TypedInvocation)):
            return  # by another state of its session, a call could become another one
        given = self.call.arguments if self.changed_arguments is None else self.changed_arguments
        with suppress(Exception):  # they were valid before; a tool that refuses them now goes on with what it has
            again = entry.bind(given)
            if type(again) is kind:
                cast("Any", self.invocation).take_values(again)


class CarriedApproval:
    """The approval of a call that has run and waits for answers about calls inside it: with them it runs again, once.

    Args:
        item: The call.
        questions: What the calls inside it asked.
    """

    __slots__ = ("_digest", "arguments", "call_id", "questions", "reasons", "used")

    def __init__(self, item: Admitted, questions: Sequence[Question]) -> None:
        self.call_id = item.call.id
        self.arguments = item.copy_arguments()
        self._digest = item.approval_digest
        self.reasons = frozenset(item.approved)
        """Why the user was asked about it."""
        self.questions = tuple(question.id for question in questions)
        """The ids of the questions."""
        self.used = False

    def is_for(self, item: Admitted) -> bool:
        """Whether it was given for exactly this call."""
        return self.call_id == item.call.id and self._digest == item.approval_digest


_OWN_KINDS: set[type] = set()
"""Kinds of invocations that are part of this package and need no check."""


def _check_invocation(invocation: object, name: str) -> None:
    """Refuse what a foreign tool's `bind` returned, if the executor could not work with it.

    Raises:
        Crashed: It is not an invocation, or its arguments are not JSON.
    """
    kind = type(invocation)
    if kind.__module__.startswith("callwright."):
        _OWN_KINDS.add(kind)
        return
    if not (callable(getattr(kind, "run", None)) and callable(getattr(kind, "accesses", None))):
        raise Crashed(f"{name}: expected an Invocation from bind, got {safe_repr(invocation)}")
    arguments: object = getattr(invocation, "arguments", None)
    if not isinstance(arguments, Mapping):
        raise Crashed(f"{name}: the invocation's arguments must be a mapping, got {safe_repr(arguments)}")
    try:
        check_json(cast("object", arguments))
    except ValueError as error:
        raise Crashed(f"{name}: the invocation's arguments must be JSON: {error}") from error
