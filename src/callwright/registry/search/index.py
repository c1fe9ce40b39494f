"""Why a tool was found, in the words of the person who searched.

The order of the tools found: BM25 over weighted fields, every sentence heard, then phrases and names.

rarest terms ──► candidates ──► (whole request + best sentence) / 2 + phrases, x the share of the name that was said

Finding tools by what somebody says: a lexical index that needs nothing but the standard library.
"""

import gc
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import fsum  # its sum does not depend on the order of a set
from operator import mul
from threading import Lock

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.search.postings import Postings, weigh
from callwright.registry.search.text import WRITTEN, Query, read

_WORDS_SHOWN = 8


class Heard:
    """What one query was taken to mean, ready to be explained tool by tool."""

    __slots__ = ("_meant", "_tools")

    def __init__(self, postings: Postings, query: Query) -> None:
        self._tools = postings.tools
        self._meant = [
            (known, word if known == term else f"{word} ~ {WRITTEN.get(known, known)}")
            for term, word in query.words.items()
            for known, _ in postings.meanings(term)
        ]

    def why(self, name: str) -> str:
        """Say which words a tool answers to: those in its name, then those in the rest of what it says."""
        tool = self._tools[name]
        named: list[str] = []
        other: list[str] = []
        for known, shown in self._meant:
            if known in tool.sums:
                (named if known in tool.name else other).append(shown)
        found = {"name": named[:_WORDS_SHOWN], "text": other[:_WORDS_SHOWN]}
        return "; ".join(f"{place}: {', '.join(words)}" for place, words in found.items() if words)


_PHRASE = 0.4
_NAME_SAID = 0.4
_CANDIDATES = 50
_POSTINGS_READ = 1_000


def rank(postings: Postings, query: Query, k: int) -> list[tuple[str, float]]:
    """Return the best k names with their scores; tools called by their name come first."""
    if k < 1:
        return []
    weights = _weights(postings, (term for sentence in query.sentences for term in sentence))
    called = {name for spelling in query.called for name in postings.called(spelling)}
    candidates = called.union(_promising(postings, weights, max(k, _CANDIDATES)))
    scores = _heard(postings, query, weights, sorted(candidates))
    rarities = {term: postings.rarity(term) for term in weights}
    for name in scores:
        scores[name] = _refined(postings, query, rarities, name, scores[name])
    best = max(scores.values(), default=0.0)
    for name in called:
        scores[name] += best + 1
    return sorted(scores.items(), key=lambda found: (-found[1], found[0]))[:k]


def _weights(postings: Postings, said: Iterable[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for term, times in Counter(said).items():
        for known, certainty in postings.meanings(term):
            weight = certainty * postings.rarity(known) * 2 * times / (times + 1)
            if weight > weights.get(known, 0.0):
                weights[known] = weight
    return weights


def _promising(postings: Postings, weights: Mapping[str, float], count: int) -> Iterable[str]:
    """Pick candidates by the weightiest terms: the common ones cost most to read and say least."""
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
    floor = nlargest(count, sums.values())[-1]
    return [name for name, total in sums.items() if total >= floor]


def _heard(postings: Postings, query: Query, weights: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """Score by the whole request and by the best sentence, so that no part of a long request drowns the others."""
    impacts = {name: postings.said(name) for name in names}
    shared = {name: sorted(weights.keys() & said.keys()) for name, said in impacts.items()}
    totals = {name: sum([weights[term] * impacts[name][term] for term in found]) for name, found in shared.items()}
    if len(query.sentences) == 1:
        return totals
    places = _places(postings, query)
    rows: dict[str, list[float]] = {}
    for name, found in shared.items():
        said, row = impacts[name], [0.0] * len(query.sentences)
        for term in found:
            for sentence, weight in places[term]:
                row[sentence] += weight * said[term]
        rows[name] = row
    scales = _scales([max(column) for column in zip(*rows.values(), strict=True)])
    return {name: (totals[name] + max(map(mul, row, scales), default=0.0)) / 2 for name, row in rows.items()}


def _places(postings: Postings, query: Query) -> dict[str, list[tuple[int, float]]]:
    places: dict[str, list[tuple[int, float]]] = {}
    for number, sentence in enumerate(query.sentences):
        for term, weight in _weights(postings, sentence).items():
            places.setdefault(term, []).append((number, weight))
    return places


def _scales(heights: list[float]) -> list[float]:
    """Lift terse sentences half-way to the fullest one: they ask for a tool as much as it does."""
    return [(max(heights) / height) ** 0.5 if height else 0.0 for height in heights]


def _refined(postings: Postings, query: Query, rarities: Mapping[str, float], name: str, score: float) -> float:
    phrases = postings.phrases(name)
    for first, second in () if phrases.isdisjoint(query.phrases) else sorted(query.phrases & phrases):
        score += _PHRASE * max(postings.rarity(first), postings.rarity(second))
    said = [rarities[term] for term in postings.tools[name].name if term in rarities]
    return score * (1 + _NAME_SAID * fsum(said) / postings.name_rarity(name)) if said else score


_MANY = 500


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found."""

    name: str
    score: float
    """Comparable within one search only."""
    why: str
    """The words that matched, for a person to read."""


class ToolIndex:
    """Searchable tools. The order in which they came does not matter; several threads may use it."""

    __slots__ = ("_lock", "_pending", "_postings")

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._pending = {spec.name: spec for spec in specs}  # read by the first search: many sessions never search
        self._postings = Postings()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._postings.tools.keys() | self._pending.keys())

    def add(self, spec: ToolSpec) -> None:
        """Make a tool findable, in place of one of the same name."""
        with self._lock:
            self._pending[spec.name] = spec

    def remove(self, name: str) -> None:
        """Make a tool unfindable."""
        with self._lock:
            if self._pending.pop(name, None) is None and name not in self._postings.tools:
                raise UsageError(f"there is no tool {name!r} in the index to remove")
            self._postings.forget(name)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Return the k tools that fit best, best first; tools that share nothing with the query are left out."""
        with self._lock:
            self._settle()
            request = read(query)
            heard = Heard(self._postings, request)
            return [Hit(name, score, heard.why(name)) for name, score in rank(self._postings, request, k)]

    def _settle(self) -> None:
        collecting = gc.isenabled() and len(self._pending) >= _MANY
        if collecting:
            gc.disable()  # nothing made here is garbage, and looking for some costs a fifth of the time
        try:
            if self._pending:
                self._postings.learn(map(weigh, self._pending.values()))
                self._pending.clear()
            self._postings.settle()
        finally:
            if collecting:
                gc.enable()
