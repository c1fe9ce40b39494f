"""Admission, the first half of a call: decides whether it may run and changes nothing, so it may be repeated.

look up ─► bind ─► (repair) ─► before-hooks ─► accesses ─► policies ─► answers
"""

import time
from collections.abc import Sequence

from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Confinement,
    Deny,
    RunCommand,
    UseTool,
)
from callwright.core.calls import Answers, Approve, Decline, Question, ToolCall, digest_of
from callwright.core.content import Output
from callwright.core.errors import (
    ApprovalRequired,
    AuthRequired,
    Crashed,
    Denied,
    Halted,
    InvalidArguments,
    ToolError,
    UnknownTool,
)
from callwright.core.json import FrozenDict, JsonObject
from callwright.core.repairs import Repair
from callwright.core.spec import Effect, ToolSpec
from callwright.executor.deadlines import Deadlines
from callwright.executor.repair import PathTool, RepairMode, repair_call, repair_paths
from callwright.executor.summary import summarize
from callwright.hooks.base import Answer, Halt, Hook, PendingCall, Proceed, Rewrite
from callwright.policy.decide import Policies
from callwright.registry.catalog import Catalog
from callwright.tool.base import Invocation, SessionTool, State, Tool
from callwright.tool.render import render

_NO_ARGUMENTS: JsonObject = FrozenDict()


class ToolEntry:
    """The facts about a tool that every call of it needs, read once per catalog."""

    __slots__ = (
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
    )

    def __init__(self, tool: Tool) -> None:
        self.spec = tool.spec
        self.bind = tool.bind
        self.bind_in = tool.bind_in if isinstance(tool, SessionTool) else None
        self.repair_paths = tool.repair_paths if isinstance(tool, PathTool) else None
        self.name = self.spec.name
        self.annotations = self.spec.annotations
        self.limits = self.spec.limits
        self.independent = self.annotations.effect is Effect.READ and self.annotations.parallel is not False
        """Conflicts with nothing, unless a call of it declares accesses."""
        self.default_accesses: tuple[Access, ...] = (UseTool(self.name, self.annotations.effect),)
        """Judged when a call declares no accesses."""
        self.allowed_key: str | None = None
        """The policies' cache key under which they last allowed every call without accesses."""


class Admitted:
    """A call during and after admission, with its result so far; policies see it as their subject."""

    # Defaults on the class, not in __init__: most calls keep most of them, and every call makes one of these.
    invocation: Invocation | None = None
    accesses: Sequence[Access] = ()
    asks: tuple[Ask, ...] = ()
    hook_output: Output | None = None
    """The output a hook gave in place of a run; policies still judge the call."""
    error: ToolError | None = None
    questions: tuple[Question, ...] = ()
    used_answers: tuple[str, ...] = ()
    """Ids of the questions whose answers were applied; they are used up when the call runs."""
    shown: tuple[frozenset[Access], frozenset[str]] | None = None
    """The accesses and reasons in the question whose answer changed the arguments."""
    confinement: Confinement = Confinement.READ_ONLY
    """What its commands may use: all that the decisions about them allow."""
    state: State | None = None
    finished: bool = False
    """Its outcome was counted and reported."""
    lasting_grant: tuple[Question, Approve] | None = None
    """An approval for the session or permanently, remembered when the call runs."""
    repairs: tuple[Repair, ...] = ()
    """What was changed before the call was judged."""
    _digest: str = ""

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

    @property
    def digest(self) -> str:
        """Identifies exactly what would run."""
        if not self._digest:
            self._digest = digest_of(self.name, self.arguments, self.accesses, session_id=self.session_id)
        return self._digest

    def require_entry(self) -> ToolEntry:
        """Return the tool's entry; raise `LookupError` if there is no such tool."""
        if self.entry is None:
            raise LookupError(f"{self.call.name} is not a tool")
        return self.entry

    def bind(self, entry: ToolEntry, arguments: JsonObject | str | bytes) -> None:
        """Bind arguments; a tool may require approval here, together with the invocation that would run."""
        self._digest = ""
        try:
            if entry.bind_in is None:
                self.invocation = entry.bind(arguments)
            else:
                self.invocation = entry.bind_in(arguments, self.state or State(), self.session_id)
        except ApprovalRequired as error:
            if not isinstance(error.invocation, Invocation):
                raise Crashed(f"{self.name} raised ApprovalRequired in bind without an invocation to run") from error
            self.invocation = error.invocation
            self.asks = (*self.asks, Ask(error.reason, source=f"tool {self.name}"))


