"""Which tools say which term, and how rare a term is: all that ranking needs to know of the collection.

How much each term says about a tool, by the place where it stands.
"""

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import fsum, log  # fsum does not depend on the order of a set

from callwright.core._fast import maker
from callwright.core.json import Json
from callwright.core.spec import ToolSpec
from callwright.registry.search.text import SYNONYMS, Spelling, spoken, terms

_SATURATION = 1.2
_DEEPEST = 6
_BRANCHES = ("items", "anyOf", "oneOf", "allOf", "additionalProperties")
_BRANCHING = frozenset(_BRANCHES)


@dataclass(frozen=True, slots=True)
class _Field:
    weight: float
    dilution: float = 0.0
    """How fast a word loses weight as the field gets longer; a name or an enum does not dilute its words."""


_NAME = _Field(2.0)
_HINT = _Field(2.0)
_GROUP = _Field(0.5)
_DESCRIPTION = _Field(4.0, 0.3)
_PARAMETER = _Field(1.4, 0.15)
_PARAMETER_TEXT = _Field(0.8, 0.04)
_CHOICE = _Field(0.6)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A tool as search sees it; nothing in it depends on the other tools."""

    spec: ToolSpec
    sums: dict[str, float]
    """By term, how much is made of it, all fields together."""
    name: frozenset[str]
    prose: tuple[Sequence[str], ...]
    """The texts whose neighbouring words count as phrases."""


_weighed = maker(Weighed)


def weigh(spec: ToolSpec) -> Weighed:
    """Read everything a tool says about itself."""
    sums: dict[str, float] = {}
    name = _add(sums, spec.name, _NAME)
    description = _add(sums, spec.description, _DESCRIPTION)
    hint = _add(sums, spec.search_hint, _HINT)
    _add(sums, spec.group, _GROUP)
    for alias in spec.aliases:
        _add(sums, alias, _NAME)
    parameters = _Parameters()
    parameters.read(spec.input_schema)
    _add(sums, " ".join(parameters.names), _PARAMETER)
    _add(sums, " ".join(parameters.texts), _PARAMETER_TEXT)
    _add(sums, " ".join(parameters.choices), _CHOICE)
    return _weighed(spec, sums, frozenset(name), (name, description, hint))


def impact(weight: float) -> float:
    """What a term adds per unit of rarity, between 0 and the saturation + 1: saying it often is soon often enough."""
    return (_SATURATION + 1) * weight / (weight + _SATURATION)


def _add(sums: dict[str, float], text: str, field: _Field) -> Sequence[str]:
    if not text:
        return ()
    found = terms(text)
    weight = field.weight / (1 + field.dilution * len(found))
    for term in found:
        if term in sums:
            sums[term] += weight
        else:
            sums[term] = weight
    return found


class _Parameters:
    """What a schema says in words, wherever it nests."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.texts: list[str] = []
        self.choices: list[str] = []

    def read(self, schema: Json, depth: int = 0) -> None:
        """Take in what a schema says, then what its parts say."""
        if not isinstance(schema, dict) or depth > _DEEPEST:  # a spec's schema is frozen: all its mappings are dicts
            return
        text = schema.get("description")
        if isinstance(text, str):
            self.texts.append(text)
        if "enum" in schema:
            self.choices.extend(choice for choice in _several(schema["enum"]) if isinstance(choice, str))
        properties = schema.get("properties")
        if isinstance(properties, dict):
            for name, part in properties.items():
                self.names.append(name)
                self.read(part, depth + 1)
        if _BRANCHING.isdisjoint(schema):  # most parameters are plain
            return
        for key in _BRANCHES:
            if key in schema:
                for branch in _several(schema[key]):
                    self.read(branch, depth + 1)


def _several(value: Json) -> Sequence[Json]:
    return value if isinstance(value, (list, tuple)) else (value,)


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
