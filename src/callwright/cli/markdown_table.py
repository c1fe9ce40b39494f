"""Tables of Markdown as columns on a screen; what does not fit is continued below, inside its column."""

import re
from collections.abc import Sequence
from itertools import zip_longest

from callwright.cli.columns import padded, width_of, word_rows, wrapped
from callwright.cli.palette import Palette

_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_GAP = "  "
_NARROWEST = 4


def is_table_row(line: str) -> bool:
    """Whether a line can be nothing but a row of a table."""
    return line.lstrip().startswith("|") and line.rstrip().endswith("|") and len(line.strip()) > 1


def is_table_rule(line: str) -> bool:
    """Whether it is the line of dashes under the names of the columns."""
    return "-" in line and "|" in line and _RULE.fullmatch(line) is not None


def table_rows(lines: Sequence[str], width: int, palette: Palette) -> list[str]:
    """The rows of a table of at least two lines; as it was written if there is no room for its columns."""
    sides = [_side(cell) for cell in _cells(lines[1])]
    table = [_cells(line) for line in (lines[0], *lines[2:])]
    widths = _widths(table, len(sides), width - len(_GAP) * (len(sides) - 1))
    if widths is None:
        return list(lines)
    heading, *rest = [_row(cells, widths, sides) for cells in table]
    rule = palette.paint(_GAP.join("─" * columns for columns in widths), "dim")
    return [*(palette.paint(row, "bold") for row in heading), rule, *(row for rows in rest for row in rows)]


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]


def _side(cell: str) -> str:
    if cell.endswith(":"):
        return "middle" if cell.startswith(":") else "right"
    return "left"


def _widths(table: Sequence[Sequence[str]], count: int, room: int) -> list[int] | None:
    """As wide as the cells are; where that is too much, the widest columns give way first."""
    if count * _NARROWEST > room:
        return None
    widths = [max([1, *(width_of(row[place]) for row in table if place < len(row))]) for place in range(count)]
    while sum(widths) > room:
        widest = max(widths)
        others = [columns for columns in widths if columns < widest]
        excess, number = sum(widths) - room, widths.count(widest)
        step = max(1, min(-(-excess // number), widest - max(others, default=_NARROWEST)))
        widths = [max(columns - step, 1) if columns == widest else columns for columns in widths]
    return widths


def _row(cells: Sequence[str], widths: Sequence[int], sides: Sequence[str]) -> list[str]:
    given = [*cells, *[""] * len(widths)]
    columns = [_within(cell, width) for cell, width in zip(given, widths, strict=False)]
    return [
        _GAP.join(padded(part, width, side) for part, width, side in zip(parts, widths, sides, strict=True)).rstrip()
        for parts in zip_longest(*columns, fillvalue="")
    ]


def _within(cell: str, width: int) -> list[str]:
    rows = [cell[start:end] for start, end in word_rows(cell, width)]
    return [part for row in rows for part in wrapped(row, width)]
