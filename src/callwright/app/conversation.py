"""One session of an app: fires the hooks around prompts, answers and compaction, and streams the runs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from callwright.agent.results import AgentEvent, Done, Paused, Result, Stopped
from callwright.app.app import App
from callwright.app.hook_approvals import HookedAsk, QuestionHooks
from callwright.app.prompts import UserPrompt, instruction_files
from callwright.app.settings import SettingsWatch
from callwright.core.calls import Answers, Completed, Interrupted
from callwright.core.content import Part
from callwright.core.errors import UsageError
from callwright.core.events import CallEnded
from callwright.core.messages import ToolMessage, UserMessage
from callwright.executor.asking import race
from callwright.executor.driver import is_cancelling
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.reply import HookReply
from callwright.policy.tool_names import canonical
from callwright.sessions.base import SessionError
from callwright.sessions.records import Said
from callwright.tool.base import Cancellation
from callwright.toolbox.todo import TodoList, restore_todos


@dataclass(frozen=True, slots=True)
class CompactionHooks:
    """Fires the PreCompact, PostCompact and SessionStart hooks when one session is compacted."""

    hooks: ShellHooks
    session_id: str
    trigger: str = "auto"
    """`auto` if the session grew too long, `manual` if the user asked for it."""
    focus: str = ""
    """What the summary should keep, in the user's words."""
    tell: Callable[[str], None] | None = None
    """Tells the user that a session is compacted without being asked for it."""

    async def before(self) -> bool:
        """Fire PreCompact; return whether the session may be compacted."""
        fields = {"trigger": self.trigger, "custom_instructions": self.focus}
        reply = await self.hooks.fire("PreCompact", fields, session_id=self.session_id)
        allowed = reply.decision != "deny" and not reply.halt
        if allowed and self.tell is not None:
            self.tell("the conversation is long: the model summarises its start")
        return allowed

    async def after(self, summary: str) -> None:
        """Fire PostCompact and SessionStart; the model gets the notes of SessionStart hooks with the next prompt."""
        fields = {"trigger": self.trigger, "compact_summary": summary}
        await self.hooks.fire("PostCompact", fields, session_id=self.session_id)
        reply = await self.hooks.fire("SessionStart", {"source": "compact"}, session_id=self.session_id)
        self.hooks.keep_context(self.session_id, reply.context)
        if self.tell is not None:
            self.tell("the model goes on with the summary")


_MOST_STOP_DENIALS = 8
"""How often in a row a Stop hook may make the model continue; without a limit the two could loop forever."""
_FAILURES = {"provider": "unknown", "length": "max_output_tokens"}
"""The kinds of `Stopped` that are failures of the model API, by the names StopFailure hooks receive."""
Attach = Callable[[str], Awaitable[Sequence[Part]]]