class Gate:
    """Admits calls: `bind` checks the arguments, `admit` asks hooks, policies and answers."""

    repairs: RepairMode = "on"

    def __init__(self, policies: Policies, hooks: Sequence[Hook], *, question_seconds: float | None = 3600.0) -> None:
        self.policies = policies
        self.question_seconds = question_seconds
        self.hooks = tuple(hook for hook in hooks if type(hook).before is not Hook.before)
        self._used_answers: set[str] = set()
        self._catalog: Catalog | None = None
        self._entries: dict[str, ToolEntry] = {}

    def bind(self, call: ToolCall, catalog: Catalog, session_id: str, state: State | None = None) -> Admitted:
        """Look the tool up and check the arguments."""
        entry = self._entries.get(call.name) if catalog is self._catalog else None
        if entry is None:
            entry = self._find_entry(call.name, catalog)
        admitted = Admitted(call, entry, session_id)
        if entry is None or entry.bind_in is not None:  # without an entry, the repair may find one
            admitted.state = state
        try:
            if entry is None and call.name in catalog.withheld:
                raise Denied(catalog.withheld[call.name])
            if entry is None:
                raise UnknownTool(call.name, catalog.nearest(call.name), advice=catalog.advice)
            admitted.bind(entry, call.arguments)
            if entry.repair_paths is not None and self.repairs != "off":
                repair_paths(admitted, entry, self.repairs)
        except (UnknownTool, InvalidArguments) as error:
            admitted.error = error
            if self.repairs != "off":
                repair_call(admitted, catalog, self._find_entry, self.repairs)
        except AuthRequired as error:
            admitted.questions = (self._question(admitted, (Ask(error.reason),), auth=error),)
        except Exception as error:  # noqa: BLE001 - a tool that cannot even be bound fails its own call only
            admitted.error = _as_tool_error(error)
        return admitted

    def is_allowed(self, name: str, catalog: Catalog) -> bool:
        """Whether the policies, as they are now, have allowed every call of this tool that declares no accesses."""
        entry = self._find_entry(name, catalog)
        return entry is not None and entry.allowed_key is not None and entry.allowed_key == self.policies.cache_key

    def _find_entry(self, name: str, catalog: Catalog) -> ToolEntry | None:
        if catalog is not self._catalog:
            self._catalog, self._entries = catalog, {}
        entry = self._entries.get(name)
        if entry is None:
            tool = catalog.get(name)
            if tool is None:
                return None
            entry = self._entries[name] = ToolEntry(tool)
        return entry

    async def admit(self, admitted: Admitted, answers: Answers | None, turn_id: str, deadlines: Deadlines) -> None:
        """Decide about a bound call; its error or its questions, if any, are set on it."""
        if admitted.error is not None or admitted.questions:
            return
        try:
            changed = True
            while changed:  # an answer may change the arguments, and hooks and policies judge what will run
                for hook in self.hooks:
                    verdict = await _ask_hook(hook, make_pending_call(admitted, turn_id), deadlines)
                    _apply_verdict(admitted, hook, verdict)
                asks = self._decide(admitted)
                changed = bool(asks) and self._apply_answer(admitted, asks, answers)
        except AuthRequired as error:
            self._require_sign_in(admitted, error, answers)
        except Exception as error:  # noqa: BLE001 - a failing hook, policy or tool fails this call only: nothing ran
            admitted.error = _as_tool_error(error)

    def consume_answers(self, admitted: Sequence[Admitted]) -> None:
        """Use up the answers that let these calls through; remember those given for longer than once."""
        for item in admitted:
            self._used_answers.update(item.used_answers)
            if item.lasting_grant is not None:
                self.policies.remember(*item.lasting_grant, session=item.session_id)

    def _decide(self, admitted: Admitted) -> tuple[Ask, ...]:
        """Judge the accesses of the final arguments; return what must be asked, raise `Denied` if any is denied."""
        invocation, entry = admitted.invocation, admitted.entry
        if invocation is None or entry is None:
            raise Crashed("the call was never bound to a tool")
        asks = admitted.asks
        try:
            accesses = invocation.accesses()
        except ApprovalRequired as error:
            accesses, asks = (), (*asks, Ask(error.reason, source=f"tool {entry.name}"))
        if accesses:
            admitted.accesses = tuple(accesses)
        elif entry.allowed_key is not None and entry.allowed_key == self.policies.cache_key:
            return asks  # the policies have not changed since they allowed the same access
        denied: Deny | None = None
        allowed = True
        admitted.confinement = Confinement.READ_ONLY
        for access in accesses or entry.default_accesses:
            decision = self.policies.decide(access, admitted)
            match decision:
                case Deny():
                    denied = denied or decision
                case Ask():
                    asks, allowed = (*asks, decision), False
                case Allow(confinement=confinement):
                    if isinstance(access, RunCommand):
                        admitted.confinement |= confinement
                case _:
                    raise Denied(f"expected Allow, Ask or Deny from the policies, got {decision!r}")
        if denied is not None:  # only now, so that the policies see every access
            raise Denied(f"{denied.reason} ({denied.source})" if denied.source else denied.reason)
        if allowed and not accesses:
            entry.allowed_key = self.policies.cache_key
        return asks

    def _apply_answer(self, admitted: Admitted, asks: Sequence[Ask], answers: Answers | None) -> bool:
        """Apply the answer given for exactly this call, or raise the question; True if it changed the arguments."""
        found = (
            None if answers is None else answers.find(admitted.digest, admitted.call.id, besides=admitted.used_answers)
        )
        if found is None or found[0] in self._used_answers:
            if not _is_covered(admitted, asks):
                admitted.questions = (self._question(admitted, asks),)
            else:
                admitted.confinement = Confinement.APPROVED
            return False
        question_id, reply = found
        admitted.used_answers = (*admitted.used_answers, question_id)
        match reply:
            case Decline(reason):
                raise Denied(f"declined: {reason}" if reason else "declined by the user")
            case Approve(arguments=patched) if patched is not None:
                admitted.shown = frozenset(admitted.accesses), frozenset(ask.reason for ask in asks)
                admitted.asks, admitted.accesses, admitted.hook_output = (), (), None
                admitted.bind(admitted.require_entry(), patched)
                return True
            case Approve(scope="once"):
                admitted.confinement = Confinement.APPROVED
                return False
            case Approve(scope="session" | "always"):
                admitted.confinement = Confinement.APPROVED
                admitted.lasting_grant = (self._question(admitted, asks), reply)
                return False
            case _:
                raise Denied(f"expected an Approve or a Decline as the answer, got {reply!r}")

    def _require_sign_in(self, admitted: Admitted, error: AuthRequired, answers: Answers | None) -> None:
        found = None if answers is None else answers.find(admitted.digest, admitted.call.id)
        if found is not None and isinstance(found[1], Decline):
            admitted.error = Denied(found[1].reason or "the user declined to sign in")
            return
        admitted.questions = (self._question(admitted, (Ask(error.reason),), auth=error),)

    def _question(self, admitted: Admitted, asks: Sequence[Ask], *, auth: AuthRequired | None = None) -> Question:
        name = admitted.name
        seconds = self.question_seconds
        return Question(
            call_id=admitted.call.id,
            tool=name,
            arguments=admitted.arguments,
            digest=admitted.digest,
            summary=f"Sign in for {name}?" if auth else f"Allow {name}: {summarize(admitted)}?",
            reason="; ".join(dict.fromkeys(ask.reason for ask in asks if ask.reason)),
            accesses=tuple(admitted.accesses) or admitted.require_entry().default_accesses,
            kind="auth" if auth else "approval",
            url=auth.url if auth else "",
            expires_at=0 if seconds is None else int(time.time() + seconds) + 1,
        )


