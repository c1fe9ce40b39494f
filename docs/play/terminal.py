"""A real terminal that a program types into: tmux, with a shell in it."""

import re
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.03
_CLOSING_SECONDS = 5.0
_SHELL = "PS1='$ ' HISTFILE= exec bash --norc --noprofile"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a terminal shows, from the first line that scrolled away to the last, with its colour codes."""

    text: str
    row: int
    """The row the cursor is in, counted from the first line."""
    column: int


class Tmux:
    """A terminal of 80 columns, with a plain shell in it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._socket = str(folder / "tmux.sock")
        self._environment = {**environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}

    def open(self, folder: Path, *, rows: int = 40) -> None:
        """Begin in this folder."""
        size = ("-x", "80", "-y", str(rows))
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), _SHELL)

    def type(self, *keys: str) -> None:
        """Type text, and keys by tmux's names."""
        self.tmux("send-keys", *keys)

    def enter(self, text: str) -> None:
        """Type a line as it stands, and Enter."""
        self.tmux("send-keys", "-l", re.sub(r";$", r"\\;", text))  # a last ; would end tmux's own command
        self.type("Enter")

    def screen(self) -> str:
        """The text there is, without colours; rows that the terminal broke are whole again."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def seen(self) -> Seen:
        """What is there now, row by row."""
        where = "#{history_size} #{cursor_y} #{cursor_x}"
        told = self.tmux("display-message", "-p", where, ";", "capture-pane", "-e", "-p", "-S", "-")
        first, _, text = told.partition("\n")
        scrolled, row, column = map(int, first.split())
        return Seen(text, scrolled + row, column)

    def shows(self, text: str, seconds: float = 20) -> str:
        """Wait until a text is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in (screen := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} did not appear:\n{screen}"
            time.sleep(_POLL_SECONDS)
        return screen

    def close(self) -> None:
        """Close the window, whatever runs in it."""
        self.tmux("kill-server")

    def close_and_wait(self) -> None:
        """Close the window, and wait until what ran in it has noticed and is gone."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        self.close()
        deadline = time.monotonic() + _CLOSING_SECONDS
        while shell and _alive(int(shell)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def tmux(self, *arguments: str) -> str:
        """Give tmux a command, and what it says to it."""
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment).stdout


def _alive(session: int) -> bool:
    """Whether anything that was started from this shell still runs; what only waits to be buried does not."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, leader, *_ = file.read_text().rpartition(")")[2].split()
            if leader == str(session) and state != "Z":
                return True
    return False
