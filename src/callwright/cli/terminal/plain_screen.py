"""A screen for terminals that cannot place a cursor: lines only, and the prompt where one can be typed."""

from collections.abc import Sequence

from callwright.cli.terminal.screen import Screen


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
