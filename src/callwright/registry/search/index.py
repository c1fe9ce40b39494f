"""`ToolIndex`: a lexical search index over tools that needs the standard library only.

Ranking is BM25 over weighted fields:

rarest terms ──► candidates ──► (whole request + best sentence) / 2 + phrases, x share of the name in the request
"""

import gc
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from math import fsum  # its sum does not depend on the order of a set
from threading import Lock

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.search.postings import IndexedTool, Postings
from callwright.registry.search.text import TERM_WORDS, ToolQuery, parse_query

_MAX_WORDS_SHOWN = 8


class Hit:
    """A search result.

    Args:
        name: The name of the tool.
        score: Comparable within one search only.
        why: The words that matched, for display, or what finds them once they are displayed.
    """

    __slots__ = ("_why", "name", "score")

    def __init__(self, name: str, score: float, why: str | Callable[[], str] = "") -> None:
        self.name = name
        self.score = score
        self._why = why

    @property
    def why(self) -> str:
        """The words that matched, for display."""
        if not isinstance(self._why, str):
            self._why = self._why()
        return self._why

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hit) and (self.name, self.score, self.why) == (other.name, other.score, other.why)

    def __hash__(self) -> int:
        return hash((self.name, self.score))

    def __repr__(self) -> str:
        return f"Hit(name={self.name!r}, score={self.score!r}, why={self.why!r})"


# changing one of these moves NDCG@10: measure with `python -m benchmarks search`
_PHRASE = 0.4
_NAME_SHARE = 0.4
_CANDIDATES = 50
_POSTINGS_READ = 1_000

_Found = dict[str, dict[int, float]]
"""The impacts of each term, by the place of the tool among the candidates."""


def rank(postings: Postings, query: ToolQuery, k: int) -> list[Hit]:
    """Return the best k tools; tools named in the query come first."""
    if k < 1:
        return []
    weights = _weights(postings, chain.from_iterable(query.sentences))
    named = {tool for name in query.names for tool in postings.find_named(name)}
    candidates = named.union(_pick_candidates(postings, weights, max(k, _CANDIDATES)))
    places = {tool: place for place, tool in enumerate(candidates)}
    found: _Found = {}
    for term in weights:
        impacts = postings.impacts(term)
        found[term] = {places[tool]: impacts[tool] for tool in impacts.keys() & candidates}
    tools = list(places)
    scores = _score(postings, query, found, weights, len(tools))
    rarity = {term: postings.rarity(term) for term in found}
    _boost_phrases(postings, query, found, rarity, tools, scores)
    ranked = _boost_names(postings, rarity, tools, scores, named, k)
    best = max(ranked.values(), default=0.0)
    for tool in named:
        ranked[places[tool]] += best + 1  # above every other score, still ordered among themselves
    floor = _nth_highest(ranked.values(), k)
    first = [(-score, tools[place].spec.name, place) for place, score in ranked.items() if score >= floor]
    words = [(term, word, postings.meanings(term)) for term, word in query.words.items()]
    return [
        Hit(name, -score, partial(_explain, words, found, place, postings.name_terms(tools[place])))
        for score, name, place in sorted(first)[:k]
    ]


def _weights(postings: Postings, terms: Iterable[str]) -> dict[str, float]:
    times: dict[str, int] = {}
    for term in terms:
        times[term] = times.get(term, 0) + 1
    weights: dict[str, float] = {}
    for term, count in times.items():
        for known, certain in postings.meanings(term):
            # a repeated term counts more, but never twice as much
            weight = certain * 2 * count / (count + 1)
            if weight > weights.get(known, 0.0):
                weights[known] = weight
    return weights


