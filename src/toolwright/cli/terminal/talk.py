"""The conversation behind the terminal: an app, its session, and what is shown of what happens."""

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from toolwright.agent.result import AgentEvent, Done, ModelRetried, Stopped, TurnEnded
from toolwright.app.assemble import App
from toolwright.app.conversation import Conversation
from toolwright.app.places import Places
from toolwright.app.trust import Trust
from toolwright.cli.answering import open_questions
from toolwright.cli.ask import Edit, dialog, read_choice, read_edit
from toolwright.cli.lines import CallLines
from toolwright.cli.markdown import MarkdownLines
from toolwright.cli.session import begin
from toolwright.cli.show import one_line, transcript, visible
from toolwright.cli.start import start
from toolwright.cli.terminal.slash import Slash
from toolwright.cli.terminal.ui import Terminal, restored
from toolwright.core.call import Answers, Approve, Decline, Question, Reply
from toolwright.core.errors import ToolwrightError
from toolwright.core.event import CallBegan, CallEnded, CallProgressed, Event
from toolwright.core.message import Usage
from toolwright.providers.base import MessageDone, ModelEvent, Provider, TextDelta
from toolwright.providers.overhear import Overheard
from toolwright.tool.base import Cancellation

_MODES = ("default", "auto", "plan")
_FAILED = 1


async def talk(options: argparse.Namespace, terminal: Terminal) -> int:
    """Lead the conversation to its end and return the exit code."""
    talker = Talker(options, terminal)
    try:
        return await talker.run()
    except ToolwrightError as error:
        terminal.show(*(terminal.palette.paint(line, "red") for line in f"toolwright: {error}".splitlines()))
        return _FAILED


