"""Opens a text in the user's editor and hands the terminal over while the editor runs."""

import asyncio
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from callwright.cli.terminal.keys import Tty
from callwright.cli.terminal.ui import Terminal


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the words of `VISUAL` or `EDITOR`; none if neither is set or the quotes do not match."""
    try:
        return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "")
    except ValueError:
        return []


class ExternalEditor:
    """Edits a text in a temporary file that only this user can read.

    Args:
        command: The editor's command line, without the file.
        terminal: The terminal, which draws nothing while the editor runs.
        tty: The same terminal's input, which the editor reads meanwhile.
    """

    def __init__(self, command: list[str], terminal: Terminal, tty: Tty) -> None:
        self._command = command
        self._terminal = terminal
        self._tty = tty

    async def __call__(self, text: str) -> str | None:
        """Return the text as it was saved; None if the editor could not be started or failed."""
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
        self._tty.restore()
        try:
            process = await asyncio.create_subprocess_exec(*self._command, name)
            return await process.wait()
        except OSError as error:
            terminal.show(f"  cannot run {self._command[0]}: {error.strerror}; set EDITOR to another editor")
            return 1
        finally:
            self._tty.read_keys()
            terminal.paused = False
            loop.add_reader(self._tty.descriptor, terminal.read_input, self._tty.descriptor)
            terminal.refresh()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
