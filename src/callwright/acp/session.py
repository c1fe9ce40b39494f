"""One session in the editor: runs its prompts and shows the editor what happens."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from acp.exceptions import RequestError
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    PromptResponse,
    StopReason,
    UnstructuredCommandInput,
    Usage as TurnUsage,
)
from pydantic import BaseModel

from callwright.acp.call_display import CallDisplay
from callwright.acp.commands import EditorCommands, config_options
from callwright.acp.editor import Editor, EditorTerminals, TerminalOpened
from callwright.acp.permissions import DescribeQuestion, Permissions
from callwright.acp.requests import Block, EditorPrompt, read_prompt
from callwright.acp.updates import escape_controls, message_chunk, plan_of, replay_message, thought_chunk
from callwright.agent.replay import SessionReplay
from callwright.agent.results import LIMIT_KINDS, AgentEvent, Done, ModelRetried, Paused, Result, Stopped, TurnEnded
from callwright.app.app import App
from callwright.app.attachments import Attachments
from callwright.app.conversation import Conversation
from callwright.app.live import LiveAgent
from callwright.app.prompts import UserPrompt
from callwright.app.shared_questions import Settled
from callwright.core.calls import Question, Reply, ToolCall
from callwright.core.content import Part
from callwright.core.errors import CallwrightError, describe_exception
from callwright.core.escaping import visible_line
from callwright.core.events import CallBegan, CallEnded, CallProgressed
from callwright.core.messages import AssistantMessage, Usage
from callwright.providers.base import CallDelta, MessageDone, TextDelta, ThinkingDelta
from callwright.tool.base import Cancellation
from callwright.toolbox import Bash

_STOP_REASONS: dict[str, StopReason] = {
    "cancelled": "cancelled",
    "refusal": "refusal",
    "length": "max_tokens",
    **dict.fromkeys(LIMIT_KINDS, "max_turn_requests"),
}
_SETTLE_SECONDS = 5.0
_STEPS_TO_WAKE = 5


class EditorSession:
    """A session: its app, its conversation, and the run that is under way.

    Args:
        session_id: The session's id, in the editor and on record.
        app: The app, not yet entered.
        editor: The editor.
        describe: Describes a question in full.
        source: How the session begins: startup or resume.
        live: The session as the user's other programs see it.
    """

    def __init__(
        self, session_id: str, app: App, editor: Editor, describe: DescribeQuestion, source: str, live: LiveAgent
    ) -> None:
        self.session_id = session_id
        self.app = app
        self.editor = editor
        self.conversation = Conversation(app, session_id, source)
        self._calls = CallDisplay(editor, session_id, app.locations.cwd)
        self._permissions = Permissions(
            app,
            session_id,
            self._ask_editor,
            describe,
            self._announce_question,
            live.questions,
            lambda: editor.shows_forms,
        )
        self._permissions.settled = self._settle
        self._live = live
        self._permissions.notify = self.conversation.notify
        self._attachments = Attachments(app, session_id, self.report)
        self._commands = EditorCommands(self.conversation)
        self._links = EditorPrompt()
        self._notices: list[str] = []
        self._mode = app.switch.mode
        self._cancellation: Cancellation | None = None
        self._next: Cancellation | None = None  # of a prompt that waits for the end of a resumed run
        self._run: asyncio.Task[Result | None] | None = None
        self._resumed = False
        self._question: asyncio.Future[Any] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._leave = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Enter the app: connect its MCP servers.

        Raises:
            CallwrightError: The app cannot be started.
        """
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # a task of its own: what a server's connection opens in one task must be closed in the same
        self._life = asyncio.create_task(self._run_app(entered), name="callwright-acp-session")
        await entered
        self.app.agent.ask = self._permissions.ask
        bash = self.app.registry.snapshot().get("bash")
        if isinstance(bash, Bash):
            bash.terminals = EditorTerminals(self.editor, self.session_id)
        self.conversation.attach = self._attach
        self._notices += self.app.problems

    async def _run_app(self, entered: "asyncio.Future[None]") -> None:
        try:
            async with self.app, self._live:
                self._open_live()
                if not entered.done():
                    entered.set_result(None)
                await self._leave.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    def _open_live(self) -> None:
        """Let the user's other programs follow this session, answer its questions and stop its runs."""
        live = self._live
        live.show_app(self.app)
        live.stop = self._stop
        live.open_session(self.session_id)
        self._notices += [live.problem] if live.problem else []

    def _stop(self) -> bool:
        going_on = self._run is not None
        self.cancel("stopped by the user")
        return going_on

    @property
    def running(self) -> bool:
        """Whether a prompt of the editor is being answered."""
        return self._next is not None or (self._run is not None and not self._resumed)

    def report(self, text: str) -> None:
        """Keep a notice for the user; it is shown with the next update."""
        self._notices.append(text)

    async def show_commands(self) -> None:
        """Send the slash commands, once the editor knows the session."""
        found = [
            AvailableCommand(
                name=name,
                description=escape_controls(description),
                input=AvailableCommandInput(UnstructuredCommandInput(hint=escape_controls(hint))) if hint else None,
            )
            for name, description, hint in self._commands.offered()
        ]
        update = AvailableCommandsUpdate(session_update="available_commands_update", available_commands=found)
        await self._update(update)

    async def replay(self, *, silently: bool = False) -> bool:
        """Send the conversation so far; return whether a question of it waits for an answer.

        Args:
            silently: Send nothing, because the editor still shows the conversation.
        """
        state = SessionReplay(await self.app.agent.sessions.read(self.session_id))
        cwd = self.app.locations.cwd
        messages = [*state.history, *([state.open.message] if state.open is not None else [])]
        for message in messages:
            for update in replay_message(message, self._calls.ids, cwd):
                if not silently:
                    await self._update(update)
        todos = await self.conversation.todos()
        if todos.items and not silently:
            await self._update(plan_of(todos.items))
        return state.open is not None and bool(state.open.questions)

    def resume_question(self) -> None:
        """Continue the run that waits for an answer: the question is shown again."""
        if self._run is not None or self._leave.is_set():  # a prompt takes the place of an answer
            return
        self._cancellation = Cancellation()
        self._resumed = True
        self._run = asyncio.create_task(self._follow(self.conversation.go_on(cancellation=self._cancellation)))
        self._run.add_done_callback(self._end_resumed)

    def _end_resumed(self, run: "asyncio.Task[Result | None]") -> None:
        if not run.cancelled() and (error := run.exception()) is not None:
            self.report(describe_exception(error) if isinstance(error, Exception) else type(error).__name__)
        if self._run is run:
            self._run, self._resumed = None, False

    async def prompt(self, blocks: Sequence[Block]) -> PromptResponse:
        """Answer a prompt of the editor.

        Raises:
            RequestError: The prompt cannot be used, another one is being answered, or the model failed.
        """
        if self.running:
            raise RequestError(-32600, "a prompt of this session is being answered; cancel it first")
        given = read_prompt(blocks, self.app.locations.cwd)
        self._next = cancellation = Cancellation()
        await self._withdraw_question()
        self._next = None
        if cancellation.requested:  # meanwhile
            return PromptResponse(stop_reason="cancelled")
        self._cancellation, self._links = cancellation, given
        self._run = asyncio.create_task(self._answer(given, cancellation), name="callwright-acp-prompt")
        try:
            result = await asyncio.shield(self._run)
        except CallwrightError as error:
            raise RequestError(-32603, str(error)) from error
        finally:
            self._run = None
        return self._respond(result)

    async def _withdraw_question(self) -> None:
        """End a resumed run before a new prompt: the prompt takes the place of an answer."""
        run = self._run
        if run is None or not self._resumed:
            return
        self._stop_run("the user sent another prompt")
        await asyncio.wait((run,))

    async def _answer(self, given: EditorPrompt, cancellation: Cancellation) -> Result | None:
        await self._flush_notices()
        if (name := self._commands.parse(given.text)) is not None:
            text = await self._commands.perform(name, given.text, cancellation)
            if not text.prompt:
                await self._update(message_chunk(text.shown))
                await self._check_mode()
                return None
            given = EditorPrompt(text.prompt)
        prompt = UserPrompt(given.text, attachments=tuple(given.parts))
        return await self._follow(self.conversation.say(prompt, cancellation=cancellation))

    def _respond(self, result: Result | None) -> PromptResponse:
        match result:
            case None:  # a slash command
                cancelled = self._cancellation is not None and self._cancellation.requested
                return PromptResponse(stop_reason="cancelled" if cancelled else "end_turn")
            case Stopped(reason, "provider"):
                raise RequestError(-32603, reason)
            case Stopped(kind=kind, usage=usage):
                return PromptResponse(stop_reason=_STOP_REASONS.get(kind, "end_turn"), usage=_usage(usage))
            case Paused(usage=usage):  # the editor has gone, and does not read this
                return PromptResponse(stop_reason="cancelled", usage=_usage(usage))
            case Done(usage=usage):
                return PromptResponse(stop_reason="end_turn", usage=_usage(usage))

    async def _attach(self, text: str) -> Sequence[Part]:
        given, self._links = self._links, EditorPrompt()
        shown = [*given.embedded, *(link.name for link in given.links)]
        return [*await self._attachments.read(given.links), *await self._attachments(text, shown)]

    async def _follow(self, stream: AsyncGenerator[AgentEvent, None]) -> Result | None:
        result: Result | None = None
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, (Done, Paused, Stopped)):
                        result = event
                        continue
                    self._idle.clear()
                    await self._show(event)
                    self._idle.set()
        finally:
            self._idle.set()
            await self._calls.end_all()
        if isinstance(result, Stopped) and result.kind not in ("cancelled", "provider"):
            await self._update(thought_chunk(f"stopped: {result.reason}\n"))
        await self._flush_notices()
        return result

    async def _show(self, event: AgentEvent) -> None:
        if isinstance(event, (TextDelta, ThinkingDelta, CallDelta)):
            self._live.on_model_event(event)
        match event:
            case TextDelta(text):
                await self._update(message_chunk(text))
            case ThinkingDelta(text):
                await self._update(thought_chunk(text))
            case CallDelta(call_id, name) if call_id and name:
                await self._calls.announce(ToolCall(call_id, name))
            case CallBegan(call):
                await self._calls.begin(call)
            case CallProgressed(call, str() as piece):
                await self._calls.progress(call, piece)
            case CallProgressed(call, TerminalOpened(terminal_id)):
                await self._calls.show_terminal(call, terminal_id)
            case CallEnded(outcome):
                await self._calls.end(outcome)
                await self._check_mode()
            case TurnEnded():
                self._live.on_model_event(MessageDone(AssistantMessage(())))
            case ModelRetried(error, attempt, seconds):
                await self._calls.end_all()
                await self._update(thought_chunk(f"{error}; attempt {attempt + 1} in {seconds:.0f} s\n"))
            case _:
                pass

    async def _check_mode(self) -> None:
        """Tell the editor if the plan tools have changed the mode."""
        mode = self.app.switch.mode
        if mode != self._mode:
            await self._update(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
            await self.show_mode()

    async def show_mode(self) -> None:
        """Remember the mode that the editor knows now, and send the options that show it."""
        self._mode = self.app.switch.mode
        self._live.tell_mode()
        options = config_options(self.app)
        await self._update(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    async def _announce_question(self, question: Question) -> str:
        # what the model said before the question comes first
        for _ in range(_STEPS_TO_WAKE):
            await asyncio.sleep(0)
        while not self._idle.is_set():
            await self._idle.wait()
        return await self._calls.announce(ToolCall(question.call_id, question.tool, question.arguments))

    def _settle(self, question: Question, reply: Reply, first: Settled | None) -> None:
        self._calls.settle(question, reply)
        if first is not None:
            self.report(f"{visible_line(question.summary)} {first.describe()}")

    async def _ask_editor(self, method: str, params: dict[str, Any]) -> Any:
        self._question = asyncio.ensure_future(self.editor.ask(method, params))
        try:
            return await self._question
        finally:
            self._question = None

    def cancel(self, reason: str) -> None:
        """Stop the run, also while it waits for an answer; the outcomes of its calls are kept."""
        if self._next is not None:
            self._next.cancel(reason)
        self._stop_run(reason)

    def _stop_run(self, reason: str) -> None:
        if self._cancellation is not None:
            self._cancellation.cancel(reason)
        if self._question is not None:
            self._question.cancel()

    async def close(self, reason: str = "other") -> None:
        """End the run and the app; a question that waits stays open for the next time.

        Args:
            reason: Why, as SessionEnd hooks receive it.
        """
        run = self._run
        if self._next is not None:
            self._next.cancel("the editor has closed the session")
        if run is not None and self._permissions.waiting:
            self._permissions.leaving = True
            if self._question is not None:
                self._question.cancel()
            await asyncio.wait((run,), timeout=_SETTLE_SECONDS)
        if run is not None and not run.done():
            self.cancel("the editor has closed the session")
            await asyncio.wait((run,))
        if self._life is not None and not self._life.done():
            await self.conversation.end(reason)
            self._leave.set()
            await asyncio.wait((self._life,))

    async def _flush_notices(self) -> None:
        while self._notices:
            await self._update(thought_chunk(f"{self._notices.pop(0)}\n"))

    async def _update(self, update: BaseModel) -> None:
        await self.editor.update(self.session_id, update)


def _usage(usage: Usage) -> TurnUsage | None:
    if not usage.total:
        return None
    return TurnUsage(
        total_tokens=usage.total,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_read_tokens=usage.cache_read_tokens,
        cached_write_tokens=usage.cache_write_tokens,
    )
