"""Connects shell hooks to calls: `ShellHooks` makes the hooks an executor runs and fires the events of a call."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from callwright.core.access import Ask
from callwright.core.calls import Completed, Failed, Interrupted, Outcome, ToolCall, digest_of
from callwright.core.errors import Cancelled, Declined, Halted
from callwright.core.events import BatchBegan, CallEnded, Event
from callwright.hooks.base import Deny, Halt, Hook, InnerAgent, PendingCall, Rewrite, Verdict
from callwright.hooks.shell.compat import (
    CallView,
    apply_elicitation_reply,
    elicitation_result_fields,
    elicitation_server,
)
from callwright.hooks.shell.config import ShellHook
from callwright.hooks.shell.dispatch import HookContext, HookDispatcher
from callwright.hooks.shell.reply import HookReply, apply_reply

BatchEntry: TypeAlias = dict[str, object]


@dataclass(slots=True)
class _Batch:
    waiting: set[int]
    ended: list[BatchEntry] = field(default_factory=list[BatchEntry])


class BatchTracker:
    """Observes running turns, to find out when the last call of a turn has ended."""

    def __init__(self) -> None:
        self._of_call: dict[int, _Batch] = {}

    def observe(self, event: Event) -> None:
        """Record calls that begin together, and calls that end without passing hooks."""
        if isinstance(event, BatchBegan):
            batch = _Batch({id(call) for call in event.calls})
            self._of_call.update(dict.fromkeys(batch.waiting, batch))
        elif isinstance(event, CallEnded):
            batch = self._of_call.pop(id(event.call), None)
            if batch is not None:
                batch.waiting.discard(id(event.call))

    def record_end(self, call: ToolCall, entry: BatchEntry) -> list[BatchEntry] | None:
        """Record the end of a call. Returns the entries of its whole turn if it was the last one, else None."""
        batch = self._of_call.get(id(call))
        if batch is None:
            return None
        batch.waiting.discard(id(call))
        batch.ended.append(entry)
        return None if batch.waiting else batch.ended


_CALL_EVENTS = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied", "PostToolBatch"),
    *("CwdChanged", "SubagentStart", "SubagentStop", "ElicitationResult"),
)
_EVENTS_PER_CALL = 4
"""How many events one call may fire one after the other."""
_SPARE_SECONDS = 5.0


class ShellHooks(HookDispatcher):
    """Runs shell hooks at events; may change, stop or approve calls.

    Args:
        hooks: From `parse_shell_hooks`.
        context: Where they run; the current folder by default.
    """

    def __init__(self, hooks: Iterable[ShellHook], context: HookContext | None = None) -> None:
        super().__init__(hooks, context)
        self.allowed_calls: set[str] = set()
        """Digests of calls a hook allowed: the mode no longer asks about them, but rules still do."""
        self.approved_calls: set[str] = set()
        """Digests of calls a hook approved in the user's place (PermissionRequest); they count the same."""
        self.halts: dict[tuple[str, str], str] = {}
        """Why a hook that declined a question ends the run, by the session and the id of the call."""
        self.batches = BatchTracker()
        self._replies: dict[tuple[str, str, str], tuple[str, HookReply]] = {}
        """Replies about running calls, so that a call that is admitted again after an approval does not fire again."""
        self._agents: dict[str, InnerAgent] = {}
        """Agents inside calls, by the session of their own calls."""
        self._folder = self.context.folder()

    def call_hooks(self) -> tuple[Hook, ...]:
        """Return the hooks for an executor: two, because one hook cannot both rewrite a call and ask about it."""
        if not self.has_hooks_for(*_CALL_EVENTS):
            return ()
        seconds = max(hook.seconds for hook in self.hooks) * _EVENTS_PER_CALL + _SPARE_SECONDS
        return _RewritingHook(self, seconds), _DecidingHook(self, seconds)

    async def fire(
        self, event: str, fields: Mapping[str, object], *, pending: PendingCall | None = None, session_id: str = ""
    ) -> HookReply:
        """Run an event's hooks. What happens in an agent inside a call belongs to the session of the conversation.

        Args:
            event: The name of the event.
            fields: What the payload has in addition to the fields of every event.
            pending: The call that the event is about.
            session_id: The session it happens in.
        """
        if (agent := self._agents.get(session_id)) is not None:
            fields = {**_agent_fields(agent), **fields}
        while (agent := self._agents.get(session_id)) is not None:
            session_id = agent.session_id
        return await super().fire(event, fields, pending=pending, session_id=session_id)

    def view_call(self, pending: PendingCall) -> CallView:
        """Return a call as hooks see it."""
        folder = self.context.cwd or self.context.project
        return CallView.of(pending.spec, pending.arguments, folder)

    async def before(self, pending: PendingCall) -> Verdict | None:
        """Fire PreToolUse for a call."""
        if elicitation_server(pending.spec):
            return None  # an elicitation has events of its own
        key, digest = _call_key(pending), digest_call(pending)
        if self._replies.get(key, ("", None))[0] != digest:
            self._replies[key] = digest, await self._fire_before(pending)
        reply = self._replies[key][1]
        if reply.halt:
            return Halt(reply.halt)
        if reply.decision == "deny":
            return Deny(reply.reason or "denied by a hook")
        return None if reply.arguments is None else Rewrite(self.view_call(pending).restore_arguments(reply.arguments))

    async def _fire_before(self, pending: PendingCall) -> HookReply:
        return await self.fire("PreToolUse", self.call_fields(pending), pending=pending, session_id=pending.session_id)

    def decide(self, pending: PendingCall) -> Verdict | None:
        """Apply the hooks' decision to the call as it is after rewriting."""
        _, reply = self._replies.get(_call_key(pending), ("", HookReply()))
        digest = digest_call(pending)
        self.allowed_calls.discard(digest)  # an earlier, equal call may have been allowed, and this one not
        if reply.decision == "allow":
            self.allowed_calls.add(digest)
        return Ask(reply.reason or "a hook asks for approval", "hook") if reply.decision == "ask" else None

    async def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        """Fire the events after a call; hooks may add to its outcome or replace it.

        Args:
            pending: The call.
            outcome: Its outcome.

        Returns:
            Another outcome, or None to keep this one.
        """
        _, before = self._replies.pop(_call_key(pending), ("", HookReply()))
        digest = digest_call(pending)
        self.allowed_calls.discard(digest)
        self.approved_calls.discard(digest)
        halt = self.halts.pop((pending.session_id, pending.call.id), "")
        for own_session_id, agent in tuple(self._agents.items()):  # one that failed has given no answer to agent_ended
            if (agent.session_id, agent.call_id) == (pending.session_id, pending.call.id):
                del self._agents[own_session_id]
        if isinstance(outcome, Interrupted):
            return None
        if not isinstance(outcome, Failed) or not isinstance(outcome.error, Declined):
            halt = ""  # left by a call of the same id that was cancelled: some models count from one in every message
        seen = await self._fire_after(pending, outcome)
        # after the hooks that may replace the output, which would replace the note as well
        seen = apply_reply(seen, HookReply(context=before.context, halt=halt))
        moved = await self._report_folder(pending)
        seen = apply_reply(seen, HookReply(context=moved.context, halt=moved.halt))
        return await self._fire_batch(pending, seen)

    async def _fire_after(self, pending: PendingCall, outcome: Completed | Failed) -> Completed | Failed:
        if server := elicitation_server(pending.spec):
            form = {"mcp_server_name": server, **elicitation_result_fields(outcome)}
            return apply_elicitation_reply(
                outcome, await self.fire("ElicitationResult", form, session_id=pending.session_id)
            )
        fields = self.call_fields(pending) | {"duration_ms": round(outcome.seconds * 1000)}
        if isinstance(outcome, Completed):
            event, fields = "PostToolUse", fields | {"tool_response": outcome.text}
        elif outcome.started:
            stopped = isinstance(outcome.error, Cancelled)
            event, fields = "PostToolUseFailure", fields | {"error": outcome.text, "is_interrupt": stopped}
        elif outcome.error.code == "denied":
            event, fields = "PermissionDenied", fields | {"reason": outcome.text}
        else:
            return outcome
        reply = await self.fire(event, fields, pending=pending, session_id=pending.session_id)
        return apply_reply(outcome, reply)

    async def _report_folder(self, pending: PendingCall) -> HookReply:
        """Fire CwdChanged if the call moved the session's shell to another folder."""
        folder = self.context.folder()
        if pending.spec.group != "shell" or folder == self._folder:
            return HookReply()
        fields = {"old_cwd": self._folder, "new_cwd": folder}
        self._folder = folder
        return await self.fire("CwdChanged", fields, session_id=pending.session_id)

    async def _fire_batch(self, pending: PendingCall, outcome: Completed | Failed) -> Outcome:
        entry: BatchEntry = {**self.call_fields(pending), "tool_response": outcome.text}
        ended = self.batches.record_end(pending.call, entry)
        if ended is None:
            return outcome
        reply = await self.fire("PostToolBatch", {"tool_calls": ended}, session_id=pending.session_id)
        if reply.decision == "deny":  # all calls of the turn have run, so only the run can be stopped
            reply = HookReply(halt=reply.reason or "a hook ended the run", context=reply.context)
        return apply_reply(outcome, reply)

    async def agent_began(self, agent: InnerAgent) -> str | None:
        """Fire SubagentStart; return the context that hooks give the agent.

        Raises:
            Halted: A hook ended the run.
        """
        if agent.own_session_id:
            self._agents[agent.own_session_id] = agent
        reply = await self.fire("SubagentStart", _event_fields(agent), session_id=agent.session_id)
        if reply.halt:
            raise Halted(reply.halt)
        return f"[hook] {reply.context}" if reply.context else None

    async def agent_ended(self, agent: InnerAgent, answer: str) -> str | None:
        """Fire SubagentStop for an answer; objections of hooks are added to it.

        Args:
            agent: The agent inside a call.
            answer: Its answer.

        Raises:
            Halted: A hook ended the run.
        """
        self._agents.pop(agent.own_session_id, None)
        fields = _event_fields(agent) | {"stop_hook_active": False, "last_assistant_message": answer}
        reply = await self.fire("SubagentStop", fields, session_id=agent.session_id)
        if reply.halt:
            raise Halted(reply.halt)
        notes = (reply.reason if reply.decision == "deny" else "", reply.context)
        return "\n".join((answer, *(f"[hook] {note}" for note in notes if note)))

    def call_fields(self, pending: PendingCall) -> dict[str, object]:
        """Return the fields that every event of a call has."""
        shown = self.view_call(pending)
        return {"tool_name": shown.name, "tool_input": shown.arguments, "tool_use_id": pending.call.id}


