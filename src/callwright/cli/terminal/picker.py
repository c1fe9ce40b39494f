"""A list above the input line: what is typed filters it, arrow keys choose, Enter takes the marked entry."""

from collections.abc import Sequence
from dataclasses import dataclass

from callwright.cli.render.text import Palette, cut, visible_line

_MOST_ROWS = 14


@dataclass(frozen=True, slots=True)
class PickEntry:
    """One entry: what it stands for, its title, and details shown beside it."""

    value: str
    title: str
    details: str = ""


class Picker:
    """A `PagedView` that filters entries by the words typed so far, in any order, without case.

    Args:
        heading: What is chosen.
        entries: The entries, the likeliest first.
        palette: The colours.
    """

    filters = True
    read = True

    def __init__(self, heading: str, entries: Sequence[PickEntry], palette: Palette) -> None:
        self._heading = heading
        self._entries = tuple(entries)
        self._palette = palette
        self._found = self._entries
        self._typed: str = ""
        self._marked = 0

    @property
    def answer(self) -> str:
        """The value of the marked entry; empty if nothing fits what was typed."""
        return self._found[self._marked].value if self._found else ""

    def mark(self, typed: str) -> None:
        """Filter by what is typed now."""
        if typed == self._typed:
            return
        words = typed.casefold().split()
        self._typed, self._marked = typed, 0
        self._found = tuple(
            entry
            for entry in self._entries
            if all(word in f"{entry.title} {entry.details} {entry.value}".casefold() for word in words)
        )

    def move(self, step: int) -> bool:
        """Mark the next or the previous entry."""
        if self._found:
            self._marked = (self._marked + step) % len(self._found)
        return True

    def turn(self, pages: int) -> bool:
        """Mark an entry a page further on."""
        last = max(len(self._found) - 1, 0)
        self._marked = min(max(self._marked + pages * _MOST_ROWS, 0), last)
        return True

    def toggle(self) -> bool:
        """Do nothing: there is nothing more to show."""
        return False

    def rows(self, width: int, height: int) -> list[str]:
        """Return the rows around the marked entry."""
        room = max(min(height - 2, _MOST_ROWS), 1)
        first = min(max(self._marked - room // 2, 0), max(len(self._found) - room, 0))
        shown = [self._row(at, width) for at in range(first, min(first + room, len(self._found)))]
        count = f"{len(self._found)} of {len(self._entries)}"
        title = cut(f"{self._heading} · {count} · type to filter, ↑↓ choose, Enter takes it, Esc leaves", width)
        return [self._palette.paint(title, "dim"), *(shown or ["   nothing fits"])]

    def next_rows(self, width: int, height: int) -> list[str]:
        """Return the first entries, for a screen that cannot be redrawn."""
        return [cut(f"  {entry.value}  {visible_line(entry.title)}", width) for entry in self._found[:_MOST_ROWS]]

    def _row(self, at: int, width: int) -> str:
        entry = self._found[at]
        details = visible_line(entry.details)
        room = max(width - len(details) - 6, 12)
        title = cut(visible_line(entry.title), room)
        sign = "❯" if at == self._marked else " "
        text = cut(f" {sign} {title}{' ' * max(room - len(title), 0)}  {details}", width)
        return self._palette.paint(text, "bold") if at == self._marked else text
