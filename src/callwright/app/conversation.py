"""One session as a person leads it: hooks around what is said, and an answer that may be sent back.

Lets hooks know that a conversation is made shorter, and lets them keep it as it is.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from callwright.agent.results import AgentEvent, Done, Paused, Result, Stopped
from callwright.app.app import App
from callwright.app.hook_approvals import HookedAsk, QuestionHooks
from callwright.app.prompts import instruction_files
from callwright.app.settings import SettingsWatch
from callwright.core.calls import Answers
from callwright.core.content import Part, Text
from callwright.core.errors import UsageError
from callwright.core.messages import UserMessage
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.reply import HookReply
from callwright.tool.base import Cancellation


@dataclass(frozen=True, slots=True)
class CompactionHooks:
    """Speaks for the PreCompact and PostCompact hooks in one session."""

    hooks: ShellHooks
    session_id: str
    trigger: str = "auto"
    """Whether it grew too long or a person asked for it: `manual`."""
    wish: str = ""
    """What the person wants kept above all."""

    async def before(self) -> bool:
        """Whether the history may be made shorter now."""
        fields = {"trigger": self.trigger, "custom_instructions": self.wish}
        reply = await self.hooks.fire("PreCompact", fields, session_id=self.session_id)
        return reply.word != "deny" and not reply.halt

    async def after(self, summary: str) -> None:
        """Tell that it was done; what SessionStart hooks add to a fresh context is told to the model next."""
        fields = {"trigger": self.trigger, "compact_summary": summary}
        await self.hooks.fire("PostCompact", fields, session_id=self.session_id)
        began = await self.hooks.fire("SessionStart", {"source": "compact"}, session_id=self.session_id)
        self.hooks.tell_later(self.session_id, began.context)


_MOST_RETURNS = 8
"""How often in a row a Stop hook may send the model back to work."""
_FAILURES = {"provider": "unknown", "length": "max_output_tokens"}
"""The ends of a run that are a failure of the model's API, by the names StopFailure hooks know them by."""
Attach = Callable[[str], Awaitable[Sequence[Part]]]


