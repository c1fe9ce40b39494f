"""Admission, the first half of a call: decides whether it may run and changes nothing, so it may be repeated.

look up ─► bind ─► (repair) ─► before-hooks ─► accesses ─► policies ─► answers
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callwright.core.access import (
    Allow,
    Ask,
    Confinement,
    Deny,
    RunCommand,
)
from callwright.core.calls import ToolCall
from callwright.core.decisions import (
    Approve,
    Decline,
    Question,
    QuestionKind,
    Reply,
    check_reply,
    digest_running,
)
from callwright.core.errors import (
    ApprovalRequired,
    AuthRequired,
    Crashed,
    Declined,
    Denied,
    InputRequired,
    InvalidArguments,
    ToolError,
    UnknownTool,
    describe_raised,
)
from callwright.core.json import JsonObject, canonical
from callwright.executor.admitted import Admitted, ToolEntry
from callwright.executor.deadlines import Deadlines
from callwright.executor.driver import is_cancelling
from callwright.executor.ledger import TurnAnswers, ask_again, find_expiry
from callwright.policy.decide import Policies
from callwright.registry.catalog import Catalog
from callwright.tool.base import State

if TYPE_CHECKING:
    from callwright.executor.before_hooks import Asking
    from callwright.executor.repair import RepairMode
    from callwright.hooks.base import Hook

_log = logging.getLogger("callwright")


class Gate:
    """Admits calls: `bind` checks the arguments, `admit` asks hooks, policies and answers."""

    def __init__(
        self,
        policies: Policies,
        hooks: "Sequence[Hook]",
        *,
        question_seconds: float | None = 3600.0,
        repairs: "RepairMode" = "on",
    ) -> None:
        self.policies = policies
        self._question_seconds = question_seconds
        self._repairs: RepairMode = repairs
        self.hooks: tuple[Hook, ...] = ()
        if hooks:
            from callwright.executor.before_hooks import ask_hooks  # loaded with the first hook
            from callwright.hooks.base import select_hooks

            self.hooks, self._ask_hooks = select_hooks(hooks, "before"), ask_hooks
        # one value, because several threads may use a gate with different catalogs
        self._known: tuple[Catalog | None, dict[str, ToolEntry]] = (None, {})

    def bind(self, call: ToolCall, catalog: Catalog, session_id: str, state: State | None = None) -> Admitted:
        """Look the tool up and check the arguments."""
        entry = self._find_entry(call.name, catalog)
        admitted = Admitted(call, entry, session_id)
        if entry is None or entry.bind_in is not None:  # without an entry, the repair may find one
            admitted.state = state
        try:
            if entry is None:
                raise _refuse_unknown(call.name, catalog)
            admitted.bind(entry, call.arguments)
            if entry.repair_paths is not None and admitted.invocation is not None and self._repairs != "off":
                found = entry.repair_paths(admitted.invocation)
                if found is not None:
                    from callwright.executor.repair import repair_paths  # well-formed calls load none of it

                    repair_paths(admitted, entry, found, self._repairs)
        except (UnknownTool, InvalidArguments) as error:
            admitted.error = error
            error.__traceback__ = error.__context__ = None  # the model's fault; their frames would make a cycle
            if self._repairs != "off":
                from callwright.executor.repair import repair_call  # as above

                repair_call(admitted, catalog, self._find_entry, self._repairs)
        except AuthRequired as error:
            admitted.sign_in = error
        except BaseException as error:  # noqa: BLE001 - a tool that cannot even be bound fails its own call only
            admitted.error = _as_tool_error(error)
        return admitted

    def is_allowed(self, name: str, catalog: Catalog, key: str | None) -> bool:
        """Whether the policies with this cache key have allowed every call of this tool that declares no accesses."""
        entry = self._find_entry(name, catalog)
        return entry is not None and key is not None and entry.allowed_key == key

    def _find_entry(self, name: str, catalog: Catalog) -> ToolEntry | None:
        known, entries = self._known
        if catalog is not known:
            entries = dict[str, ToolEntry]()
            self._known = catalog, entries
        entry = entries.get(name)
        if entry is None:
            tool = catalog.get(name)
            if tool is None:
                return None
            entry = entries[name] = ToolEntry(tool)
        return entry

    async def admit(
        self,
        calls: Sequence[Admitted],
        answers: TurnAnswers | None,
        turn_id: str,
        deadlines: Deadlines,
        asking: "Asking | None" = None,
    ) -> None:
        """Decide about bound calls, hooks included; the error or the questions of each, if any, are set on it.

        `asking` is what is left to await of the hooks of the first call, if they were asked elsewhere.
        """
        for admitted in calls:
            changed = True
            while changed:  # an answer may change the arguments, and hooks and policies judge what will run
                if admitted.error is None and admitted.sign_in is None:
                    try:
                        if asking is None and self.hooks:
                            asking = self._ask_hooks(self.hooks, admitted, turn_id, deadlines)
                        if asking is not None:
                            await asking
                    except BaseException as error:  # noqa: BLE001 - a failing hook fails this call only: nothing ran
                        self._fail(admitted, error, answers)
                    asking = None
                changed = self.judge(admitted, answers)

    def judge(self, admitted: Admitted, answers: TurnAnswers | None) -> bool:
        """Decide about a bound call by policies and answers, the hooks left out.

        Returns:
            Whether an answer changed the arguments, so that the call must be decided about again.
        """
        if admitted.error is not None or admitted.questions:
            return False
        if admitted.sign_in is not None:
            self._require_sign_in(admitted, admitted.sign_in, answers)
            return False
        try:
            asks = self._decide(admitted)
            if answers is not None:
                found = answers.claim(admitted, running=True)
                if found is not None:
                    asks = self._apply_running_answer(admitted, asks, *found)
                elif (edit := answers.find_edit(admitted)) is not None:  # it asked with the arguments of the user
                    self._change_arguments(admitted, _apply_reply(admitted, *edit))
                    return True
            return bool(asks) and self._apply_answer(admitted, asks, answers)
        except BaseException as error:  # noqa: BLE001 - a failing policy or tool fails this call only: nothing ran
            self._fail(admitted, error, answers)
            return False

    def _fail(self, admitted: Admitted, error: BaseException, answers: TurnAnswers | None) -> None:
        if isinstance(error, AuthRequired):
            self._require_sign_in(admitted, error, answers)
        else:
            admitted.error = _as_tool_error(error)

    def consume_answers(self, admitted: Sequence[Admitted], answers: TurnAnswers) -> None:
        """Use up the answers that let these calls through; remember those given for longer than once."""
        for item in admitted:
            taken = [answers.take(question_id) for question_id in item.used_answers]  # every one, also after a failure
            if item.carried is not None:
                taken.append(answers.take_carried(item.carried))
            if not all(taken):
                item.error = item.error or Denied("the answer was used by another call meanwhile; ask again")
            elif item.lasting_grant is not None and item.error is None:
                self._remember(item.lasting_grant, item.session_id)

    def _remember(self, grant: tuple[Question, Approve], session_id: str) -> None:
        try:
            self.policies.remember(*grant, session=session_id)
        except Exception as error:  # noqa: BLE001 - the approval counts for this call all the same
            _log.warning("an approval could not be remembered, it counts once: %s", describe_raised(error))

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
        key = None
        if accesses:
            admitted.accesses = tuple(accesses)
        else:
            key = self.policies.cache_key
            if key is not None and entry.allowed_key == key:
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
        if allowed and not accesses and key == self.policies.cache_key:  # else another thread has switched the mode
            entry.allowed_key = key
        return asks

    def _apply_answer(self, admitted: Admitted, asks: Sequence[Ask], answers: TurnAnswers | None) -> bool:
        """Apply the answer given for exactly this call, or raise the question; True if it changed the arguments."""
        found = None if answers is None else answers.claim(admitted)
        if found is None:
            carried = None if answers is None else answers.find_carried(admitted)
            if carried is not None and carried.reasons.issuperset(ask.reason for ask in asks):
                admitted.carried, admitted.approved = carried, tuple(carried.reasons)
                admitted.confinement = Confinement.APPROVED
            elif not _is_covered(admitted, asks):
                admitted.questions = (self._question(admitted, asks),)
            else:
                admitted.confinement = Confinement.APPROVED
            return False
        approve = _apply_reply(admitted, *found)
        admitted.approved = tuple(ask.reason for ask in asks)
        if approve.arguments is not None and not _is_same(approve.arguments, admitted.arguments):
            admitted.shown = frozenset(admitted.accesses), frozenset(ask.reason for ask in asks)
            self._change_arguments(admitted, approve)
            return True
        admitted.confinement = Confinement.APPROVED
        if approve.scope != "once":
            admitted.lasting_grant = (self._question(admitted, asks), approve)
        return False

    def _change_arguments(self, admitted: Admitted, approve: Approve) -> None:
        if approve.arguments is not None:
            admitted.asks, admitted.accesses, admitted.hook_output = (), (), None
            admitted.edit(admitted.require_entry(), approve.arguments)
            admitted.edited_by = approve.by or "the user"

    def _apply_running_answer(
        self, admitted: Admitted, asks: tuple[Ask, ...], question: Question, reply: Reply
    ) -> tuple[Ask, ...]:
        """Apply the answer to what the tool asked while it ran; return what must still be asked."""
        admitted.resumed = True
        if question.is_expired() and type(reply) is not Decline:
            # run without an answer, it would do once more what it did before it asked
            admitted.questions = (ask_again(question, self._question_seconds),)
            return ()
        admitted.answered = (question, _apply_reply(admitted, question, reply))
        admitted.approved = question.approved
        left = tuple(ask for ask in asks if ask.reason not in question.approved)
        if len(left) < len(asks):
            admitted.confinement = Confinement.APPROVED
        return left

    def _require_sign_in(self, admitted: Admitted, error: AuthRequired, answers: TurnAnswers | None) -> None:
        found = None if answers is None else answers.claim(admitted)
        if found is not None and not isinstance(found[1], Approve):
            admitted.error = Denied(found[1].reason or "the user declined to sign in")
            return
        admitted.questions = (self._question(admitted, (Ask(error.reason),), auth=error),)

    def make_running_question(self, admitted: Admitted, raised: ApprovalRequired | AuthRequired) -> Question:
        """Return the question that a tool asks while it runs."""
        auth = raised if isinstance(raised, AuthRequired) else None
        kind: QuestionKind = "input" if isinstance(raised, InputRequired) else "approval"
        return self._question(admitted, (Ask(raised.reason),), kind, auth=auth, running=True)

    def _question(
        self,
        admitted: Admitted,
        asks: Sequence[Ask],
        kind: QuestionKind = "approval",
        *,
        auth: AuthRequired | None = None,
        running: bool = False,
    ) -> Question:
        name = admitted.name
        kind = "auth" if auth else kind
        reason = "; ".join(dict.fromkeys(ask.reason for ask in asks if ask.reason))
        return Question(
            call_id=admitted.call.id,
            tool=name,
            arguments=admitted.arguments,
            digest=digest_running(admitted.approval_digest, kind, reason) if running else admitted.approval_digest,
            summary=_summary(admitted, kind, reason),
            reason=reason,
            accesses=tuple(admitted.accesses) or admitted.require_entry().default_accesses,
            kind=kind,
            url=auth.url if auth else "",
            expires_at=find_expiry(self._question_seconds),
            running=running,
            approved=admitted.approved if running else (),
            within=admitted.within,
            origin=admitted.origin,
            source="; ".join(dict.fromkeys(ask.source for ask in asks if ask.source)),
            implementation=admitted.implementation,
        )


def _refuse_unknown(name: str, catalog: Catalog) -> Denied | UnknownTool:
    """Return the error of a call of no tool, or of one that is withheld from the model."""
    return Denied(catalog.withheld[name]) if name in catalog.withheld else catalog.unknown_tool(name)


def _summary(admitted: Admitted, kind: QuestionKind, reason: str) -> str:
    match kind:
        case "auth":
            return f"Sign in for {admitted.name}?"
        case "input":
            return f"{admitted.name} asks: {reason}"
        case "approval":
            from callwright.executor.summary import summarize  # loaded with the first question

            return f"Allow {admitted.name}: {summarize(admitted)}?"


def _apply_reply(admitted: Admitted, question: Question, reply: Reply) -> Approve:
    """Return the approval in a reply, and note that it is used.

    Raises:
        Denied: The reply is not an approval.
    """
    admitted.used_answers = (*admitted.used_answers, question.id)
    return require_approval(question, reply)


def require_approval(question: Question, reply: Reply) -> Approve:
    """Return the approval in a reply.

    Raises:
        Denied: The reply is not an approval, or changes the arguments of a call that is running.
    """
    checked = check_reply(reply)
    if type(checked) is not Approve:
        raise Declined(f"declined: {checked.reason}" if checked.reason else "declined by the user")
    if question.running and checked.arguments is not None and question.kind != "input":
        raise Denied("the arguments cannot be changed while the call is running; decline it instead")
    return checked


def _is_same(arguments: JsonObject, shown: JsonObject) -> bool:
    """Whether a reply repeats the arguments that were shown, as forms and other protocols do; 1 is not True here."""
    return canonical(arguments) == canonical(shown)


def _is_covered(admitted: Admitted, asks: Sequence[Ask]) -> bool:
    """Whether the changed arguments touch, and are asked about for, nothing but what the question already showed."""
    if admitted.shown is None or not admitted.accesses:
        return False
    accesses, reasons = admitted.shown
    return accesses.issuperset(admitted.accesses) and reasons.issuperset(ask.reason for ask in asks)


def _as_tool_error(error: BaseException) -> ToolError:
    """Turn what a tool, hook or policy raised into an error of the call; only a cancellation from outside passes."""
    if isinstance(error, KeyboardInterrupt) or (isinstance(error, asyncio.CancelledError) and is_cancelling()):
        raise error
    if isinstance(error, ToolError) and type(getattr(error, "message", None)) is str:
        return error
    crashed = Crashed(describe_raised(error))
    crashed.__cause__ = error
    return crashed
