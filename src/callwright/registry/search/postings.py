"""The inverted index: which tools contain a term, with what weight, and how rare the term is."""

import string
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import fsum, log  # fsum does not depend on the order of a set

from callwright.core._fast import make_constructor
from callwright.core.json import Json
from callwright.core.spec import ToolSpec
from callwright.registry.search.text import SYNONYMS, Spelling, normalize_name, terms

_SATURATION = 1.2
_MAX_DEPTH = 6
_BRANCHES = ("items", "anyOf", "oneOf", "allOf", "additionalProperties")
_NESTING = frozenset({"enum", "properties", *_BRANCHES})


@dataclass(frozen=True, slots=True)
class _Field:
    weight: float
    dilution: float = 0.0
    """How fast a word loses weight as the field gets longer; 0 for names and enums."""


# changing one of these moves NDCG@10: measure with `python -m benchmarks search`
_NAME = _Field(2.0)
_HINT = _Field(2.0)
_GROUP = _Field(0.5)
_DESCRIPTION = _Field(4.0, 0.3)
_PARAMETER = _Field(1.4, 0.15)
_PARAMETER_TEXT = _Field(0.8, 0.04)
_CHOICE = _Field(0.6)


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: tools are the keys of many tables
class WeightedTool:
    """The terms of one tool with their weights; independent of the other tools."""

    spec: ToolSpec
    sums: dict[str, float]
    """The weight of each term, summed over all fields."""
    name: frozenset[str]
    prose: tuple[Sequence[str], ...]
    """The texts whose neighbouring terms count as phrases."""


_make_weighted = make_constructor(WeightedTool)


