"""The first half of a call: judged, and nothing happens. Safe to ask again after a restart.

look up ─► bind ─► before-hooks ─► accesses ─► policies ─► answers
"""

import time
from collections.abc import Sequence

from callwright.core.access import Access, Allow, Ask, DeletePath, Deny, Reach, ReadPath, RunCommand, UseTool, WritePath
from callwright.core.calls import Answers, Approve, Decline, Question, ToolCall, digest_of
from callwright.core.content import Output
from callwright.core.errors import ApprovalRequired, AuthRequired, Crashed, Denied, Halted, ToolError, UnknownTool
from callwright.core.json import FrozenDict, JsonObject
from callwright.core.spec import Effect, ToolSpec
from callwright.executor.deadlines import Deadlines
from callwright.hooks.base import Answer, Halt, Hook, PendingCall, Proceed, Rewrite
from callwright.policy.decide import Policies
from callwright.registry.catalog import Catalog
from callwright.tool.base import Invocation, Tool
from callwright.tool.render import render

_NO_ARGUMENTS: JsonObject = FrozenDict()
_SUMMARY_CHARS = 200
_VERDICTS = (type(None), Proceed, Rewrite, Answer, Halt, Ask, Allow, Deny)
"""Policies' words are understood from hooks too: a no must not be lost for being said in the wrong one."""


class Lane:
    """What is known of a tool before any call of it: looked up once, not per call."""

    __slots__ = ("annotations", "bind", "free", "granted", "limits", "name", "spec", "use")

    def __init__(self, tool: Tool) -> None:
        self.spec = tool.spec
        self.bind = tool.bind
        self.name = self.spec.name
        self.annotations = self.spec.annotations
        self.limits = self.spec.limits
        self.free = self.annotations.effect is Effect.READ and self.annotations.parallel is not False
        """Conflicts with nothing, unless a call of it declares accesses."""
        self.use: tuple[Access, ...] = (UseTool(self.name, self.annotations.effect),)
        self.granted: str | None = None
        """The policies' standing when they last allowed the tool as such."""


class Admitted:
    """A call on its way through admission, with whatever came of it; what policies see of the call."""

    # Defaults on the class, not in __init__: most calls keep most of them, and this stands on the path of every call.
    invocation: Invocation | None = None
    accesses: Sequence[Access] = ()
    asks: tuple[Ask, ...] = ()
    answered: Output | None = None
    """A hook's output: only the run is skipped."""
    error: ToolError | None = None
    questions: tuple[Question, ...] = ()
    spent: tuple[str, ...] = ()
    """The questions whose answers were heeded on the way; used up when the call runs."""
    shown: tuple[frozenset[Access], frozenset[str]] | None = None
    """What the question named, accesses and reasons, where its answer changed the arguments."""
    finished: bool = False
    """It has had its outcome, counted and told."""
    lasting: tuple[Question, Approve] | None = None
    """A yes for this session or always, to be remembered when the call runs."""
    _digest: str = ""

    def __init__(self, call: ToolCall, lane: Lane | None, session_id: str) -> None:
        self.call = call
        self.lane = lane
        self.session_id = session_id

    @property
    def name(self) -> str:
        """The tool's own name; the model's word for it where there is no such tool."""
        return self.call.name if self.lane is None else self.lane.name

    @property
    def known(self) -> Lane:
        """The tool's lane, for a call that has one."""
        if self.lane is None:
            raise LookupError(f"{self.call.name} is not a tool")
        return self.lane

    @property
    def spec(self) -> ToolSpec:
        return self.known.spec

    @property
    def arguments(self) -> JsonObject:
        return _NO_ARGUMENTS if self.invocation is None else self.invocation.arguments

    @property
    def digest(self) -> str:
        """Names exactly what would run."""
        if not self._digest:
            self._digest = digest_of(self.name, self.arguments, self.accesses, session_id=self.session_id)
        return self._digest

    def bind(self, arguments: JsonObject | str | bytes) -> None:
        """Bind arguments; a tool may ask for a person's word here, handing over what would run with it."""
        self._digest = ""
        try:
            self.invocation = self.known.bind(arguments)
        except ApprovalRequired as error:
            if not isinstance(error.invocation, Invocation):
                raise Crashed(f"{self.name} asked for approval in bind without an invocation to run") from error
            self.invocation = error.invocation
            self.asks = (*self.asks, Ask(error.reason, source=f"tool {self.name}"))


