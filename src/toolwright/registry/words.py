"""Text and identifiers as comparable terms: split, folded, stemmed, without the words that say nothing."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from toolwright.registry.stem import stem

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
_REMEMBERED = 100_000

_SILENT = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been before being below between
    both but by can cannot could couldn d did didn do does doesn doing don down during each either else few for from
    further had has have having he her here hers herself him himself his how i if in into is isn it its itself just ll
    m me more most my myself no nor not now of off on once only or other our ours ourselves out over own re s same she
    should so some such t than that the their theirs them themselves then there these they this those through to too
    under until up upon ve very was we were what when where whether which while who whom whose why will with within
    without won would you your yours yourself yourselves
    able dear hello help hey hi kindly know let like maybe need needed needs ok okay please really tell thank thanks
    want wanted wants
    """.split()
)
"""Function words, and the courtesies around a request: every request has them, no tool is known by them."""

_SAME = """
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


class _Chunks(dict[str, tuple[str, ...]]):
    """The terms of every run without spaces met so far: texts repeat themselves, and looking up beats splitting."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(self) >= _REMEMBERED:  # queries bring ids and numbers without end
            self.clear()
        found = self[chunk] = tuple(term for word in split(chunk) if (term := term_of(word)))
        return found


_chunks = _Chunks()


def split(text: str) -> list[str]:
    """Cut text and identifiers into lower-case words: `getHTTPStatus_v2` is get, http, status, v2."""
    return [word.lower() for word in _WORD.findall(text if text.isascii() else _folded(text))]


@lru_cache(_REMEMBERED)
def term_of(word: str) -> str:
    """Return what the inflections of a word share; empty for a word that says nothing."""
    return "" if word in _SILENT else stem(word)


def terms(text: str) -> list[str]:
    """Return what two texts must share to be about the same thing, in order, repetitions kept.

    A text of silent words only keeps them: a tool may be called `help`.
    """
    return [term for chunk in text.split() for term in _chunks[chunk]] or split(text)


def spoken(name: str) -> str:
    """Return the words of a name, so that `readFile`, `read_file` and `read file` are equal."""
    return " ".join(split(name)) or name


def _folded(text: str) -> str:
    """Drop accents; cut writing without spaces into overlapping pairs."""
    bare = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return _UNSPACED.sub(lambda run: " ".join(_pairs(run[0])), bare)


def _pairs(run: str) -> Iterator[str]:
    return (run[place : place + 2] for place in range(len(run) - 1))


def _synonyms() -> dict[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for line in _SAME.strip().splitlines():
        group = list(dict.fromkeys(map(stem, line.split())))
        for term in group:
            known[term] = (*known.get(term, ()), *(other for other in group if other != term))
    return known


WRITTEN = {stem(word): word for word in reversed(_SAME.split())}
"""A word to show for the term of a synonym."""

SYNONYMS = _synonyms()
"""Terms that mean the same on any list of tools, by term."""
