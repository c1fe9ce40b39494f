"""Markdown for a terminal, line by line, so that it can be shown while it is being written."""

import re

from toolwright.cli.palette import Palette
from toolwright.cli.show import visible

_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)")
_INLINE = re.compile(r"(?P<code>`[^`]+`)|(?P<bold>\*\*[^*]+\*\*)|(?P<italic>(?<!\w)[*_][^*_\s][^*_]*[*_](?!\w))")


class MarkdownLines:
    """Styles one line after the other; remembers only whether it is inside a block of code."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._code = False

    def style(self, line: str) -> str:
        """A line as it is to be shown; what a terminal would obey is made visible."""
        shown = visible(line)
        if _FENCE.match(shown):
            self._code = not self._code
            return self._palette.paint(shown, "dim")
        if self._code:
            return self._palette.paint(shown, "cyan")
        if heading := _HEADING.fullmatch(shown):
            return self._palette.paint(heading[2], "bold")
        if bullet := _BULLET.fullmatch(shown):
            return f"{bullet[1]}• {self._inline(bullet[2])}"
        if shown.startswith(">"):
            return self._palette.paint(shown, "dim")
        return self._inline(shown)

    def _inline(self, text: str) -> str:
        return _INLINE.sub(self._marked, text)

    def _marked(self, found: "re.Match[str]") -> str:
        text = found[0]
        match found.lastgroup:
            case "code":
                return self._palette.paint(text[1:-1], "cyan") if self._palette.on else text
            case "bold":
                return self._palette.paint(text[2:-2], "bold") if self._palette.on else text
            case _:
                return self._palette.paint(text[1:-1], "italic") if self._palette.on else text
