"""Escaping of text that came from a model, a server or a file, before it reaches a terminal.

Everything a terminal would obey, hide or draw over something else is shown as an escape sequence: control characters,
bidirectional and zero-width characters, characters that look like nothing, and piles of combining marks.
"""

import re
import unicodedata
from collections.abc import Callable

_JOINER = "\u200d"
_WIDE_SPACE = "\u3000"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_EMOJI_STYLE = "\ufe0f"
_SELECTORS = frozenset("\ufe0e\ufe0f")
_KEYCAP = "\u20e3"
_KEYCAP_BASES = frozenset("0123456789#*")
# printable by their category, but drawn as nothing: fillers, blanks and variation selectors
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_FLAGS = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""England, Scotland and Wales: the only flags that are written with tag characters."""
_MOST_MARKS = 3
"""Combining marks on one character; a taller pile is drawn over the rows above and below."""


def visible(text: str) -> str:
    """Return the text with every character escaped that a terminal would obey or hide.

    Line breaks and tabs stay, and so do the joiners and selectors of an emoji and a space between wide characters.
    """
    if text.isascii() and text.isprintable():
        return text
    return _escape_text(text, _escape, keep="\n\t")


def visible_line(text: str) -> str:
    r"""Return the text in one line: like `visible`, with line breaks as `⏎` and tabs as `\t`.

    A text with `⏎` in it shows that character as an escape, so that the sign always means a line break.
    """
    if text.isascii() and text.isprintable():
        return text
    return "⏎".join(_escape_text(line.replace("⏎", "\\u23ce"), _escape) for line in text.split("\n"))


def visible_json(text: str) -> str:
    """Escape the hidden characters of a JSON text in JSON's own way, so that its meaning stays the same."""
    return text if text.isascii() else _escape_text(text, _escape_json, keep="\n\t")


def _escape_text(text: str, escape: Callable[[str], str], keep: str = "") -> str:
    flags = {at for found in _FLAGS.finditer(text) for at in range(*found.span())}
    marks, shown = 0, list[str]()
    for at, character in enumerate(text):
        if character.isascii():
            marks = 0
            shown.append(character if character.isprintable() or character in keep else escape(character))
            continue
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = not character.isprintable() or _BLANK.match(character) is not None
        stray = hidden and at not in flags and not _is_part_of_symbol(text, at)
        piled = marks > _MOST_MARKS or (marks > 0 and not _can_carry_mark(text[max(at - 1, 0) : at]))
        shown.append(escape(character) if stray or piled else character)
    return "".join(shown)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _escape_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _can_carry_mark(base: str) -> bool:
    """Whether a combining mark after this character is drawn on something that is visible."""
    return bool(base) and not base.isspace() and (base.isprintable() or base == _JOINER)


def _is_part_of_symbol(text: str, at: int) -> bool:
    """Whether a hidden character belongs to an emoji, or is a space between two wide characters."""
    character, before, after = text[at], text[max(at - 1, 0) : at], text[at + 1 : at + 2]
    if character in _SELECTORS:
        return _is_symbol(before) or (before != "" and before in _KEYCAP_BASES and after == _KEYCAP)
    if character == _JOINER:
        if before in (_EMOJI_STYLE, *_SKIN_TONES):
            before = text[max(at - 2, 0) : at - 1]
        return _is_symbol(before) and _is_symbol(after)
    return character == _WIDE_SPACE and _is_wide(before) and _is_wide(after)


def _is_wide(character: str) -> bool:
    return character not in ("", _WIDE_SPACE) and unicodedata.east_asian_width(character) == "W"


def _is_symbol(character: str) -> bool:
    """Whether a character may be an emoji or a part of one."""
    return bool(character) and (
        character in "\u203c\u2049\u3030"
        or (unicodedata.category(character) in ("So", "Sm") and _BLANK.match(character) is None)
        or character in _SKIN_TONES
    )
