"""The order of the tools found: BM25 over weighted fields, then phrases and names.

score = (sum over terms + the best sentence's sum) / 2, plus phrases, times the share of the tool's name that was said
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest

from toolwright.registry.postings import Postings
from toolwright.registry.query import Query
from toolwright.registry.weigh import Weighed
from toolwright.registry.words import split, term_of

_PHRASE = 0.4
_NAME_SAID = 0.4
_CANDIDATES = 50
_CLOSE = 0.3
_WORDS_SHOWN = 8


def rank(postings: Postings, query: Query, k: int) -> list[tuple[str, float]]:
    """Return the best k names with their scores; tools called by their name come first."""
    if k < 1:
        return []
    scores = _scores(postings, query)
    weights = _weights(postings, (term for sentence in query.sentences for term in sentence))
    called = {name for spelling in query.called for name in postings.called(spelling)}
    finals = {name: _refined(postings, query, weights, name, scores.get(name, 0.0)) for name in called}
    for name, score in _leading(scores, max(k, _CANDIDATES)):
        finals[name] = _refined(postings, query, weights, name, score)
    best = max(finals.values(), default=0.0)
    for name in called:
        finals[name] += best + 1
    return sorted(finals.items(), key=lambda found: (-found[1], found[0]))[:k]


def explain(postings: Postings, query: Query, name: str) -> str:
    """Say which words of the query a tool answers to, and where it says them."""
    tool = postings.tools[name]
    said: dict[str, None] = {}
    also: dict[str, None] = {}
    for term, word in query.words.items():
        meant = next((known for known, _ in postings.meanings(term) if known in tool.impacts), None)
        if meant is not None:
            shown = word if meant == term else f"{word} ~ {_as_written(tool, meant)}"
            (said if meant in tool.name else also)[shown.lower()] = None
    parts = [f"{place}: {', '.join(list(words)[:_WORDS_SHOWN])}" for place, words in (("name", said), ("text", also)) if words]
    return "; ".join(parts)


def _as_written(tool: Weighed, term: str) -> str:
    words = split(f"{tool.spec.name} {tool.spec.description}")
    return next((word for word in words if term_of(word) == term), term)


def _scores(postings: Postings, query: Query) -> dict[str, float]:
    """Score by the whole request and by its best sentence, so that no part of a long request drowns the others."""
    totals = _sums(postings, _weights(postings, (term for sentence in query.sentences for term in sentence)))
    if len(query.sentences) < 2:
        return totals
    parts = [sums for sentence in query.sentences if (sums := _sums(postings, _weights(postings, sentence)))]
    heights = [max(part.values()) for part in parts]
    best: dict[str, float] = {}
    for part, height in zip(parts, heights, strict=True):
        scale = (max(heights) / height) ** 0.5  # a terse sentence asks for a tool as much as a long one
        for name, score in part.items():
            if score * scale > best.get(name, 0.0):
                best[name] = score * scale
    return {name: (total + best[name]) / 2 for name, total in totals.items()}


def _weights(postings: Postings, said: Iterable[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for term, times in Counter(said).items():
        for known, certainty in postings.meanings(term):
            weight = certainty * postings.rarity(known) * 2 * times / (times + 1)
            if weight > weights.get(known, 0.0):
                weights[known] = weight
    return weights


def _sums(postings: Postings, weights: Mapping[str, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    before = sums.get
    for term, weight in weights.items():
        for name, impact in postings.impacts(term).items():
            sums[name] = before(name, 0.0) + weight * impact
    return sums


def _leading(scores: Mapping[str, float], count: int) -> list[tuple[str, float]]:
    floor = _CLOSE * max(scores.values(), default=0.0)
    close = [found for found in scores.items() if found[1] >= floor]
    if len(close) < count:
        close = list(scores.items())
    return close if len(close) <= count else nlargest(count, close, key=lambda found: (found[1], found[0]))


def _refined(postings: Postings, query: Query, weights: Mapping[str, float], name: str, score: float) -> float:
    tool = postings.tools[name]
    shared = {pair for text in tool.prose for pair in zip(text, text[1:], strict=False) if pair in query.phrases}
    for first, second in shared:
        score += _PHRASE * max(postings.rarity(first), postings.rarity(second))
    whole = sum(map(postings.rarity, tool.name))
    said = sum(postings.rarity(term) for term in tool.name if term in weights)
    return score * (1 + _NAME_SAID * said / whole) if whole else score
