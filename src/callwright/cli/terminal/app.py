"""`callwright` in a terminal: shows the prompt first and loads everything else while the person types.

The conversation behind the terminal: an app, its session, and what is shown of what happens.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial

from callwright.agent.results import AgentEvent, Done, ModelRetried, Stopped, TurnEnded
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.costs import prices_in
from callwright.app.locations import Locations
from callwright.app.trust import Trust
from callwright.cli.attachments import Attaching
from callwright.cli.headless.input import open_questions
from callwright.cli.main import ERROR, USAGE
from callwright.cli.render.calls import CallLines, transcript
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette, filled, visible
from callwright.cli.startup import resolve_session, start
from callwright.cli.terminal.approvals import Approvals
from callwright.cli.terminal.input import PromptHistory
from callwright.cli.terminal.keys import Tty
from callwright.cli.terminal.screen import Screen
from callwright.cli.terminal.slash_commands import Slash
from callwright.cli.terminal.status import RunningCalls, Spent
from callwright.cli.terminal.ui import Terminal
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.events import CallBegan, CallEnded, CallProgressed, CallRetried, Event
from callwright.providers.base import MessageDone, ModelEvent, Provider, TextDelta
from callwright.providers.streaming import TappedProvider
from callwright.tool.base import Cancellation


def run(options: argparse.Namespace) -> int:
    """Talk until the person leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("callwright: a conversation needs a terminal; in scripts use callwright -p PROMPT", file=sys.stderr)
        return USAGE
    with Tty(keys=os.environ.get("TERM", "dumb") != "dumb") as tty:
        return asyncio.run(_talk(options, tty))


async def _talk(options: argparse.Namespace, tty: Tty) -> int:
    terminal = _terminal(tty)
    loop = asyncio.get_running_loop()
    loop.add_reader(tty.descriptor, terminal.readable, tty.descriptor)
    loop.add_signal_handler(signal.SIGWINCH, terminal.refresh)
    loop.add_signal_handler(signal.SIGINT, terminal.interrupt)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # or the terminal would be left without echo
        loop.add_signal_handler(ending, terminal.leave)
    terminal.draw()
    try:
        talk = await asyncio.to_thread(_load)
        return await talk(options, terminal)
    finally:
        loop.remove_reader(tty.descriptor)
        terminal.paused = True  # a frame that is still due would be drawn over the shell's prompt
        terminal.screen.leave()


def _terminal(tty: Tty) -> Terminal:
    palette = Palette.of(sys.stdout)
    if not tty.keys:
        from callwright.cli.terminal.screen import PlainScreen

        return Terminal(PlainScreen(sys.stdout.fileno()), palette, lines=True)
    terminal = Terminal(Screen(sys.stdout.fileno()), palette)
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        from callwright.cli.terminal.approvals import OutsideEditor, chosen_editor

        terminal.edit_outside = OutsideEditor(chosen_editor(os.environ), terminal, tty)
    return terminal


def _load() -> Callable[[argparse.Namespace, Terminal], Awaitable[int]]:

    return talk


_MODES = ("default", "auto", "plan")
_MOST_ECHOED_LINES = 12


async def talk(options: argparse.Namespace, terminal: Terminal) -> int:
    """Lead the conversation to its end and return the exit code."""
    talker = Talker(options, terminal)
    try:
        return await talker.run()
    except CallwrightError as error:
        terminal.show(*(terminal.palette.paint(line, "red") for line in f"callwright: {error}".splitlines()))
        return USAGE if isinstance(error, UsageError) else ERROR


