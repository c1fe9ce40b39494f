"""`ToolIndex`: a lexical search index over tools that needs the standard library only.

Ranking is BM25 over weighted fields:

rarest terms ──► candidates ──► (whole request + best sentence) / 2 + phrases, x share of the name in the request
"""

import gc
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum  # its sum does not depend on the order of a set
from operator import mul
from threading import Lock

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.search.postings import Postings, weigh_tool
from callwright.registry.search.text import TERM_WORDS, ToolQuery, parse_query

_MAX_WORDS_SHOWN = 8


class MatchExplanation:
    """Explains, tool by tool, which words of a query matched."""

    __slots__ = ("_matches", "_tools")

    def __init__(self, postings: Postings, query: ToolQuery) -> None:
        self._tools = postings.tools
        self._matches = [
            (known, word if known == term else f"{word} ~ {TERM_WORDS.get(known, known)}")
            for term, word in query.words.items()
            for known, _ in postings.meanings(term)
        ]

    def why(self, name: str) -> str:
        """Return the words that match a tool: those in its name, then those in its other texts."""
        tool = self._tools[name]
        named: list[str] = []
        other: list[str] = []
        for known, shown in self._matches:
            if known in tool.sums:
                (named if known in tool.name else other).append(shown)
        found = {"name": named[:_MAX_WORDS_SHOWN], "text": other[:_MAX_WORDS_SHOWN]}
        return "; ".join(f"{place}: {', '.join(words)}" for place, words in found.items() if words)


# changing one of these moves NDCG@10: measure with `python -m benchmarks search`
_PHRASE = 0.4
_NAME_SHARE = 0.4
_CANDIDATES = 50
_POSTINGS_READ = 1_000


def rank(postings: Postings, query: ToolQuery, k: int) -> list[tuple[str, float]]:
    """Return the best k names with their scores; tools named in the query come first."""
    if k < 1:
        return []
    weights = _weights(postings, (term for sentence in query.sentences for term in sentence))
    named = {name for spelling in query.names for name in postings.find_named(spelling)}
    candidates = named.union(_pick_candidates(postings, weights, max(k, _CANDIDATES)))
    scores = _score(postings, query, weights, sorted(candidates))
    _boost(postings, query, {term: postings.rarity(term) for term in weights}, scores)
    best = max(scores.values(), default=0.0)
    for name in named:
        scores[name] += best + 1  # above every other score, still ordered among themselves
    return sorted(scores.items(), key=lambda found: (-found[1], found[0]))[:k]


