"""Agents as tools of other agents: what an inner run inherits, and the tool that starts it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from callwright.agent.handover import Handover
from callwright.agent.results import Done, Paused, Result, Stopped
from callwright.agent.run_limits import Spending
from callwright.core._fast import frozen, replace
from callwright.core.access import Access, Allow, Ask, Confinement, Decision, Deny, RunCommand
from callwright.core.calls import Answers, Decline, Question
from callwright.core.errors import Halted, ToolFailed
from callwright.core.events import BatchBegan, CallBegan, CallEnded, CallProgressed, CallRetried, CallWaits, Event
from callwright.core.json import JsonObject, hash_text
from callwright.core.messages import Usage
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn_context import AskPerson
from callwright.hooks.base import Hook, InnerAgent, await_if_needed
from callwright.policy.base import LinePart, Policy, Subject, Tier
from callwright.policy.decide import Policies
from callwright.policy.dry_run import DryRunCall
from callwright.sessions.base import SessionDamaged, SessionError, StoreTooNew
from callwright.sessions.records import Record, Spent
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import OuterSession, ToolContext
from callwright.tool.schema_tool import SchemaTool

_MAX_DEPTH = 4
INNER_SESSION = "in-"
"""The start of the ids of inner sessions."""
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "The whole task: it cannot see this conversation."}},
    "required": ["prompt"],
    "additionalProperties": False,
}


def name_inner_sessions(session_id: str) -> str:
    """Return the start of the ids of the sessions of agents inside a session, however deep; to delete them with it."""
    return f"{INNER_SESSION}{hash_text(session_id)[:16]}-"


class InnerCalls:
    """Tells the events of calls that sub-agents make from those of the agent that is shown."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def has(self, event: Event) -> bool:
        """Whether an event is about a call of a sub-agent, which the call of its task sums up."""
        match event:
            case BatchBegan(calls, session_id=session) if session.startswith(INNER_SESSION):
                self._ids.update(call.id for call in calls)
                return True
            case CallBegan(call) | CallProgressed(call) | CallRetried(call) | CallWaits(call):
                return call.id in self._ids
            case CallEnded(outcome) if outcome.call.id in self._ids:
                self._ids.discard(outcome.call.id)
                return True
            case _:
                return False


class Lineage:
    """What a run passes to the agents its tools start; kept in the session's state.

    The cancellation is not part of it: cancelling a run cancels the tasks of its calls, and with them inner agents.
    """

    executor: Executor | None = None
    ask: AskPerson | None = None
    spending: Spending | None = None
    note: Callable[[Record], None] | None = None
    """Adds a record to the outer session."""
    fail: Callable[[SessionError], None] | None = None
    """Ends the outer run, to be resumed later; None if its session is not durable."""
    depth = 0
    session_id = ""
    """The outermost session."""
    outer_session_id = ""
    """The session of the agent whose call starts another one."""
    handover: Handover | None = None
    """Says who holds the outer session, and so the inner ones, and whether this process still does."""
    running: set[str] | None = None
    """The sessions of inner agents that run now, in this run of the outer one; None before the first."""
    undo = UndoRecorder()
    """Keeps what inner agents change, as part of the outer agent's turn."""
    earlier: tuple[Record, ...] = ()
    """What inner agents used before the run began, to which it belongs."""

    def note_earlier(self, record: Record) -> None:
        """Add what an inner agent used before the run began."""
        self.earlier += (record,)

    def begin_run(
        self,
        note: Callable[[Record], None],
        fail: Callable[[SessionError], None] | None,
        handover: Handover | None,
    ) -> None:
        """Belong to a run from now on, and count what inner agents used before it."""
        self.note, self.fail, self.handover, self.running = note, fail, handover, None
        earlier, self.earlier = self.earlier, ()
        for record in earlier:
            if isinstance(record, Spent):
                self.add_inner(record.usage, record.cost)

    def end_run(self, note: Callable[[Record], None]) -> None:
        """Let go of the run that notes records in this way, and so of its history; another one may have begun."""
        if self.note == note:
            self.note = self.fail = None

    def add_inner(self, usage: Usage, cost: float | None) -> None:
        """Count what a request of an inner run used: it counts for the outer run too."""
        if self.spending is None or not usage.total:
            return
        self.spending.add_inner(usage, cost)
        if self.note is not None:
            self.note(Spent(usage, cost))


