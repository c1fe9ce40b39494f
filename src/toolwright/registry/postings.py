"""Which tools say which term, and how rare a term is: all that ranking needs to know of the collection."""

from itertools import chain, pairwise
from math import fsum, log  # fsum does not depend on the order of a set

from toolwright.registry.lexicon import SYNONYMS
from toolwright.registry.spelling import Spelling
from toolwright.registry.weigh import Weighed
from toolwright.registry.words import spoken

_SYNONYM = 0.4
_NEARLY = 0.3


class Postings:
    """The collection by term, kept up to date tool by tool."""

    __slots__ = ("_called", "_impacts", "_meanings", "_names", "_phrases", "_rarities", "_spelling", "tools")

    def __init__(self) -> None:
        self.tools: dict[str, Weighed] = {}
        self._impacts: dict[str, dict[str, float]] = {}
        self._called: dict[str, dict[str, None]] = {}
        self._phrases: dict[str, frozenset[tuple[str, str]]] = {}
        self._forget_derived()

    def learn(self, tool: Weighed) -> None:
        """Take in a tool, in place of one of the same name."""
        name = tool.spec.name
        self.forget(name)
        self.tools[name] = tool
        for term, impact in tool.impacts.items():
            if term in self._impacts:
                self._impacts[term][name] = impact
            else:
                self._impacts[term] = {name: impact}
        for spelling in _spellings(tool):
            self._called.setdefault(spelling, {})[name] = None
        self._forget_derived()

    def forget(self, name: str) -> None:
        """Leave no trace of a tool, whether or not it was known."""
        tool = self.tools.pop(name, None)
        if tool is None:
            return
        self._phrases.pop(name, None)
        for term in tool.impacts:
            _discard(self._impacts, term, name)
        for spelling in _spellings(tool):
            _discard(self._called, spelling, name)
        self._forget_derived()

    def impacts(self, term: str) -> dict[str, float]:
        """Return how prominently each tool says a term of `meanings`."""
        return self._impacts[term]

    def called(self, spelling: str) -> list[str]:
        """Return the tools that have this name or alias, as `spoken`."""
        return list(self._called.get(spelling, ()))

    def rarity(self, term: str) -> float:
        """Return how much it says that a tool has this term: the inverse document frequency."""
        rarity = self._rarities.get(term)
        if rarity is None:
            having = len(self._impacts.get(term, ()))
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
        same = [(other, _SYNONYM) for other in SYNONYMS.get(term, ()) if other in self._impacts]
        if term in self._impacts:
            return [(term, 1.0), *same]
        if self._spelling is None:
            self._spelling = Spelling(self._impacts)
        return same or [(other, _NEARLY) for other in self._spelling.near(term)]

    def _forget_derived(self) -> None:
        self._rarities: dict[str, float] = {}
        self._names: dict[str, float] = {}
        self._meanings: dict[str, list[tuple[str, float]]] = {}
        self._spelling: Spelling | None = None


def _spellings(tool: Weighed) -> set[str]:
    return {spoken(name) for name in (tool.spec.name, *tool.spec.aliases)}


def _discard(table: dict[str, dict[str, float]] | dict[str, dict[str, None]], key: str, name: str) -> None:
    entries = table[key]
    del entries[name]
    if not entries:
        del table[key]
