"""Colours, where the terminal has them and nobody has asked for none."""

import os
from dataclasses import dataclass
from typing import TextIO

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
