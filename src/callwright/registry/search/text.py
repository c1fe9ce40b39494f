"""The words search treats specially: those that say nothing, and those that say the same.

English word stems by Porter's algorithm, so that `searching`, `searches` and `search` are one word.

Text and identifiers as comparable terms: split, folded, stemmed, without the words that say nothing.

What a request says: its sentences as terms, its phrases, the tools it calls by name.

Known terms near an unknown one: a slip of the finger, or a part of a longer word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

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


_SILENT_WORDS = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but by can cannot could couldn d did didn do does doesn doing don down during each either else few for from
further had has have having he her here hers herself him himself his how i if in into is isn it its itself just ll
m me more most my myself no nor not now of off on once only or other our ours ourselves out over own re s same she
should so some such t than that the their theirs them themselves then there these they this those through to too
under until up upon ve very was we were what when where whether which while who whom whose why will with within
without won would you your yours yourself yourselves
able dear hello help hey hi kindly know let like maybe need needed needs ok okay please really tell thank thanks
want wanted wants
"""

_SAME_WORDS = """
add create insert make new
remove delete erase rm unlink
update edit modify change
get fetch retrieve obtain
list ls enumerate
find search lookup query
show display view
run execute exec launch
copy cp duplicate clone
move mv rename
send submit
start begin
stop end terminate kill
calculate compute
convert transform
buy purchase order
book reserve
folder directory dir
file document
image picture photo
email mail
repository repo
database db
message msg
settings configuration config preferences
authenticate login signin
movie film
song track music
car vehicle automobile
article news
price cost
trip travel journey
job career
invoice bill
weather forecast
meeting appointment
shop store
phone telephone
town city
summarize summary
authorization permission
"""

SILENT = frozenset(_SILENT_WORDS.split())
"""Function words, and the courtesies around a request: every request has them, no tool is known by them."""

WRITTEN = {stem(word): word for word in reversed(_SAME_WORDS.split())}
"""A word to show for the term of a synonym."""