def _weights(postings: Postings, terms: Iterable[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for term, times in Counter(terms).items():
        for known, certainty in postings.meanings(term):
            # a repeated term counts more, but never twice as much
            weight = certainty * postings.rarity(known) * 2 * times / (times + 1)
            if weight > weights.get(known, 0.0):
                weights[known] = weight
    return weights


def _pick_candidates(postings: Postings, weights: Mapping[str, float], count: int) -> Iterable[str]:
    """Pick candidates by the terms of highest weight: common terms cost most to read and tell least."""
    sums: dict[str, float] = {}
    unread = max(_POSTINGS_READ, len(postings.tools) // 3)
    for term in sorted(weights, key=lambda term: (-weights[term], term)):
        weight = weights[term]
        impacts = postings.impacts(term)
        unread -= len(impacts)
        if unread < 0 and len(sums) >= count:
            break
        for name, impact in impacts.items():
            if name in sums:
                sums[name] += weight * impact
            else:
                sums[name] = weight * impact
    if len(sums) <= count:
        return sums
    floor = sorted(sums.values())[-count]
    return [name for name, total in sums.items() if total >= floor]


def _score(
    postings: Postings, query: ToolQuery, weights: Mapping[str, float], names: Iterable[str]
) -> dict[str, float]:
    """Score by the whole request and by the best sentence, so that no part of a long request outweighs the others."""
    names = list(names)
    places = _sentence_weights(postings, query) if len(query.sentences) > 1 else {}
    totals = dict.fromkeys(names, 0.0)
    rows = {name: [0.0] * len(query.sentences) for name in names}
    for term, weight in sorted(weights.items()):  # in one order, so that sums are the same each time
        impacts, parts = postings.impacts(term), places.get(term, ())
        for name in filter(impacts.__contains__, names):
            impact = impacts[name]
            totals[name] += weight * impact
            for sentence, part in parts:
                rows[name][sentence] += part * impact
    if not places:
        return totals
    scales = _sentence_scales([max(column) for column in zip(*rows.values(), strict=True)])
    return {name: (totals[name] + max(map(mul, row, scales), default=0.0)) / 2 for name, row in rows.items()}


def _sentence_weights(postings: Postings, query: ToolQuery) -> dict[str, list[tuple[int, float]]]:
    places: dict[str, list[tuple[int, float]]] = {}
    for number, sentence in enumerate(query.sentences):
        for term, weight in _weights(postings, sentence).items():
            places.setdefault(term, []).append((number, weight))
    return places


def _sentence_scales(heights: list[float]) -> list[float]:
    """Scale short sentences half-way up to the highest-scoring one: they ask for a tool as much as it does."""
    return [(max(heights) / height) ** 0.5 if height else 0.0 for height in heights]


def _boost(postings: Postings, query: ToolQuery, rarities: Mapping[str, float], scores: dict[str, float]) -> None:
    """Raise the scores of tools that contain phrases of the query, or whose name it contains."""
    for name, score in scores.items():
        phrases = postings.phrases(name)
        if not phrases.isdisjoint(query.phrases):
            for first, second in sorted(query.phrases & phrases):
                score += _PHRASE * max(postings.rarity(first), postings.rarity(second))
        if shared := [rarities[term] for term in postings.tools[name].name if term in rarities]:
            score *= 1 + _NAME_SHARE * fsum(shared) / postings.name_rarity(name)
        scores[name] = score


def _coverage(postings: Postings, query: ToolQuery, name: str) -> float:
    own = postings.tools[name].sums
    whole = found = 0.0
    for term in query.words:
        meanings = postings.meanings(term)
        certain = [certainty * postings.rarity(known) for known, certainty in meanings]
        weight = max(certain, default=postings.rarity(term))
        whole += weight
        found += weight if any(known in own for known, _ in meanings) else 0.0
    return found / whole if whole else 0.0


_MANY_TOOLS = 500


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result."""

    name: str
    score: float
    """Comparable within one search only."""
    why: str
    """The words that matched, for display."""


class ToolIndex:
    """A search index over tools. Results do not depend on the order of adding; several threads may use it.

    Args:
        specs: Tools to add.
    """

    __slots__ = ("_lock", "_pending", "_postings")

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._pending = {spec.name: spec for spec in specs}  # indexed by the first search: many sessions never search
        self._postings = Postings()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._postings.tools.keys() | self._pending.keys())

    def add(self, spec: ToolSpec) -> None:
        """Add a tool, replacing one of the same name."""
        with self._lock:
            self._pending[spec.name] = spec

    def remove(self, name: str) -> None:
        """Remove a tool.

        Raises:
            UsageError: The index has no tool of this name.
        """
        with self._lock:
            if self._pending.pop(name, None) is None and name not in self._postings.tools:
                raise UsageError(f"cannot remove {name!r}: the index has no tool of this name")
            self._postings.remove(name)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Return the best tools for a query, best first; tools that share nothing with it are left out.

        Args:
            query: The request, in words.
            k: The most tools to return.
        """
        with self._lock:
            self._update()
            request = parse_query(query)
            explanation = MatchExplanation(self._postings, request)
            return [Hit(name, score, explanation.why(name)) for name, score in rank(self._postings, request, k)]

    def coverage(self, query: str, name: str) -> float:
        """Return the share of a query that a tool contains, from 0 to 1; rare words count more than common ones.

        Args:
            query: As for `search`.
            name: A tool that `search` found.
        """
        with self._lock:
            self._update()
            return _coverage(self._postings, parse_query(query), name)

    def _update(self) -> None:
        collecting = gc.isenabled() and len(self._pending) >= _MANY_TOOLS
        if collecting:
            gc.disable()  # nothing made here is garbage, and collecting takes a fifth of the time
        try:
            if self._pending:
                self._postings.add(map(weigh_tool, self._pending.values()))
                self._pending.clear()
            self._postings.rebuild()
        finally:
            if collecting:
                gc.enable()
