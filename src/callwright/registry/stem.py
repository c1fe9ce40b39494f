"""English word stems by Porter's algorithm, so that `searching`, `searches` and `search` are one word."""

import re

_C = "[^aeiou][^aeiouy]*"
_V = "[aeiouy][aeiou]*"
_ONE_SYLLABLE = re.compile(f"(?:{_C})?{_V}{_C}")
_ONLY_ONE = re.compile(f"(?:{_C})?{_V}{_C}(?:{_V})?$")
_TWO_SYLLABLES = re.compile(f"(?:{_C})?{_V}{_C}{_V}{_C}")
_VOWEL = re.compile(f"(?:{_C})?[aeiouy]")
_SHORT = re.compile(f"{_C}[aeiouy][^aeiouwxy]$")
_DOUBLED = re.compile(r"([^aeiouylsz])\1$")
_PLAIN = re.compile("[a-z]{3,}")

_DERIVED = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_SHADED = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_LAST = tuple("ement ance ence able ible ment ant ent ism ate iti ous ive ize sion tion al er ic ou".split())


_DERIVED_ENDINGS = tuple(sorted(_DERIVED, key=len, reverse=True))
_SHADED_ENDINGS = tuple(_SHADED)


def stem(word: str) -> str:
    """Reduce a lower-case word to what its inflections share; other writing comes back as it is."""
    if not _PLAIN.fullmatch(word):
        return word
    word = _without_plural(word)
    word = _without_tense(word)
    if word[-1] == "y" and _VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _DERIVED_ENDINGS, _DERIVED)
    word = _replaced(word, _SHADED_ENDINGS, _SHADED)
    if word.endswith(_LAST):
        word = _without_last(word)
    return _without_final_e(word)


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] != "s" else word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _ONE_SYLLABLE.match(word[:-3]) else word
    base = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not _VOWEL.match(base):
        return word
    if base.endswith(("at", "bl", "iz")) or _SHORT.match(base):
        return base + "e"
    return base[:-1] if _DOUBLED.search(base) else base


def _replaced(word: str, endings: tuple[str, ...], table: dict[str, str]) -> str:
    if not word.endswith(endings):  # true of most words, and much the quickest way to see it
        return word
    ending = next(filter(word.endswith, endings))
    base = word.removesuffix(ending)
    return base + table[ending] if _ONE_SYLLABLE.match(base) else word


def _without_last(word: str) -> str:
    ending = next(filter(word.endswith, _LAST))
    base = word.removesuffix("ion" if ending in ("sion", "tion") else ending)
    return base if _TWO_SYLLABLES.match(base) else word


def _without_final_e(word: str) -> str:
    base = word[:-1]
    if word[-1] == "e" and (_TWO_SYLLABLES.match(base) or (_ONLY_ONE.match(base) and not _SHORT.match(base))):
        return base
    return base if word.endswith("ll") and _TWO_SYLLABLES.match(word) else word
