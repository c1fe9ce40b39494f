"""`SemanticIndex`: tool search by words and by meaning, the lexical index fused with a local embedding model."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import inf
from statistics import fmean, median
from threading import Lock
from typing import Any

from callwright.core.spec import ToolSpec
from callwright.registry.search.embeddings import Embed, MiniLM, VectorCache
from callwright.registry.search.index import Hit, ToolIndex
from callwright.registry.search.text import normalize_name, parse_query, split_sentences, split_words

# changing one of these moves NDCG@10: measure with `python -m benchmarks search`
_WORDS_WEIGHT = 1.8
_MIN_LEAD = 0.05
_RIVALS = 9
_SENTENCE_WEIGHT = 0.7
_MIN_SIMILARITY = 0.05
_NAMED_BONUS = 10.0
_CANDIDATES = 50
_MAX_SENTENCES = 12
_MIN_SENTENCE_WORDS = 3


class SemanticIndex:
    """A `ToolIndex` that also finds tools described in other words.

    The first search after a change embeds the new tools, some milliseconds each. The vectors are cached in the user's
    cache folder, so the next process does not compute them again.

    Args:
        specs: Tools to add.
        embed: Your own embedding function; `MiniLM` by default.
        cache: Cache for the vectors of your own function; `MiniLM` has one by default.

    Raises:
        UsageError: There is no `embed` and the extra `semantic` is not installed.
    """

    def __init__(
        self, specs: Iterable[ToolSpec] = (), embed: Embed | None = None, *, cache: VectorCache | None = None
    ) -> None:
        if embed is None:
            embed = MiniLM()
            cache = cache or VectorCache(embed.identity, embed.width)
        self._specs: dict[str, ToolSpec] = {}
        self._lexical = ToolIndex()
        self._meanings = _Meanings(embed, cache)
        self._lock = Lock()
        for spec in specs:
            self.add(spec)

    def __len__(self) -> int:
        return len(self._specs)

    def add(self, spec: ToolSpec) -> None:
        """Add a tool, replacing one of the same name."""
        with self._lock:
            self._specs[spec.name] = spec
            self._lexical.add(spec)
            self._meanings.put(spec.name, f"{normalize_name(spec.name)}: {spec.description}")

    def remove(self, name: str) -> None:
        """Remove a tool.

        Raises:
            UsageError: The index has no tool of this name.
        """
        with self._lock:
            self._lexical.remove(name)
            self._meanings.drop(name)
            del self._specs[name]

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Return the k best tools by words and meaning, best first."""
        if k < 1 or not self._specs or not split_words(query):
            return []
        with self._lock:
            hits = self._lexical.search(query, max(k, _CANDIDATES))
            coverage = self._lexical.coverage(query, hits[0].name) if hits else 0.0
            return fuse(hits, self._meanings.near(query), self._find_named(query, hits), k, coverage=coverage)

    def _find_named(self, query: str, hits: Sequence[Hit]) -> set[str]:
        names = set(map(normalize_name, parse_query(query).names))
        specs = (self._specs[hit.name] for hit in hits)
        return {spec.name for spec in specs if not names.isdisjoint(map(normalize_name, (spec.name, *spec.aliases)))}


class _Meanings:
    """One vector per tool, computed when it is first needed."""

    def __init__(self, embed: Embed, cache: VectorCache | None) -> None:
        self._embed = embed
        self._cache = cache
        self._texts: dict[str, str] = {}
        self._rows: dict[str, Any] = {}
        self._names: list[str] = []
        self._matrix: Any = None

    def put(self, name: str, text: str) -> None:
        self._texts[name] = text
        self._matrix = None

    def drop(self, name: str) -> None:
        del self._texts[name]
        self._matrix = None

    def near(self, query: str) -> dict[str, float]:
        """Return the similarity of every tool to the whole request and to its best sentence, 1 for the closest.

        Each sentence is compared with its own best match, so that a vague one counts as much as a precise one.
        """
        if self._matrix is None:
            self._update()
        sentences = [part for part in split_sentences(query) if len(part.split()) >= _MIN_SENTENCE_WORDS][
            :_MAX_SENTENCES
        ]
        texts = [query, *sentences] if len(sentences) > 1 else [query]
        numpy: Any = import_module("numpy")
        # not as a matrix product, which starts a thread per core and waits for all of them
        similar = numpy.einsum("ij,kj->ik", self._matrix, self._embed(texts))
        share = similar / similar.max(0).clip(_MIN_SIMILARITY)
        both = (1 - _SENTENCE_WEIGHT) * share[:, 0] + _SENTENCE_WEIGHT * share[:, len(texts) > 1 :].max(1)
        return dict(zip(self._names, both.tolist(), strict=True))

    def _update(self) -> None:
        self._rows |= self._vectors(sorted(set(self._texts.values()) - self._rows.keys()))
        self._rows = {text: self._rows[text] for text in self._texts.values()}
        self._names = sorted(self._texts)
        numpy: Any = import_module("numpy")
        self._matrix = numpy.stack([self._rows[self._texts[name]] for name in self._names])

    def _vectors(self, texts: Sequence[str]) -> dict[str, Any]:
        known = self._cache.get(texts) if self._cache is not None and texts else {}
        new = [text for text in texts if text not in known]
        if not new:
            return known
        # rounded as the cache does, so that results do not depend on what was cached
        made = dict(zip(new, self._embed(new).astype("<f4"), strict=True))
        if self._cache is not None:
            self._cache.put(made)
        return known | made


def fuse(hits: Sequence[Hit], near: Mapping[str, float], named: set[str], k: int, *, coverage: float) -> list[Hit]:
    """Add the scores of words and meaning, each by how much it tells for this query; tools in `named` stay first.

    Words count more the more of the query the best hit contains: descriptions written to sell share few words with a
    request, and then a shared word is an accident. Meaning counts more the further the closest tool is ahead.

    Args:
        hits: The result of the lexical search.
        near: The similarity of every tool.
        named: The tools that the query names.
        k: How many to return.
        coverage: The share of the query that the best hit contains.
    """
    words = {hit.name: hit for hit in hits}
    best_score = max((hit.score for hit in hits if hit.name not in named), default=1.0)
    ordered = sorted(near.values(), reverse=True)
    best, typical = ordered[0], median(ordered)
    scale = 1 / (best - typical) if best > typical else 0.0
    weight = _WORDS_WEIGHT * coverage / (_MIN_LEAD + _lead(ordered, typical, scale))
    # without words only the k closest can be among the first k; of those below the typical tool all are equally far
    floor = ordered[k - 1] if k <= len(ordered) and ordered[k - 1] > typical else -inf
    scores: dict[str, float] = {}
    for name, similarity in near.items():
        if similarity >= floor or name in words:
            lexical = min(words[name].score / best_score, 1.0) if name in words else 0.0
            close = max((similarity - typical) * scale, 0.0)
            scores[name] = weight * lexical + close + (weight + _NAMED_BONUS if name in named else 0.0)
    order = sorted(scores, key=lambda name: (-scores[name], name))[:k]
    return [Hit(name, scores[name], _why(words.get(name), near[name])) for name in order]


def _lead(ordered: Sequence[float], typical: float, scale: float) -> float:
    """Return how far the closest tool is ahead of those that follow, from 0 to 1."""
    rivals = ordered[1 : 1 + _RIVALS]
    return 1 - fmean(max((each - typical) * scale, 0.0) for each in rivals) if rivals else 1.0


def _why(hit: Hit | None, similarity: float) -> str:
    meaning = f"meaning: {similarity:.2f}"
    return f"{hit.why}; {meaning}" if hit and hit.why else meaning
