"""Typical copying errors in an edit that leave no doubt, and how to correct the replacement for each."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from callwright.core.errors import ToolFailed
from callwright.system.line_diff import compare_lines


@dataclass(frozen=True, slots=True)
class EditPlace:
    """A part of a text, its replacement, and the typo that was corrected."""

    start: int
    end: int
    text: str
    typo: str = ""


class Doubtful(ToolFailed):
    """The text was found exactly, but the replacement would probably damage the file; sending it again applies it."""

    def __init__(self, doubt: str) -> None:
        super().__init__(f"{doubt}; or send the same edit again to apply it as it is")


def find_all(text: str, wanted: str, most: int = sys.maxsize) -> list[int]:
    """Return the offsets of a text in another, overlaps included: all, or the first ones."""
    starts: list[int] = []
    start = text.find(wanted)
    while start >= 0 and len(starts) < most:
        starts.append(start)
        start = text.find(wanted, start + 1)
    return starts


def line_of(text: str, offset: int) -> int:
    """Return the line number of an offset, counted from 1."""
    return text.count("\n", 0, offset) + 1


def lines_of(text: str) -> list[str]:
    """Split a text into lines; a final line break starts no further line."""
    return text.removesuffix("\n").split("\n") if text else []


def indent_of(line: str) -> str:
    """Return the whitespace at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


Correction: TypeAlias = Callable[[str], str | None]
"""Corrects a new line; None if the correction is unclear."""


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of a file that may be the ones that were copied."""

    file: Sequence[str]
    at: int
    copied: Sequence[str]

    @property
    def own(self) -> Sequence[str]:
        """The lines in the file."""
        return self.file[self.at : self.at + len(self.copied)]

    @property
    def pairs(self) -> Iterable[tuple[str, str]]:
        """Each line in the file with its copy."""
        return zip(self.own, self.copied, strict=True)


_FAMILIES = (
    str.maketrans({**dict.fromkeys("‘’‚‛′", "'"), **dict.fromkeys("“”„‟″", '"')}),
    str.maketrans(dict.fromkeys("‐‑‒–—−", "-")),
    str.maketrans(dict.fromkeys("\u00a0\u2007\u202f", " ")),
)
_TAB_WIDTHS = (4, 8, 2)


@dataclass(frozen=True, slots=True)
class Typo:
    """One kind of copying error: its label in messages, and how to recognise it."""

    label: str
    recognise: Callable[[Region], Correction | None]
    framed: bool = False
    """Whitespace is part of the error, so the new lines must show the same error to be corrected."""


def to_plain_characters(text: str) -> str:
    """Replace typographic quotes, dashes and spaces by plain ones."""
    return _translate(_FAMILIES, text)


def plain_writer(copied: str) -> Callable[[str], str] | None:
    """Return a function that replaces the kinds of typographic characters a copy has; None if it has none."""
    families = [family for family in _FAMILIES if any(ord(char) in family for char in copied)]
    return partial(_translate, families) if families else None


def _translate(families: Sequence[dict[int, str]], text: str) -> str:
    for family in families:
        text = text.translate(family)
    return text


def indented_alike(old: Sequence[str], new: Sequence[str]) -> bool:
    """Tell whether old and new lines were shifted alike: shared lines have the same indentation in both."""
    olds, news = [line for line in old if line.strip()], [line for line in new if line.strip()]
    changes = compare_lines([line.strip() for line in olds], [line.strip() for line in news])
    equal = [(olds[a:b], news[c:d]) for tag, a, b, c, d in changes if tag == "equal"]
    shared = [pair for one, other in equal for pair in zip(one, other, strict=True)]
    pairs = shared or list(zip(olds[:1], news[:1], strict=False))
    return all(indent_of(one) == indent_of(other) for one, other in pairs)


def _keep_line(line: str) -> str | None:
    return line


def _final_break(region: Region) -> Correction | None:
    return _keep_line if all(own == copied for own, copied in region.pairs) else None


def _trailing_space(region: Region) -> Correction | None:
    return _drop_added_space(region) if all(own.rstrip() == copied.rstrip() for own, copied in region.pairs) else None


def _drop_added_space(region: Region) -> Correction:
    """Return a correction of new lines that end with the whitespace that all copied lines, but none in the file, have.

    On some lines only it may be wanted, as a hard break in Markdown. Blank lines are compared with blank ones.
    """
    ends = {"" if _end_of(own) else _end_of(copied) for own, copied in region.pairs if copied.strip()}
    added = ends if len(ends) == 1 else set[str]()
    blank = added | {copied for own, copied in region.pairs if not copied.strip() and not own}
    return lambda line: line.rstrip() if _end_of(line) in (added if line.strip() else blank) else line


def _end_of(line: str) -> str:
    return line[len(line.rstrip()) :]


def _indentation(region: Region) -> Correction | None:
    pairs = [(own, copied) for own, copied in region.pairs if own.strip() or copied.strip()]
    first, copy = pairs[0]
    deeper, shallower = first.removesuffix(copy), copy.removesuffix(first)
    if not deeper.strip() and all(own == deeper + copied for own, copied in pairs):
        return lambda line: deeper + line if line.strip() else line
    if not shallower.strip() and all(shallower + own == copied for own, copied in pairs):
        return lambda line: line.removeprefix(shallower) if line.startswith(shallower) or not line.strip() else None
    return None


def _spaces_for_tabs(region: Region) -> Correction | None:
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
    # an inner gap may have been a tab, and a remainder alignment: correcting either would be a guess
    if remainder or "  " in rest.rstrip() or (inner and " " in rest.strip()):
        return None
    return "\t" * tabs + rest


def _only_flush(line: str) -> str | None:
    return None if line[:1].isspace() else line


def _tabs_for_spaces(region: Region) -> Correction | None:
    for width in _TAB_WIDTHS:
        if all(own == copied.expandtabs(width) for own, copied in region.pairs):
            return partial(str.expandtabs, tabsize=width)
    return None


def _combined(region: Region) -> Correction | None:
    bare = [line.rstrip() for line in region.own]
    copied = [to_plain_characters(line).rstrip() for line in region.copied]
    shift = _keep_line if bare == copied else _indentation(Region(bare, 0, copied))
    trim = _drop_added_space(region)
    return None if shift is None else lambda line: shift(to_plain_characters(trim(line) or ""))


TYPOS = (
    (
        Typo("the line break at the end", _final_break),
        Typo("whitespace at line ends", _trailing_space, framed=True),
    ),
    (
        Typo("indentation", _indentation, framed=True),
        Typo("spaces for tabs", _spaces_for_tabs),
        Typo("tabs for spaces", _tabs_for_spaces),
        Typo("indentation, typographic characters or whitespace at line ends", _combined, framed=True),
    ),
)
"""In order: typos that keep the indentation, then those that change it. In a group exactly one place may match."""
