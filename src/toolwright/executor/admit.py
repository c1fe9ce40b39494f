"""The first half of a call: judged, and nothing happens. Safe to ask again after a restart.

look up ─► bind ─► before-hooks ─► accesses ─► policies ─► answers
"""

import asyncio
import time
from collections.abc import Sequence

from toolwright.core.access import Access, Ask, DeletePath, Deny, Reach, ReadPath, RunCommand, UseTool, WritePath
from toolwright.core.call import Answers, Approve, Decline, Question, ToolCall, digest_of
from toolwright.core.content import Output
from toolwright.core.errors import (
    ApprovalRequired,
    AuthRequired,
    Crashed,
    Denied,
    Halted,
    ToolError,
    UnknownTool,
)
from toolwright.core.json import FrozenDict, JsonObject
from toolwright.core.spec import Annotations, Effect, Limits, ToolSpec
from toolwright.hooks.base import Answer, Halt, Hook, PendingCall, Refuse, Rewrite, Verdict, settled
from toolwright.policy.decide import Policies
from toolwright.registry.catalog import Catalog
from toolwright.tool.base import Invocation, Tool, annotations_of, limits_of

_NO_ARGUMENTS: JsonObject = FrozenDict()
_SUMMARY_CHARS = 200
_UNFITTING: Annotations = Annotations(Effect.READ)


class Admitted:
    """A call that has been through admission, with whatever came of it."""

    __slots__ = ("_digest", "accesses", "answered", "call", "error", "invocation", "questions", "session_id", "spent", "tool")

    def __init__(self, call: ToolCall, tool: Tool | None, session_id: str) -> None:
        self.call = call
        self.tool = tool
        self.session_id = session_id
        self.invocation: Invocation | None = None
        self.accesses: Sequence[Access] = ()
        self.answered: Output | None = None
        """A hook's output: only the run is skipped."""
        self.error: ToolError | None = None
        self.questions: tuple[Question, ...] = ()
        self.spent: str = ""
        """The question whose answer let this call through."""
        self._digest = ""

    @property
    def spec(self) -> ToolSpec:
        return self._known.spec

    @property
    def annotations(self) -> Annotations:
        return _UNFITTING if self.error is not None else annotations_of(self._known)

    @property
    def limits(self) -> Limits:
        return limits_of(self._known)

    @property
    def _known(self) -> Tool:
        if self.tool is None:
            raise LookupError(f"{self.call.name} is not a tool")
        return self.tool

    @property
    def arguments(self) -> JsonObject:
        return _NO_ARGUMENTS if self.invocation is None else self.invocation.arguments

    def rebind(self) -> None:
        """Forget what was derived from other arguments."""
        self._digest = ""
        self.accesses = ()

    @property
    def digest(self) -> str:
        """Names exactly what would run."""
        if not self._digest:
            name = self.call.name if self.tool is None else self.spec.name
            self._digest = digest_of(name, self.arguments, self.accesses, session_id=self.session_id)
        return self._digest


