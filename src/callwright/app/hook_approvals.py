"""Hooks that answer questions before the user: PermissionRequest for calls, Elicitation for MCP forms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from callwright.agent.subagent import NamedAsk, decline_all
from callwright.core.access import Ask
from callwright.core.calls import Answers, Question, Reply, ToolCall
from callwright.core.decisions import make_reply
from callwright.core.errors import CallwrightError
from callwright.core.json import JsonObject
from callwright.executor.executor import Executor
from callwright.executor.turn_context import AskPerson
from callwright.hooks.base import PendingCall
from callwright.hooks.shell.compat import elicitation_fields, elicitation_server
from callwright.hooks.shell.hooks import ShellHooks, digest_call
from callwright.hooks.shell.reply import HookReply
from callwright.policy.dry_run import DryRunCall, accesses_to_judge
from callwright.tool.base import Tool

_BY = "a hook"


@dataclass(frozen=True, slots=True)
class QuestionHooks:
    """Asks the hooks of one session to answer questions.

    A hook's approval counts only if the permission mode alone asked: it never overrides a rule or a guard.
    """

    hooks: ShellHooks
    executor: Executor
    session_id: str = ""

    async def answers(self, questions: Sequence[Question]) -> Answers:
        """Ask the hooks about every question; those they leave open are for the user."""
        replies: dict[str, Reply] = {}
        for question in questions:
            tool = self.executor.registry.snapshot().get(question.tool)
            if question.kind == "approval" and tool is not None:
                reply = await self._ask(question, tool)
                replies |= {} if reply is None else {question.id: reply}
        return Answers(replies)

    async def _ask(self, question: Question, tool: Tool) -> Reply | None:
        """Return the reply of the hooks; None leaves the question to the user."""
        call = ToolCall(question.call_id, question.tool, question.arguments)
        pending = PendingCall(call, tool.spec, question.arguments, self.session_id)
        place = self.session_id, question.call_id
        self.hooks.halts.pop(place, None)  # of an earlier call with this id
        reply = await self._fire(pending)
        allowed = reply.decision == "allow" and not reply.halt
        if reply.halt and not elicitation_server(tool.spec):  # whose call is inside another one: it is declined
            self.hooks.halts[place] = reply.halt
        if reply.decision == "deny" or reply.halt:
            return make_reply(False, reason=reply.reason or reply.halt or "a hook denied it", by=_BY)
        if not allowed:
            return None
        if elicitation_server(tool.spec):
            filled = {**question.arguments, "answer": reply.arguments or {}}
            return make_reply(allowed, arguments=filled, by=_BY)
        changed = None if reply.arguments is None else self.hooks.view_call(pending).restore_arguments(reply.arguments)
        if not self._may_approve(question, pending, tool, changed):
            return None
        return make_reply(allowed, arguments=changed, by=_BY)

    async def _fire(self, pending: PendingCall) -> HookReply:
        if server := elicitation_server(pending.spec):
            fields = elicitation_fields(server, pending.arguments)
            return await self.hooks.fire("Elicitation", fields, session_id=self.session_id)
        about = self.hooks.call_fields(pending)
        return await self.hooks.fire("PermissionRequest", about, pending=pending, session_id=self.session_id)

    def _may_approve(self, question: Question, pending: PendingCall, tool: Tool, changed: JsonObject | None) -> bool:
        """Return whether a hook's approval leaves nothing to ask, with the arguments the hook changed."""
        asked = self._policy_asks(pending, tool)
        reasons = dict.fromkeys(ask.reason for ask in asked or () if ask.reason)
        if asked is None or "; ".join(reasons) != question.reason:
            return False  # the tool or another hook asked as well
        try:
            final = pending if changed is None else replace(pending, arguments=tool.bind(changed).arguments)
        except CallwrightError:
            return False
        # a temporary grant, to ask the policies what would be left to ask
        mark = digest_call(final)
        self.hooks.approved_calls.add(mark)
        enough = self._policy_asks(final, tool) == []
        # changed arguments are judged again by the executor, which then needs the hook's grant
        if changed is None or not enough:
            self.hooks.approved_calls.discard(mark)
        return enough

    def _policy_asks(self, pending: PendingCall, tool: Tool) -> list[Ask] | None:
        """Return what policies would ask about a call; None if the tool itself requires approval."""
        try:
            accesses = tool.bind(pending.arguments).accesses()
        except CallwrightError:
            return None
        subject = DryRunCall(tool.spec, pending.arguments, self.session_id)
        decisions = [
            self.executor.policies.decide(access, subject) for access in accesses_to_judge(tool.spec, accesses)
        ]
        return [decision for decision in decisions if isinstance(decision, Ask)]


@dataclass(frozen=True, slots=True)
class HookedAsk:
    """Asks the hooks first, then the user about the questions they left open."""

    ask_user: AskPerson
    hooks: QuestionHooks

    async def __call__(self, questions: Sequence[Question]) -> Answers:
        # hooks first: they may deny what the user need not see
        given = dict(await self.hooks.answers(questions))
        left = [question for question in questions if question.id not in given]
        return Answers({**given, **dict(await self.ask_user(left))}) if left else Answers(given)


AskInside: TypeAlias = Callable[[AskPerson | None, str], AskPerson | None]
"""Returns how an agent inside a call asks, from how the outer agent asks and the session of the inner one."""


def ask_inside(hooks: ShellHooks, executor: Executor, ask: AskPerson | None, session_id: str) -> AskPerson | None:
    """Return how an agent inside a call asks: hooks hear of its session, also where there is no user to ask."""
    if not hooks.has_hooks_for("PermissionRequest", "Elicitation"):
        return ask
    return HookedAsk(_without_hooks(ask or decline_all), QuestionHooks(hooks, executor, session_id))


def _without_hooks(ask: AskPerson) -> AskPerson:
    """Return how the user is asked: hooks of an outer agent must not answer for a call that it did not make."""
    if isinstance(ask, NamedAsk):
        return NamedAsk(_without_hooks(ask.ask), ask.name)
    return ask.ask_user if isinstance(ask, HookedAsk) else ask
