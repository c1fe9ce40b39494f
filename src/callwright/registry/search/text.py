"""Turns texts, identifiers and queries into search terms: word splitting, Porter stems, stop words, synonyms, typos."""

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
_ENDINGS = ("s", "ed", "ing", "y", "e", "ll", *_DERIVED_ENDINGS, *_SHADED_ENDINGS, *_LAST)


def stem(word: str) -> str:
    """Return the Porter stem of a lower-case English word; any other text is returned unchanged."""
    if not word.endswith(_ENDINGS) or not _PLAIN.fullmatch(word):  # a third of all words have no ending to take off
        return word
    word = _without_plural(word)
    word = _without_tense(word)
    if word[-1] == "y" and _VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_ending(word, _DERIVED_ENDINGS, _DERIVED)
    word = _replace_ending(word, _SHADED_ENDINGS, _SHADED)
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
    if not base or not _VOWEL.match(base):  # most words have no such ending, and need no pattern
        return word
    if base.endswith(("at", "bl", "iz")) or _SHORT.match(base):
        return base + "e"
    return base[:-1] if _DOUBLED.search(base) else base


def _replace_ending(word: str, endings: tuple[str, ...], table: dict[str, str]) -> str:
    if not word.endswith(endings):  # most words end here, and this test is much the cheapest
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


_STOP_WORDS = """
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

_SYNONYM_GROUPS = """
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

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Function words and courtesies, which occur in every request and tell nothing about a tool."""

TERM_WORDS = {stem(word): word for word in reversed(_SYNONYM_GROUPS.split())}
"""A readable word for the term of each synonym."""


def _synonyms() -> dict[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for line in _SYNONYM_GROUPS.strip().splitlines():
        group = list(dict.fromkeys(map(stem, line.split())))
        for term in group:
            known[term] = (*known.get(term, ()), *(other for other in group if other != term))
    return known


SYNONYMS = _synonyms()
"""Synonyms by term."""


_WORD = re.compile(
    r"[a-z]{3,}|[A-Z][a-z]{2,}"
    r"|[A-Za-z]{1,2}\d+"  # s3, mp4, v2: the letters alone are meaningless
    r"|[A-Z]{2,}s(?![a-z])"  # URLs: one word, not UR and Ls
    r"|[A-Z]+(?![a-z])"  # HTTP of HTTPServer
    r"|[A-Z]?[a-z]+"
    r"|\d+"
    r"|[^\W\d_A-Za-z]+"
)
_ACCENT = re.compile(r"[\u0300-\u036f]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{3,}")
_SURROUNDING = ".,;:!?()[]\"'`"
_MAX_CACHED = 100_000


class _Chunks(dict[str, tuple[str, ...]]):
    """A cache of the terms of each run without spaces: texts repeat themselves, and a lookup beats splitting."""

    __slots__ = ()

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(self) >= _MAX_CACHED:  # queries bring ever new ids and numbers
            self.clear()
        bare = chunk if chunk.isalpha() else chunk.strip(_SURROUNDING)
        if bare.isascii() and bare.isalpha() and bare[1:].islower():  # most are, and need no regular expression
            term = term_of(bare.lower())
            found = self[chunk] = (term,) if term else ()
        elif bare.isascii() and bare.isdecimal():
            found = self[chunk] = (bare,)
        else:
            found = self[chunk] = tuple(filter(None, map(term_of, split_words(chunk))))
        return found


_chunks = _Chunks()
chunk_terms = _chunks.__getitem__


def split_chunks(text: str) -> list[str]:
    """Split text at spaces and underscores."""
    return text.replace("_", " ").split()


def split_words(text: str) -> list[str]:
    """Split text and identifiers into lower-case words: `getHTTPStatus_v2` is get, http, status, v2."""
    if text.islower() and text.isascii():
        plain = text.replace("_", " ")
        if plain.replace(" ", "").isalpha():  # most names are: no need for the pattern
            return plain.split()
    return [word.lower() for word in _WORD.findall(text if text.isascii() else _fold(text))]


@lru_cache(_MAX_CACHED)
def term_of(word: str) -> str:
    """Return the term of a word: its stem, or an empty text for a stop word."""
    return "" if word in STOP_WORDS else stem(word)


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repetitions.

    A text of stop words only keeps them: a tool may be named `help`.
    """
    return list(chain.from_iterable(map(chunk_terms, split_chunks(text)))) or split_words(text)


def normalize_name(name: str) -> str:
    """Return the words of a name, equal for `readFile`, `read_file` and `read file`."""
    return " ".join(split_words(name)) or name


def _fold(text: str) -> str:
    """Drop accents, and cut scripts without spaces into overlapping pairs of characters."""
    bare = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return _UNSPACED.sub(lambda run: " ".join(_pairs(run[0])), bare)


def _pairs(run: str) -> Iterator[str]:
    return (run[place : place + 2] for place in range(len(run) - 1))