@dataclass(slots=True)
class Conversation:
    """Runs prompts in one session of an app, with the hooks of its settings.

    Args:
        app: The app, already entered.
        session_id: The session to begin or continue.
        source: How the session began: startup, resume or clear.
        attach: Returns content to send along with a typed text.
        tell: Tells the user what happens to the session besides its runs.
    """

    app: App
    session_id: str
    source: str = "startup"
    attach: Attach | None = None
    """Returns what is sent along with a typed text; called after no hook denied the prompt."""
    tell: Callable[[str], None] | None = None
    _begun: bool = False
    _restored: bool = False
    _hooks_asked: set[str] = field(default_factory=set[str])
    """Ids of calls that have not ended, and that the PermissionRequest hooks have already been asked about."""
    _watch: SettingsWatch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = SettingsWatch(self.app.locations)

    async def say(
        self,
        prompt: str | UserPrompt,
        *,
        answers: Answers | None = None,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Submit a prompt and yield the events of the run; the result is the last event.

        Args:
            prompt: What the user typed, or a `UserPrompt` with piped text.
            answers: Answers to the questions of a paused session; the prompt follows the outcomes of its calls.
            output: A type that the answer must have.
            cancellation: Stops the run when it is requested.
        """
        accepted = await self._prepare_unless_cancelled(UserPrompt.of(prompt), cancellation)
        if isinstance(accepted, Stopped):
            yield accepted
            return
        stream = self.app.agent.stream(
            accepted, session=self.session_id, answers=answers, output=output, cancellation=cancellation
        )
        async with aclosing(self._follow(stream, output, cancellation)) as events:
            async for event in events:
                yield event

    async def _prepare_unless_cancelled(
        self, prompt: UserPrompt, cancellation: Cancellation | None
    ) -> UserPrompt | Stopped:
        """Prepare a prompt; a cancellation ends hooks and attachments too, and nothing is sent."""
        try:
            return await race(cancellation, self._prepare(prompt))
        except asyncio.CancelledError:
            if cancellation is None or not cancellation.requested or is_cancelling():
                raise  # the caller itself was cancelled
            return Stopped(cancellation.reason or "cancelled", "cancelled", session_id=self.session_id)

    async def _prepare(self, prompt: UserPrompt) -> UserPrompt | Stopped:
        """Run the hooks of a prompt and add its attachments; return why a hook stopped it instead."""
        accepted = await self._submit(prompt)
        if isinstance(accepted, Stopped):
            return accepted
        self._install_hooks()
        await self.todos()
        if self.attach is None or accepted.verbatim:
            return accepted
        return replace(accepted, attachments=(*accepted.attachments, *await self.attach(accepted.text)))

    async def go_on(
        self, answers: Answers | None = None, *, output: object = None, cancellation: Cancellation | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Resume the session without a new prompt, with answers to its pending questions."""
        self._install_hooks()
        await self.todos()
        stream = self.app.agent.stream(
            session=self.session_id, answers=answers, output=output, cancellation=cancellation
        )
        async with aclosing(self._follow(stream, output, cancellation)) as events:
            async for event in events:
                yield event

    async def compact(self, focus: str = "", *, cancellation: Cancellation | None = None) -> tuple[int, int]:
        """Replace the session by a summary; return its tokens before and after.

        Raises:
            UsageError: A PreCompact hook denied it.
        """
        hooks = CompactionHooks(self.app.hooks, self.session_id, "manual", focus)
        if not await hooks.before():
            raise UsageError("a PreCompact hook denied the compaction")
        tokens = await self.app.agent.compact(self.session_id, focus, cancellation=cancellation)
        # after compaction the summary is the first message of the session
        (summary, *_) = await self.app.agent.messages(self.session_id)
        await hooks.after(str(summary.content) if isinstance(summary, UserMessage) else "")
        return tokens

    async def notify(self, message: str) -> None:
        """Fire the Notification hooks: the run waits for the user."""
        await self._fire("Notification", {"message": message, "notification_type": "permission_prompt"})

    async def end(self, reason: str = "other") -> None:
        """Fire the SessionEnd hooks."""
        await self._fire("SessionEnd", {"reason": reason})

    async def todos(self) -> TodoList:
        """Return the model's list of steps; that of a resumed session is read from its record, compacted or not."""
        state = self.app.agent.state(self.session_id)
        if self.source == "resume" and not self._restored:
            self._restored = True
            try:
                records = await self.app.agent.sessions.read(self.session_id)
            except SessionError:  # a damaged record is reported by the run itself
                records = ()
            messages = (record.message for record in records if isinstance(record, Said))
            outcomes = (each for said in messages if isinstance(said, ToolMessage) for each in said.outcomes)
            done = (each for each in outcomes if isinstance(each, Completed) and canonical(each.call.name) == "todo")
            restore_todos(state, (each.output.structured for each in done))
        return state.get(TodoList)

    def _install_hooks(self) -> None:
        """Make the agent ask hooks before it asks the user, and before it compacts the session."""
        hooks, agent = self.app.hooks, self.app.agent
        heard = self.tell is not None or hooks.has_hooks_for("PreCompact", "PostCompact", "SessionStart")
        if agent.compaction is not None and heard:
            listener = CompactionHooks(hooks, self.session_id, tell=self.tell)
            agent.compaction = replace(agent.compaction, listener=listener)
        if agent.ask is not None and hooks.has_hooks_for("PermissionRequest", "Elicitation"):
            # unwrap first: a second prompt must not put the hooks in front twice
            ask_user = agent.ask.ask_user if isinstance(agent.ask, HookedAsk) else agent.ask
            agent.ask = HookedAsk(ask_user, self._question_hooks())

    def _question_hooks(self) -> QuestionHooks:
        return QuestionHooks(self.app.hooks, self.app.executor, self.session_id)

    async def _submit(self, prompt: UserPrompt) -> UserPrompt | Stopped:
        """Run the UserPromptSubmit hooks; return the prompt with their notes, or why a hook stopped it."""
        halt = "" if self._begun else await self._begin()
        for source, file in self._watch.changes():
            reply = await self._fire("ConfigChange", {"source": source, "file_path": file})
            self.app.hooks.keep_context(self.session_id, reply.context)
            halt = reply.halt or halt
        if halt:
            return Stopped(halt, "halted", session_id=self.session_id)
        reply = await self._fire("UserPromptSubmit", {"prompt": prompt.submitted})
        if reply.halt or reply.decision == "deny":
            reason = reply.halt or reply.reason or "a hook denied the prompt"
            return Stopped(reason, "halted", session_id=self.session_id)
        hooks = self.app.hooks
        notes = (hooks.take_context(self.session_id), hooks.take_objections(self.session_id), reply.context)
        return replace(prompt, hook_notes=(*prompt.hook_notes, *filter(None, notes)))

    async def _begin(self) -> str:
        """Fire the events of a session that begins; return why a hook ends the run, else an empty text."""
        hooks, replies = self.app.hooks, list[HookReply]()
        if hooks.has_hooks_for("InstructionsLoaded"):
            for file, kind, reason in instruction_files(self.app.locations, self.app.hidden):
                fields = {"file_path": str(file), "memory_type": kind, "load_reason": reason}
                replies.append(await self._fire("InstructionsLoaded", fields))
        fields = {"source": self.source, "model": self.app.agent.provider.model}
        replies.append(await self._fire("SessionStart", fields))
        halt = next((reply.halt for reply in reversed(replies) if reply.halt), "")
        self._begun = not halt  # not before: after a cancelled or halted prompt, the next one begins the session
        for reply in replies if self._begun else ():  # else the next prompt gets the same notes again
            hooks.keep_context(self.session_id, reply.context)
        return halt

    async def _follow(
        self, stream: AsyncGenerator[AgentEvent, None], output: object, cancellation: Cancellation | None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Yield the events of a run and of the runs that hooks add to it; the result comes last."""
        denials = 0
        while True:
            result: Result | None = None
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, (Done, Paused, Stopped)):
                        result = event
                        continue
                    if isinstance(event, CallEnded) and not isinstance(event.outcome, Interrupted):
                        self._hooks_asked.discard(event.outcome.call.id)  # some models count from one in every message
                    yield event
            if result is None:
                return
            # a hook may turn the end of a run into another run: by answering its questions or by denying the stop
            why, answers = "", None
            if isinstance(result, Paused):
                answers = await self._ask_hooks(result)
            elif isinstance(result, Done) and denials < _MOST_STOP_DENIALS:
                why = self.app.hooks.take_objections(self.session_id)
                why = why or await self._stop_denial(result, again=denials > 0)
                denials += 1
            if not why and answers is None:
                await self._fire_end_events(result)
                yield result
                return
            # a note, not a typed text: a reason that begins with /name must not call that skill
            note = UserPrompt("", hook_notes=(why,), verbatim=True) if why else None
            stream = self.app.agent.stream(
                note, session=self.session_id, answers=answers, output=output, cancellation=cancellation
            )

    async def _ask_hooks(self, result: Paused) -> Answers | None:
        """Return the answers hooks give in place of the user; None if they leave every question open."""
        # each question goes to the hooks once: one they left open would come back for ever
        new = [question for question in result.questions if question.call_id not in self._hooks_asked]
        self._hooks_asked.update(question.call_id for question in new)
        answers = await self._question_hooks().answers(new)
        return answers if len(answers) else None

    async def _stop_denial(self, result: Done, *, again: bool) -> str:
        """Fire the Stop hooks; return what the model is told if one makes it continue, else an empty text."""
        fields = {"stop_hook_active": again, "last_assistant_message": result.text}
        reply = await self._fire("Stop", fields)
        if reply.decision != "deny" or reply.halt:
            return ""
        return reply.reason or "a Stop hook asks you to continue"

    async def _fire_end_events(self, result: Result) -> None:
        if isinstance(result, Paused):
            await self.notify(result.questions[0].summary if result.questions else "paused")
        elif isinstance(result, Stopped) and result.kind in _FAILURES:
            fields = {"error": _FAILURES[result.kind], "error_details": result.reason}
            await self._fire("StopFailure", fields | {"last_assistant_message": result.text})

    async def _fire(self, event: str, fields: Mapping[str, object]) -> HookReply:
        return await self.app.hooks.fire(event, fields, session_id=self.session_id)
