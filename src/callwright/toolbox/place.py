"""A place in a text and what is to stand there."""

from dataclasses import dataclass

from callwright.core.errors import ToolFailed


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of text, what replaces it, and the slip that was mended on the way."""

    start: int
    end: int
    text: str
    slip: str = ""


class Doubtful(ToolFailed):
    """The text stands there exactly, yet the replacement would probably spoil it; the same edit again is obeyed."""

    def __init__(self, doubt: str) -> None:
        super().__init__(f"{doubt}; or send the same edit again to have it applied to the letter")


def occurrences(text: str, wanted: str) -> list[int]:
    """Where a text begins within another, overlaps included."""
    starts: list[int] = []
    start = text.find(wanted)
    while start >= 0:
        starts.append(start)
        start = text.find(wanted, start + 1)
    return starts


def line_of(text: str, offset: int) -> int:
    """The number of the line an offset lies on, counted from 1."""
    return text.count("\n", 0, offset) + 1


def lines_of(text: str) -> list[str]:
    """The lines of a text without their breaks; a break at the end starts no further line."""
    return text.removesuffix("\n").split("\n") if text else []


def indent_of(line: str) -> str:
    """The white space a line starts with."""
    return line[: len(line) - len(line.lstrip())]