class InheritedPolicy(Policy):
    """Applies the outer agent's denials and questions to an inner agent; its permissions grant nothing."""

    tier = Tier.GUARD

    def __init__(self, policies: Policies, session_id: str = "") -> None:
        self._policies = policies
        self._session_id = session_id
        """The session of the outer agent."""

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        decision = self._find_denial(access, subject) or self._policies.decide(access, subject)
        match decision:
            case Deny():
                return decision
            case Ask(reason, source):
                return Ask(reason, source, firm=True)
            case Allow():
                return None  # no opinion: the inner agent's own policies must allow it too

    def _find_denial(self, access: Access, subject: Subject) -> Deny | None:
        """Return what denies an access in the session of the outer agent, such as a skill that is used there."""
        if not self._session_id:
            return None
        outer: Subject = DryRunCall(subject.spec, subject.arguments, self._session_id)
        if isinstance(subject, LinePart):
            from callwright.policy.shell_line import PartOfLine  # loaded with the first shell line

            outer = replace(cast("PartOfLine", subject), call=outer)
        decisions = (policy.judge(access, outer) for policy in self._policies.policies)
        return next((decision for decision in decisions if isinstance(decision, Deny)), None)


class InheritedPolicies(Policies):
    """The policies of an inner agent below those of the outer one: no command has a wider wall than there."""

    def __init__(self, outer: Policies, *own: Policy, session_id: str = "") -> None:
        super().__init__(InheritedPolicy(outer, session_id), *own)
        self._outer = outer

    def decide(self, access: Access, subject: Subject) -> Decision:
        decision = super().decide(access, subject)
        if not isinstance(decision, Allow) or not isinstance(access, RunCommand) or isinstance(subject, LinePart):
            return decision
        outer = self._outer.decide(access, subject)  # the whole line: its parts were allowed, each with a wall
        if isinstance(outer, Allow):
            return replace(decision, confinement=_narrow(decision.confinement, outer.confinement))
        return self.settle(replace(outer, firm=True)) if isinstance(outer, Ask) else outer


def _narrow(own: Confinement, outer: Confinement) -> Confinement:
    """Return what both walls let a command use."""
    if Confinement.UNCONFINED in outer:
        return own
    return outer if Confinement.UNCONFINED in own else own & outer


def inherit_executor(executor: Executor, lineage: Lineage) -> Executor:
    """Return an executor like the given one with the policies, hooks and observers of the outer run added."""
    outer = lineage.executor
    if outer is None:
        return executor
    return Executor(
        executor.registry,
        InheritedPolicies(outer.policies, *executor.policies.policies, session_id=lineage.outer_session_id),
        # Shared hooks and observers run once, or a call of the inner agent would be reported twice.
        hooks=(*outer.hooks, *(hook for hook in executor.hooks if hook not in outer.hooks)),
        observe=(*outer.observers, *(observe for observe in executor.observers if observe not in outer.observers)),
        limits=executor.limits,
        retry=executor.retry,
        clock=executor.clock,
        outputs=executor.outputs,
        repairs=executor.repairs,
    )


async def decline_all(questions: Sequence[Question]) -> Answers:
    """Decline all questions: a run inside a call cannot pause until the user answers."""
    return Answers({question.id: Decline("the user cannot be asked from inside this agent") for question in questions})


@frozen
class NamedAsk:
    """Asks with the name of an inner agent in every question; ids, and so answers, stay the same."""

    ask: AskPerson
    name: str

    async def __call__(self, questions: Sequence[Question]) -> Answers:
        origin = f"the sub-agent {self.name}"
        named = [replace(each, origin="\n".join(filter(None, (origin, each.origin)))) for each in questions]
        return await self.ask(named)