class Talker:
    """Says what the person types to the agent, and shows what the agent does."""

    def __init__(self, options: argparse.Namespace, terminal: Terminal) -> None:
        self.options = options
        self.terminal = terminal
        self.places = Places.of()
        self.usage = Usage()
        """What the session's requests came to since it was opened here."""
        self.app: App
        self.conversation: Conversation
        self.slash: Slash
        self._paint = terminal.palette.paint
        self._lines = CallLines(terminal.palette)
        self._cancellation: Cancellation | None = None
        self._asking = asyncio.Lock()
        self._context_tokens = 0
        self._history = self.places.record / "history.jsonl"

    async def run(self) -> int:
        """Make everything ready, then say what is typed until there is no more."""
        terminal = self.terminal
        terminal.style = MarkdownLines(terminal.palette).style
        terminal.on_interrupt, terminal.on_mode = self._interrupt, self._next_mode
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
        terminal.show(f"session {self.conversation.session_id}; go on with: toolwright --continue")
        return 0

    async def _open(self, app: App) -> None:
        self.app = app
        app.agent.ask = self._ask
        self.slash = Slash(self)
        self.terminal.editor.complete = self.slash.complete
        if self._history.exists():
            self.terminal.editor.remember(restored(self._history.read_text("utf-8", errors="replace")))
        for problem in app.problems:
            self._notice(problem)
        await self.begin(*await begin(self.options, app))
        if self.options.prompt:
            self.terminal.say(self.options.prompt)
        self.show_status()

    async def begin(self, session_id: str, source: str) -> None:
        """Talk in this session from now on; what was said in it before is shown."""
        self.conversation = Conversation(self.app, session_id, source)
        self.usage, self._context_tokens = Usage(), 0
        if source == "resume":
            for text in transcript(await self.app.agent.messages(session_id)):
                self.terminal.show(*text.splitlines())
            if await open_questions(self.app.agent.sessions, session_id):
                self._cancellation = Cancellation()
                await self._follow(self.conversation.go_on(cancellation=self._cancellation))

    async def _trusted(self) -> bool:
        """Ask about what the folder wants, if it wants something new; False if the person would rather leave."""
        trust = Trust(self.places)
        if trust.given:
            return True
        self.terminal.show(self._paint(f"{self.places.project} asks for:", "bold", "yellow"))
        self.terminal.show(*(f"  {visible(word)}" for word in trust.wanted))
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
        self._remember(said)
        if said.startswith("/"):
            prompt = await self.slash.perform(said)
            if prompt is None:
                self.show_status()
                return
        else:
            prompt = said
        self.terminal.show("", *(self._paint(f"> {line}", "bold") for line in visible(said).splitlines()), "")
        await self.say(prompt)

    async def say(self, prompt: str) -> None:
        """Say something to the agent and show what comes of it."""
        self._cancellation = Cancellation()
        await self._follow(self.conversation.say(prompt, cancellation=self._cancellation))

    async def _follow(self, stream: AsyncGenerator[AgentEvent, None]) -> None:
        self.terminal.busy = True
        self.show_status()
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    self._heard(event)
        except ToolwrightError as error:
            self._notice(str(error))
        finally:
            self.terminal.end_stream()
            self.terminal.running.clear()
            self.terminal.busy = False
            self._cancellation = None
            self.show_status()

    def _heard(self, event: AgentEvent) -> None:
        match event:
            case TurnEnded():
                self.show_status()
            case ModelRetried(error, attempt, seconds):
                self._notice(f"{error}; attempt {attempt + 1} in {seconds:.0f} s")
            case Done(usage=usage):
                self.usage += usage
            case Stopped(reason=reason, usage=usage):
                self.usage += usage
                self.terminal.end_stream()
                self.terminal.show(self._paint(f"stopped: {reason}", "yellow"))
            case _:
                pass

    def _overhear(self, provider: Provider) -> Provider:
        return Overheard(provider, self._overheard)

    def _overheard(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            self.terminal.stream(event.text)
        elif isinstance(event, MessageDone):
            self.terminal.end_stream()
            self._context_tokens = event.message.usage.total or self._context_tokens

    def _observe(self, event: Event) -> None:
        terminal = self.terminal
        self._lines.width = terminal.screen.width
        match event:
            case CallBegan(call):
                terminal.running[call.id] = [self._lines.began(call)]
            case CallProgressed(call, progress) if call.id in terminal.running:
                line = one_line(str(progress).strip().rpartition("\n")[2], terminal.screen.width - 6)
                terminal.running[call.id] = [self._lines.began(call), self._paint(f"  {line}", "dim")]
            case CallEnded(outcome):
                terminal.running.pop(outcome.call.id, None)
                terminal.show(*self._lines.ended(outcome))
            case _:
                pass
        terminal.refresh()

    async def _ask(self, questions: Sequence[Question]) -> Answers:
        given: dict[str, Reply] = {}
        async with self._asking:  # agents inside agents may have questions at the same time
            await self.conversation.notify(questions[0].summary)
            for question in questions:
                given[question.id] = await self._reply(question)
        return Answers(given)

    async def _reply(self, question: Question) -> Reply:
        if self._cancellation is not None and self._cancellation.requested:
            return Decline("interrupted by the user")
        self.terminal.show("", *dialog(question, self.terminal.palette, self.terminal.screen.width))
        while True:
            said = await self.terminal.ask("allow?")
            if said is None:
                self._interrupt()
                return Decline("interrupted by the user")
            choice = read_choice(said, question)
            if isinstance(choice, Edit):
                edited = await self.terminal.ask("arguments", choice.text)
                choice = "not changed" if edited is None else read_edit(edited)
            if isinstance(choice, (Approve, Decline)):
                return choice
            self.terminal.show(f"  {choice}")

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
        if self._context_tokens:
            parts.append(f"{self._context_tokens / 1000:.1f}k context")
        if app.prices is not None:
            parts.append(f"${app.prices.cost(self.usage):.2f}")
        parts.append("esc interrupts" if self.terminal.busy else f"{self.places.cwd.name} · /help · shift-tab mode")
        self.terminal.status = " · ".join(parts)
        self.terminal.refresh()

    def _notice(self, text: str) -> None:
        self.terminal.show(self._paint(f"! {visible(text)}", "yellow"))

    def _remember(self, said: str) -> None:
        self._history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._history.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said, ensure_ascii=False) + "\n")
