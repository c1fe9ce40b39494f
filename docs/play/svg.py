"""Draws rows of cells as an SVG whose text can be selected, searched and read aloud.

The window has its own background, so it looks the same on light and dark pages. Every run of characters has an explicit
width (`textLength`), so columns align in any fixed-width font.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from docs.play.cells import Cell, Row, Style

COLUMNS = 80
_ADVANCE, _LEADING, _FONT = 8.4, 19, 14
_SIDE, _BAR, _FOOT = 18, 40, 16
_FAMILY = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_BACKGROUND, _FOREGROUND = "#1a1e26", "#d6dae2"
_COLOURS = {
    "black": "#3b4252",
    "red": "#f07178",
    "green": "#8ccf7e",
    "yellow": "#e5c76b",
    "blue": "#7aa7f0",
    "magenta": "#c792ea",
    "cyan": "#6fd0d8",
    "white": "#d6dae2",
    "bright-black": "#7d8799",
    "bright-red": "#ff8b92",
    "bright-green": "#a6e79a",
    "bright-yellow": "#f7dc8a",
    "bright-blue": "#97bfff",
    "bright-magenta": "#dcb0ff",
    "bright-cyan": "#8ee8ef",
    "bright-white": "#ffffff",
}
_LIGHTS = ("#ec6a5e", "#f4bf4f", "#61c554")


def draw_svg(rows: Sequence[Row], *, title: str, about: str, cursor: tuple[int, int]) -> str:
    """Draw the rows in a window; `about` is the description for screen readers."""
    width = round(COLUMNS * _ADVANCE + 2 * _SIDE)
    height = _BAR + len(rows) * _LEADING + _FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(about)}</desc>',
        f"<style>{_sheet(rows)}</style>",
        *_window(width, height, title),
        *(_block(cell, row, column) for row, column, cell in _background_runs(rows)),
        _cursor(*cursor),
        '<g xml:space="preserve">',
        *(line for number, row in enumerate(rows) if (line := _line(number, row))),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _window(width: int, height: int, title: str) -> Iterator[str]:
    yield (
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9"'
        f' fill="{_BACKGROUND}" stroke="#566072" stroke-opacity=".7"/>'
    )
    for place, colour in enumerate(_LIGHTS):
        yield f'<circle cx="{20 + 18 * place}" cy="18" r="5.5" fill="{colour}"/>'
    yield f'<text class="t" x="{width / 2:g}" y="22" text-anchor="middle">{escape(title)}</text>'


def _sheet(rows: Iterable[Row]) -> str:
    """Return the style sheet of the styles that occur."""
    used = {name for row in rows for cell in row for name in _classes(cell.style)}
    named = {
        "b": "font-weight:700",
        "d": "fill-opacity:.62",
        "i": "font-style:italic",
        "u": "text-decoration:underline",
        **{name: f"fill:{colour}" for name, colour in _COLOURS.items()},
        "inverse": f"fill:{_BACKGROUND}",
    }
    rules = [f".{name}{{{look}}}" for name, look in named.items() if name in used]
    text = f"text{{font:{_FONT}px {_FAMILY};fill:{_FOREGROUND};white-space:pre}}"
    return "".join([text, ".t{font:12px system-ui,sans-serif;fill:#8b95a7}", *rules])


def _classes(style: Style) -> Iterator[str]:
    for letter, on in (("b", style.bold), ("d", style.dim), ("i", style.italic), ("u", style.underline)):
        if on:
            yield letter
    ink = (style.background or "inverse") if style.reverse else style.colour
    if ink and not ink.startswith("#"):
        yield ink


def _line(number: int, row: Row) -> str:
    """Return one row as one text element, so that selections are copied row by row."""
    while row and row[-1].text == " ":
        row = row[:-1]
    spans = [_span(column, run) for column, run in _runs(row)]
    y = _BAR + number * _LEADING + _FONT
    return f'<text y="{y}">{"".join(spans)}</text>' if spans else ""


def _runs(row: Row) -> Iterator[tuple[int, tuple[Cell, ...]]]:
    """Yield runs of cells of the same style with their first column; a wide character is a run of its own."""
    column = 0
    for _, cells in groupby(enumerate(row), lambda placed: (placed[1].style, placed[1].columns != 1 and placed[0])):
        run = tuple(cell for _, cell in cells)
        yield column, run
        column += sum(cell.columns for cell in run)


def _span(column: int, run: Sequence[Cell]) -> str:
    style = run[0].style
    x, length = _SIDE + column * _ADVANCE, sum(cell.columns for cell in run) * _ADVANCE
    names = " ".join(_classes(style))
    look = f' class="{names}"' if names else ""
    ink = style.background if style.reverse else style.colour
    fill = f' fill="{ink}"' if ink.startswith("#") else ""
    text = escape("".join(cell.text for cell in run), quote=False)
    return f'<tspan x="{x:g}" textLength="{length:g}"{look}{fill}>{text}</tspan>'


def _background_runs(rows: Sequence[Row]) -> Iterator[tuple[int, int, Sequence[Cell]]]:
    for number, row in enumerate(rows):
        for column, run in _runs(row):
            if run[0].style.background or run[0].style.reverse:
                yield number, column, run


def _block(run: Sequence[Cell], row: int, column: int) -> str:
    style = run[0].style
    colour = (style.colour or _FOREGROUND) if style.reverse else style.background
    columns = sum(cell.columns for cell in run)
    return _rectangle(row, column, columns, f'fill="{_COLOURS.get(colour, colour)}"')


def _cursor(row: int, column: int) -> str:
    return _rectangle(row, column, 1, f'fill="{_FOREGROUND}" fill-opacity=".55"')


def _rectangle(row: int, column: int, columns: int, look: str) -> str:
    x, y = _SIDE + column * _ADVANCE, _BAR + row * _LEADING - 1
    return f'<rect x="{x:g}" y="{y}" width="{columns * _ADVANCE:g}" height="{_LEADING}" {look}/>'
