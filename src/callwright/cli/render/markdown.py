"""Markdown for a terminal, rendered line by line, so that text can be shown while the model writes it.

`rich.markdown` renders whole documents, so the structure of a line (heading, item, quote, fence) is recognised here;
inline marks are parsed by markdown-it, and text, tables and code are rendered by rich. All of them are imported with
the first line, not with this module.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from callwright.cli.render.text import Palette, visible, word_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from rich.console import Console, RenderableType
    from rich.syntax import Syntax
    from rich.text import Text

_FENCE = re.compile(r"\s*(```+|~~~+)\s*(\S*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,3}[.)])\s+(\[[ xX]\] )?(.*)")
_QUOTE = re.compile(r"((?:>\s?)+)(.*)")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_PROSE = str.maketrans({"\u00a0": " ", "\t": "    "})
_RULE_COLUMNS = 40

_CELL = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?")
_GAP_COLUMNS = 2
_MIN_CELL_COLUMNS = 4

_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "a": "underline"}
_CODE_THEME = "ansi_dark"
"""The terminal's own sixteen colours, so that code is readable on every background."""


class MarkdownLines:
    """Renders one line after the other; only the lines of a table are held back until it is complete.

    Args:
        palette: Whether to use colours. Without them, marks like `**` stay: nothing else tells what is emphasised.
    """

    def __init__(self, palette: Palette) -> None:
        self._renderer = _Renderer(palette)
        self._fence = ""
        self._syntax: Syntax | None = None
        self.held: list[str] = []
        """The lines of a table that has not ended yet."""

    def rows(self, line: str, width: int) -> list[str]:
        """Render a line; control characters are shown escaped.

        Args:
            line: One line without its line break.
            width: The columns of the screen.

        Returns:
            The rows to show; none while the line is held back.
        """
        if self._fence:
            return self._code_rows(line)
        prose = line.translate(_PROSE)
        if _is_table_row(prose) or (self.held and _is_table_rule(prose)):
            self.held.append(prose)
            return []
        return [*self._table_rows(width), *self._line_rows(prose, width)]

    def end(self, width: int) -> list[str]:
        """Render the lines held back; the next line starts a new text."""
        rows = self._table_rows(width)
        self._fence, self._syntax = "", None
        return rows

    def _table_rows(self, width: int) -> list[str]:
        lines, self.held = self.held, []
        if len(lines) > 1 and _is_table_rule(lines[1]):
            rows = self._renderer.table(lines, width)
            return [visible(line) for line in lines] if rows is None else rows
        return [row for line in lines for row in self._renderer.prose(line, width)]

    def _line_rows(self, line: str, width: int) -> list[str]:
        renderer = self._renderer
        if fence := _FENCE.match(line):
            self._fence = fence[1]
            self._syntax = renderer.syntax(fence[2])
            return [renderer.palette.paint(visible(line), "dim")]
        if heading := _HEADING.fullmatch(line):
            return renderer.prose(heading[2].rstrip("#").rstrip(), width, style="bold")
        if _RULE.fullmatch(line):
            return [renderer.palette.paint("─" * min(width, _RULE_COLUMNS), "dim")]
        if item := _ITEM.fullmatch(line):
            mark = "• " if not item[2][0].isdigit() else f"{item[2]} "
            return renderer.prose(item[4], width, f"{item[1]}{mark}{_BOXES.get(item[3] or '', '')}")
        if quote := _QUOTE.fullmatch(line):
            bars = "│ " * quote[1].count(">")
            return renderer.prose(quote[2], width, bars, bars, style="dim")
        body = line.lstrip()
        return renderer.prose(body, width, line[: len(line) - len(body)])

    def _code_rows(self, line: str) -> list[str]:
        fence = _FENCE.match(line)
        # a fence of three marks inside a block of four is code
        if fence and fence[1].startswith(self._fence) and not fence[2]:
            self._fence, self._syntax = "", None
            return [self._renderer.palette.paint(visible(line), "dim")]
        return [self._renderer.code(line, self._syntax)]


