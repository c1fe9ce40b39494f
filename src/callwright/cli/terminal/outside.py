"""Lets a person change a text in the editor of their choice, with the terminal handed over while they do."""

import asyncio
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from callwright.cli.terminal.tty import Tty
from callwright.cli.terminal.ui import Terminal


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
