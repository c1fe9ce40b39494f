"""`callwright demo`: a scripted model drives the real agent through a small task in a temporary folder."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from callwright.app.app import assemble
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.cli.approval_dialog import EditRequest, dialog_lines, read_choice, read_edit
from callwright.cli.commands.demo_script import ANSWERS, NOTES, REPLIES, TASK
from callwright.cli.commands.demo_timeline import show_turn
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import CallLines
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette
from callwright.cli.terminal.keys import discard_typed_keys
from callwright.core.calls import Answers, Approve, Decline, Question, Reply
from callwright.core.events import CallEnded, Event
from callwright.core.json import compact
from callwright.providers.base import ModelEvent, TextDelta
from callwright.providers.streaming import TappedProvider
from callwright.testing.fakes import ScriptedProvider

_DESCRIPTION = """\
Runs a small task in a temporary folder with a scripted model and the real agent, tools, permissions, approval dialog
and session store: it writes a module, runs its test, fixes the bug and asks before it deletes a file. You answer the
questions; if stdin is not a terminal, the answers are scripted too. Needs no model, key or network."""
_NEXT = """\
next:
  callwright doctor         check the installation and the model
  callwright                start a conversation
  callwright call read '{"path": "README.md"}'
  callwright permissions test bash 'git push --force'
  callwright demo --turn    show one turn of five calls as a timeline"""


def run(arguments: list[str]) -> int:
    """Run the demo and return the exit code."""
    parser = Parser("callwright demo", description=_DESCRIPTION)
    parser.add_argument("--turn", action="store_true", help="show one turn of five calls as a timeline instead")
    if parser.parse_args(arguments).turn:
        show_turn()
        return 0
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        return asyncio.run(_Demo(Path(folder).resolve()).perform())


class _Demo:
    """One run of the demo, printed to stdout."""

    def __init__(self, folder: Path) -> None:
        self._project, self._home = folder / "project", folder / "home"
        self._palette = Palette.of(sys.stdout)
        self._width = min(shutil.get_terminal_size().columns, 100)
        self._lines = CallLines(self._palette, self._width)
        self._markdown = MarkdownLines(self._palette)
        self._scripted = None if sys.stdin.isatty() else iter(ANSWERS)

    async def perform(self) -> int:
        """Run the task to its end."""
        self._project.mkdir()
        (self._project / NOTES).write_text("try sorted(); remember reverse=\n")
        locations = Locations.of(self._project, home=self._home)
        settings = load_settings(locations, trusted=True)
        provider = TappedProvider(_model(self._home), self._on_model_event)
        async with assemble(provider, settings, locations, RunOptions(mode="auto"), observe=self._observe) as app:
            app.agent.ask = self._ask
            self._print(
                f"temporary project {self._project}, mode auto: edits inside it run, other actions need approval\n"
            )
            self._print(f"{self._palette.paint('>', 'bold')} {TASK}")
            async for _ in Conversation(app, "demo").say(TASK):
                pass
            records = len(await app.agent.sessions.read("demo"))
        self._print_epilogue(records)
        return 0

    def _print_epilogue(self, records: int) -> None:
        files = sorted(path.name for path in self._project.iterdir() if path.is_file())
        self._print(f"\nfiles: {', '.join(files)}; the session has {records} records\n\n{_NEXT}")

    def _on_model_event(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            rows = [row for line in event.text.splitlines() for row in self._markdown.rows(line, self._width)]
            self._print("\n".join(["", *rows, *self._markdown.end(self._width)]))

    def _observe(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            for line in self._lines.end_lines(event.outcome):
                self._print(line)

    async def _ask(self, questions: Sequence[Question]) -> Answers:
        replies: dict[str, Reply] = {}
        for question in questions:
            for line in dialog_lines(question, self._palette, self._width):
                self._print(line)
            replies[question.id] = await self._reply(question)
        return Answers(replies)

    async def _reply(self, question: Question) -> Reply:
        while True:
            line = await self._read_line("  your answer: ")
            if line is None:
                return Decline("no answer: stdin is closed")
            choice = read_choice(line, question)
            if isinstance(choice, EditRequest):
                choice = read_edit(await self._read_line(f"  now {choice.text}\n  new arguments: ") or "")
            if isinstance(choice, (Approve, Decline)):
                return choice
            self._print(f"  {choice}")

    async def _read_line(self, prompt: str) -> str | None:
        if self._scripted is not None:
            line = next(self._scripted, "n")
            self._print(f"{prompt}{line}   (scripted: stdin is not a terminal)")
            return line
        discard_typed_keys()  # what was typed before the question does not answer it
        print(prompt, end="", flush=True)
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[str] = loop.create_future()
        # not in a thread: one that waits for a line cannot be stopped by Ctrl-C
        loop.add_reader(sys.stdin.fileno(), lambda: waiting.done() or waiting.set_result(sys.stdin.readline()))
        try:
            text = await waiting
            return text.rstrip("\n") if text else None
        finally:
            loop.remove_reader(sys.stdin.fileno())

    def _print(self, text: str) -> None:
        print(text, flush=True)


def _model(home: Path) -> ScriptedProvider:
    home.mkdir()
    file = home / "script.json"
    file.write_text(compact(REPLIES), encoding="utf-8")
    return ScriptedProvider.from_file(file)
