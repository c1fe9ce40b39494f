"""Shows a dialog that may be longer than the screen, page by page, and knows whether it was shown to its end."""

from collections.abc import Callable

from callwright.cli.approval_dialog import DialogText
from callwright.cli.render.text import cut

_LEAST_BODY_ROWS = 3
_READ_ON = "Space or PgDn shows more; an approval counts after the last row was shown"


class DialogView:
    """One dialog on the screen.

    The heading, the deciding rows and the choices are on every page. A row counts as shown once it was drawn; the
    dialog is read when all rows of the body were shown, without a gap, at the current width.

    Args:
        compose: Returns the rows for a width.
    """

    def __init__(self, compose: Callable[[int], DialogText]) -> None:
        self._compose = compose
        self._width = 0
        self._text = DialogText([], [], [], [])
        self._first = 0
        """The first row of the body on the current page."""
        self._room = 1
        self._shown = 0
        """How many rows of the body were shown, from the start."""
        self.note = ""
        """A message below the choices, until the next page."""

    @property
    def read(self) -> bool:
        """Whether the whole dialog was shown."""
        return self._width > 0 and self._shown >= len(self._text.body)

    def rows(self, width: int, height: int) -> list[str]:
        """Return the rows of the current page, at most `height` rows if that is possible; they count as shown."""
        self._set_width(width)
        note = [cut(f"  {self.note}", width)] if self.note else []
        text = self._text
        if len(text.rows) + len(note) <= height:
            self._first, self._shown = 0, len(text.body)
            return [*text.rows, *note]
        heading, choices = text.heading, text.choices
        fixed = len(heading) + len(choices) + len(note) + 1
        # the deciding rows may take half of what is left, the choices only what the body can spare
        deciding = _shorten(text.deciding, max((height - fixed) // 2, 1))
        if height - fixed - len(deciding) < _LEAST_BODY_ROWS:
            choices = choices[: max(height - len(heading) - len(note) - len(deciding) - 1 - _LEAST_BODY_ROWS, 1)]
        used = len(heading) + len(choices) + len(note) + len(deciding) + 1
        self._room = max(height - used, 1)
        return [*heading, *self._page(width), *deciding, *choices, *note]

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
        end = self._text.choices if self.read else ["  Enter shows more; an approval counts after the last row"]
        return [*(self._text.heading if first else []), *body, *end]

    def record(self, width: int, most_rows: int = 30) -> list[str]:
        """Return the rows to leave behind on the screen after the answer."""
        self._set_width(width)
        body = self._text.body
        if len(body) > most_rows:
            half = most_rows // 2
            body = [*body[:half], f"  … {len(body) - 2 * half} more rows …", *body[-half:]]
        return [*self._text.heading, *body]

    def _set_width(self, width: int) -> None:
        if width != self._width:
            # other widths have other rows, so what was shown is not known any more
            self._width, self._text, self._first, self._shown = width, self._compose(width), 0, 0

    def _page(self, width: int) -> list[str]:
        body, first = self._text.body, min(self._first, max(len(self._text.body) - self._room, 0))
        self._first = first
        last = min(first + self._room, len(body))
        if first <= self._shown:  # a resize may leave a gap, which has to be shown again
            self._shown = max(self._shown, last)
        more = "" if self.read else f" · {_READ_ON}"
        return [*body[first:last], cut(f"  ── rows {first + 1}-{last} of {len(body)}{more}", width)]


def _shorten(rows: list[str], most: int) -> list[str]:
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], f"  … {len(rows) - most + 1} more deciding rows above"] if most > 1 else rows[:1]
