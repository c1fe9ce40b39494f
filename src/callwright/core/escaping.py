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
_NON_JOINER = "\u200c"
_THIN_BREAK = "\u200b"
_FIRM_SPACES = "\u00a0\u202f"
_SPELLING_ON_SCREEN = _THIN_BREAK + _NON_JOINER
"""Hidden characters that the spelling of some language needs. Not the joiner: terminals disagree about its width."""
_SPELLING = _SPELLING_ON_SCREEN + _JOINER + _FIRM_SPACES
# blocks of scripts whose spelling needs joiners (Arabic to Sinhala, Tibetan, Mongolian and presentation forms), and of
# those that separate words with a space of no width (Thai, Lao, Myanmar, Khmer)
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_MOST_MARKS = 3
"""Combining marks on one character; a taller pile is drawn over the rows above and below."""


def visible(text: str) -> str:
    """Return the text with every character escaped that a terminal would obey or hide.

    Line breaks and tabs stay, and so do the joiners and selectors of an emoji, a space between wide characters, and
    non-joiners between letters of scripts whose spelling needs them.
    """
    if text.isascii() and text.isprintable():
        return text
    return _escape_text(text, _escape, keep="\n\t", spelling=_SPELLING_ON_SCREEN)


def visible_line(text: str) -> str:
    r"""Return the text in one line: like `visible`, with line breaks as `⏎`, tabs as `\t` and all non-joiners escaped.

    It is for names, commands and questions: of two that differ in a non-joiner only, each must be told from the other.
    A text with `⏎` in it shows that character as an escape, so that the sign always means a line break.
    """
    if text.isascii() and text.isprintable():
        return text
    return "⏎".join(_escape_text(line.replace("⏎", "\\u23ce"), _escape) for line in text.split("\n"))


def visible_json(text: str) -> str:
    """Escape the hidden characters of a JSON text in JSON's own way, so that its meaning stays the same."""
    return text if text.isascii() else _escape_text(text, _escape_json, keep="\n\t")


def visible_prose(text: str) -> str:
    """Return a text for a model in which it reads no more than the user sees, with hidden characters as escapes.

    Like `visible`, but joiners between such letters and a no-break space between two visible characters stay too.
    """
    return _treat_lines(text, _escape)


def remove_hidden(text: str) -> str:
    """Return a text for a model without the characters that `visible_prose` escapes; unusual spaces become plain."""
    return _treat_lines(text, _blank_out)


def _treat_lines(text: str, escape: Callable[[str], str]) -> str:
    # line by line, because most lines of a long file need no look at their characters
    lines = text.split("\n")
    return "\n".join(
        line if line.isascii() and line.isprintable() else _escape_text(line, escape, keep="\t", spelling=_SPELLING)
        for line in lines
    )


# letters of other alphabets and the Latin letters they are drawn like: Cyrillic, Greek, Armenian, Cherokee
_DRAWN_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u051d\u04bb\u04cf\u0475\u04af"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u04c0\u050c\u051a\u051c"
    "\u03bf\u03b1\u03bd\u03c1\u03c5\u03b9\u03f2\u03f3"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03f9"
    "\u0585\u0578\u057d\u0570\u0581\u0566\u0561\u056c\u0555\u054d"
    "\u13a0\u13a1\u13a2\u13aa\u13ab\u13ac\u13b3\u13b7\u13bb\u13c0\u13c2\u13c3\u13cf\u13d2\u13d4\u13d5\u13d9\u13da\u13de\u13df\u13e2\u13e6\u13f4",
    "aeopcyxijsdqwhlvyABEKMHOPCTYXSIJIGQWoavpuicjABEZHIKMNOPTYXConuhgqwlOUDRTAJEWMHGhZbRWSVSLCPKB",
)
_DRAWN_SIMILARLY = _DRAWN_ALIKE | str.maketrans(
    "\u0432\u043d\u043a\u043c\u0442\u0433\u043f\u044c\u0451\u0457\u0417\u0428\u03ba\u03c4\u03c7\u03b5\u03b3\u03c9\u03c3\u03b7\u03bc\u03c0\u0131\u0138\u0261",
    "bhkmtrnbei3wktxeywonunikg",
)


def latin_form(text: str) -> str:
    """Return the text with every letter of another alphabet replaced by a Latin letter that it resembles."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_DRAWN_SIMILARLY)


def looks_latin(word: str) -> bool:
    """Whether a word has no Latin letter, but all its letters are drawn like Latin ones."""
    return not word.isascii() and bool(word) and all(ord(character) in _DRAWN_ALIKE for character in word)


def _escape_text(text: str, escape: Callable[[str], str], keep: str = "", spelling: str = "") -> str:
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
        stray = stray and not (character in spelling and _is_part_of_word(text, at))
        piled = marks > _MOST_MARKS or (marks > 0 and not _can_carry_mark(text[max(at - 1, 0) : at]))
        shown.append(escape(character) if stray or piled else character)
    return "".join(shown)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _blank_out(character: str) -> str:
    return " " if unicodedata.category(character)[0] == "Z" else ""


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


def _is_part_of_word(text: str, at: int) -> bool:
    """Whether a hidden character stands where the spelling of a language needs it."""
    character, before, after = text[at], text[max(at - 1, 0) : at], text[at + 1 : at + 2]
    if character in _FIRM_SPACES:
        return _is_drawn(before) and _is_drawn(after)
    if character in (_JOINER, _NON_JOINER):
        return _is_word_of(_JOINING, before, after)
    return character == _THIN_BREAK and _is_word_of(_UNSPACED, before, after)


def _is_drawn(character: str) -> bool:
    return character.isprintable() and not character.isspace() and character != "" and not _BLANK.match(character)


def _is_word_of(script: "re.Pattern[str]", before: str, after: str) -> bool:
    """Whether a letter, perhaps with a mark, and another one of the same kind of script are around a character."""
    letters = before != "" and unicodedata.category(before)[0] in "LM" and unicodedata.category(after or " ")[0] == "L"
    return letters and bool(script.match(before) and script.match(after))


def _is_wide(character: str) -> bool:
    return character not in ("", _WIDE_SPACE) and unicodedata.east_asian_width(character) == "W"


def _is_symbol(character: str) -> bool:
    """Whether a character may be an emoji or a part of one."""
    return bool(character) and (
        character in "\u203c\u2049\u3030"
        or (unicodedata.category(character) in ("So", "Sm") and _BLANK.match(character) is None)
        or character in _SKIN_TONES
    )
