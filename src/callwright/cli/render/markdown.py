"""Markdown for a terminal, line by line, so that it can be shown while it is being written.

Colours for lines of code: comments, strings, numbers and the words a language keeps for itself.

Tables of Markdown as columns on a screen; what does not fit is continued below, inside its column.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby, zip_longest

from callwright.cli.render.text import Palette, padded, visible, width_of, word_rows, wrapped

_HASH = "python py python3 sh bash zsh shell console yaml yml toml ini ruby rb perl r make makefile dockerfile conf"
_SLASH = "javascript js jsx typescript ts tsx java c cpp c++ cs csharp go rust rs swift kotlin kt scala php json css"
_DASH = "sql lua haskell hs elm ada"
_COMMENTS = {
    **dict.fromkeys(_HASH.split(), r"\#.*"),
    **dict.fromkeys(_SLASH.split(), r"//.*|/\*.*?(?:\*/|$)"),
    **dict.fromkeys(_DASH.split(), r"--.*"),
}
_WORDS = frozenset(
    """
    abstract and as assert async await begin bool boolean break case catch char class const continue crate def default
    del delete do done double elif else elsif end enum except export extends false False fi final finally float fn for
    foreach from func function global go if impl implements import in instanceof int interface is lambda let local long
    loop match mod module mut namespace new nil None nonlocal not null or package pass private protected pub public
    raise ref require return select self short signed static string struct super switch template then this throw throws
    trait true True try type typedef typeof undefined union unless unsafe until use using val var void when where while
    with yield SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE JOIN LEFT RIGHT ON AND OR NOT NULL ORDER GROUP
    BY LIMIT SET VALUES AS
    """.split()
)
_STYLES = {"comment": "dim", "string": "green", "number": "yellow"}
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def code_line(line: str, language: str, palette: Palette) -> str:
    """One line in the colours of its language; in an unknown language in none."""
    if not palette.on or not line:
        return line
    if language in ("diff", "patch"):
        return palette.paint(line, _DIFF[line[0]]) if line[0] in _DIFF else line
    comment = _COMMENTS.get(language)
    return line if comment is None else _tokens(comment).sub(lambda found: _coloured(found, palette), line)


@cache
def _tokens(comment: str) -> "re.Pattern[str]":
    string = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`"
    return re.compile(rf"(?P<string>{string})|(?P<comment>{comment})|(?P<number>\b\d[\w.]*)|(?P<word>\b[A-Za-z_]\w*)")


def _coloured(found: "re.Match[str]", palette: Palette) -> str:
    kind = found.lastgroup or ""
    if kind == "word":
        return palette.paint(found[0], "blue") if found[0] in _WORDS else found[0]
    return palette.paint(found[0], _STYLES[kind])


_CELL = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_GAP = "  "
_NARROWEST = 4


def is_table_row(line: str) -> bool:
    """Whether a line can be nothing but a row of a table."""
    return line.lstrip().startswith("|") and line.rstrip().endswith("|") and len(line.strip()) > 1


def is_table_rule(line: str) -> bool:
    """Whether it is the line of dashes under the names of the columns."""
    return "-" in line and "|" in line and _TABLE_RULE.fullmatch(line) is not None


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


_FENCE = re.compile(r"\s*(```+|~~~+)\s*(\S*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,3}[.)])\s+(\[[ xX]\] )?(.*)")
_QUOTE = re.compile(r"((?:>\s?)+)(.*)")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*")
_INLINE = re.compile(
    r"(?P<code>``.+?``|`[^`]+`)|!?\[(?P<words>[^\]]+)\]\((?P<link>[^)\s]+)[^)]*\)"
    r"|(?P<bold>\*\*[^*]+\*\*|(?<!\w)__[^_]+__(?!\w))|(?P<italic>(?<![\w*])[*_][^*_\s][^*_]*[*_](?![\w*]))"
)
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_PROSE = str.maketrans({"\u00a0": " ", "\t": "    "})
Styled = tuple[str, str]
"""A stretch of text and the style it is shown in, or none."""


class MarkdownLines:
    """Styles one line after the other; keeps back only a table, whose columns are known when it is whole."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._fence = ""
        self._language = ""
        self.table: list[str] = []
        """The lines of a table that has not come to its end."""

    def rows(self, line: str, width: int) -> list[str]:
        """A line as it is to be shown; what a terminal would obey is made visible."""
        shown = visible(line.translate(_PROSE) if not self._fence else line)
        if not self._fence and (is_table_row(shown) or (self.table and is_table_rule(shown))):
            self.table.append(shown)
            return []
        return [*self._whole_table(width), *self._one(shown, width)]

    def end(self, width: int) -> list[str]:
        """What was kept back; the next line begins another text."""
        rows = self._whole_table(width)
        self._fence = self._language = ""
        return rows

    def _whole_table(self, width: int) -> list[str]:
        lines, self.table = self.table, []
        if len(lines) > 1 and is_table_rule(lines[1]):
            return table_rows(lines, width, self._palette)
        return [row for line in lines for row in self._prose(line, width)]

    def _one(self, shown: str, width: int) -> list[str]:
        if fence := _FENCE.match(shown):
            return self._fenced(shown, fence)
        if self._fence:
            return [code_line(shown, self._language, self._palette)]
        if heading := _HEADING.fullmatch(shown):
            return self._filled([(heading[2], "bold")], width)
        if _RULE.fullmatch(shown):
            return [self._palette.paint("─" * min(width, 40), "dim")]
        if item := _ITEM.fullmatch(shown):
            mark = "• " if not item[2][0].isdigit() else f"{item[2]} "
            lead = f"{item[1]}{mark}{_BOXES.get(item[3] or '', '')}"
            return self._filled(self._spans(item[4]), width, lead)
        if quote := _QUOTE.fullmatch(shown):
            return self._filled([(quote[2], "dim")], width, "│ " * quote[1].count(">"), hanging=False)
        return self._prose(shown, width)

    def _fenced(self, shown: str, fence: "re.Match[str]") -> list[str]:
        if self._fence:
            if not fence[1].startswith(self._fence) or fence[2]:  # three marks inside a block of four
                return [code_line(shown, self._language, self._palette)]
            self._fence = self._language = ""
        else:
            self._fence, self._language = fence[1], fence[2].lower()
        return [self._palette.paint(shown, "dim")]

    def _prose(self, text: str, width: int) -> list[str]:
        body = text.lstrip()
        return self._filled(self._spans(body), width, text[: len(text) - len(body)])

    def _filled(self, spans: Sequence[Styled], width: int, lead: str = "", *, hanging: bool = True) -> list[str]:
        """Rows of whole words; those after the first stand under its text."""
        text = "".join(part for part, _ in spans)
        styles = [style for part, style in spans for _ in part]
        room = max(width - len(lead), width // 3)
        after = " " * len(lead) if hanging else lead
        return [
            (after if number else lead) + self._painted(text, styles, start, end)
            for number, (start, end) in enumerate(word_rows(text, room))
        ]

    def _painted(self, text: str, styles: Sequence[str], start: int, end: int) -> str:
        runs = groupby(range(start, end), key=styles.__getitem__)
        pieces = [(style, "".join(text[at] for at in places)) for style, places in runs]
        return "".join(self._palette.paint(piece, style) if style else piece for style, piece in pieces)

    def _spans(self, text: str) -> list[Styled]:
        spans: list[Styled] = []
        at = 0
        for found in _INLINE.finditer(text):
            spans += [(text[at : found.start()], ""), *self._marked(found)]
            at = found.end()
        return [*spans, (text[at:], "")]

    def _marked(self, found: "re.Match[str]") -> list[Styled]:
        """Without colours marks stay: they are all that tells what is code and what is stressed."""
        text = found[0]
        if found["link"]:
            # both are shown, so that words cannot hide where they lead
            address = "" if found["words"] == found["link"] else f" ({found['link']})"
            return [(found["words"], "underline"), (address, "dim")]
        if not self._palette.on:
            return [(text, "")]
        if found["code"]:
            return [(text.strip("`").strip() or text, "cyan")]
        return [(text[2:-2], "bold")] if found["bold"] else [(text[1:-1], "italic")]