def _synonyms() -> dict[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for line in _SAME_WORDS.strip().splitlines():
        group = list(dict.fromkeys(map(stem, line.split())))
        for term in group:
            known[term] = (*known.get(term, ()), *(other for other in group if other != term))
    return known


SYNONYMS = _synonyms()
"""Terms that mean the same on any list of tools, by term."""


_WORD = re.compile(
    r"[a-z]{3,}|[A-Z][a-z]{2,}"
    r"|[A-Za-z]{1,2}\d+"  # s3, mp4, v2: the letters alone say nothing
    r"|[A-Z]{2,}s(?![a-z])"  # URLs: one word, not UR and Ls
    r"|[A-Z]+(?![a-z])"  # HTTP of HTTPServer
    r"|[A-Z]?[a-z]+"
    r"|\d+"
    r"|[^\W\d_A-Za-z]+"
)
_ACCENT = re.compile(r"[\u0300-\u036f]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{3,}")
_AROUND = ".,;:!?()[]\"'`"
_REMEMBERED = 100_000


class _Chunks(dict[str, tuple[str, ...]]):
    """The terms of every run without spaces met so far: texts repeat themselves, and looking up beats splitting."""

    __slots__ = ()

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(self) >= _REMEMBERED:  # queries bring ids and numbers without end
            self.clear()
        bare = chunk if chunk.isalpha() else chunk.strip(_AROUND)
        if bare.isascii() and bare.isalpha() and bare[1:].islower():  # most are: no need for the pattern
            term = term_of(bare.lower())
            found = self[chunk] = (term,) if term else ()
        else:
            found = self[chunk] = tuple(filter(None, map(term_of, split(chunk))))
        return found


_chunks = _Chunks()


def split(text: str) -> list[str]:
    """Cut text and identifiers into lower-case words: `getHTTPStatus_v2` is get, http, status, v2."""
    if text.islower() and text.isascii():
        plain = text.replace("_", " ")
        if plain.replace(" ", "").isalpha():  # most names are: no need for the pattern
            return plain.split()
    return [word.lower() for word in _WORD.findall(text if text.isascii() else _folded(text))]


@lru_cache(_REMEMBERED)
def term_of(word: str) -> str:
    """Return what the inflections of a word share; empty for a word that says nothing."""
    return "" if word in SILENT else stem(word)


def terms(text: str) -> list[str]:
    """Return what two texts must share to be about the same thing, in order, repetitions kept.

    A text of silent words only keeps them: a tool may be called `help`.
    """
    return list(chain.from_iterable(map(_chunks.__getitem__, text.split()))) or split(text)


def spoken(name: str) -> str:
    """Return the words of a name, so that `readFile`, `read_file` and `read file` are equal."""
    return " ".join(split(name)) or name


def _folded(text: str) -> str:
    """Drop accents; cut writing without spaces into overlapping pairs."""
    bare = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return _UNSPACED.sub(lambda run: " ".join(_pairs(run[0])), bare)


def _pairs(run: str) -> Iterator[str]:
    return (run[place : place + 2] for place in range(len(run) - 1))


_SENTENCE_END = re.compile(r"[.!?;:\n]+(?:\s+|$)")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]*(?:[A-Za-z0-9][_.-]+(?=[A-Za-z0-9])|[a-z](?=[A-Z]))[\w.-]*[A-Za-z0-9]")
_LONGEST_CHARS = 20_000
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A request, read once."""

    sentences: tuple[tuple[str, ...], ...]
    """Terms in order, by sentence; sentences without any are left out."""
    phrases: frozenset[tuple[str, str]]
    """Neighbouring terms."""
    words: dict[str, str]
    """By term, the word it came from."""
    called: frozenset[str]
    """Names the request may be calling, as spoken."""


def read(text: str) -> Query:
    """Take a request apart."""
    text = text[:_LONGEST_CHARS]
    words: dict[str, str] = {}
    sentences = [sentence for part in parts(text) if (sentence := _sentence(part, words))]
    if not sentences and (silent := split(text)):  # a tool may be called `help`
        sentences, words = [tuple(silent)], dict(zip(silent, silent, strict=True))
    phrases = frozenset(pair for sentence in sentences for pair in pairwise(sentence))
    return Query(tuple(sentences), phrases, words, _called(text))


def parts(text: str) -> list[str]:
    """Return the sentences of a request, as they are written."""
    return [part for part in _SENTENCE_END.split(text[:_LONGEST_CHARS]) if part.strip()]


def _sentence(text: str, words: dict[str, str]) -> tuple[str, ...]:
    said = [(term, word) for word in split(text) if (term := term_of(word))]
    for term, word in said:
        words.setdefault(term, word)
    return tuple(term for term, _ in said)


def _called(text: str) -> frozenset[str]:
    """Only the whole request, or a word that is built like an identifier: `search` in a sentence is a verb."""
    whole = [text.strip()] if len(text) <= _LONGEST_NAME else []
    return frozenset(map(spoken, whole + _IDENTIFIER.findall(text)))


_SHORTEST = 4
_MOST = 4


class Spelling:
    """A frozen vocabulary that forgives one wrong, missing, doubled or swapped letter."""

    __slots__ = ("_joined", "_known", "_without_one")

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._known = frozenset(vocabulary)
        known = sorted(word for word in self._known if len(word) >= _SHORTEST and word.isalpha())
        self._joined = "\n" + "\n".join(known) + "\n"
        self._without_one: dict[str, list[str]] = {}
        for word in known:
            for variant in _variants(word):
                self._without_one.setdefault(variant, []).append(word)

    def near(self, word: str) -> list[str]:
        """Return the few known words closest to one that is not known; slips before parts."""
        if len(word) < _SHORTEST or not word.isalpha():
            return []
        slips = {known for variant in _variants(word) for known in self._without_one.get(variant, ())}
        found = sorted(slips, key=lambda known: (known[0] != word[0], abs(len(known) - len(word)), known))
        found = found or self._halves(word) or sorted(self._containing(word), key=lambda known: (len(known), known))
        return found[:_MOST]

    def _halves(self, word: str) -> list[str]:
        """`screenshot` is `screen_shot` to some."""
        for place in range(_SHORTEST - 1, len(word) - _SHORTEST + 2):
            halves = [term_of(word[:place]), term_of(word[place:])]
            if self._known.issuperset(halves):
                return halves
        return []

    def _containing(self, part: str) -> Iterator[str]:
        place = self._joined.find(part)
        while place >= 0:
            end = self._joined.index("\n", place)
            yield self._joined[self._joined.rindex("\n", 0, place) + 1 : end]
            place = self._joined.find(part, end)


def _variants(word: str) -> set[str]:
    """The word and the word without one of its letters: what two words one edit apart have in common."""
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}
