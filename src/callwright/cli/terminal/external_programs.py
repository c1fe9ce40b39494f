"""Programs of the user that the terminal starts: readers of the clipboard, and an editor."""

import asyncio
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from callwright.cli.terminal.keys import Tty
from callwright.cli.terminal.ui import Terminal

_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
"""Programs that write the clipboard's image to standard output: Wayland, X11, macOS."""
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_BYTES = 20 << 20
_SECONDS = 3.0


async def read_image() -> bytes | str:
    """Return the image in the clipboard as PNG, or the reason why there is none."""
    from callwright.system.subprocesses import run_child  # not for the editor, which the first prompt waits for

    programs = [command for command in _PROGRAMS if shutil.which(command[0])]
    if not programs:
        names = ", ".join(command[0] for command in _PROGRAMS)
        return f"no program reads images from the clipboard ({names}); drop a file on the window, or write @FILE"
    for command in programs:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                found = await run_child(command, Path("/"), max_bytes=_MOST_BYTES)
            if found.code == 0 and not found.cut and found.output.startswith(_PNG):
                return found.output
    return "there is no image in the clipboard"


class ClipboardImages:
    """Puts images of the clipboard into prompts (Ctrl-V); the files exist as long as the program runs.

    Args:
        terminal: The terminal whose prompt is changed.
        notify: Shows why nothing was pasted.
    """

    def __init__(self, terminal: Terminal, notify: Callable[[str], None]) -> None:
        self._terminal = terminal
        self._notify = notify
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Paste, unless a question is on the screen or a paste is under way."""
        if not self._terminal.asking and (self._running is None or self._running.done()):
            self._running = asyncio.ensure_future(self.paste())

    async def paste(self) -> None:
        """Put the image into a private file and its name into the prompt."""
        image = await read_image()
        if isinstance(image, str):
            self._notify(image)
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="callwright-pasted-")
        file = Path(self._folder.name, f"{sha256(image).hexdigest()[:12]}.png")
        await asyncio.to_thread(file.write_bytes, image)
        if not self._terminal.asking:  # one may have appeared meanwhile, and a name must not answer it
            self._terminal.editor.insert_apart(f"@{file}")
            self._terminal.refresh()


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