class Gate:
    """Admits calls in three stages: `bind`, `consult` (hooks, if there are any), `judge`."""

    def __init__(self, policies: Policies, hooks: Sequence[Hook], *, question_seconds: float | None = 3600.0) -> None:
        self.policies = policies
        self.question_seconds = question_seconds
        self.hooks = tuple(hook for hook in hooks if type(hook).before is not Hook.before)
        self._spent: set[str] = set()
        self._catalog: Catalog | None = None
        self._lanes: dict[str, Lane] = {}

    def bind(self, call: ToolCall, catalog: Catalog, session_id: str) -> Admitted:
        """Look the tool up and check the arguments."""
        admitted = Admitted(call, self._lane(call.name, catalog), session_id)
        try:
            if admitted.lane is None:
                raise UnknownTool(call.name, catalog.nearest(call.name), advice=catalog.advice)
            admitted.bind(call.arguments)
        except AuthRequired as error:
            admitted.questions = (self._question(admitted, (Ask(error.reason),), auth=error),)
        except Exception as error:  # noqa: BLE001 - a tool that cannot even be bound fails its own call only
            admitted.error = error if isinstance(error, ToolError) else _crash(error)
        return admitted

    def granted(self, name: str, catalog: Catalog) -> bool:
        """Whether the policies, standing as they do, have allowed this tool as such."""
        lane = self._lane(name, catalog)
        return lane is not None and lane.granted is not None and lane.granted == self.policies.standing

    def _lane(self, name: str, catalog: Catalog) -> Lane | None:
        if catalog is not self._catalog:
            self._catalog, self._lanes = catalog, {}
        lane = self._lanes.get(name)
        if lane is None:
            tool = catalog.get(name)
            if tool is None:
                return None
            lane = self._lanes[name] = Lane(tool)
        return lane

    async def consult(self, admitted: Admitted, turn_id: str, deadlines: Deadlines) -> None:
        """Ask every hook, each seeing what the ones before it rewrote."""
        try:
            for hook in self.hooks:
                if admitted.error is not None or admitted.questions:
                    return
                verdict = await _ask_hook(hook, pending_call(admitted, turn_id), deadlines)
                self._heed(admitted, verdict)
        except Exception as error:  # noqa: BLE001 - a hook that fails, fails its call: nothing ran
            admitted.error = error if isinstance(error, ToolError) else _crash(error)

    def _heed(self, admitted: Admitted, verdict: object) -> None:
        match verdict:
            case Rewrite(arguments):
                admitted.bind(arguments)
            case Deny(reason):
                raise Denied(reason)
            case Halt(reason):
                raise Halted(reason)
            case Answer(output):
                admitted.answered = render(output)
            case Ask():
                admitted.asks = (*admitted.asks, verdict)
            case _:
                pass

    def judge(self, admitted: Admitted, answers: Answers | None) -> bool:
        """Hear the policies on everything the final arguments would touch, then the person's answers.

        True if an answer changed the arguments: then they are not final, and hooks and policies are to be heard again.
        """
        if admitted.error is not None or admitted.questions:
            return False
        try:
            asks = self._decide(admitted)
            return bool(asks) and self._settle(admitted, asks, answers)
        except AuthRequired as error:
            self._sign_in(admitted, error, answers)
        except Exception as error:  # noqa: BLE001 - a tool that fails to say what it touches fails its own call only
            admitted.error = error if isinstance(error, ToolError) else _crash(error)
        return False

    def spend(self, admitted: Sequence[Admitted]) -> None:
        """Use up the answers that let these calls through: each counts once, unless it was given for longer."""
        for item in admitted:
            self._spent.update(item.spent)
            if item.lasting is not None:
                self.policies.remember(*item.lasting, session=item.session_id)

    def _decide(self, admitted: Admitted) -> tuple[Ask, ...]:
        invocation, lane = admitted.invocation, admitted.known
        if invocation is None:
            raise Crashed("the call was never bound to a tool")
        asks = admitted.asks
        try:
            accesses = invocation.accesses()
        except ApprovalRequired as error:
            accesses, asks = (), (*asks, Ask(error.reason, source=f"tool {lane.name}"))
        if accesses:
            admitted.accesses = tuple(accesses)
        elif lane.granted is not None and lane.granted == self.policies.standing:
            return asks  # the same question got the same answer before
        denied: Deny | None = None
        allowed = True
        for access in accesses or lane.use:
            decision = self.policies.decide(access, admitted)
            if isinstance(decision, Deny):
                denied = denied or decision
            elif isinstance(decision, Ask):
                asks, allowed = (*asks, decision), False
        if denied is not None:  # only now, so that every access has been heard
            raise Denied(f"{denied.reason} ({denied.source})" if denied.source else denied.reason)
        if allowed and not accesses:
            lane.granted = self.policies.standing
        return asks

    def _settle(self, admitted: Admitted, asks: Sequence[Ask], answers: Answers | None) -> bool:
        """A person's answer settles an ask, if it was given for exactly this; else the question is raised."""
        found = None if answers is None else answers.find(admitted.digest, admitted.call.id, besides=admitted.spent)
        if found is None or found[0] in self._spent:
            if not _covered(admitted, asks):
                admitted.questions = (self._question(admitted, asks),)
            return False
        question_id, reply = found
        admitted.spent = (*admitted.spent, question_id)
        match reply:
            case Decline(reason):
                admitted.error = Denied(f"declined: {reason}" if reason else "declined by the user")
            case Approve(arguments=patched) if patched is not None:
                admitted.shown = frozenset(admitted.accesses), frozenset(ask.reason for ask in asks)
                admitted.asks, admitted.accesses, admitted.answered = (), (), None
                admitted.bind(patched)
                return True
            case Approve(scope="once"):
                pass
            case Approve():
                admitted.lasting = (self._question(admitted, asks), reply)
        return False

    def _sign_in(self, admitted: Admitted, error: AuthRequired, answers: Answers | None) -> None:
        found = None if answers is None else answers.find(admitted.digest, admitted.call.id)
        if found is not None and isinstance(found[1], Decline):
            admitted.error = Denied(found[1].reason or "sign-in was declined")
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
            summary=f"Sign in for {name}?" if auth else f"Allow {name}: {_gist(admitted)}?",
            reason="; ".join(dict.fromkeys(ask.reason for ask in asks if ask.reason)),
            accesses=tuple(admitted.accesses) or admitted.known.use,
            kind="auth" if auth else "approval",
            url=auth.url if auth else "",
            expires_at=0 if seconds is None else int(time.time() + seconds) + 1,
        )