def inherit_ask(lineage: Lineage, own: AskPerson | None, name: str) -> AskPerson:
    """Return how an inner agent asks: as the outer one, with its name.

    Never None: an inner run cannot pause, because its call has to end within the turn.
    """
    return NamedAsk(lineage.ask or own or decline_all, name)


class InnerRunner(Protocol):
    """The part of an agent that its tool uses."""

    @property
    def durable(self) -> bool: ...

    async def run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result: ...


@frozen
class SubAgent:
    """Runs an agent for one call; policies judge each call of the inner agent by itself."""

    agent: InnerRunner
    name: str = ""
    """What hooks know the agent by; the name of the tool if empty."""

    def tool(self, name: str, description: str, limits: Limits) -> SchemaTool:
        """Return the tool."""
        # A durable agent continues its own session, so repeating the call repeats no effect. Without a store its
        # effects would be done again: `delegates` says that READ is not the whole truth.
        annotations = Annotations(Effect.READ, idempotent=self.agent.durable, delegates=True)
        return SchemaTool(ToolSpec(name, description, _SCHEMA, annotations=annotations, limits=limits), self._run)

    async def _run(self, arguments: JsonObject, context: ToolContext) -> str:
        lineage = context.state.get(Lineage)
        if lineage.depth >= _MAX_DEPTH:
            raise ToolFailed(f"agents are nested {_MAX_DEPTH} deep, which is the limit; do the work here instead")
        lineage.session_id = context.state.get(OuterSession).session_id or context.session_id
        lineage.outer_session_id = context.session_id
        prompt = str(arguments["prompt"])
        # The key is the same when a call is repeated after a crash, so the inner session is found again. With the
        # prompt: a session of another task must not answer this one.
        task = hash_text(prompt)[:8]
        session_id = f"{name_inner_sessions(lineage.session_id)}{context.idempotency_key}-{task}"
        name = context.call.name
        inner = InnerAgent(self.name or name, context.call_id, context.session_id, name, session_id)
        hooks = () if lineage.executor is None else lineage.executor.hooks
        notes = [await _limit(hook, hook.agent_began(inner)) for hook in hooks]
        prompt = "\n\n".join((prompt, *filter(None, notes)))
        match await self._run_inside(prompt, session_id, lineage, name):
            case Done(text):
                return await _run_end_hooks(hooks, inner, text)
            case Paused(questions):
                raise ToolFailed(f"the agent needs an approval: {questions[0].summary}")
            case Stopped(reason, "halted") if hooks:  # perhaps by one of these, which the outer run has as well
                raise Halted(reason)
            case Stopped(reason, _, text=text):
                raise ToolFailed(
                    f"the agent stopped before it was done: {reason}" + (f"; its last message: {text}" if text else "")
                )

    async def _run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result:
        """Run the agent in its session; if that cannot be stored, the outer run ends too, to be resumed with it."""
        running = lineage.running = set[str]() if lineage.running is None else lineage.running
        if session_id in running:  # it would take the session away from the other one
            raise ToolFailed("this very call is running already; wait for it, or make the second one with another id")
        running.add(session_id)
        try:
            return await self.agent.run_inside(prompt, session_id, lineage, name)
        except (SessionDamaged, StoreTooNew):  # which it would be again
            raise
        except SessionError as error:
            if lineage.fail is not None and self.agent.durable:
                lineage.fail(error)
            raise
        finally:
            running.discard(session_id)


async def _run_end_hooks(hooks: Sequence[Hook], inner: InnerAgent, answer: str) -> str:
    for hook in hooks:
        replacement = await _limit(hook, hook.agent_ended(inner, answer))
        answer = answer if replacement is None else replacement
    return answer


async def _limit(hook: Hook, value: Any) -> Any:
    """Return what a hook gave, awaiting it for no longer than the hook may take."""
    limit = asyncio.timeout(hook.seconds)
    try:
        async with limit:
            return await await_if_needed(value)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ToolFailed(f"the hook {type(hook).__name__} did not end within {hook.seconds:g} s") from None
