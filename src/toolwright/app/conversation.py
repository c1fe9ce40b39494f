"""One session as a person leads it: hooks around what is said, and an answer that may be sent back."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from toolwright.agent.result import AgentEvent, Done, Result, Stopped
from toolwright.app.assemble import App
from toolwright.core.call import Answers
from toolwright.core.content import Part, Text
from toolwright.hooks.shell_reply import HookReply
from toolwright.tool.base import Cancellation

_MOST_RETURNS = 8
"""How often in a row a Stop hook may send the model back to work."""
Attach = Callable[[str], Awaitable[Sequence[Part]]]


@dataclass(slots=True)
class Conversation:
    """Talks to the agent of an app in one session."""

    app: App
    session_id: str
    source: str = "startup"
    """How it began: startup or resume."""
    attach: Attach | None = None
    """What goes along with a prompt; asked once no hook has refused it."""
    _begun: bool = False

    async def say(
        self, prompt: str, *, output: object = None, cancellation: Cancellation | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Say something and pass on what comes of it; the result is the last event."""
        heard = await self._submitted(prompt)
        if isinstance(heard, Stopped):
            yield heard
            return
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
        stream = self.app.agent.stream(
            session=self.session_id, answers=answers, output=output, cancellation=cancellation
        )
        async with aclosing(self._through(stream, output, cancellation)) as events:
            async for event in events:
                yield event

    async def notify(self, message: str) -> None:
        """Let the Notification hooks know that a person is being waited for."""
        await self._fire("Notification", {"message": message, "notification_type": "permission_prompt"})

    async def end(self, reason: str = "other") -> None:
        """Let the SessionEnd hooks know."""
        await self._fire("SessionEnd", {"reason": reason})

    async def _submitted(self, prompt: str) -> str | Stopped:
        context: list[str] = []
        if not self._begun:
            self._begun = True
            began = await self._fire("SessionStart", {"source": self.source})
            context.append(began.context)
        reply = await self._fire("UserPromptSubmit", {"prompt": prompt})
        if reply.halt or reply.word == "deny":
            return Stopped(
                reply.halt or reply.reason or "a hook refused the prompt", "halted", session_id=self.session_id
            )
        context.append(reply.context)
        return "\n\n".join([prompt, *(f"[hook] {text}" for text in context if text)])

    async def _through(
        self, stream: AsyncGenerator[AgentEvent, None], output: object, cancellation: Cancellation | None
    ) -> AsyncGenerator[AgentEvent, None]:
        for returned in range(_MOST_RETURNS + 1):
            result: Result | None = None
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, Done):
                        result = event
                        continue
                    yield event
            if not isinstance(result, Done):
                return
            why = "" if returned == _MOST_RETURNS else await self._sent_back(result, again=returned > 0)
            if not why:
                yield result
                return
            stream = self.app.agent.stream(why, session=self.session_id, output=output, cancellation=cancellation)

    async def _sent_back(self, result: Done, *, again: bool) -> str:
        fields = {"stop_hook_active": again, "last_assistant_message": result.text}
        reply = await self._fire("Stop", fields)
        return reply.reason if reply.word == "deny" else ""

    async def _fire(self, event: str, fields: Mapping[str, object]) -> HookReply:
        return await self.app.hooks.fire(event, fields, session_id=self.session_id)
