"""Text and identifiers as comparable terms: split, folded, stemmed, without the words that say nothing."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from callwright.registry.lexicon import SILENT
from callwright.registry.stem import stem

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
