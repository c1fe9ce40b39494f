"""A real terminal controlled by a program: tmux with a shell."""

import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.03
_QUIET_SECONDS = 0.25
"""How long to wait for output before the screen is looked at anyway."""
_BURST_SECONDS = 0.01
"""What a program prints within this time is looked at together."""
_CLOSING_SECONDS = 5.0
_SHELL = "PS1='$ ' HISTFILE= exec bash --norc --noprofile"


@dataclass(frozen=True, slots=True)
class Seen:
    """The whole text of a terminal with its colour codes, scrolled lines included, and the cursor."""

    text: str
    row: int
    """The cursor's row, counted from the first line."""
    column: int


class Tmux:
    """A terminal of 80 columns with a plain shell."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._socket = str(folder / "tmux.sock")
        self._printed = folder / "tmux.printed"
        self._output = -1
        self._environment = {**environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}

    def open(self, folder: Path, *, rows: int = 40) -> None:
        """Open the terminal in this folder."""
        if self._output < 0:
            os.mkfifo(self._printed)
            self._output = os.open(self._printed, os.O_RDWR | os.O_NONBLOCK)  # a writer too: it never ends
        size = ("-x", "80", "-y", str(rows))
        copy = f"exec cat > {shlex.quote(str(self._printed))}"
        new = ("new-session", "-d", *size, "-c", str(folder), _SHELL)
        self.tmux("-f", "/dev/null", *new, ";", "pipe-pane", "-O", copy)

    def type(self, *keys: str) -> None:
        """Type text, and keys by their names in tmux."""
        self.tmux("send-keys", *keys)

    def enter(self, text: str) -> None:
        """Type a line literally, and Enter."""
        self.tmux("send-keys", "-l", re.sub(r";$", r"\\;", text))  # a last ; would end tmux's own command
        self.type("Enter")

    def screen(self) -> str:
        """Return the text without colours; rows that the terminal wrapped are joined."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def seen(self) -> Seen:
        """Return the text and the cursor as they are now."""
        where = "#{history_size} #{cursor_y} #{cursor_x}"
        output = self.tmux("display-message", "-p", where, ";", "capture-pane", "-e", "-p", "-S", "-")
        first, _, text = output.partition("\n")
        scrolled, row, column = map(int, first.split())
        return Seen(text, scrolled + row, column)

    def shows(self, text: str, seconds: float = 100) -> str:
        """Wait until a text is on the screen, and return the screen."""
        deadline = time.monotonic() + seconds
        while text not in (screen := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} did not appear:\n{screen}"
            self._wait_for_output()
        return screen

    def _wait_for_output(self) -> None:
        """Wait until the program prints something; each look at the screen starts a process."""
        if select.select([self._output], [], [], _QUIET_SECONDS)[0]:
            time.sleep(_BURST_SECONDS)
            with suppress(BlockingIOError):
                while os.read(self._output, 65_536):
                    pass

    def close(self) -> None:
        """Close the terminal and kill what runs in it."""
        self.tmux("kill-server")
        if self._output >= 0:
            os.close(self._output)
            self._printed.unlink()
            self._output = -1

    def close_and_wait(self) -> None:
        """Close the terminal and wait until its processes have ended."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        self.close()
        deadline = time.monotonic() + _CLOSING_SECONDS
        while shell and _alive(int(shell)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command and return its output."""
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment).stdout


def _alive(session: int) -> bool:
    """Whether a process of this shell's session still runs; zombies do not count."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, leader, *_ = file.read_text().rpartition(")")[2].split()
            if leader == str(session) and state != "Z":
                return True
    return False
