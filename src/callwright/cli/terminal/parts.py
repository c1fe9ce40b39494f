"""The contracts of what a terminal shows: styles of streamed text, and dialogs that take several pages."""

from typing import Protocol

from callwright.cli.render.text import visible


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