class Gate:
    """Admits calls: one tool lookup, one binding, every hook, every policy."""

    def __init__(self, policies: Policies, hooks: Sequence[Hook], *, question_seconds: float | None = 3600.0) -> None:
        self.policies = policies
        self.question_seconds = question_seconds
        self._before = tuple(hook for hook in hooks if type(hook).before is not Hook.before)
        self._uses: dict[tuple[str, Effect], tuple[Access, ...]] = {}
        self._spent: set[str] = set()

    async def admit(
        self, call: ToolCall, catalog: Catalog, *, session_id: str = "", turn_id: str = "", answers: Answers | None = None
    ) -> Admitted:
        """Judge a call. Changes nothing, so it may be asked again."""
        tool = catalog.get(call.name)
        admitted = Admitted(call, tool, session_id)
        if tool is None:
            admitted.error = UnknownTool(call.name, catalog.nearest(call.name))
            return admitted
        try:
            asks = _bind(admitted, tool, call.arguments)
            if self._before:
                asks = (*asks, *await self._consult(admitted, turn_id))
            asks = (*asks, *self._judge(admitted))
            if asks:
                self._settle(admitted, asks, answers)
        except ToolError as error:
            admitted.error = error
        except AuthRequired as error:
            self._sign_in(admitted, error, answers)
        except Exception as error:  # noqa: BLE001 - a tool that fails to say what it wants fails its own call only
            admitted.error = _crash(error)
        return admitted

    def spend(self, admitted: Sequence[Admitted]) -> None:
        """Use up the answers that let these calls through: each counts once."""
        self._spent.update(item.spent for item in admitted if item.spent)

    async def _consult(self, admitted: Admitted, turn_id: str) -> tuple[Ask, ...]:
        asks: list[Ask] = []
        for hook in self._before:
            pending = pending_call(admitted, turn_id)
            verdict = await _ask_hook(hook, pending)
            match verdict:
                case Rewrite(arguments) if admitted.tool is not None:
                    asks.extend(_bind(admitted, admitted.tool, arguments))
                case Refuse(reason):
                    raise Denied(reason)
                case Halt(reason):
                    raise Halted(reason)
                case Answer(output):
                    admitted.answered = Output(output) if isinstance(output, str) else output
                case Ask():
                    asks.append(verdict)
                case _:
                    pass
        return tuple(asks)

    def _judge(self, admitted: Admitted) -> tuple[Ask, ...]:
        invocation, tool = admitted.invocation, admitted.tool
        if invocation is None or tool is None:
            return ()
        asks: tuple[Ask, ...] = ()
        try:
            admitted.accesses = tuple(invocation.accesses())
        except ApprovalRequired as error:
            admitted.accesses, asks = (), (Ask(error.reason, source=f"tool {tool.spec.name}"),)
        denied: Deny | None = None
        for access in admitted.accesses or self._use(tool):
            decision = self.policies.decide(access, admitted)
            if isinstance(decision, Deny):
                denied = denied or decision
            elif isinstance(decision, Ask):
                asks = (*asks, decision)
        if denied is not None:  # only now, so that every access has been heard
            raise Denied(f"{denied.reason} ({denied.source})" if denied.source else denied.reason)
        return asks

    def _use(self, tool: Tool) -> tuple[Access, ...]:
        key = (tool.spec.name, annotations_of(tool).effect)
        found = self._uses.get(key)
        if found is None:
            found = self._uses[key] = (UseTool(*key),)
        return found

    def _settle(self, admitted: Admitted, asks: Sequence[Ask], answers: Answers | None) -> None:
        """A person's answer settles an ask, if it was given for exactly this; else the question is raised."""
        found = None if answers is None else answers.find(admitted.digest, admitted.call.id)
        if found is None or found[0] in self._spent:
            admitted.questions = (self._question(admitted, asks),)
            return
        question_id, reply = found
        admitted.spent = question_id
        match reply:
            case Decline(reason):
                admitted.error = Denied(f"declined: {reason}" if reason else "declined by the user")
            case Approve(arguments=None):
                pass
            case Approve(arguments=patched):
                self._patch(admitted, patched)

    def _patch(self, admitted: Admitted, arguments: JsonObject) -> None:
        """Other arguments are judged again; what was not in the question needs a question of its own."""
        shown = set(admitted.accesses)
        if admitted.tool is None:
            return
        asks = (*_bind(admitted, admitted.tool, arguments), *self._judge(admitted))
        if asks and not (admitted.accesses and shown.issuperset(admitted.accesses)):
            admitted.spent = ""
            admitted.questions = (self._question(admitted, asks),)

    def _sign_in(self, admitted: Admitted, error: AuthRequired, answers: Answers | None) -> None:
        found = None if answers is None else answers.find(admitted.digest, admitted.call.id)
        if found is not None and isinstance(found[1], Decline):
            admitted.error = Denied(found[1].reason or "sign-in was declined")
            return
        admitted.questions = (self._question(admitted, (Ask(error.reason),), auth=error),)

    def _question(self, admitted: Admitted, asks: Sequence[Ask], *, auth: AuthRequired | None = None) -> Question:
        name = admitted.spec.name
        seconds = self.question_seconds
        return Question(
            call_id=admitted.call.id,
            tool=name,
            arguments=admitted.arguments,
            digest=admitted.digest,
            summary=f"Sign in for {name}?" if auth else f"Allow {name}: {_gist(admitted)}?",
            reason="; ".join(dict.fromkeys(ask.reason for ask in asks if ask.reason)),
            accesses=tuple(admitted.accesses),
            kind="auth" if auth else "approval",
            url=auth.url if auth else "",
            expires_at=0 if seconds is None else int(time.time() + seconds) + 1,
        )


def pending_call(admitted: Admitted, turn_id: str = "") -> PendingCall:
    """What hooks are shown of a call."""
    return PendingCall(admitted.call, admitted.spec, admitted.arguments, admitted.session_id, turn_id)


def _bind(admitted: Admitted, tool: Tool, arguments: JsonObject | str | bytes) -> tuple[Ask, ...]:
    """Bind arguments; a tool may ask for a person's word here, handing over what would run with it."""
    admitted.rebind()
    try:
        admitted.invocation = tool.bind(arguments)
    except ApprovalRequired as error:
        if not isinstance(error.invocation, Invocation):
            raise Crashed(f"{tool.spec.name} asked for approval in bind without an invocation to run") from error
        admitted.invocation = error.invocation
        return (Ask(error.reason, source=f"tool {tool.spec.name}"),)
    return ()


async def _ask_hook(hook: Hook, pending: PendingCall) -> Verdict | None:
    try:
        async with asyncio.timeout(hook.seconds):
            return await settled(hook.before(pending))
    except ToolError:
        raise
    except TimeoutError as error:
        raise Denied(f"the hook {type(hook).__name__} did not answer within {hook.seconds:g} s") from error
    except Exception as error:
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
