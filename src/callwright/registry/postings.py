"""Which tools say which term, and how rare a term is: all that ranking needs to know of the collection."""

import string
from collections.abc import Iterable
from itertools import chain, pairwise
from math import fsum, log  # fsum does not depend on the order of a set

from callwright.registry.lexicon import SYNONYMS
from callwright.registry.spelling import Spelling
from callwright.registry.weigh import Weighed, impact
from callwright.registry.words import spoken

_SYNONYM = 0.4
_NEARLY = 0.3
_SIGNS = str.maketrans("", "", string.punctuation + " ")


class Postings:
    """The collection by term, kept up to date tool by tool."""

    __slots__ = (
        "_called",
        "_having",
        "_impacts",
        "_meanings",
        "_names",
        "_phrases",
        "_rarities",
        "_said",
        "_spelling",
        "_stale",
        "tools",
    )

    def __init__(self) -> None:
        self.tools: dict[str, Weighed] = {}
        self._phrases: dict[str, frozenset[tuple[str, str]]] = {}
        self._said: dict[str, dict[str, float]] = {}
        self._begin()

    def _begin(self) -> None:
        self._having: dict[str, list[Weighed]] = {}
        self._called: dict[str, list[str]] = {}
        self._stale = False
        self._forget_derived()

    def learn(self, tools: Iterable[Weighed]) -> None:
        """Take in tools, each in place of one of the same name."""
        for tool in tools:
            name = tool.spec.name
            if name in self.tools:
                self.forget(name)
            self.tools[name] = tool
            if not self._stale:
                self._enter(tool)
        self._forget_derived()

    def forget(self, name: str) -> None:
        """Leave no trace of a tool, whether or not it was known."""
        if self.tools.pop(name, None) is not None:
            self._phrases.pop(name, None)
            self._said.pop(name, None)
            self._stale = True

    def settle(self) -> None:
        """Make ready to be asked: what was forgotten is left out of the lists, all of it at once."""
        if self._stale:
            self._begin()
            for tool in self.tools.values():
                self._enter(tool)

    def _enter(self, tool: Weighed) -> None:
        having = self._having
        for term in tool.sums:
            if term in having:
                having[term].append(tool)
            else:
                having[term] = [tool]
        for name in (tool.spec.name, *tool.spec.aliases):
            self._called.setdefault(_key(name), []).append(tool.spec.name)

    def impacts(self, term: str) -> dict[str, float]:
        """Return how prominently each tool says a term of `meanings`."""
        found = self._impacts.get(term)
        if found is None:
            found = self._impacts[term] = {tool.spec.name: impact(tool.sums[term]) for tool in self._having[term]}
        return found

    def said(self, name: str) -> dict[str, float]:
        """Return how prominently a tool says each of its terms."""
        found = self._said.get(name)
        if found is None:
            found = self._said[name] = {term: impact(weight) for term, weight in self.tools[name].sums.items()}
        return found

    def called(self, spelling: str) -> list[str]:
        """Return the tools that have this name or alias, as `spoken`."""
        likely = dict.fromkeys(self._called.get(_key(spelling), ()))
        return [name for name in likely if spelling in _spellings(self.tools[name])]

    def rarity(self, term: str) -> float:
        """Return how much it says that a tool has this term: the inverse document frequency."""
        rarity = self._rarities.get(term)
        if rarity is None:
            having = len(self._having.get(term, ()))
            rarity = self._rarities[term] = log(1 + (len(self.tools) - having + 0.5) / (having + 0.5))
        return rarity

    def name_rarity(self, name: str) -> float:
        """Return what it says to say the whole name of a tool."""
        rarity = self._names.get(name)
        if rarity is None:
            rarity = self._names[name] = fsum(map(self.rarity, self.tools[name].name))
        return rarity

    def phrases(self, name: str) -> frozenset[tuple[str, str]]:
        """Return the neighbouring terms in what a tool says."""
        phrases = self._phrases.get(name)
        if phrases is None:
            phrases = self._phrases[name] = frozenset(chain.from_iterable(map(pairwise, self.tools[name].prose)))
        return phrases

    def meanings(self, term: str) -> list[tuple[str, float]]:
        """Return the known terms somebody may mean by a term, each with how surely."""
        known = self._meanings.get(term)
        if known is None:
            known = self._meanings[term] = self._interpret(term)
        return known

    def _interpret(self, term: str) -> list[tuple[str, float]]:
        same = [(other, _SYNONYM) for other in SYNONYMS.get(term, ()) if other in self._having]
        if term in self._having:
            return [(term, 1.0), *same]
        if self._spelling is None:
            self._spelling = Spelling(self._having)
        return same or [(other, _NEARLY) for other in self._spelling.near(term)]

    def _forget_derived(self) -> None:
        self._impacts: dict[str, dict[str, float]] = {}
        self._rarities: dict[str, float] = {}
        self._names: dict[str, float] = {}
        self._meanings: dict[str, list[tuple[str, float]]] = {}
        self._spelling: Spelling | None = None


def _spellings(tool: Weighed) -> set[str]:
    return set(map(spoken, (tool.spec.name, *tool.spec.aliases)))


def _key(name: str) -> str:
    """What names that are spoken alike share; cheap, because every name of thousands is asked for it."""
    return (name if name.isascii() else spoken(name)).translate(_SIGNS).lower()
