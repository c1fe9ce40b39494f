"""`callwright demo`: a scripted model leads the real agent through a small task in a temporary folder."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from callwright.app.assemble import assemble
from callwright.app.conversation import Conversation
from callwright.app.places import Places
from callwright.app.settings import load_settings
from callwright.app.wishes import Wishes
from callwright.cli.ask import Edit, dialog, read_choice, read_edit
from callwright.cli.lines import CallLines
from callwright.cli.markdown import MarkdownLines
from callwright.cli.palette import Palette
from callwright.cli.parsing import Parser
from callwright.cli.story import ANSWERS, NOTES, REPLIES, TASK
from callwright.core.call import Answers, Approve, Decline, Question, Reply
from callwright.core.event import CallEnded, Event
from callwright.core.json import compact
from callwright.providers.base import ModelEvent, TextDelta
from callwright.providers.overhear import Overheard
from callwright.testing.provider import ScriptedProvider

_DESCRIPTION = """\
A scripted model drives the real agent, tools, permissions, approval dialog and session store through a small task in a
temporary folder: it writes a module, runs its test, fixes the bug and asks before it deletes something. You are asked
as you would be for a real model; where stdin is no terminal, the answers are scripted too. Needs no model, key or
network."""
_NEXT = """\
next:
  callwright doctor         which model there is, and what to do for one
  callwright                talk to it
  callwright call read '{"path": "README.md"}'
  callwright permissions test bash 'git push --force'
  callwright demo --turn    one turn of five calls as a timeline"""


def run(arguments: list[str]) -> int:
    """Show the demo and return the exit code."""
    parser = Parser("callwright demo", description=_DESCRIPTION)
    parser.add_argument("--turn", action="store_true", help="instead, one turn of five calls: what runs beside what")
    if parser.parse_args(arguments).turn:
        from callwright.cli.turn import show_turn

        show_turn()
        return 0
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        return asyncio.run(_Demo(Path(folder).resolve()).perform())


class _Demo:
    """One run of the story, told on stdout."""

    def __init__(self, folder: Path) -> None:
        self._project, self._home = folder / "project", folder / "home"
        self._palette = Palette.of(sys.stdout)
        self._width = min(shutil.get_terminal_size().columns, 100)
        self._lines = CallLines(self._palette, self._width)
        self._markdown = MarkdownLines(self._palette)
        self._scripted = None if sys.stdin.isatty() else iter(ANSWERS)

    async def perform(self) -> int:
        """Tell the story to its end."""
        self._project.mkdir()
        (self._project / NOTES).write_text("try sorted(); remember reverse=\n")
        places = Places.of(self._project, home=self._home)
        settings = load_settings(places, trusted=True)
        provider = Overheard(_model(self._home), self._overheard)
        async with assemble(provider, settings, places, Wishes(mode="auto"), observe=self._observe) as app:
            app.agent.ask = self._ask
            self._say(f"a temporary project in {self._project}, mode auto: edits here run, anything else asks\n")
            self._say(f"{self._palette.paint('>', 'bold')} {TASK}")
            async for _ in Conversation(app, "demo").say(TASK):
                pass
            kept = len(await app.agent.sessions.read("demo"))
        self._epilogue(kept)
        return 0

    def _epilogue(self, kept: int) -> None:
        left = sorted(path.name for path in self._project.iterdir() if path.is_file())
        self._say(f"\non disk: {', '.join(left)}; {kept} records of the session\n\n{_NEXT}")

    def _overheard(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            rows = [row for line in event.text.splitlines() for row in self._markdown.rows(line, self._width)]
            self._say("\n".join(["", *rows, *self._markdown.end(self._width)]))

    def _observe(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            for line in self._lines.ended(event.outcome):
                self._say(line)

    async def _ask(self, questions: Sequence[Question]) -> Answers:
        given: dict[str, Reply] = {}
        for question in questions:
            for line in dialog(question, self._palette, self._width):
                self._say(line)
            given[question.id] = await self._reply(question)
        return Answers(given)

    async def _reply(self, question: Question) -> Reply:
        while True:
            said = await self._typed("  your answer: ")
            if said is None:
                return Decline("nobody is there to ask")
            choice = read_choice(said, question)
            if isinstance(choice, Edit):
                choice = read_edit(await self._typed(f"  now {choice.text}\n  new arguments: ") or "")
            if isinstance(choice, (Approve, Decline)):
                return choice
            self._say(f"  {choice}")

    async def _typed(self, prompt: str) -> str | None:
        if self._scripted is not None:
            said = next(self._scripted, "n")
            self._say(f"{prompt}{said}   (scripted: stdin is no terminal)")
            return said
        try:
            return await asyncio.to_thread(input, prompt)
        except EOFError:
            return None

    def _say(self, text: str) -> None:
        print(text, flush=True)


def _model(home: Path) -> ScriptedProvider:
    home.mkdir()
    file = home / "script.json"
    file.write_text(compact(REPLIES), encoding="utf-8")
    return ScriptedProvider.from_file(file)