def _apply_verdict(admitted: Admitted, hook: Hook, verdict: object) -> None:
    """Apply what a before-hook returned; a policy's `Allow` is accepted too and means `Proceed`."""
    match verdict:
        case None | Proceed() | Allow():
            pass
        case Rewrite(arguments):
            admitted.bind(admitted.require_entry(), arguments)
        case Deny(reason):
            raise Denied(reason)
        case Halt(reason):
            raise Halted(reason)
        case Answer(output):
            admitted.hook_output = render(output)
        case Ask():
            admitted.asks = (*admitted.asks, verdict)
        case _:
            raise Denied(
                f"the hook {type(hook).__name__} failed, so nothing ran: expected Proceed(), Rewrite(…), Deny(…),"
                f" Answer(…), Ask(…) or Halt(…), got {verdict!r}"
            )


def _is_covered(admitted: Admitted, asks: Sequence[Ask]) -> bool:
    """Whether the changed arguments touch, and are asked about for, nothing but what the question already showed."""
    if admitted.shown is None or not admitted.accesses:
        return False
    accesses, reasons = admitted.shown
    return accesses.issuperset(admitted.accesses) and reasons.issuperset(ask.reason for ask in asks)


def make_pending_call(admitted: Admitted, turn_id: str = "") -> PendingCall:
    """Return what hooks see of a call."""
    return PendingCall(admitted.call, admitted.spec, admitted.arguments, admitted.session_id, turn_id)


async def _ask_hook(hook: Hook, pending: PendingCall, deadlines: Deadlines) -> object:
    try:
        return await deadlines.limit(hook.seconds, hook.before(pending))
    except ToolError:
        raise
    except TimeoutError as error:
        raise Denied(
            f"the hook {type(hook).__name__} did not return within {hook.seconds:g} s, so nothing ran"
        ) from error
    except (Exception, SystemExit) as error:
        raise Denied(f"the hook {type(hook).__name__} failed, so nothing ran: {error}") from error


def _as_tool_error(error: Exception) -> ToolError:
    if isinstance(error, ToolError):
        return error
    crashed = Crashed(f"{type(error).__name__}: {error}")
    crashed.__cause__ = error
    return crashed
