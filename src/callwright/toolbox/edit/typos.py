"""A place in a text and what is to stand there.

The slips of a copying hand that leave no doubt, each with the way to mend the replacement.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import TypeAlias

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


Mend: TypeAlias = Callable[[str], str | None]
"""Makes a new line what it should have been; None where that is in doubt."""


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of a file that may be the ones somebody copied."""

    file: Sequence[str]
    at: int
    copied: Sequence[str]

    @property
    def own(self) -> Sequence[str]:
        """The lines as the file has them."""
        return self.file[self.at : self.at + len(self.copied)]

    @property
    def pairs(self) -> Iterable[tuple[str, str]]:
        """Each line as the file has it and as it was copied."""
        return zip(self.own, self.copied, strict=True)


_FAMILIES = (
    str.maketrans({**dict.fromkeys("‘’‚‛′", "'"), **dict.fromkeys("“”„‟″", '"')}),
    str.maketrans(dict.fromkeys("‐‑‒–—−", "-")),
    str.maketrans(dict.fromkeys("\u00a0\u2007\u202f", " ")),
)
_TAB_WIDTHS = (4, 8, 2)


@dataclass(frozen=True, slots=True)
class Slip:
    """One kind of slip: what the model is told about it, and how to recognise it."""

    told: str
    recognise: Callable[[Region], Mend | None]
    framed: bool = False
    """White space is part of the slip, so the new lines must be seen to have been copied alike."""


def straight(text: str) -> str:
    """Write typographic quotes, dashes and spaces the way a keyboard does."""
    return _translate(_FAMILIES, text)


def plain_writer(copied: str) -> Callable[[str], str] | None:
    """How to write plainly the kinds of typographic characters a copy has; None if it has none."""
    families = [family for family in _FAMILIES if any(ord(char) in family for char in copied)]
    return partial(_translate, families) if families else None


def _translate(families: Sequence[dict[int, str]], text: str) -> str:
    for family in families:
        text = text.translate(family)
    return text


def same_frame(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether old and new lines were shifted alike: the lines they share stand at the same depth in both."""
    olds, news = [line for line in old if line.strip()], [line for line in new if line.strip()]
    matcher = SequenceMatcher(None, [line.strip() for line in olds], [line.strip() for line in news], autojunk=False)
    shared = [(olds[a + k], news[b + k]) for a, b, size in matcher.get_matching_blocks() for k in range(size)]
    pairs = shared or list(zip(olds[:1], news[:1], strict=False))
    return all(indent_of(one) == indent_of(other) for one, other in pairs)


def _unchanged(line: str) -> str | None:
    return line


def _final_break(region: Region) -> Mend | None:
    return _unchanged if all(own == copied for own, copied in region.pairs) else None


def _trailing_space(region: Region) -> Mend | None:
    return _unchanged if all(own.rstrip() == copied.rstrip() for own, copied in region.pairs) else None


def _indentation(region: Region) -> Mend | None:
    pairs = [(own, copied) for own, copied in region.pairs if own.strip() or copied.strip()]
    first, copy = pairs[0]
    deeper, shallower = first.removesuffix(copy), copy.removesuffix(first)
    if not deeper.strip() and all(own == deeper + copied for own, copied in pairs):
        return lambda line: deeper + line if line.strip() else line
    if not shallower.strip() and all(shallower + own == copied for own, copied in pairs):
        return lambda line: line.removeprefix(shallower) if line.startswith(shallower) or not line.strip() else None
    return None


def _spaces_for_tabs(region: Region) -> Mend | None:
    for width in _TAB_WIDTHS:
        if all(copied in (own.expandtabs(width), own.replace("\t", " " * width)) for own, copied in region.pairs):
            inner = any("\t" in line.lstrip() for line in region.own)
            mixed = any(" " in indent_of(line).rstrip(" ") or line.startswith("  ") for line in region.file)
            mixed = mixed or any(line.startswith("\t") and indent_of(line).endswith("  ") for line in region.file)
            return partial(_with_tabs, width=width, inner=inner) if not mixed else _only_flush
    return None


def _with_tabs(line: str, *, width: int, inner: bool) -> str | None:
    rest = line.lstrip(" ")
    tabs, remainder = divmod(len(line) - len(rest), width)
    # an inner gap may have been a tab too, and a remainder alignment: both would be guesses
    if remainder or "  " in rest.rstrip() or (inner and " " in rest.strip()):
        return None
    return "\t" * tabs + rest


def _only_flush(line: str) -> str | None:
    return None if line[:1].isspace() else line


def _tabs_for_spaces(region: Region) -> Mend | None:
    for width in _TAB_WIDTHS:
        if all(own == copied.expandtabs(width) for own, copied in region.pairs):
            return partial(str.expandtabs, tabsize=width)
    return None


def _several(region: Region) -> Mend | None:
    bare = [line.rstrip() for line in region.own]
    copied = [straight(line).rstrip() for line in region.copied]
    shift = _unchanged if bare == copied else _indentation(Region(bare, 0, copied))
    return None if shift is None else lambda line: shift(straight(line))


SLIPS = (
    (
        Slip("the line break at the end", _final_break),
        Slip("white space at line ends", _trailing_space, framed=True),
    ),
    (
        Slip("indentation", _indentation, framed=True),
        Slip("spaces for tabs", _spaces_for_tabs),
        Slip("tabs for spaces", _tabs_for_spaces),
        Slip("indentation, typographic characters or white space at line ends", _several, framed=True),
    ),
)
"""Lines at their own depth first, then at another; within a group exactly one place may be explained."""
