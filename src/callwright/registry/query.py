"""What a request says: its sentences as terms, its phrases, the tools it calls by name."""

import re
from dataclasses import dataclass
from itertools import pairwise

from callwright.registry.words import split, spoken, term_of

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
