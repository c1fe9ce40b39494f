"""Asks the person in the terminal what a call may do.

Lets a person change a text in the editor of their choice, with the terminal handed over while they do.
"""

import asyncio
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from callwright.app.conversation import Conversation
from callwright.cli.approval_dialog import Edit, dialog, read_choice, read_edit
from callwright.cli.terminal.keys import Tty
from callwright.cli.terminal.ui import Terminal
from callwright.core.calls import Answers, Approve, Decline, Question, Reply

_TURNED_AWAY = "interrupted by the user"


class Approvals:
    """One dialog after the other, however many agents ask at the same time."""

    def __init__(self, terminal: Terminal, conversation: Callable[[], Conversation]) -> None:
        self._terminal = terminal
        self._conversation = conversation
        self._asking = asyncio.Lock()
        self.interrupted: Callable[[], bool] = lambda: False

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Answer all of them; turning away from one is a no to it and to those after it, and stops the run."""
        given: dict[str, Reply] = {}
        async with self._asking:  # agents inside agents may have questions at the same time
            self._terminal.end_stream()
            await self._conversation().notify(questions[0].summary)
            for place, question in enumerate(questions, 1):
                counted = f"{place} of {len(questions)}, " if len(questions) > 1 else ""
                given[question.id] = await self._reply(question, counted)
        return Answers(given)

    async def _reply(self, question: Question, counted: str) -> Reply:
        if self.interrupted():
            return Decline(_TURNED_AWAY)
        terminal = self._terminal
        terminal.show("", *dialog(question, terminal.palette, terminal.screen.width))
        while True:
            said = await terminal.ask(f"{counted}{'done?' if question.kind == 'auth' else 'allow?'}")
            if said is None:
                terminal.on_interrupt()
                return Decline(_TURNED_AWAY)
            choice = read_choice(said, question)
            if isinstance(choice, Edit):
                choice = await self._edited(choice)
            if isinstance(choice, (Approve, Decline)):
                return choice
            terminal.show(f"  {choice}")

    async def _edited(self, wish: Edit) -> Approve | str:
        terminal = self._terminal
        if terminal.edit_outside is not None and wish.long:
            changed = await terminal.edit_outside(wish.indented)
        else:
            changed = await terminal.ask("arguments", wish.text)
        if changed is None or changed.strip() in (wish.text, wish.indented.strip()):
            return "not changed; y runs it as it is"
        return read_edit(changed)


def chosen_editor(environment: Mapping[str, str]) -> list[str]:
    """The command in `VISUAL` or `EDITOR`; empty where none is set or it cannot be read."""
    try:
        return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "")
    except ValueError:
        return []


class OutsideEditor:
    """Runs the editor on a file of its own; nobody else can read what is in it."""

    def __init__(self, command: list[str], terminal: Terminal, tty: Tty) -> None:
        self._command = command
        self._terminal = terminal
        self._tty = tty

    async def __call__(self, text: str) -> str | None:
        """Return the text as it was saved; None if the editor could not be run or gave up."""
        with tempfile.TemporaryDirectory(prefix="callwright-") as folder:
            path = Path(folder, "arguments.json")
            _write(path, text)
            code = await self._run(str(path))
            return _read(path) if code == 0 else None

    async def _run(self, name: str) -> int:
        loop, terminal = asyncio.get_running_loop(), self._terminal
        loop.remove_reader(self._tty.descriptor)
        terminal.paused = True
        terminal.screen.leave()
        self._tty.give_back()
        try:
            process = await asyncio.create_subprocess_exec(*self._command, name)
            return await process.wait()
        except OSError as error:
            terminal.show(f"  {self._command[0]} cannot be run: {error.strerror}; set EDITOR to another")
            return 1
        finally:
            self._tty.take()
            terminal.paused = False
            loop.add_reader(self._tty.descriptor, terminal.readable, self._tty.descriptor)
            terminal.refresh()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