def _pick_candidates(postings: Postings, weights: Mapping[str, float], count: int) -> Iterable[IndexedTool]:
    """Pick candidates by the terms of highest weight: common terms cost most to read and tell least."""
    sums: dict[IndexedTool, float] = {}
    unread = max(_POSTINGS_READ, len(postings.tools) // 3)
    for term in sorted(sorted(weights), key=weights.__getitem__, reverse=True):
        weight = weights[term]
        impacts = postings.impacts(term)
        unread -= len(impacts)
        if unread < 0 and len(sums) >= count:
            break
        for tool, impact in impacts.items():
            if tool in sums:
                sums[tool] += weight * impact
            else:
                sums[tool] = weight * impact
    totals = list(sums.values())
    # most are below what the first ones reach, which have the rarest terms, and need not be sorted
    floor = _nth_highest(totals[: 3 * count], count)
    floor = _nth_highest([total for total in totals if total >= floor], count)
    return [tool for tool, total in sums.items() if total >= floor]


def _nth_highest(scores: Collection[float], n: int) -> float:
    """Return the score that n tools reach; 0 if there are fewer tools."""
    return sorted(scores)[-n] if len(scores) >= n else 0.0


def _score(
    postings: Postings, query: ToolQuery, found: _Found, weights: Mapping[str, float], count: int
) -> list[float]:
    """Score by the whole request and by the best sentence, so that no part of a long request outweighs the others."""
    totals = _sum(found, weights, count)
    if len(query.sentences) < 2 or not count:
        return totals
    rows = [_sum(found, _weights(postings, sentence), count) for sentence in query.sentences]
    scales = _sentence_scales(list(map(max, rows)))
    scaled = [[total * scale for total in row] for row, scale in zip(rows, scales, strict=True)]
    return [(total + most) / 2 for total, most in zip(totals, map(max, *scaled), strict=True)]


def _sum(found: _Found, weights: Mapping[str, float], count: int) -> list[float]:
    sums = [0.0] * count
    for term, weight in weights.items():  # in the order of the query, so that sums are the same each time
        for place, impact in found[term].items():
            sums[place] += weight * impact
    return sums


def _sentence_scales(heights: list[float]) -> list[float]:
    """Scale short sentences half-way up to the highest-scoring one: they ask for a tool as much as it does."""
    return [(max(heights) / height) ** 0.5 if height else 0.0 for height in heights]


def _boost_phrases(
    postings: Postings,
    query: ToolQuery,
    found: _Found,
    rarity: Mapping[str, float],
    tools: Sequence[IndexedTool],
    scores: list[float],
) -> None:
    """Raise the scores of tools that contain phrases of the query."""
    for first, second in query.phrases:
        with_first, with_second = found.get(first), found.get(second)
        if with_first and with_second and (both := with_first.keys() & with_second.keys()):
            phrase, gain = f" {first} {second} ", _PHRASE * max(rarity[first], rarity[second])
            for place in both:
                if phrase in postings.prose(tools[place]):
                    scores[place] += gain


def _boost_names(
    postings: Postings,
    rarity: Mapping[str, float],
    tools: Sequence[IndexedTool],
    scores: Sequence[float],
    named: set[IndexedTool],
    k: int,
) -> dict[int, float]:
    """Raise the scores of tools whose name is in the query; leave out those that cannot be among the first k."""
    known = frozenset(rarity)
    floor = _nth_highest(scores, k)
    boosted: dict[int, float] = {}
    for place, (tool, score) in enumerate(zip(tools, scores, strict=True)):
        if score * (1 + _NAME_SHARE) < floor and tool not in named:
            continue
        if shared := known & postings.name_terms(tool):
            score *= 1 + _NAME_SHARE * fsum(map(rarity.__getitem__, shared)) / postings.name_rarity(tool)
        boosted[place] = score
    return boosted


def _explain(
    words: Sequence[tuple[str, str, Sequence[tuple[str, float]]]], found: _Found, place: int, name: Collection[str]
) -> str:
    """Return the words of the query that match a tool: those in its name, then those in its other texts.

    Args:
        words: The terms of the query, each with the word it came from and what it may stand for.
        found: The impacts of each term.
        place: The place of the tool.
        name: The terms of the tool's name.
    """
    matches = [
        (known, word if known == term else f"{word} ~ {TERM_WORDS.get(known, known)}")
        for term, word, meanings in words
        for known, _ in meanings
        if place in found[known]
    ]
    return _format_matches(
        [shown for known, shown in matches if known in name], [shown for known, shown in matches if known not in name]
    )


def _format_matches(named: Sequence[str], other: Sequence[str]) -> str:
    places = (("name", named), ("text", other))
    return "; ".join([f"{place}: {', '.join(words[:_MAX_WORDS_SHOWN])}" for place, words in places if words])


def _coverage(postings: Postings, query: ToolQuery, name: str) -> float:
    tool = postings.tools[name]
    whole = found = 0.0
    for term in query.words:
        meanings = postings.meanings(term)
        weight = max((certain for _, certain in meanings), default=postings.rarity(term))
        whole += weight
        found += weight if any(tool in postings.impacts(known) for known, _ in meanings) else 0.0
    return found / whole if whole else 0.0


_MANY_TOOLS = 500


class ToolIndex:
    """A search index over tools. Results do not depend on the order of adding; several threads may use it.

    Args:
        specs: Tools to index now; those that are added later are indexed by the next search.
    """

    __slots__ = ("_lock", "_pending", "_postings")

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._pending = {spec.name: spec for spec in specs}
        self._postings = Postings()
        self._lock = Lock()
        self._update()

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
            return rank(self._postings, parse_query(query), k)

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
                self._postings.add(self._pending.values())
                self._pending.clear()
            self._postings.rebuild()
            if self._postings.mostly_unused:
                fresh = Postings()
                fresh.add([tool.spec for tool in self._postings.tools.values()])
                self._postings = fresh
        finally:
            if collecting:
                gc.enable()
