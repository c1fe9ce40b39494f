"""What a request says: its sentences as terms, its phrases, the tools it calls by name."""

import re
from dataclasses import dataclass

from toolwright.registry.words import split, spoken, term_of, terms

_SENTENCE_END = re.compile(r"[.!?;:\n]+(?:\s+|$)")
_AROUND_NAMES = "`'\"()[]{}<>.,:;?!"
_LONGEST_CHARS = 20_000


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
    sentences = tuple(tuple(terms(part)) for part in _SENTENCE_END.split(text) if part.strip())
    worded = tuple(sentence for sentence in sentences if sentence)
    phrases = frozenset(pair for sentence in worded for pair in zip(sentence, sentence[1:], strict=False))
    words = {term_of(word) or word.lower(): word for word in reversed(split(text))}
    return Query(worded, phrases, words, _called(text))


def _called(text: str) -> frozenset[str]:
    """Only the whole request, or a word that is built like an identifier: `search` in a sentence is a verb."""
    tokens = (token.strip(_AROUND_NAMES) for token in text.split())
    compound = {spoken(token) for token in tokens if len(split(token)) > 1}
    return frozenset(compound | {spoken(text.strip())})