@dataclass(slots=True)
class Conversation:
    """Talks to the agent of an app in one session."""

    app: App
    session_id: str
    source: str = "startup"
    """How it began: startup, resume or clear."""
    attach: Attach | None = None
    """What goes along with a prompt; asked once no hook has refused it."""
    _begun: bool = False
    _heard: set[str] = field(default_factory=set[str])
    """Calls the PermissionRequest hooks were asked about already."""
    _watch: SettingsWatch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = SettingsWatch(self.app.places)

    async def say(
        self, prompt: str, *, output: object = None, cancellation: Cancellation | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Say something and pass on what comes of it; the result is the last event."""
        heard = await self._submitted(prompt)
        if isinstance(heard, Stopped):
            yield heard
            return
        self._listen()
        attached = () if self.attach is None else await self.attach(prompt)
        said = (Text(heard), *attached) if attached else heard
        stream = self.app.agent.stream(said, session=self.session_id, output=output, cancellation=cancellation)
        async with aclosing(self._through(stream, output, cancellation)) as events:
            async for event in events:
                yield event

    async def go_on(
        self, answers: Answers | None = None, *, output: object = None, cancellation: Cancellation | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Take the session up where it stands, with answers to what it asked."""
        self._listen()
        stream = self.app.agent.stream(
            session=self.session_id, answers=answers, output=output, cancellation=cancellation
        )
        async with aclosing(self._through(stream, output, cancellation)) as events:
            async for event in events:
                yield event

    async def compact(self, focus: str = "", *, cancellation: Cancellation | None = None) -> tuple[int, int]:
        """Have the session summarised, unless a hook keeps it as it is; returns its tokens before and after."""
        hooks = CompactionHooks(self.app.hooks, self.session_id, "manual", focus)
        if not await hooks.before():
            raise UsageError("a PreCompact hook keeps the session as it is")
        tokens = await self.app.agent.compact(self.session_id, focus, cancellation=cancellation)
        (summary, *_) = await self.app.agent.messages(self.session_id)
        await hooks.after(str(summary.content) if isinstance(summary, UserMessage) else "")
        return tokens

    async def notify(self, message: str) -> None:
        """Let the Notification hooks know that a person is being waited for."""
        await self._fire("Notification", {"message": message, "notification_type": "permission_prompt"})

    async def end(self, reason: str = "other") -> None:
        """Let the SessionEnd hooks know."""
        await self._fire("SessionEnd", {"reason": reason})

    def _listen(self) -> None:
        """Put the hooks between the agent and the person who answers its questions, and before compaction."""
        hooks, agent = self.app.hooks, self.app.agent
        if agent.compaction is not None and hooks.listens("PreCompact", "PostCompact", "SessionStart"):
            agent.compaction = replace(agent.compaction, listener=CompactionHooks(hooks, self.session_id))
        if agent.ask is not None and hooks.listens("PermissionRequest", "Elicitation"):
            person = agent.ask.person if isinstance(agent.ask, HookedAsk) else agent.ask
            agent.ask = HookedAsk(person, self._questions())

    def _questions(self) -> QuestionHooks:
        return QuestionHooks(self.app.hooks, self.app.executor, self.session_id)

    async def _submitted(self, prompt: str) -> str | Stopped:
        context = [] if self._begun else [await self._begin()]
        for source, file in self._watch.changed():
            await self._fire("ConfigChange", {"source": source, "file_path": file})
        reply = await self._fire("UserPromptSubmit", {"prompt": prompt})
        if reply.halt or reply.word == "deny":
            return Stopped(
                reply.halt or reply.reason or "a hook refused the prompt", "halted", session_id=self.session_id
            )
        context += [self.app.hooks.late_context(self.session_id), reply.context]
        return "\n\n".join([prompt, *(f"[hook] {text}" for text in context if text)])

    async def _begin(self) -> str:
        self._begun = True
        if self.app.hooks.listens("InstructionsLoaded"):
            for file, kind, reason in instruction_files(self.app.places):
                fields = {"file_path": str(file), "memory_type": kind, "load_reason": reason}
                await self._fire("InstructionsLoaded", fields)
        fields = {"source": self.source, "model": self.app.agent.provider.model}
        return (await self._fire("SessionStart", fields)).context

    async def _through(
        self, stream: AsyncGenerator[AgentEvent, None], output: object, cancellation: Cancellation | None
    ) -> AsyncGenerator[AgentEvent, None]:
        returned = 0
        while True:
            result: Result | None = None
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, (Done, Paused, Stopped)):
                        result = event
                    else:
                        yield event
            if result is None:
                return
            why, answers = "", None
            if isinstance(result, Paused):
                answers = await self._answered(result)
            elif isinstance(result, Done) and returned < _MOST_RETURNS:
                why = await self._sent_back(result, again=returned > 0)
                returned += 1
            if not why and answers is None:
                await self._ended(result)
                yield result
                return
            stream = self.app.agent.stream(
                why or None, session=self.session_id, answers=answers, output=output, cancellation=cancellation
            )

    async def _answered(self, result: Paused) -> Answers | None:
        """What hooks answer where there is no person on the spot; None: the run waits for one."""
        new = [question for question in result.questions if question.call_id not in self._heard]
        self._heard.update(question.call_id for question in new)
        answers = await self._questions().answers(new)
        return answers if len(answers) else None

    async def _sent_back(self, result: Done, *, again: bool) -> str:
        fields = {"stop_hook_active": again, "last_assistant_message": result.text}
        reply = await self._fire("Stop", fields)
        if reply.word != "deny" or reply.halt:
            return ""
        return reply.reason or "a hook wants you to go on"

    async def _ended(self, result: Result) -> None:
        if isinstance(result, Paused):
            await self.notify(result.questions[0].summary if result.questions else "paused")
        elif isinstance(result, Stopped) and result.kind in _FAILURES:
            fields = {"error": _FAILURES[result.kind], "error_details": result.reason}
            await self._fire("StopFailure", fields | {"last_assistant_message": result.text})

    async def _fire(self, event: str, fields: Mapping[str, object]) -> HookReply:
        return await self.app.hooks.fire(event, fields, session_id=self.session_id)
