"""Markdown for a terminal, line by line, so that it can be shown while it is being written."""

import re
from collections.abc import Sequence
from itertools import groupby

from callwright.cli.code_colours import code_line
from callwright.cli.columns import visible, word_rows
from callwright.cli.markdown_table import is_table_row, is_table_rule, table_rows
from callwright.cli.palette import Palette

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
