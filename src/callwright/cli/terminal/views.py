"""What stands above the input line: dialogs that may be longer than the screen, and lists to choose from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from callwright.cli.approval_card import Menu
from callwright.cli.approval_dialog import DialogText
from callwright.cli.render.text import Palette, cut, visible_line, width_of, wrap_line

_LEAST_BODY_ROWS = 3
_LEAST_MENU_HEIGHT = 18
_MOST_ENTRIES = 14
_READ_ON = "Space or PgDn shows more; a yes counts after the last"


class DialogView:
    """A dialog that is shown page by page, and knows whether it was shown to its end.

    The heading is on every page; the deciding rows, which the body has too, and the choices are there if the window
    is not very low. A row counts as shown once it was drawn; the dialog is read when all rows of the body were shown,
    without a gap, at the current width.

    Args:
        compose: Returns the rows for a width.
        menu: The answers, shown below the rows.
        details: Returns the rows with everything the call would touch; Tab switches to them and back.
    """

    filters = False

    def __init__(
        self,
        compose: Callable[[int], DialogText],
        *,
        menu: Menu | None = None,
        details: Callable[[int], DialogText] | None = None,
    ) -> None:
        self._compose, self._other = compose, details
        self._menu = menu
        self._width = 0
        self._text = DialogText([], [], [], [])
        self._first = 0
        """The first row of the body on the current page."""
        self._room = 1
        self._shown = 0
        """How many rows of the body were shown, from the start."""
        self._read_before = False
        """Whether the other rows of Tab were read to their end at this width."""
        self.note = ""
        """A message below the choices, until the next page."""

    @property
    def read(self) -> bool:
        """Whether the whole dialog was shown."""
        return self._read_before or (self._width > 0 and self._shown >= len(self._text.body))

    @property
    def answer(self) -> str:
        """What Enter stands for on an empty line: the marked row of the menu; empty without one."""
        return "" if self._menu is None else self._menu.answer

    def mark(self, typed: str) -> None:
        """Mark the row of the menu that a typed text stands for."""
        if self._menu is not None:
            self._menu.mark(typed)

    def move(self, step: int) -> bool:
        """Mark the next or the previous row of the menu; False without a menu."""
        if self._menu is not None:
            self._menu.move(step)
        return self._menu is not None

    def toggle(self) -> bool:
        """Switch between the usual rows and everything; False if there is nothing more to show."""
        if self._other is None:
            return False
        self._compose, self._other = self._other, self._compose
        # what was read stays read, because the usual rows are all that an approval needs
        read, self._width = self.read, 0
        self._read_before = self._read_before or read
        return True

    def rows(self, width: int, height: int) -> list[str]:
        """Return the rows of the current page, at most `height` rows if that is possible; they count as shown."""
        self._set_width(width)
        note = self._note_rows(width)
        text = self._text
        heading, choices = text.heading, [*text.choices, *(self._menu.rows(width) if self._menu is not None else [])]
        if len(heading) + len(text.body) + len(choices) + len(note) <= height:
            self._first, self._shown = 0, len(text.body)
            return [*heading, *text.body, *choices, *note]
        brief = self._menu is not None and height < _LEAST_MENU_HEIGHT
        if self._menu is not None and brief:
            choices = [*text.choices, *self._menu.rows(width, brief=True)]
        fixed = len(heading) + len(choices) + len(note) + 1
        # the deciding rows may take half of what is left, the choices only what the body can spare
        deciding = _shorten(text.deciding, max((height - fixed) // 2, 1), width)
        if height - fixed - len(deciding) < _LEAST_BODY_ROWS:
            most = max(height - len(heading) - len(note) - len(deciding) - 1 - _LEAST_BODY_ROWS, 1)
            choices = choices[-most:] if brief else choices[:most]  # the answers, rather than the frame above them
        used = len(heading) + len(choices) + len(note) + len(deciding) + 1
        if used >= height:
            return self._low_rows(width, height, choices)
        self._room = height - used
        return [*heading, *self._page(width), *deciding, *choices, *note]

    def _low_rows(self, width: int, height: int, choices: list[str]) -> list[str]:
        """Return the rows for a window of a few rows: what counts as shown has to be on the screen."""
        heading = self._text.heading
        if height < len(heading) + 2:
            return [cut("  make the window higher to read the question", width)]
        self._room = max(height - len(heading) - 2, 1)
        return [*heading, *self._page(width), *choices[-1:]][:height]

    def turn(self, pages: int) -> bool:
        """Turn some pages forward, or back if negative; False if there is no such page."""
        # never past a row that was not drawn, however fast the key repeats
        last = min(max(len(self._text.body) - self._room, 0), self._shown)
        first = min(max(self._first + pages * self._room, 0), last)
        turned, self._first = first != self._first, first
        if turned:
            self.note = ""
        return turned

    def next_rows(self, width: int, height: int) -> list[str]:
        """Return the rows that follow those shown so far, for a screen that cannot be redrawn."""
        first = not self._width
        self._set_width(width)
        body = self._text.body[self._shown : self._shown + max(height - 6, _LEAST_BODY_ROWS)]
        self._shown += len(body)
        menu = [] if self._menu is None else self._menu.rows(width)
        end = (
            [*self._text.choices, *menu] if self.read else ["  Enter shows more; an approval counts after the last row"]
        )
        return [*(self._text.heading if first else []), *body, *end, *self._note_rows(width)]

    def _note_rows(self, width: int) -> list[str]:
        return wrap_line(f"  {self.note}", width) if self.note else []

    def record(self, width: int, most_rows: int = 30) -> list[str]:
        """Return the rows to leave behind on the screen after the answer."""
        self._set_width(width)
        body = self._text.body
        if len(body) > most_rows:
            half = most_rows // 2
            body = [*body[:half], f"  … {len(body) - 2 * half} more rows …", *body[-half:]]
        frame = self._text.choices if self._menu is not None else []
        return [*self._text.heading, *body, *frame]

    def _set_width(self, width: int) -> None:
        if width != self._width:
            # other widths have other rows, so what was shown is not known any more
            self._read_before = self._read_before and not self._width
            self._width, self._text, self._first, self._shown = width, self._compose(width), 0, 0

    def _page(self, width: int) -> list[str]:
        body, first = self._text.body, min(self._first, max(len(self._text.body) - self._room, 0))
        self._first = first
        last = min(first + self._room, len(body))
        if first <= self._shown:  # a resize may leave a gap, which has to be shown again
            self._shown = max(self._shown, last)
        more = "" if self.read else f" · {_READ_ON}"
        return [*body[first:last], cut(f"{self._text.rule}rows {first + 1}-{last} of {len(body)}{more}", width)]


def _shorten(rows: list[str], most: int, width: int) -> list[str]:
    if len(rows) <= most:
        return rows
    left = cut(f"  … {len(rows) - most + 1} more deciding rows above", width)
    return [*rows[: most - 1], left] if most > 1 else rows[:1]


@dataclass(frozen=True, slots=True)
class PickEntry:
    """One entry: what it stands for, its title, and details shown beside it."""

    value: str
    title: str
    details: str = ""


class Picker:
    """A list to choose from: typed words filter it, in any order, without case; arrow keys mark, Enter takes.

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
        self._marked = min(max(self._marked + pages * _MOST_ENTRIES, 0), last)
        return True

    def toggle(self) -> bool:
        """Do nothing: there is nothing more to show."""
        return False

    def rows(self, width: int, height: int) -> list[str]:
        """Return the rows around the marked entry."""
        room = max(min(height - 2, _MOST_ENTRIES), 1)
        first = min(max(self._marked - room // 2, 0), max(len(self._found) - room, 0))
        shown = [self._row(at, width) for at in range(first, min(first + room, len(self._found)))]
        count = f"{len(self._found)} of {len(self._entries)}"
        title = cut(f"{self._heading} · {count} · type to filter, ↑↓ choose, Enter takes it, Esc leaves", width)
        return [self._palette.paint(title, "dim"), *(shown or ["   nothing fits"])]

    def next_rows(self, width: int, height: int) -> list[str]:
        """Return the first entries, for a screen that cannot be redrawn."""
        shown = self._found[:_MOST_ENTRIES]
        more = [f"  … {len(self._found) - len(shown)} more"] if len(self._found) > len(shown) else []
        return [*(cut(f"  {entry.value}  {visible_line(entry.title)}", width) for entry in shown), *more]

    def _row(self, at: int, width: int) -> str:
        entry = self._found[at]
        details = visible_line(entry.details)
        room = max(width - width_of(details) - 6, 12)
        title = cut(visible_line(entry.title), room)
        sign = "❯" if at == self._marked else " "
        text = cut(f" {sign} {title}{' ' * max(room - width_of(title), 0)}  {details}", width)
        return self._palette.paint(text, "bold" if at == self._marked else "")
