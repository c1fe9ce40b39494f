"""Parses terminal output with colour codes into rows of cells: a character and its style."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from rich.cells import split_graphemes

from callwright.cli.render.text import width_of

_CODES = re.compile(r"\x1b\[([\d;:]*)m|\x1b[()][0B]|[\x0e\x0f]")
_NAMED = "black red green yellow blue magenta cyan white".split()
_CUBE = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a character; a colour is a name, `#rrggbb`, or empty for the default."""

    colour: str = ""
    background: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One character, with its combining marks."""

    text: str
    style: Style

    @property
    def columns(self) -> int:
        return width_of(self.text)


Row: TypeAlias = tuple[Cell, ...]

_SWITCHES: dict[int, dict[str, bool | str]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    39: {"colour": ""},
    49: {"background": ""},
    **{30 + place: {"colour": name} for place, name in enumerate(_NAMED)},
    **{40 + place: {"background": name} for place, name in enumerate(_NAMED)},
    **{90 + place: {"colour": f"bright-{name}"} for place, name in enumerate(_NAMED)},
    **{100 + place: {"background": f"bright-{name}"} for place, name in enumerate(_NAMED)},
}


def parse_rows(text: str) -> list[Row]:
    """Parse the rows of a captured screen; an open style continues in the next row."""
    style = Style()
    rows: list[Row] = []
    for line in text.split("\n"):
        row: list[Cell] = []
        place = 0
        for code in _CODES.finditer(line):
            row += _cells(line[place : code.start()], style)
            style = style if code[1] is None else _apply_codes(style, code[1])
            place = code.end()
        rows.append((*row, *_cells(line[place:], style)))
    return rows


def plain(row: Iterable[Cell]) -> str:
    """Return the row as text."""
    return "".join(cell.text for cell in row).rstrip()


def _cells(text: str, style: Style) -> Iterator[Cell]:
    yield from (Cell(text[start:end], style) for start, end, _ in split_graphemes(text)[0])


def _apply_codes(style: Style, codes: str) -> Style:
    numbers = iter([int(code or 0) for code in re.split("[;:]", codes)])
    for number in numbers:
        if number == 0:
            style = Style()
        elif number in (38, 48):
            style = replace(style, **{"colour" if number == 38 else "background": _read_colour(numbers)})
        elif number in _SWITCHES:
            style = replace(style, **_SWITCHES[number])
    return style


def _read_colour(numbers: Iterator[int]) -> str:
    """Read an extended colour: 5 and one of 256, or 2 and red, green and blue."""
    if next(numbers) == 2:
        return _hex(next(numbers), next(numbers), next(numbers))
    number = next(numbers)
    if number < 16:
        return f"{'bright-' if number > 7 else ''}{_NAMED[number % 8]}"
    if number > 231:
        return _hex(*[8 + 10 * (number - 232)] * 3)
    red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    return _hex(_CUBE[red], _CUBE[green], _CUBE[blue])


def _hex(red: int, green: int, blue: int) -> str:
    return f"#{red:02x}{green:02x}{blue:02x}"