def weigh_tool(spec: ToolSpec) -> WeightedTool:
    """Weigh the terms in the name, texts and parameters of a tool."""
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
    return _make_weighted(spec, sums, frozenset(name), (name, description, hint))


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
    """Collects the names, descriptions and enum values of a schema at any depth."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.texts: list[str] = []
        self.choices: list[str] = []

    def read(self, schema: Json, depth: int = 0) -> None:
        """Collect from a schema and its parts."""
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:  # a spec's schema is frozen: all its mappings are dicts
            return
        text = schema.get("description")
        if isinstance(text, str):
            self.texts.append(text)
        if _NESTING.isdisjoint(schema):  # most parameters are plain
            return
        if "enum" in schema:
            self.choices.extend([choice for choice in _several(schema["enum"]) if isinstance(choice, str)])
        properties = schema.get("properties")
        if isinstance(properties, dict):
            self.names.extend(properties)
            for part in properties.values():
                self.read(part, depth + 1)
        for key in _BRANCHES:
            if key in schema:
                for branch in _several(schema[key]):
                    self.read(branch, depth + 1)


def _several(value: Json) -> Sequence[Json]:
    return value if isinstance(value, (list, tuple)) else (value,)


_SYNONYM = 0.4
_SIMILAR = 0.3
_PUNCTUATION = str.maketrans("", "", string.punctuation + " ")


class Postings:
    """The tools by term; values derived from them are computed when needed and cached until a change."""

    __slots__ = (
        "_by_name",
        "_by_term",
        "_impacts",
        "_meanings",
        "_name_rarities",
        "_phrases",
        "_rarities",
        "_spelling",
        "_stale",
        "tools",
    )

    def __init__(self) -> None:
        self.tools: dict[str, WeightedTool] = {}
        self._phrases: dict[WeightedTool, frozenset[tuple[str, str]]] = {}
        self._clear()

    def _clear(self) -> None:
        self._by_term: defaultdict[str, list[WeightedTool]] = defaultdict(list)
        self._by_name: dict[str, list[WeightedTool]] = {}
        self._stale = False
        self._clear_caches()

    def add(self, tools: Iterable[WeightedTool]) -> None:
        """Add tools, each replacing one of the same name."""
        for tool in tools:
            name = tool.spec.name
            if name in self.tools:
                self.remove(name)
            self.tools[name] = tool
            if not self._stale:
                self._index(tool)
        self._clear_caches()

    def remove(self, name: str) -> None:
        """Remove a tool if it is known; `rebuild` must be called before the next query."""
        tool = self.tools.pop(name, None)
        if tool is not None:
            self._phrases.pop(tool, None)
            self._stale = True

    def rebuild(self) -> None:
        """Rebuild the lists if tools were removed: one pass for all of them is cheaper than one search per tool."""
        if self._stale:
            self._clear()
            for tool in self.tools.values():
                self._index(tool)

    def _index(self, tool: WeightedTool) -> None:
        by_term = self._by_term
        for term in tool.sums:
            by_term[term].append(tool)
        for name in (tool.spec.name, *tool.spec.aliases):
            self._by_name.setdefault(_key(name), []).append(tool)

    def impacts(self, term: str) -> dict[WeightedTool, float]:
        """Return the impact of a known term on each tool that contains it.

        The impact is what the term adds per unit of rarity: BM25's saturation, between 0 and `_SATURATION` + 1.
        """
        found = self._impacts.get(term)
        if found is None:
            found = self._impacts[term] = {
                tool: (_SATURATION + 1) * (weight := tool.sums[term]) / (weight + _SATURATION)
                for tool in self._by_term[term]
            }
        return found

    def find_named(self, name: str) -> list[WeightedTool]:
        """Return the tools with this name or alias, however it is written."""
        alike = self._by_name.get(_key(name))
        if not alike:  # nearly always, and known without its words
            return []
        spelling = normalize_name(name)
        return [tool for tool in alike if spelling in _spellings(tool)]

    def rarity(self, term: str) -> float:
        """Return the inverse document frequency of a term."""
        rarity = self._rarities.get(term)
        if rarity is None:
            count = len(self._by_term.get(term, ()))
            rarity = self._rarities[term] = log(1 + (len(self.tools) - count + 0.5) / (count + 0.5))
        return rarity

    def name_rarity(self, tool: WeightedTool) -> float:
        """Return the summed rarity of the terms in a tool's name."""
        rarity = self._name_rarities.get(tool)
        if rarity is None:
            rarity = self._name_rarities[tool] = fsum(map(self.rarity, tool.name))
        return rarity

    def phrases(self, tool: WeightedTool) -> frozenset[tuple[str, str]]:
        """Return the pairs of neighbouring terms in a tool's texts."""
        phrases = self._phrases.get(tool)
        if phrases is None:
            phrases = self._phrases[tool] = frozenset(chain.from_iterable(map(pairwise, tool.prose)))
        return phrases

    def meanings(self, term: str) -> list[tuple[str, float]]:
        """Return the known terms a query term may stand for, each with its rarity times a certainty from 0 to 1."""
        known = self._meanings.get(term)
        if known is None:
            known = self._meanings[term] = [
                (other, certainty * self.rarity(other)) for other, certainty in self._interpret(term)
            ]
        return known

    def _interpret(self, term: str) -> list[tuple[str, float]]:
        same = [(other, _SYNONYM) for other in SYNONYMS.get(term, ()) if other in self._by_term]
        if term in self._by_term:
            return [(term, 1.0), *same]
        if self._spelling is None:
            self._spelling = Spelling(self._by_term)
        return same or [(other, _SIMILAR) for other in self._spelling.near(term)]

    def _clear_caches(self) -> None:
        self._impacts: dict[str, dict[WeightedTool, float]] = {}
        self._rarities: dict[str, float] = {}
        self._name_rarities: dict[WeightedTool, float] = {}
        self._meanings: dict[str, list[tuple[str, float]]] = {}
        self._spelling: Spelling | None = None


def _spellings(tool: WeightedTool) -> set[str]:
    return set(map(normalize_name, (tool.spec.name, *tool.spec.aliases)))


def _key(name: str) -> str:
    """Return a key shared by names that normalize alike; cheaper than `normalize_name`, called for every name."""
    if name.isascii():
        return name.replace("_", "").lower() if name.isidentifier() else name.translate(_PUNCTUATION).lower()
    return normalize_name(name).translate(_PUNCTUATION).lower()
