"""Finding tools by meaning as well as by words: the lexical index fused with a local embedding model."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import Any

from callwright.core.spec import ToolSpec
from callwright.registry.search.embeddings import Embed, MiniLM, VectorCache
from callwright.registry.search.index import Hit, ToolIndex
from callwright.registry.search.text import parts, read, split, spoken

_MEANING = 1.0
_SENTENCE = 0.7
_FAINT = 0.05
_CALLED = 10.0
_CANDIDATES = 50
_MOST_PARTS = 12
_SHORTEST_PART = 3


class SemanticIndex:
    """A `ToolIndex` that also finds what is said in other words.

    The first search after a change embeds the tools that are new, some milliseconds each; the vectors are kept in the
    user's cache folder, so that the next process finds them there.
    """

    def __init__(
        self, specs: Iterable[ToolSpec] = (), embed: Embed | None = None, *, cache: VectorCache | None = None
    ) -> None:
        """Vectors of an `embed` of your own are kept where you pass a `cache` for it."""
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
        """Make a tool findable, in place of one of the same name."""
        with self._lock:
            self._specs[spec.name] = spec
            self._lexical.add(spec)
            self._meanings.put(spec.name, f"{spoken(spec.name)}: {spec.description}")

    def remove(self, name: str) -> None:
        """Make a tool unfindable."""
        with self._lock:
            self._lexical.remove(name)
            self._meanings.drop(name)
            del self._specs[name]

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Return the k tools that fit best by words and meaning, best first."""
        if k < 1 or not self._specs or not split(query):
            return []
        with self._lock:
            hits = self._lexical.search(query, max(k, _CANDIDATES))
            return fused(hits, self._meanings.near(query), self._called(query, hits), k)

    def _called(self, query: str, hits: Sequence[Hit]) -> set[str]:
        called = read(query).called
        specs = (self._specs[hit.name] for hit in hits)
        return {spec.name for spec in specs if not called.isdisjoint(map(spoken, (spec.name, *spec.aliases)))}


class _Meanings:
    """A vector per tool, made when it is first needed."""

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
        """Return how close every tool comes to the request, 1 for the closest: to all of it, and to one sentence.

        Each sentence is held against its own best, so that a vague one counts as much as a precise one.
        """
        if self._matrix is None:
            self._settle()
        sentences = [part for part in parts(query) if len(part.split()) >= _SHORTEST_PART][:_MOST_PARTS]
        said = [query, *sentences] if len(sentences) > 1 else [query]
        similar = self._matrix @ self._embed(said).T
        share = similar / similar.max(0).clip(_FAINT)
        both = (1 - _SENTENCE) * share[:, 0] + _SENTENCE * share[:, len(said) > 1 :].max(1)
        return dict(zip(self._names, both.tolist(), strict=True))

    def _settle(self) -> None:
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
        # as they would be read back, so that a search does not depend on what was kept
        made = dict(zip(new, self._embed(new).astype("<f4"), strict=True))
        if self._cache is not None:
            self._cache.put(made)
        return known | made


def fused(hits: Sequence[Hit], near: Mapping[str, float], called: set[str], k: int) -> list[Hit]:
    """Add up what words and meaning say, both against their own best; a tool called by its name stays first."""
    words = {hit.name: hit for hit in hits}
    loudest = max((hit.score for hit in hits if hit.name not in called), default=1.0)
    scores: dict[str, float] = {}
    for name, similarity in near.items():
        said = min(words[name].score / loudest, 1.0) if name in words else 0.0
        scores[name] = said + _MEANING * similarity + (_CALLED if name in called else 0.0)
    best = sorted(scores, key=lambda name: (-scores[name], name))[:k]
    return [Hit(name, scores[name], _why(words.get(name), near[name])) for name in best]


def _why(hit: Hit | None, similarity: float) -> str:
    meaning = f"meaning: {similarity:.2f}"
    return f"{hit.why}; {meaning}" if hit and hit.why else meaning
