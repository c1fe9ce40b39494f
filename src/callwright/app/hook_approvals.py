"""Hooks that answer before a person is asked: PermissionRequest for calls, Elicitation for a server's forms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from callwright.core.access import Ask
from callwright.core.calls import Answers, Question, ToolCall
from callwright.core.errors import CallwrightError
from callwright.core.json import JsonObject
from callwright.executor.executor import Executor
from callwright.executor.turn import AskPerson
from callwright.hooks.base import PendingCall
from callwright.hooks.shell.compat import form_asked, server_asking
from callwright.hooks.shell.hooks import ShellHooks, mark_of
from callwright.hooks.shell.reply import HookReply
from callwright.policy.dry_run import JudgedCall, judged_by
from callwright.tool.base import Tool


@dataclass(frozen=True, slots=True)
class QuestionHooks:
    """Answers what hooks may answer. Their yes is worth what it always is: it never stands against a rule or guard."""

    hooks: ShellHooks
    executor: Executor
    session_id: str = ""

    async def answers(self, questions: Sequence[Question]) -> Answers:
        """Ask the hooks about every question; what they leave open is a person's."""
        answers = Answers()
        for question in questions:
            tool = self.executor.registry.snapshot().get(question.tool)
            if question.kind == "approval" and tool is not None:
                await self._ask(question, tool, answers)
        return answers

    async def _ask(self, question: Question, tool: Tool, answers: Answers) -> None:
        call = ToolCall(question.call_id, question.tool, question.arguments)
        pending = PendingCall(call, tool.spec, question.arguments, self.session_id)
        reply = await self._heard(pending)
        if reply.word == "deny":
            answers.decline(question, reply.reason or "a hook said no")
        elif reply.word == "allow" and server_asking(tool.spec):
            answers.approve(question, arguments={**question.arguments, "answer": reply.arguments or {}})
        elif reply.word == "allow":
            wanted = None if reply.arguments is None else self.hooks.shown(pending).ours(reply.arguments)
            if self._suffices(question, pending, tool, wanted):
                answers.approve(question, arguments=wanted)

    async def _heard(self, pending: PendingCall) -> HookReply:
        if server := server_asking(pending.spec):
            fields = form_asked(server, pending.arguments)
            return await self.hooks.fire("Elicitation", fields, session_id=self.session_id)
        about = self.hooks.about(pending)
        return await self.hooks.fire("PermissionRequest", about, pending=pending, session_id=self.session_id)

    def _suffices(self, question: Question, pending: PendingCall, tool: Tool, wanted: JsonObject | None) -> bool:
        """Whether nobody but the mode asked, which is what a hook's yes can settle."""
        asked = self._asks(pending, tool)
        reasons = dict.fromkeys(ask.reason for ask in asked or () if ask.reason)
        if asked is None or "; ".join(reasons) != question.reason:
            return False  # somebody else wants to know too
        try:
            final = pending if wanted is None else replace(pending, arguments=tool.bind(wanted).arguments)
        except CallwrightError:
            return False
        mark = mark_of(final)
        self.hooks.granted.add(mark)
        suffices = self._asks(final, tool) == []
        if wanted is None or not suffices:  # other arguments are judged once more, with the hook's yes to them
            self.hooks.granted.discard(mark)
        return suffices

    def _asks(self, pending: PendingCall, tool: Tool) -> list[Ask] | None:
        """What policies would ask about a call; None where the tool itself wants to be asked about."""
        try:
            accesses = tool.bind(pending.arguments).accesses()
        except CallwrightError:
            return None
        subject = JudgedCall(tool.spec, pending.arguments, self.session_id)
        decisions = [self.executor.policies.decide(access, subject) for access in judged_by(tool.spec, accesses)]
        return [decision for decision in decisions if isinstance(decision, Ask)]


@dataclass(frozen=True, slots=True)
class HookedAsk:
    """Asks the hooks first and the person about what is left."""

    person: AskPerson
    first: QuestionHooks

    async def __call__(self, questions: Sequence[Question]) -> Answers:
        given = dict(await self.first.answers(questions))
        left = [question for question in questions if question.id not in given]
        return Answers({**given, **dict(await self.person(left))}) if left else Answers(given)
