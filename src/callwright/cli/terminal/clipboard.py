"""Ctrl-V: the image in the clipboard becomes a file, and its name an `@` name in the prompt."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from callwright.cli.terminal.ui import Terminal
from callwright.system.subprocesses import run_child

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
    """Puts images of the clipboard into prompts; the files exist as long as the program runs.

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
            self._terminal.editor.insert(f"@{file} ")
            self._terminal.refresh()
