"""`callwright demo`: a scripted model drives the real agent through a small task in a temporary folder."""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from callwright.app.assembly import assemble
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.cli.approval_dialog import EditRequest, dialog_text, read_choice, read_edit
from callwright.cli.main import TERMINATED
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import CallLines
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette
from callwright.cli.startup import end_on_signal
from callwright.cli.terminal.keys import discard_typed_keys
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
from callwright.tool.decorator import tool

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


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return one tool call of a reply."""
    return {"name": name, "arguments": arguments}


REPLIES: list[Any] = [
    {
        "text": "First the module.",
        "calls": [tool_call("write", path="words.py", content=MODULE)],
    },
    {
        "text": "Then its test.",
        "calls": [tool_call("write", path="test_words.py", content=TESTS)],
    },
    {
        "text": "Now I run it.",
        "calls": [tool_call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "The order is wrong: `sorted` puts the **rarest** word first. I turn it round.",
        "calls": [
            tool_call("edit", path="words.py", old_string="words.count)[:", new_string="words.count, reverse=True)[:")
        ],
    },
    {
        "text": "And again.",
        "calls": [tool_call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "It passes. The scratch notes can go.",
        "calls": [tool_call("bash", command=f"rm {NOTES}", description="remove the scratch notes")],
    },
    "Done: `words.py` counts words, and `test_words.py` proves it.",
]
"""The replies of the scripted model, in order."""

_ANSWERS = ("s", "y")
"""Used if stdin is not a terminal: allow the test for this session, allow the deletion once."""


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
        _show_turn()
        return 0
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder, suppress(asyncio.CancelledError):
        return asyncio.run(_Demo(Path(folder).resolve()).perform())
    return TERMINATED


class _Demo:
    """One run of the demo, printed to stdout."""

    def __init__(self, folder: Path) -> None:
        self._locations, self._script = make_project(folder)
        self._project = self._locations.cwd  # the project may be a repository around the temporary folder
        self._palette = Palette.of(sys.stdout)
        self._width = min(shutil.get_terminal_size().columns, 100)
        self._lines = CallLines(self._palette, self._width)
        self._markdown = MarkdownLines(self._palette)
        self._scripted = None if sys.stdin.isatty() else iter(_ANSWERS)

    async def perform(self) -> int:
        """Run the task to its end."""
        end_on_signal()
        settings = load_settings(self._locations, trusted=True)
        provider = TappedProvider(ScriptedProvider.from_file(self._script), self._on_model_event)
        async with assemble(provider, settings, self._locations, RunOptions(mode="auto"), observe=self._observe) as app:
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
            for line in dialog_text(question, self._palette, self._width).rows:
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


def make_project(folder: Path) -> tuple[Locations, Path]:
    """Make the project of the task in a folder; return its locations, and the script of the model."""
    project, home = folder / "project", folder / "home"
    project.mkdir()
    home.mkdir()
    (project / NOTES).write_text("try sorted(); remember reverse=\n")
    script = home / "script.json"
    script.write_text(compact(REPLIES), encoding="utf-8")
    return Locations.of(project, home=home), script


_READ_SECONDS = 0.15


def _show_turn() -> None:
    """Run one turn of five calls, as a model would send them, and print which calls ran in parallel."""
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        asyncio.run(_run_turn(Path(folder)))


def _note_tools(folder: Path) -> list[Tool]:
    """Return three typed tools that read, replace and count notes in a folder."""

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
            text: The new content.
        """
        (folder / name).write_text(text, encoding="utf-8")
        return f"wrote {len(text.encode())} bytes to {name}"

    @tool(effect=Effect.READ)
    def count_notes() -> dict[str, int]:
        """Count the notes."""
        return {"notes": len(list(folder.iterdir()))}

    return [read_note, write_note, count_notes]


async def _run_turn(folder: Path) -> None:
    (folder / "plan.txt").write_text("1. read  2. think  3. write", encoding="utf-8")
    (folder / "todo.txt").write_text("water the plants", encoding="utf-8")
    timeline = _Timeline()
    executor = Executor(Registry(*_note_tools(folder)), ByMode("auto"), observe=timeline)
    calls = [
        ToolCall("c1", "read_note", '{"name": "plan.txt"}'),
        ToolCall("c2", "read_note", '{"name": "todo.txt"}'),
        ToolCall("c3", "write_note", '{"name": "todo.txt", "text": "plants are watered"}'),
        ToolCall("c4", "raed_note", '{"name": "plan.txt"}'),
        ToolCall("c5", "write_note", '{"name": "todo.txt", "txt": 42}'),
    ]
    print("the model sends five calls in one turn:\n")
    for call in calls:
        print(f"  {call.id}  {call.name}({call.arguments!s})")
    print("\ntimeline (c3 writes the file that c2 reads, so it waits for c2, but not for c1):\n")
    outcomes = await executor.execute(calls)
    print("\noutcomes for the model, one per call, in call order:\n")
    for outcome in outcomes:
        print(f"  {outcome.call.id}  {_format_outcome(outcome)}")
    print(f"\ntodo.txt now contains: {(folder / 'todo.txt').read_text(encoding='utf-8')!r}")
    print("\nnext: decorate a typed function with @tool and run it the same way; see README.md")


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
    return outcome.error.code if isinstance(outcome, Failed) else "needs approval"


def _format_outcome(outcome: Outcome) -> str:
    if isinstance(outcome, Completed):
        return f"ok     {outcome.text}"
    return f"error  {outcome.text}" if isinstance(outcome, Failed) else "needs approval"
