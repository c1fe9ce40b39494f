"""What is on the screen: lines that scroll away, and below them a few that are drawn anew. One write per frame.

A screen for terminals that cannot place a cursor: lines only, and the prompt where one can be typed.
"""

import os
import shutil
from collections.abc import Sequence

from callwright.cli.render.text import width_of

_FRAME_BEGINS, _FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show a frame at once; the others ignore them."""

_REMEMBER, _RETURN = "\x1b7", "\x1b8"


class Screen:
    """Writes to a terminal. The rows at the bottom are erased and drawn again under every new line above them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._above: list[str] = []
        self._widths: list[int] = []
        """How wide the rows at the bottom were drawn."""
        self._cursor = (0, 0)

    @property
    def width(self) -> int:
        """Columns there are, less one, because terminals differ about the last one."""
        return max(self._size()[0] - 1, 20)

    @property
    def height(self) -> int:
        """Rows there are."""
        return self._size()[1]

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
        self._cursor, self._widths = cursor, [width_of(row) for row in rows]
        self._write("".join(parts))

    def leave(self) -> None:
        """Erase the rows at the bottom, so that what comes after begins there."""
        lines = "".join(f"{line}\r\n" for line in self._above)
        erased = self._erased()
        self._above.clear()
        self._cursor, self._widths = (0, 0), []
        self._write(f"{erased}{lines}")

    def typed(self) -> None:
        """Something was typed that the terminal showed by itself; here it shows nothing by itself."""

    def clear(self) -> None:
        """Empty the whole screen; the next frame begins at its top."""
        self._cursor, self._widths = (0, 0), []
        self._write("\x1b[2J\x1b[H")

    def _erased(self) -> str:
        """Empty the rows at the bottom one by one: erasing the screen as a whole would put them into tmux's history.

        A terminal that became narrower has broken the wide ones in two, so they are counted as they stand now.
        """
        if not self._widths:
            return "\r"
        columns, height = self._size()
        standing = [max(1, -(-width // columns)) for width in self._widths]
        above = min(sum(standing[: self._cursor[0]]) + self._cursor[1] // columns, height - 1)
        count = min(sum(standing), height)
        up = f"\x1b[{above}A" if above else ""
        # the way back is remembered, not counted: a terminal that became lower has dropped rows below the cursor
        return f"\r{up}{_REMEMBER}" + "\x1b[1B".join(["\x1b[2K"] * count) + _RETURN

    def _size(self) -> os.terminal_size:
        try:
            size = os.get_terminal_size(self._descriptor)
        except OSError:
            size = shutil.get_terminal_size()
        return size if size.columns > 0 and size.lines > 0 else os.terminal_size((80, 24))

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


class PlainScreen(Screen):
    """Writes what stays and nothing that would have to be drawn over; the terminal echoes what is typed."""

    _prompt = ""
    """What stands before the cursor."""

    def draw(self, rows: Sequence[str], cursor: tuple[int, int]) -> None:
        """Write new lines, and the prompt again below them or where it has changed."""
        prompt = rows[cursor[0]]
        if not self._above and prompt == self._prompt:
            return
        lines = [*([""] if self._prompt else []), *self._above]
        self._above.clear()
        self._prompt = prompt
        self._write("".join(f"{line}\n" for line in lines) + prompt)

    def typed(self) -> None:
        """A line came, so that the cursor stands at the beginning of another."""
        self._prompt = ""

    def clear(self) -> None:
        """There is nothing to be cleared."""

    def leave(self) -> None:
        """Write what is left."""
        lines = [*([""] if self._prompt else []), *self._above]
        self._above.clear()
        self._prompt = ""
        self._write("".join(f"{line}\n" for line in lines))
