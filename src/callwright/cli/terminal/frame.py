"""The parts of a frame: contracts of streamed text and of dialogs, and the rows of the input line."""

from collections.abc import Sequence
from typing import Protocol

from callwright.cli.render.text import cut, visible, width_of, wrap_columns

LOADING = "loading..."  # ASCII: other characters would load rich for their widths
"""The status line until the program is ready."""
_MOST_PARTIAL_ROWS = 6


class LineStyle(Protocol):
    """Renders lines of streamed text as rows of the screen."""

    held: list[str]
    """Lines that are held back until the block they belong to is complete."""

    def rows(self, line: str, width: int) -> list[str]:
        """Return the rows of one line; none while it is held back."""
        ...

    def end(self, width: int) -> list[str]:
        """Return the rows of held lines."""
        ...


class PagedView(Protocol):
    """A dialog above the input line that may take several pages."""

    @property
    def read(self) -> bool:
        """Whether all of it was shown."""
        ...

    def rows(self, width: int, height: int) -> list[str]:
        """Return the rows of the current page."""
        ...

    def next_rows(self, width: int, height: int) -> list[str]:
        """Return the rows after those shown so far, for a screen that cannot be redrawn."""
        ...

    def turn(self, pages: int) -> bool:
        """Turn some pages forward or back; False if there is no such page."""
        ...

    @property
    def filters(self) -> bool:
        """Whether typed text narrows a list down; Enter then takes the marked entry, not the text."""
        ...

    @property
    def answer(self) -> str:
        """What Enter stands for on an empty line; empty if nothing."""
        ...

    def mark(self, typed: str) -> None:
        """Mark the answer that a typed text stands for."""
        ...

    def move(self, step: int) -> bool:
        """Mark the next or the previous answer; False if there is no menu."""
        ...

    def toggle(self) -> bool:
        """Show everything, or the usual rows again; False if there is nothing more to show."""
        ...


class PlainStyle:
    """Shows lines as they are, escaped."""

    def __init__(self) -> None:
        self.held: list[str] = []

    def rows(self, line: str, width: int) -> list[str]:
        return [visible(line)]

    def end(self, width: int) -> list[str]:
        return []


def visible_input(text: str) -> str:
    """Escape control characters: pasted text must not control the terminal."""
    return visible(text).replace("\t", "    ")


def input_rows(prompt: str, text: str, cursor: int, width: int, most_rows: int) -> tuple[list[str], tuple[int, int]]:
    """Return the rows of the input line around the cursor, and the cursor's row and column in them."""
    before = wrap_columns(prompt + visible_input(text[:cursor]), width)
    rows = wrap_columns(prompt + visible_input(text), width)
    first = max(0, len(before) - most_rows)
    return rows[first : first + most_rows], (len(before) - 1 - first, width_of(before[-1]))


def partial_rows(partial: str, held: Sequence[str], width: int) -> list[str]:
    """Return the last rows of the streamed text; only whole rows are dropped, so that the rest does not move."""
    kept = [cut(line, width) for line in held[-_MOST_PARTIAL_ROWS:]]
    if not partial:
        return kept
    start = max(0, len(partial) // width - _MOST_PARTIAL_ROWS) * width
    rows = wrap_columns(visible(partial[start:]).replace("\t", "    "), width)
    return [*kept, *rows][-_MOST_PARTIAL_ROWS:]


def suggestion_rows(suggestions: Sequence[str], width: int) -> list[str]:
    """Return completions in one row, with the number of those that do not fit."""
    found = [visible(text) for text in suggestions]
    if not found:
        return []
    row = "  ".join(found)
    while width_of(row) > width and len(found) > 1:
        found.pop()
        row = "  ".join([*found, f"… {len(suggestions) - len(found)} more"])
    return [cut(row, width)]
