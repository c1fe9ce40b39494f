"""Text on a screen: with nothing in it that hides, how much room it takes, and how it is made to fit.

Colours, where the terminal has them and nobody has asked for none.
"""

import os
import re
import unicodedata
from dataclasses import dataclass
from typing import TextIO

_PAINT = re.compile(r"\x1b\[[\d;]*m")
_WORD = re.compile(r"\S+\s*")


def visible(text: str) -> str:
    """The text with every character a terminal would obey or hide written out; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def width_of(text: str) -> int:
    """How many columns a text takes; colours take none."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_columns, _PAINT.sub("", text)))


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int) -> list[str]:
    """Part a text into rows of at most that many columns, character by character; a row for every line."""
    rows: list[str] = []
    for line in text.split("\n"):
        if line.isascii():
            rows += [line[at : at + width] for at in range(0, len(line), width)] or [""]
            continue
        row, used = "", 0
        for character in line:
            columns = _columns(character)
            if used + columns > width:
                rows.append(row)
                row, used = "", 0
            row += character
            used += columns
        rows.append(row)
    return rows


def cut(text: str, width: int) -> str:
    """The beginning of a text that fits, with a mark where something was left out; it holds no colours."""
    if width_of(text) <= width:
        return text
    return f"{wrapped(text, max(width - 1, 1))[0]}…"


def padded(text: str, width: int, side: str = "left") -> str:
    """The text with spaces on the other side, or on both, until it fills the width."""
    room = max(width - width_of(text), 0)
    before = {"left": 0, "right": room}.get(side, room // 2)
    return " " * before + text + " " * (room - before)


def word_rows(text: str, width: int) -> list[tuple[int, int]]:
    """Where rows of whole words begin and end in a text; a word that is too long for any row has one to itself."""
    if width_of(text) <= width:
        return [(0, len(text))]
    rows: list[tuple[int, int]] = []
    start = end = used = 0
    for word in _WORD.finditer(text):
        bare = word[0].rstrip()
        if end > start and used + width_of(bare) > width:
            rows.append((start, end))
            start, used = word.start(), 0
        elif not used:
            used = width_of(text[start : word.start()])
        end = word.start() + len(bare)
        used += width_of(word[0])
    return [*rows, (start, end)]


def filled(text: str, width: int) -> list[str]:
    """A line as rows of whole words; those after the first are indented as it is."""
    body = text.lstrip(" ")
    lead = text[: len(text) - len(body)]
    return [lead + body[start:end] for start, end in word_rows(body, max(width - len(lead), 10))]


_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
    "reverse": "7",
}


@dataclass(frozen=True, slots=True)
class Palette:
    """Puts text in a style, or leaves it as it is."""

    on: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> "Palette":
        """Look at the stream and at the environment: `NO_COLOR`, `FORCE_COLOR`, `TERM=dumb`."""
        if os.environ.get("NO_COLOR"):
            return cls(False)
        if os.environ.get("FORCE_COLOR"):
            return cls(True)
        return cls(stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb"))

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles."""
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"
