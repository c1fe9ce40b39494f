"""`callwright demo`: a scripted model leads the real agent through a small task in a temporary folder.

The demo's script: what a model would say while it does a small task.

`callwright demo --turn`: one scripted turn of five calls through the real executor, on real files.
"""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from callwright.app.app import assemble
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.cli.approval_dialog import Edit, dialog, read_choice, read_edit
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import CallLines
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette
from callwright.core.access import ReadPath, WritePath
from callwright.core.calls import Answers, Approve, Completed, Decline, Failed, Outcome, Question, Reply, ToolCall
from callwright.core.events import CallBegan, CallEnded, Event
from callwright.core.json import compact
from callwright.core.spec import Effect
from callwright.executor.executor import Executor
from callwright.policy.modes import ByMode
from callwright.providers.base import ModelEvent, TextDelta
from callwright.providers.streaming import TappedProvider
from callwright.registry.registry import Registry
from callwright.testing.fakes import ScriptedProvider
from callwright.tool.base import Tool
from callwright.tool.function import tool

MODULE = '''\
"""Counts words."""


def most_common(text: str, count: int) -> list[str]:
    """The most common words of a text, most common first."""
    words = text.lower().split()
    return sorted(set(words), key=words.count)[:count]
'''

TESTS = """\
import unittest

from words import most_common


class MostCommon(unittest.TestCase):
    def test_the_most_common_word_comes_first(self) -> None:
        self.assertEqual(most_common("the cat and the dog and the bird", 1), ["the"])


if __name__ == "__main__":
    unittest.main()
"""

TASK = "write words.py with a most_common function, test it, and clean up the scratch notes"
NOTES = "scratch.txt"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of a reply."""
    return {"name": name, "arguments": arguments}


REPLIES: list[Any] = [
    {
        "text": "I write the module and its test side by side; neither needs the other.",
        "calls": [
            call("write", path="words.py", content=MODULE),
            call("write", path="test_words.py", content=TESTS),
        ],
    },
    {
        "text": "Now I run the test.",
        "calls": [call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "The order is wrong: `sorted` puts the **rarest** word first. I turn it round.",
        "calls": [
            call("edit", path="words.py", old_string="words.count)[:", new_string="words.count, reverse=True)[:")
        ],
    },
    {
        "text": "And again.",
        "calls": [call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "It passes. The scratch notes can go.",
        "calls": [call("bash", command=f"rm {NOTES}", description="remove the scratch notes")],
    },
    "Done: `words.py` counts words, and `test_words.py` proves it.",
]
"""What the model says, in order."""

ANSWERS = ("s", "y")
"""What the person says where there is none: the test may run for this session, the notes may go once."""


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
        locations = Locations.of(self._project, home=self._home)
        settings = load_settings(locations, trusted=True)
        provider = TappedProvider(_model(self._home), self._overheard)
        async with assemble(provider, settings, locations, RunOptions(mode="auto"), observe=self._observe) as app:
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


_READ_SECONDS = 0.15


def show_turn() -> None:
    """Serve one turn of five calls, as a model would send them, and show what ran beside what."""
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        asyncio.run(_serve(Path(folder)))


def note_tools(folder: Path) -> list[Tool]:
    """Three typed tools that read, change and count notes in a folder."""

    @tool(effect=Effect.READ, accesses=lambda arguments: [ReadPath(str(folder / str(arguments["name"])))])
    async def read_note(name: str) -> str:
        """Read a note.

        Args:
            name: The note's file name.
        """
        await asyncio.sleep(_READ_SECONDS)  # so that the timeline has something to show
        return (folder / name).read_text(encoding="utf-8")

    @tool(effect=Effect.WRITE, accesses=lambda arguments: [WritePath(str(folder / str(arguments["name"])))])
    def write_note(name: str, text: str) -> str:
        """Replace a note.

        Args:
            name: The note's file name.
            text: What it says from now on.
        """
        (folder / name).write_text(text, encoding="utf-8")
        return f"wrote {len(text.encode())} bytes to {name}"

    @tool(effect=Effect.READ)
    def count_notes() -> dict[str, int]:
        """Count the notes."""
        return {"notes": len(list(folder.iterdir()))}

    return [read_note, write_note, count_notes]


async def _serve(folder: Path) -> None:
    (folder / "plan.txt").write_text("1. read  2. think  3. write", encoding="utf-8")
    (folder / "todo.txt").write_text("water the plants", encoding="utf-8")
    timeline = _Timeline()
    executor = Executor(Registry(*note_tools(folder)), ByMode("auto"), observe=timeline)
    calls = [
        ToolCall("c1", "read_note", '{"name": "plan.txt"}'),
        ToolCall("c2", "read_note", '{"name": "todo.txt"}'),
        ToolCall("c3", "write_note", '{"name": "todo.txt", "text": "plants are watered"}'),
        ToolCall("c4", "raed_note", '{"name": "plan.txt"}'),
        ToolCall("c5", "write_note", '{"name": "todo.txt", "txt": 42}'),
    ]
    print("the model asks for five calls in one turn:\n")
    for call in calls:
        print(f"  {call.id}  {call.name}({call.arguments!s})")
    print("\nwhat happened (c3 writes what c2 reads, so it waits; c1 does not care):\n")
    outcomes = await executor.execute(calls)
    print("\nwhat the model is told, one outcome per call, in call order:\n")
    for outcome in outcomes:
        print(f"  {outcome.call.id}  {_told(outcome)}")
    print(f"\non disk todo.txt now says: {(folder / 'todo.txt').read_text(encoding='utf-8')!r}")
    print("\nnext: write a typed function, put @tool on it, and run it the same way; README.md shows how")


class _Timeline:
    """Prints calls as they start and end."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def __call__(self, event: Event) -> None:
        milliseconds = (time.perf_counter() - self._began) * 1000
        if isinstance(event, CallBegan):
            print(f"  {milliseconds:6.1f} ms  {event.call.id}  > {event.call.name} starts")
        elif isinstance(event, CallEnded):
            ending = "done" if isinstance(event.outcome, Completed) else _code(event.outcome)
            print(f"  {milliseconds:6.1f} ms  {event.outcome.call.id}  < {event.outcome.call.name} {ending}")


def _code(outcome: Outcome) -> str:
    return outcome.error.code if isinstance(outcome, Failed) else "waits for an answer"


def _told(outcome: Outcome) -> str:
    if isinstance(outcome, Completed):
        return f"ok     {outcome.text}"
    return f"error  {outcome.text}" if isinstance(outcome, Failed) else "asks"