class _RewritingHook(Hook):
    def __init__(self, hooks: ShellHooks, seconds: float) -> None:
        self.seconds = seconds
        self._hooks = hooks

    async def before(self, pending: PendingCall) -> Verdict | None:
        return await self._hooks.before(pending)

    async def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        return await self._hooks.after(pending, outcome)

    async def agent_began(self, agent: InnerAgent) -> str | None:
        return await self._hooks.agent_began(agent)

    async def agent_ended(self, agent: InnerAgent, answer: str) -> str | None:
        return await self._hooks.agent_ended(agent, answer)


class _DecidingHook(Hook):
    def __init__(self, hooks: ShellHooks, seconds: float) -> None:
        self.seconds = seconds
        self._hooks = hooks

    def before(self, pending: PendingCall) -> Verdict | None:
        return self._hooks.decide(pending)


def digest_call(pending: PendingCall) -> str:
    """Return a digest of the tool, the arguments and the session of a call."""
    return digest_of(pending.spec.name, pending.arguments, (), session_id=pending.session_id)


def _call_key(pending: PendingCall) -> tuple[str, str, str]:
    return pending.session_id, pending.turn_id, pending.call.id


def _agent_fields(agent: InnerAgent) -> dict[str, object]:
    return {"agent_id": agent.call_id, "agent_type": agent.name}


def _event_fields(agent: InnerAgent) -> dict[str, object]:
    return {**_agent_fields(agent), "tool_name": agent.tool or agent.name}