@dataclass
class _Renderer:
    """Renders the parts of a document with rich."""

    palette: Palette

    @cached_property
    def _console(self) -> "Console":
        from io import StringIO

        from rich.console import Console

        # the palette has read the environment already, so rich must not read NO_COLOR, COLUMNS or TERM again
        system: Literal["standard"] | None = "standard" if self.palette.on else None
        return Console(file=StringIO(), color_system=system, force_terminal=True, legacy_windows=False, _environ={})

    @cached_property
    def _parser(self) -> "MarkdownIt":
        from markdown_it import MarkdownIt

        return MarkdownIt("commonmark").enable("strikethrough")

    def prose(
        self, text: str, width: int, first: str = "", further: str | None = None, *, style: str = ""
    ) -> list[str]:
        """Render inline Markdown wrapped at words.

        Args:
            text: The text of one line.
            width: The columns of the screen.
            first: What stands before the first row, such as a bullet.
            further: What stands before the other rows; by default spaces, so that they align with the first.
            style: The style of the whole text.
        """
        inline, first = self._inline(text, style), visible(first)  # an indent may hold a carriage return
        spans = word_spans(inline.plain, max(width - len(first), width // 3))
        # all at once: rich copies the whole text for every part that is taken from it
        pieces = inline.divide([place for span in spans for place in span])[1::2]
        rows = [self._ansi(piece) if piece else "" for piece in pieces]
        indent = " " * len(first) if further is None else further
        return [f"{indent if number else first}{row}" for number, row in enumerate(rows)]

    def table(self, lines: Sequence[str], width: int) -> list[str] | None:
        """Render a table of at least two lines; None if its columns do not fit."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        heading, rule, *rest = [_split_cells(line) for line in lines]
        if len(rule) * (_MIN_CELL_COLUMNS + _GAP_COLUMNS) - _GAP_COLUMNS > width:
            return None
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        table.header_style, table.border_style = "bold", "dim"
        for name, mark in zip([*heading, *[""] * len(rule)], rule, strict=False):
            table.add_column(self._inline(name), justify=_justify(mark), overflow="fold", min_width=1)
        for cells in rest:
            table.add_row(*(self._inline(cell) for cell in cells[: len(rule)]))
        return [row.rstrip() for row in self._ansi(table, width).splitlines()]

    def syntax(self, language: str) -> "Syntax | None":
        """Return the highlighter of a language; None for unknown languages and without colours."""
        if not self.palette.on or not language:
            return None
        from rich.syntax import Syntax

        syntax = Syntax("", language.lower(), theme=_CODE_THEME)
        return syntax if syntax.lexer is not None else None

    def code(self, line: str, syntax: "Syntax | None") -> str:
        """Render one line of code; it is highlighted on its own, so a string over several lines loses its colour."""
        shown = visible(line)
        if syntax is None:
            return shown
        highlighted = syntax.highlight(shown)
        highlighted.rstrip()
        return self._ansi(highlighted)

    def _inline(self, text: str, style: str = "") -> "Text":
        """Parse inline Markdown; the address of a link is shown, so that its words cannot hide where it leads."""
        from rich.text import Text

        # escaped after parsing, not before: entities like &#x202e; are decoded by the parser
        inline = Text(style=style)
        open_styles: list[str] = []
        address, label_start = "", 0
        for token in self._parser.parseInline(text)[0].children or ():
            kind, _, part = token.type.rpartition("_")
            match part:
                case "open" if kind == "link":
                    address, label_start = visible(str(token.attrs.get("href", ""))), len(inline)
                    open_styles.append(_STYLES["a"])
                case "close" if kind == "link":
                    open_styles.pop()
                    if inline.plain[label_start:] != address:
                        inline.append(f" ({address})", "dim")
                case "open" | "close" if not self.palette.on:
                    inline.append(token.markup)
                case "open":
                    open_styles.append(_STYLES[kind])
                case "close":
                    open_styles.pop()
                case _:
                    self._append(inline, token.type, token.content, token.markup, open_styles)
                    if token.type == "image":
                        inline.append(f" ({visible(str(token.attrs.get('src', '')))})", "dim")
        return inline

    def _append(self, inline: "Text", kind: str, content: str, markup: str, styles: Sequence[str]) -> None:
        shown = visible(content)
        if kind == "code_inline":
            inline.append(shown if self.palette.on else f"{markup}{shown}{markup}", "cyan")
        else:
            inline.append(shown, " ".join(styles))

    def _ansi(self, renderable: "RenderableType", width: int | None = None) -> str:
        with self._console.capture() as capture:
            self._console.print(renderable, end="", width=width, soft_wrap=width is None)
        return capture.get()


def _is_table_row(line: str) -> bool:
    return line.lstrip().startswith("|") and line.rstrip().endswith("|") and len(line.strip()) > 1


def _is_table_rule(line: str) -> bool:
    return "-" in line and "|" in line and _TABLE_RULE.fullmatch(line.strip()) is not None


def _split_cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]


def _justify(mark: str) -> Literal["left", "center", "right"]:
    if not mark.endswith(":"):
        return "left"
    return "center" if mark.startswith(":") else "right"
