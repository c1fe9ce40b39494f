"""A conversation in the terminal: sends what the user types to the agent and shows what the agent does."""

import argparse
import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

from callwright.agent.results import AgentEvent, Done, ModelRetried, Stopped, TurnEnded
from callwright.agent.subagent import InnerCalls
from callwright.app.app import App
from callwright.app.attachments import Attachments
from callwright.app.conversation import Conversation
from callwright.app.costs import prices_in
from callwright.app.live import LiveAgent
from callwright.app.locations import Locations
from callwright.app.questions import find_last_questions
from callwright.app.run_context import SandboxOptions
from callwright.cli.main import ERROR, USAGE
from callwright.cli.render.calls import CallLines, one_line
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import visible, visible_line, wrap_line
from callwright.cli.startup import enter_app, resolve_session, start
from callwright.cli.terminal.approvals import Approvals, ask_trust
from callwright.cli.terminal.chat_actions import (
    SHELL_CALL,
    HistorySearch,
    LatestOutputs,
    ShellLines,
    cut_prompt,
    notification,
    paste,
    session_entries,
    show_earlier,
    unfinished_calls,
)
from callwright.cli.terminal.external_programs import ClipboardImages
from callwright.cli.terminal.input import PromptHistory
from callwright.cli.terminal.slash_commands import SlashCommands
from callwright.cli.terminal.status import RunningCalls, SessionUsage, TodoRows, WaitingRow, show_loading
from callwright.cli.terminal.ui import Terminal
from callwright.cli.terminal.vi_keys import ViKeys
from callwright.cli.terminal.views import Picker
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import Output, Part
from callwright.core.errors import CallwrightError, Cancelled, UsageError
from callwright.core.events import CallBegan, CallEnded, CallProgressed, CallRetried, Event
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.streaming import TappedProvider
from callwright.tool.base import Cancellation
from callwright.toolbox.todo import read_todos

_MODES = ("default", "auto", "plan")


async def run_chat(options: argparse.Namespace, terminal: Terminal) -> int:
    """Run a conversation to its end and return the exit code."""
    try:
        return await TerminalChat(options, terminal).run()
    except CallwrightError as error:
        terminal.show(*(terminal.palette.paint(line, "red") for line in visible(f"callwright: {error}").splitlines()))
        return USAGE if isinstance(error, UsageError) else ERROR


@dataclass(slots=True)
class _Run:
    complete: bool = False
    """Whether it came to its own end, without being interrupted."""


