"""What is on the screen: lines that scroll away, and below them a few that are drawn anew. One write per frame."""

import os
import shutil
import unicodedata
from collections.abc import Sequence

_FRAME_BEGINS, _FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show a frame at once; the others ignore them."""


def width_of(text: str) -> int:
    """How many columns a text takes; it holds no escape sequences."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int) -> list[str]:
    """Part a text into rows of at most that many columns; a row for every line, also for empty ones."""
    rows: list[str] = []
    for line in text.split("\n"):
        row, used = "", 0
        for character in line:
            columns = _columns(character)
            if used + columns > width:
                rows.append(row)
                row, used = "", 0
            row += character
            used += columns
        rows.append(row)
    return rows


class Screen:
    """Writes to a terminal. The rows at the bottom are erased and drawn again under every new line above them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._above: list[str] = []
        self._cursor_row = 0
        self._rows = 0

    @property
    def width(self) -> int:
        """Columns there are, less one, because terminals differ about the last one."""
        return max(shutil.get_terminal_size().columns - 1, 20)

    def scroll(self, *lines: str) -> None:
        """Add lines that stay; they are shown with the next frame."""
        self._above.extend(lines)

    def draw(self, rows: Sequence[str], cursor: tuple[int, int]) -> None:
        """Show what was added, then the rows at the bottom, with the cursor at (row, column) of them."""
        parts = [_FRAME_BEGINS, self._erased()]
        parts += [f"{line}\r\n" for line in self._above]
        parts.append("\r\n".join(rows))
        up = len(rows) - 1 - cursor[0]
        parts += ["\r", f"\x1b[{up}A" if up else "", f"\x1b[{cursor[1]}C" if cursor[1] else "", _FRAME_ENDS]
        self._above.clear()
        self._cursor_row, self._rows = cursor[0], len(rows)
        self._write("".join(parts))

    def leave(self) -> None:
        """Erase the rows at the bottom, so that what comes after begins there."""
        lines = "".join(f"{line}\r\n" for line in self._above)
        erased = self._erased()
        self._above.clear()
        self._cursor_row = self._rows = 0
        self._write(f"{erased}{lines}")

    def _erased(self) -> str:
        """Empty the rows at the bottom one by one: erasing the screen as a whole would put them into tmux's history."""
        up = f"\x1b[{self._cursor_row}A" if self._cursor_row else ""
        back = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"\r{up}" + "\x1b[1B".join(["\x1b[2K"] * self._rows) + back

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", errors="replace")
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # a slow line, as over SSH: the rest follows when it takes more
                _wait_writable(self._descriptor)


def _wait_writable(descriptor: int) -> None:
    import select

    select.select([], [descriptor], [])