_SENTENCE_END = re.compile(r"[.!?;:\n]+(?:\s+|$)")
_IDENTIFIER = re.compile(  # looked for at the start of a word only: from each of its letters would take longer
    r"(?<![A-Za-z0-9])[A-Za-z0-9]*(?:[A-Za-z0-9][_.-]+(?=[A-Za-z0-9])|[a-z](?=[A-Z]))[\w.-]*[A-Za-z0-9]"
)
_MAX_QUERY_CHARS = 20_000
_MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """A parsed search query."""

    sentences: tuple[tuple[str, ...], ...]
    """The terms of each sentence; sentences without any are left out."""
    phrases: tuple[tuple[str, str], ...]
    """Neighbouring terms, each pair once."""
    words: dict[str, str]
    """The word each term came from."""
    names: frozenset[str]
    """Names of tools the query may contain, as they are written there."""


def parse_query(text: str) -> ToolQuery:
    """Parse a search query."""
    text = text[:_MAX_QUERY_CHARS]
    words: dict[str, str] = {}
    sentences = [sentence for part in split_sentences(text) if (sentence := _sentence(part, words))]
    if not sentences and (ignored := split_words(text)):  # a tool may be named `help`
        sentences, words = [tuple(ignored)], dict(zip(ignored, ignored, strict=True))
    phrases = tuple(dict.fromkeys(chain.from_iterable(map(pairwise, sentences))))
    return ToolQuery(tuple(sentences), phrases, words, _find_names(text))


def split_sentences(text: str) -> list[str]:
    """Split a query into sentences."""
    return [part for part in _SENTENCE_END.split(text[:_MAX_QUERY_CHARS]) if part.strip()]


def _sentence(text: str, words: dict[str, str]) -> tuple[str, ...]:
    found = list(chain.from_iterable(map(_split_chunk, text.split())))
    for term, word in found:
        words.setdefault(term, word)
    return tuple([term for term, _ in found])


@lru_cache(_MAX_CACHED)
def _split_chunk(chunk: str) -> tuple[tuple[str, str], ...]:
    """Return the terms of a run without spaces, each with its word; cached, because queries repeat themselves."""
    words = (chunk,) if chunk.islower() and chunk.isascii() and chunk.isalpha() else split_words(chunk)
    return tuple([(term, word) for word in words if (term := term_of(word))])


def _find_names(text: str) -> frozenset[str]:
    """Return the whole query and the identifiers in it as names; a plain `search` in a sentence is a verb."""
    whole = [text.strip()] if len(text) <= _MAX_NAME_CHARS else []
    # most words are in one case, and need no pattern
    other = [chunk for chunk in text.split() if not (chunk.isalpha() and (chunk.islower() or chunk.istitle()))]
    return frozenset(whole + _IDENTIFIER.findall(" ".join(other)))


_MIN_WORD_CHARS = 4
_MAX_WORD_CHARS = 64
"""Longer runs of letters are no misspelt words, and comparing them takes memory by the square of the length."""
_MAX_SIMILAR = 4


class Spelling:
    """Finds known words similar to an unknown one: one edit apart, its two halves, or words that contain it."""

    __slots__ = ("_by_length", "_joined", "_known", "_without_one")

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._known = frozenset(vocabulary)
        known = sorted(word for word in self._known if len(word) >= _MIN_WORD_CHARS and word.isalpha())
        self._joined = "\n" + "\n".join(known) + "\n"
        self._by_length: dict[int, list[str]] = {}
        for word in known:
            self._by_length.setdefault(len(word), []).append(word)
        self._without_one: dict[int, dict[str, str]] = {}

    def near(self, word: str) -> list[str]:
        """Return the few known words closest to an unknown one: typos first, then halves, then containing words."""
        if not _MIN_WORD_CHARS <= len(word) <= _MAX_WORD_CHARS or not word.isalpha():
            return []
        typos = self._typos(word)
        found = sorted(typos, key=lambda known: (known[0] != word[0], abs(len(known) - len(word)), known))
        found = found or self._halves(word) or sorted(self._containing(word), key=lambda known: (len(known), known))
        return found[:_MAX_SIMILAR]

    def _typos(self, word: str) -> set[str]:
        variants = _variants(word)
        tables = [self._variants_of(chars) for chars in range(len(word) - 1, len(word) + 2)]
        return {known for table in tables for variant in variants for known in table.get(variant, "").split()}

    def _variants_of(self, chars: int) -> dict[str, str]:
        """Return the known words of one length by their variants, computed when a word of that length is looked for.

        The words of a variant are one text: most are a single word, and a list of it would cost more than the word.
        """
        table = self._without_one.get(chars)
        if table is None:
            table = self._without_one[chars] = {}
            for word in self._by_length.get(chars, ()):
                for variant in _variants(word):
                    table[variant] = f"{table[variant]} {word}" if variant in table else word
        return table

    def _halves(self, word: str) -> list[str]:
        """Split a compound into known words: some write `screen_shot` for `screenshot`."""
        for place in range(_MIN_WORD_CHARS - 1, len(word) - _MIN_WORD_CHARS + 2):
            first = term_of(word[:place])
            if first in self._known and (second := term_of(word[place:])) in self._known:
                return [first, second]
        return []

    def _containing(self, part: str) -> Iterator[str]:
        place = self._joined.find(part)
        while place >= 0:
            end = self._joined.index("\n", place)
            yield self._joined[self._joined.rindex("\n", 0, place) + 1 : end]
            place = self._joined.find(part, end)


def _variants(word: str) -> set[str]:
    """Return the word, and the word without each of its letters; words one edit apart share one of these."""
    return {word, *[word[:place] + word[place + 1 :] for place in range(len(word))]}