class Talker:
    """Says what the person types to the agent, and shows what the agent does."""

    def __init__(self, options: argparse.Namespace, terminal: Terminal) -> None:
        self.options = options
        self.terminal = terminal
        self.locations = Locations.of()
        self.spent = Spent()
        """What the session's requests came to."""
        self.app: App
        self.conversation: Conversation
        self.slash: Slash
        self._paint = terminal.palette.paint
        self._lines = CallLines(terminal.palette)
        self._running = RunningCalls(terminal.palette)
        self._approvals = Approvals(terminal, lambda: self.conversation)
        self._cancellation: Cancellation | None = None
        self._silent = self._said = False
        self._history = PromptHistory(self.locations.record / "history.jsonl")

    async def run(self) -> int:
        """Make everything ready, then say what is typed until there is no more."""
        terminal = self.terminal
        terminal.style = MarkdownLines(terminal.palette)
        terminal.running = self._running.rows
        terminal.on_interrupt, terminal.on_mode = self._interrupt, self._next_mode
        self._approvals.interrupted = lambda: self._cancellation is not None and self._cancellation.requested
        if not self.options.trust and not await self._trusted():
            return 0
        app = await asyncio.to_thread(
            start, self.options, report=self._notice, wrap=self._overhear, observe=self._observe
        )
        async with app:
            await self._open(app)
            while not terminal.over.is_set() and (said := await terminal.prompt()) is not None:
                await self._hear(said)
            await self.conversation.end("prompt_input_exit")
        if self._said:
            terminal.show(f"session {self.conversation.session_id}; go on with: callwright --continue")
        return 0

    async def _open(self, app: App) -> None:
        self.app = app
        app.agent.ask = self._approvals.ask
        self.slash = Slash(self)
        self.terminal.editor.complete = self.slash.complete
        self.terminal.editor.remember(self._history.read())
        for problem in app.problems:
            self._notice(problem)
        await self.begin(*await resolve_session(self.options, app))
        if self.options.prompt:
            self.terminal.say(self.options.prompt)
        self.show_status()

    async def begin(self, session_id: str, source: str) -> None:
        """Talk in this session from now on; what was said in it before is shown."""
        self.conversation = Conversation(self.app, session_id, source)
        self.conversation.attach = Attaching(self.app, session_id, self._notice)
        self.spent = Spent()
        self._said = source == "resume"
        if self._said:
            records = await self.app.agent.sessions.read(session_id)
            self.spent.recall(records, partial(prices_in, self.app.settings))
            for text in transcript(await self.app.agent.messages(session_id)):
                self.terminal.show(*text.splitlines())
            if await open_questions(self.app.agent.sessions, session_id):
                await self._follow(self.conversation.go_on(cancellation=self._stoppable()))

    async def _trusted(self) -> bool:
        """Ask about what the folder wants, if it wants something new; False if the person would rather leave."""
        trust = Trust(self.locations)
        if trust.given:
            return True
        self.terminal.show(self._paint(f"{self.locations.project} asks for:", "bold", "yellow"))
        self.terminal.show(*(f"  {visible(word)}" for word in trust.requests))
        self.terminal.show("  y trust this folder · n go on without these · q leave")
        while True:
            said = ((await self.terminal.ask("trust?")) or "q").strip().lower()
            if said in ("y", "yes"):
                trust.give()
            if said in ("y", "yes", "n", "no"):
                return True
            if said in ("q", "quit"):
                return False

    async def _hear(self, said: str) -> None:
        self._history.add(said)
        if said.startswith("/"):
            prompt = await self.slash.perform(said)
            if prompt is None:
                self.show_status()
                return
        else:
            prompt = said
        lines = visible(said).splitlines()
        more = len(lines) - _MOST_ECHOED_LINES
        shown = lines if more <= 0 else [*lines[:_MOST_ECHOED_LINES], f"… {more} more lines"]
        self.terminal.show("", *(self._paint(f"> {line}", "bold") for line in shown), "")
        await self.say(prompt)

    async def say(self, prompt: str) -> None:
        """Say something to the agent and show what comes of it."""
        self._said = True
        await self._follow(self.conversation.say(prompt, cancellation=self._stoppable()))

    async def compact(self, focus: str) -> None:
        """Have the session summarised; what the model writes meanwhile is no answer and is not shown."""
        self.terminal.busy, self._silent = True, True
        self.show_status()
        try:
            before, after = await self.conversation.compact(focus, cancellation=self._stoppable())
            self.spent.context_tokens = after
            self.terminal.show(f"  about {before} tokens became {after}; the summary is what the model goes on from")
        finally:
            self._silent = False
            self._rest()

    def _stoppable(self) -> Cancellation:
        self._cancellation = Cancellation()
        return self._cancellation

    async def _follow(self, stream: AsyncGenerator[AgentEvent, None]) -> None:
        self.terminal.busy = True
        self.show_status()
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    self._heard(event)
        except CallwrightError as error:
            self._notice(str(error))
        finally:
            self._rest()

    def _rest(self) -> None:
        self.terminal.end_stream()
        self._running.clear()
        self.terminal.busy = False
        self._cancellation = None
        self.show_status()

    def _heard(self, event: AgentEvent) -> None:
        match event:
            case TurnEnded(usage, cost=cost):
                self.spent.count(usage, cost)
                self.show_status()
            case ModelRetried(error, attempt, seconds):
                self._notice(f"{error}; attempt {attempt + 1} in {seconds:.0f} s")
            case Done(usage=usage, cost=cost):
                self.spent.settle(usage, cost)
            case Stopped(reason=reason, usage=usage, cost=cost):
                self.spent.settle(usage, cost)
                self.terminal.end_stream()
                self.terminal.show(self._paint(f"stopped: {reason}", "yellow"))
            case _:
                pass

    def _overhear(self, provider: Provider) -> Provider:
        return TappedProvider(provider, self._overheard)

    def _overheard(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta) and not self._silent:
            self.terminal.stream(event.text)
        elif isinstance(event, MessageDone):
            self.terminal.end_stream()
            self.spent.context_tokens = event.message.usage.total or self.spent.context_tokens

    def _observe(self, event: Event) -> None:
        terminal = self.terminal
        self._lines.width = terminal.screen.width
        match event:
            case CallBegan(call):
                self._running.began(call)
            case CallProgressed(call, report):
                self._running.progressed(call, report)
            case CallRetried(call, error, attempt, seconds):
                self._notice(f"{call.name}: {error}; attempt {attempt + 1} in {seconds:.0f} s")
            case CallEnded(outcome):
                self._running.ended(outcome.call)
                terminal.end_stream()
                terminal.show(*self._lines.ended(outcome))
            case _:
                pass
        terminal.refresh()

    def _interrupt(self) -> None:
        if self._cancellation is not None:
            self._cancellation.cancel("interrupted by the user")

    def _next_mode(self) -> None:
        if hasattr(self, "app"):
            switch = self.app.switch
            known = _MODES.index(switch.mode) if switch.mode in _MODES else -1
            switch.mode = _MODES[(known + 1) % len(_MODES)]
            self.show_status()

    def show_status(self) -> None:
        """Bring the status line up to date: mode, model, tokens, cost, folder."""
        app = self.app
        parts = [f"{app.switch.mode} mode", app.agent.provider.model]
        parts += self.spent.told(app.agent.compaction.at_tokens if app.agent.compaction is not None else 0)
        parts.append("esc interrupts" if self.terminal.busy else f"{self.locations.cwd.name} · /help · shift-tab mode")
        self.terminal.status = " · ".join(parts)
        self.terminal.refresh()

    def _notice(self, text: str) -> None:
        rows = [row for line in f"! {visible(text)}".splitlines() for row in filled(line, self.terminal.screen.width)]
        self.terminal.show(*(self._paint(row, "yellow") for row in rows))
