"""Draws on a terminal: lines that scroll away, and below them a few rows that are redrawn. One write per frame.

`PlainScreen` is for terminals without cursor movement (`TERM=dumb`): it writes lines and the prompt.
"""

import errno
import os
import re
import shutil
from collections.abc import Sequence

from callwright.cli.render.text import visible, width_of

_FRAME_BEGINS, _FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: terminals that support it show a frame at once, others ignore the sequences."""

_COLOUR_CODE = re.compile(r"(\x1b\[[\d;]*m)")
_SAVE_CURSOR, _RESTORE_CURSOR = "\x1b7", "\x1b8"


class Screen:
    """Writes to a terminal and redraws the rows at the bottom below every new line.

    Args:
        descriptor: The terminal's file descriptor.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._new_lines: list[str] = []
        self._widths: list[int] = []
        """The widths of the rows at the bottom, as they were drawn."""
        self._cursor = (0, 0)

    @property
    def width(self) -> int:
        """The usable columns: one fewer than there are, because terminals differ in how they treat the last one."""
        return max(self._size()[0] - 1, 20)

    @property
    def height(self) -> int:
        """The number of rows."""
        return self._size()[1]

    def scroll(self, *lines: str) -> None:
        """Add lines that stay; the next frame shows them."""
        self._new_lines.extend(map(_guard, lines))

    def draw(self, rows: Sequence[str], cursor: tuple[int, int]) -> None:
        """Write a frame: the added lines, then the rows at the bottom.

        Args:
            rows: The rows at the bottom, none wider than `width`.
            cursor: Row and column of the cursor within these rows.
        """
        rows = [*rows]
        if width_of(rows[cursor[0]]) <= cursor[1]:
            # a cell under the cursor: without one, terminals disagree where it goes when they break a full row in two
            rows[cursor[0]] += " "
        parts = [_FRAME_BEGINS, self._erase_rows()]
        parts += [f"{line}\r\n" for line in self._new_lines]
        parts.append("\r\n".join(rows))
        up = len(rows) - 1 - cursor[0]
        parts += ["\r", f"\x1b[{up}A" if up else "", f"\x1b[{cursor[1]}C" if cursor[1] else "", _FRAME_ENDS]
        self._new_lines.clear()
        self._cursor, self._widths = cursor, [width_of(row) for row in rows]
        self._write("".join(parts))

    def leave(self) -> None:
        """Erase the rows at the bottom, so that other programs continue there."""
        lines = "".join(f"{line}\r\n" for line in self._new_lines)
        erase = self._erase_rows()
        self._new_lines.clear()
        self._cursor, self._widths = (0, 0), []
        self._write(f"{erase}{lines}")

    def write_code(self, code: str) -> None:
        """Write a code that draws nothing, such as a bell or the content of the clipboard."""
        self._write(code)

    def note_echo(self) -> None:
        """Note that the terminal itself echoed a line of input; does nothing here, where echo is off."""

    def clear(self) -> None:
        """Clear the whole screen; the next frame starts at the top."""
        self._cursor, self._widths = (0, 0), []
        self._write("\x1b[2J\x1b[H")

    def _erase_rows(self) -> str:
        """Return the codes that erase the rows at the bottom, one by one.

        Erasing to the end of the screen would be shorter, but tmux moves what it erases that way into its history.
        """
        if not self._widths:
            return "\r"
        columns, height = self._size()
        # a terminal that became narrower has broken wide rows in two, so count the rows as they are now
        heights = [max(1, -(-width // columns)) for width in self._widths]
        above = min(sum(heights[: self._cursor[0]]) + self._cursor[1] // columns, height - 1)
        count = min(sum(heights), height)
        up = f"\x1b[{above}A" if above else ""
        # the position is saved, not counted: a terminal that became lower has dropped rows below the cursor
        return f"\r{up}{_SAVE_CURSOR}" + "\x1b[1B".join(["\x1b[2K"] * count) + _RESTORE_CURSOR

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
            except BlockingIOError:  # the terminal is slow, for example over SSH, and its buffer is full
                _wait_writable(self._descriptor)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return  # the window was closed; the conversation is about to end


def _guard(line: str) -> str:
    """Escape everything but colour codes, for a line whose author forgot to."""
    if line.isascii() and line.isprintable():
        return line
    pieces = _COLOUR_CODE.split(line)
    return "".join(visible(piece) if at % 2 == 0 else piece for at, piece in enumerate(pieces)).replace("\n", "\\n")


def _wait_writable(descriptor: int) -> None:
    import select

    select.select([], [descriptor], [])


class PlainScreen(Screen):
    """Writes only what stays; the terminal echoes what is typed."""

    _prompt = ""
    """The prompt in front of the cursor."""

    def draw(self, rows: Sequence[str], cursor: tuple[int, int]) -> None:
        """Write new lines, then the prompt if lines were written or it changed."""
        prompt = rows[cursor[0]]
        if not self._new_lines and prompt == self._prompt:
            return
        self._write_lines(prompt)

    def _write_lines(self, prompt: str) -> None:
        lines = [*([""] if self._prompt else []), *self._new_lines]
        self._new_lines.clear()
        self._prompt = prompt
        self._write("".join(f"{line}\n" for line in lines) + prompt)

    def note_echo(self) -> None:
        """Note that the cursor is at the start of a new line after the user's Enter."""
        self._prompt = ""

    def clear(self) -> None:
        """Do nothing: such a terminal cannot be cleared."""

    def leave(self) -> None:
        """Write the remaining lines."""
        self._write_lines("")