def _covered(admitted: Admitted, asks: Sequence[Ask]) -> bool:
    """Whether changed arguments touch, and are asked about for, nothing but what the question already showed."""
    if admitted.shown is None or not admitted.accesses:
        return False
    accesses, reasons = admitted.shown
    return accesses.issuperset(admitted.accesses) and reasons.issuperset(ask.reason for ask in asks)


def pending_call(admitted: Admitted, turn_id: str = "") -> PendingCall:
    """What hooks are shown of a call."""
    return PendingCall(admitted.call, admitted.spec, admitted.arguments, admitted.session_id, turn_id)


async def _ask_hook(hook: Hook, pending: PendingCall, deadlines: Deadlines) -> object:
    try:
        verdict = await deadlines.limit(hook.seconds, hook.before(pending))
        if isinstance(verdict, _VERDICTS):
            return verdict
        raise TypeError(
            f"{verdict!r} is no verdict; return Proceed(), Rewrite(…), Deny(…), Answer(…), Ask(…) or Halt(…)"
        )
    except ToolError:
        raise
    except TimeoutError as error:
        raise Denied(f"the hook {type(hook).__name__} did not answer within {hook.seconds:g} s") from error
    except (Exception, SystemExit) as error:
        raise Denied(f"the hook {type(hook).__name__} failed, so nothing ran: {error}") from error


def _crash(error: Exception) -> Crashed:
    crashed = Crashed(f"{type(error).__name__}: {error}")
    crashed.__cause__ = error
    return crashed


def _gist(admitted: Admitted) -> str:
    """The one line a person should see: the command, the path, the address, else the arguments."""
    for access in admitted.accesses:
        match access:
            case RunCommand(line=shown) | Reach(url=shown) | WritePath(shown) | DeletePath(shown) | ReadPath(shown):
                return _one_line(shown)
            case UseTool():
                pass
    shown = ", ".join(f"{name}={value!r}" for name, value in admitted.arguments.items())
    return _one_line(shown) or "no arguments"


def _one_line(text: str) -> str:
    """Show hidden characters and cut what is too long, so that a question cannot hide its end."""
    visible = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    if len(visible) <= _SUMMARY_CHARS:
        return visible
    return f"{visible[: _SUMMARY_CHARS // 2]} … {visible[-_SUMMARY_CHARS // 2 :]}"