class TerminalChat:
    """Connects a terminal with the conversation of an app.

    Args:
        options: The parsed options of the command line.
        terminal: The terminal to show on and to read prompts from.
    """

    def __init__(self, options: argparse.Namespace, terminal: Terminal) -> None:
        self.options = options
        self.terminal = terminal
        self.locations = Locations.of()
        self.usage = SessionUsage()
        self.app: App
        self.conversation: Conversation
        self.slash: SlashCommands
        self._paint = terminal.palette.paint
        self._lines = CallLines(terminal.palette)
        self._running = RunningCalls(terminal.palette)
        self._waiting = WaitingRow(terminal.palette)
        self._todos = TodoRows(terminal.palette)
        self._inner_calls = InnerCalls()
        self._shell = ShellLines(self)
        self._outputs = LatestOutputs(terminal)
        self.live = LiveAgent(self.locations.live, "terminal")
        self._approvals = Approvals(terminal, lambda: self.conversation, self.live.questions)
        self.review_questions = self._approvals.review
        self._cancellation: Cancellation | None = None
        self._has_messages = False
        self._history = PromptHistory(self.locations.record / "history.jsonl", not options.no_session_persistence)

    async def run(self) -> int:
        """Start the app, then handle what is typed until the user leaves."""
        terminal = self.terminal
        terminal.style = MarkdownLines(terminal.palette)
        terminal.running = self._live_rows
        terminal.on_interrupt, terminal.on_mode = self._interrupt, self._switch_mode
        terminal.on_key |= {
            "expand": self._outputs.expand,
            "search-history": HistorySearch(terminal).start,
            "paste-image": ClipboardImages(terminal, self._show_notice).start,
        }
        terminal.on_paste = partial(paste, terminal.editor, self.locations.cwd)
        self._approvals.interrupted = lambda: self._cancellation is not None and self._cancellation.requested
        if not self.options.trust and not await ask_trust(terminal, self.locations, self._show_notice):
            return 0
        tap = partial(TappedProvider, tell=self._show_model_event)
        app = await asyncio.to_thread(
            start, self.options, report=self._show_notice, wrap=tap, observe=self._show_call_event
        )
        async with enter_app(app, terminal.over, partial(show_loading, terminal)) as ready, self.live:
            if not ready:
                return 0
            await self._open(app)
            while not terminal.over.is_set() and (text := await terminal.prompt()) is not None:
                await self._handle_line(text)
            self._keep_unsent()
            await self.conversation.end("prompt_input_exit")
            await self.slash.aclose()
        if self._has_messages and not self.options.no_session_persistence:
            terminal.show(f"session {self.conversation.session_id}; to continue: callwright --continue")
        return 0

    async def _open(self, app: App) -> None:
        self.app = app
        app.agent.ask = self._approvals.ask
        self._open_live(app)
        self.slash = SlashCommands(self)
        self.terminal.editor.complete = self.slash.complete
        self.slash.start_hint()
        self.terminal.editor.prepend_history(self._history.read())
        for problem in app.problems:
            self._show_notice(problem)
        self._apply_settings()
        if self.options.resume == "":
            self.options.resume = await self.pick_session() or None
        await self.open_session(*await resolve_session(self.options, app))
        if self.options.prompt:
            self.terminal.submit(self.options.prompt, first=True)  # the user may have typed more meanwhile
        self.show_status()

    def _open_live(self, app: App) -> None:
        """Let the user's other programs follow this conversation, answer its questions and stop its runs."""
        live = self.live
        live.show_app(app)
        live.say, live.stop = self.terminal.submit, self._stop
        if live.problem:
            self._show_notice(live.problem)

    def _apply_settings(self) -> None:
        """Apply the setting `terminal`: theme, vi keys and how a waiting question is announced."""
        terminal, settings = self.terminal, self.app.settings
        theme = settings.last("terminal", "theme")
        if theme is not None and (theme == "none" or terminal.palette.on):  # NO_COLOR and pipes stay without colours
            terminal.palette.use_theme(theme)
        terminal.vi = ViKeys(terminal.editor) if settings.last("terminal", "viKeys") else None
        kind = settings.last("terminal", "notifications") or "auto"
        self._approvals.alert = lambda message: terminal.screen.write_code(notification(message, kind))

    async def open_session(self, session_id: str, source: str) -> None:
        """Continue in this session from now on; earlier messages of a resumed one are shown.

        Args:
            session_id: The session's id.
            source: `startup`, `resume` or `clear`, as hooks receive it.
        """
        self.conversation = Conversation(self.app, session_id, source, tell=self._show_notice)
        self.live.open_session(session_id)
        self.conversation.attach = partial(self._attach, Attachments(self.app, session_id, self._show_notice))
        self.usage = SessionUsage()
        self._todos = TodoRows(self.terminal.palette)
        self._has_messages = source == "resume"
        if self._has_messages:
            records = await self.app.agent.sessions.read(session_id)
            self.usage.load(records, partial(prices_in, self.app.settings))
            show_earlier(self.terminal, await self.app.agent.messages(session_id))
            for notice in unfinished_calls(records):
                self._show_notice(notice)
            self._todos.update((await self.conversation.todos()).items)
            self.terminal.show(*self._todos.rows(self.terminal.screen.width))
            self._todos.changed = False
            if await find_last_questions(self.app.agent.sessions, session_id):
                await self._follow(self.conversation.go_on(cancellation=self._new_cancellation()))

    async def _attach(self, attachments: Attachments, prompt: str) -> Sequence[Part]:
        return [*self._shell.take_notes(), *await attachments(prompt)]

    async def _handle_line(self, text: str) -> None:
        self._history.add(text)
        self._echo(text)
        if text.startswith("!"):
            await self._run_typed_shell(text[1:].strip())
            return
        prompt = await self.slash.perform(text) if text.startswith("/") else text
        if prompt is None:
            self.show_status()
        else:
            await self.send(prompt)

    async def _run_typed_shell(self, line: str) -> None:
        """Run a `!` line and show its output whole; the model gets both with the next prompt."""
        try:
            outcome = await self.run_shell(line)
        except CallwrightError as error:
            self._show_notice(str(error))
            return
        self.terminal.show(*(f"  {line}" for line in visible(outcome.text).replace("\t", "    ").splitlines()))

    async def run_shell(self, line: str, *, told: bool = True) -> Outcome:
        """Run a command with the bash tool, behind the same rules and questions as a call of the model."""
        with self._show_run() as run:
            outcome = await self._shell.run(line, self._new_cancellation(), told=told)
            run.complete = not (isinstance(outcome, Failed) and isinstance(outcome.error, Cancelled))
            return outcome

    async def pick_session(self) -> str:
        """Let the user pick a session of this project; empty if none was picked."""
        app, project = self.app, self.locations.project.name
        entries = await session_entries(app.agent.sessions, app.settings, project, self._show_notice)
        if not entries:
            self._show_notice("no sessions in this project yet")
            return ""
        return await self.terminal.ask("resume", view=Picker("sessions", entries, self.terminal.palette)) or ""

    def _keep_unsent(self) -> None:
        """Name the prompts that waited when the user left, and keep them for Up in the next conversation."""
        for text in self.terminal.take_unsent():
            self._history.add(text)
            kept = ", Up recalls it next time" if self._history.written else ""
            self._show_notice(f"not sent{kept}: {one_line(text, self.terminal.screen.width)}")

    def _echo(self, text: str) -> None:
        shown = cut_prompt(visible(text).splitlines())
        self.terminal.show("", *(self._paint(f"> {line}", "bold") for line in shown), "")

    async def send(self, prompt: str) -> None:
        """Send a prompt to the agent and show the run."""
        self._has_messages = True
        await self._follow(self.conversation.say(prompt, cancellation=self._new_cancellation()))

    async def compact(self, focus: str) -> None:
        """Replace the messages so far by a summary; the summary itself is not shown as an answer."""
        with self._show_run() as run:
            self._start_waiting()
            before, after = await self.conversation.compact(focus, cancellation=self._new_cancellation())
            self.usage.context_tokens, run.complete = after, True
            self.terminal.show(f"  compacted from about {before} to {after} tokens")

    def _new_cancellation(self) -> Cancellation:
        self._cancellation = Cancellation()
        return self._cancellation

    async def _follow(self, stream: AsyncGenerator[AgentEvent, None]) -> None:
        with self._show_run() as run:
            self._start_waiting()
            try:
                async with aclosing(stream) as events:
                    async for event in events:
                        run.complete = not (isinstance(event, Stopped) and event.kind == "cancelled")
                        self._show_agent_event(event)
            except CallwrightError as error:
                self._show_notice(str(error))

    def _live_rows(self, width: int) -> list[str]:
        todos = self._todos.rows(width) if self.terminal.busy else []
        waiting = [] if self.terminal.asking else self._waiting.row(width)  # a resumed run waits for its answer first
        return [*(self._running.rows(width) or waiting), *todos]

    def _start_waiting(self) -> None:
        self._waiting.context_tokens = self.usage.context_tokens
        self._waiting.start()

    @contextmanager
    def _show_run(self) -> Generator[_Run]:
        """Show inside of the block that something runs."""
        run = _Run()
        self.terminal.busy = True
        self.show_status()
        try:
            yield run
        finally:
            self.terminal.end_stream()
            self._running.clear()
            self._waiting.stop()
            if self._todos.changed:  # it was redrawn in place so far; now it stays
                self.terminal.show(*self._todos.rows(self.terminal.screen.width, len(self._todos.items)))
                self._todos.changed = False
            self._cancellation = None
            self.terminal.end_run(complete=run.complete)
            self.show_status()

    def _show_agent_event(self, event: AgentEvent) -> None:
        match event:
            case TurnEnded(cost=cost):
                self.usage.update_run(cost)
                self._start_waiting()
                self.show_status()
            case ModelRetried(error, attempt, seconds):
                self._show_notice(f"{error}; attempt {attempt + 1} in {seconds:.0f} s")
            case Done(usage=usage, cost=cost):
                self.usage.finish_run(usage, cost)
            case Stopped(reason=reason, usage=usage, cost=cost):
                self.usage.finish_run(usage, cost)
                self.terminal.end_stream()
                self._show_warning(f"stopped: {reason}")
            case _:
                pass

    def _show_model_event(self, event: ModelEvent) -> None:
        self.live.on_model_event(event)
        if isinstance(event, (TextDelta, ThinkingDelta)):
            self._waiting.add(event.text)
        elif isinstance(event, CallDelta):
            self._waiting.add(event.arguments)
        if isinstance(event, TextDelta):
            self.terminal.stream(event.text)
        elif isinstance(event, MessageDone):
            self._waiting.stop()
            self.terminal.end_stream()
            self.usage.context_tokens = event.message.usage.total or self.usage.context_tokens

    def _show_call_event(self, event: Event) -> None:
        self.live.observe(event)
        terminal = self.terminal
        self._lines.width = terminal.screen.width
        if self._inner_calls.has(event):
            return
        match event:
            case CallBegan(call):
                self._running.add(call)
            case CallProgressed(call, report):
                self._running.report(call, report)
            case CallRetried(call, error, attempt, seconds):
                self._show_notice(f"{visible_line(call.name)}: {error}; attempt {attempt + 1} in {seconds:.0f} s")
            case CallEnded(Completed(ToolCall(name="todo") as call, Output(structured=given))) if (
                todos := read_todos(given)
            ) is not None:
                self._running.remove(call)
                self._todos.update(todos)
            case CallEnded(outcome) if outcome.call.id.startswith(SHELL_CALL):
                self._running.remove(outcome.call)
            case CallEnded(outcome):
                self._running.remove(outcome.call)
                self._outputs.add(outcome)
                terminal.end_stream()
                terminal.show(*self._lines.end_lines(outcome))
            case _:
                pass
        terminal.refresh()

    def _interrupt(self) -> bool:
        """Stop the run; False if none is going on."""
        if self._cancellation is None:
            return False
        self._cancellation.cancel("interrupted by the user")
        return True

    def _stop(self) -> bool:
        """Stop the run for another program, as Esc does here; False if none is going on."""
        stopped = self._interrupt()
        if stopped:
            self.terminal.cancel()
        return stopped

    def _switch_mode(self) -> None:
        if hasattr(self, "app"):  # Shift-Tab may be pressed while the app is still loading
            switch = self.app.switch
            known = _MODES.index(switch.mode) if switch.mode in _MODES else -1
            switch.mode = _MODES[(known + 1) % len(_MODES)]
            self.show_status()

    def show_status(self) -> None:
        """Update the status line: mode, model, tokens, cost, folder."""
        app = self.app
        self.live.tell_mode()
        parts = [f"{app.switch.mode} mode", app.agent.provider.model]
        parts += ["sandbox off"] if SandboxOptions.of(app.settings).mode == "off" else []
        parts += self.usage.status_parts(app.agent.compaction.at_tokens if app.agent.compaction is not None else 0)
        parts.append("esc interrupts" if self.terminal.busy else f"{self.locations.cwd.name} · /help · shift-tab mode")
        self.terminal.status = " · ".join(parts)
        self.terminal.refresh()

    def _show_notice(self, text: str) -> None:
        self._show_warning(f"! {text}")

    def _show_warning(self, text: str) -> None:
        width = self.terminal.screen.width
        rows = [row for line in visible(text).splitlines() for row in wrap_line(line, width)]
        self.terminal.show(*(self._paint(row, "yellow") for row in rows))
