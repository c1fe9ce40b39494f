"""Text for a terminal: escaping of control characters, widths in columns, wrapping, times, colours.

Widths come from rich, which is imported with the first text that is not ASCII: the first prompt does not wait for it.
"""

import json
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from callwright.core.errors import UsageError
from callwright.core.escaping import visible, visible_json, visible_line

_DAY_SECONDS = 86_400
_COLOUR_CODE = re.compile(r"\x1b\[[\d;]*m")
_WORD = re.compile(r"\S+\s*")


def print_notice(text: str) -> None:
    """Print a message for the user to stderr, escaped: parts of it may come from a model or a server."""
    with suppress(OSError):  # stderr may be closed or full, and the exit code says enough
        print(f"callwright: {visible(text)}", file=sys.stderr)


def print_text(text: str, *, end: str = "\n", file: TextIO | None = None) -> None:
    """Print a text, to stdout by default, escaped: parts may come from a model, a server or a repository."""
    print(visible(text), end=end, file=file)


def print_json(value: object, *, indent: int | None = None) -> None:
    """Print a value as JSON to stdout, with hidden characters as JSON escapes."""
    print(visible_json(json.dumps(value, indent=indent, ensure_ascii=False, default=str)))


_MOST_BLANKS = 8
"""Blanks in a row that are shown as they are; more are counted."""
_MOST_INDENT = 32
_BLANKS = re.compile(rf" {{2,}}$|(?<=\S) {{{_MOST_BLANKS + 1},}}|^ {{{_MOST_INDENT + 1},}}|⇥{{{_MOST_BLANKS + 1},}}")
_MARKS = str.maketrans({**{mark: f"\\u{ord(mark):04x}" for mark in "␠⇥↪"}, "\t": "⇥"})


def mark_text(text: str) -> str:
    """Show a text in one row: hidden characters and line breaks escaped, tabs as `⇥`, long runs of blanks counted."""
    return "⏎".join(_BLANKS.sub(_count_blanks, visible_line(line.translate(_MARKS))) for line in text.split("\n"))


def _count_blanks(found: re.Match[str]) -> str:
    return f"{'␠' if found[0].startswith(' ') else '⇥'}×{len(found[0])} "


def width_of(text: str) -> int:
    """Return the columns a text takes on a screen; colour codes take none."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(_COLOUR_CODE.sub("", text))


def wrap_columns(text: str, width: int) -> list[str]:
    """Break every line of a text into rows of at most `width` columns, anywhere but inside a character."""
    return [row for line in text.split("\n") for row in _rows(line, width)]


def _rows(line: str, width: int) -> list[str]:
    if line.isascii():
        return [line[at : at + width] for at in range(0, len(line), width)] or [""]
    from rich.cells import split_graphemes

    rows, first, used = list[str](), 0, 0
    for start, _, columns in split_graphemes(line)[0]:
        if used + columns > width:
            rows.append(line[first:start])
            first, used = start, 0
        used += columns
    return [*rows, line[first:]]


def split_characters(line: str) -> list[str]:
    """Return what a reader takes for the characters of a line: a letter with its accents, an emoji with its parts.

    A hidden character is shown as an escape, and is one of its own.
    """
    if line.isascii():
        return list(line)
    from rich.cells import split_graphemes

    found = (line[start:end] for start, end, _ in split_graphemes(line)[0])
    return [part for each in found for part in ([each] if visible(each) == each else each)]


def cut(text: str, width: int) -> str:
    """Return the start of a text that fits, with `…` if something was left out; the text must have no colour codes."""
    if width_of(text) <= width:
        return text
    return f"{wrap_columns(text, max(width - 1, 1))[0]}…"


def word_spans(text: str, width: int) -> list[tuple[int, int]]:
    """Return start and end of each row when a text is wrapped at words.

    A word longer than a row gets a row of its own and stays whole, so that an address in it can be copied; rich would
    break it.
    """
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


def wrap_line(text: str, width: int) -> list[str]:
    """Wrap a line at words; further rows are indented like the first."""
    body = text.lstrip(" ")
    indent = text[: len(text) - len(body)]
    return [indent + body[start:end] for start, end in word_spans(body, max(width - len(indent), 10))]


def format_time(stamp: float, day: str = "%Y-%m-%d") -> str:
    """Return a time of the last 24 hours, or the day of an earlier one in the given form."""
    recent = time.time() - stamp < _DAY_SECONDS
    return time.strftime("%H:%M:%S" if recent else day, time.localtime(stamp))


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


_LIGHT_CODES = {**_CODES, "yellow": "38;5;130", "green": "38;5;28", "cyan": "38;5;25", "red": "38;5;124"}
"""The same for a light background, on which the usual yellow and green cannot be read."""
THEMES = ("dark", "light", "none")


@dataclass(slots=True)
class Palette:
    """Adds colour codes to text, or leaves it unchanged if colours are off."""

    on: bool = False
    theme: str = "dark"

    def use_theme(self, name: str) -> None:
        """Change the colours from now on.

        Raises:
            UsageError: There is no such theme, or `NO_COLOR` is set.
        """
        if name not in THEMES:
            raise UsageError(f"there is no theme {name!r}; use one of {', '.join(THEMES)}")
        if name != "none" and os.environ.get("NO_COLOR"):
            raise UsageError("NO_COLOR is set, so there are no colours; unset it to use a theme")
        self.theme, self.on = name, name != "none"

    @classmethod
    def of(cls, stream: TextIO) -> "Palette":
        """Choose by the stream and the environment: `NO_COLOR`, `FORCE_COLOR`, `TERM=dumb`."""
        if os.environ.get("NO_COLOR"):
            return cls(False)
        if os.environ.get("FORCE_COLOR"):
            return cls(True)
        return cls(stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb"))

    def paint(self, text: str, *styles: str) -> str:
        """Return the text in these styles; an empty one changes nothing."""
        if not self.on or not text or not any(styles):
            return text
        codes = _LIGHT_CODES if self.theme == "light" else _CODES
        return f"\x1b[{';'.join(codes[style] for style in styles if style)}m{text}\x1b[0m"
