"""The inverted index: which tools contain a term, with what weight, and how rare the term is."""

import string
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, log  # fsum does not depend on the order of a set
from typing import TypeVar

from callwright.core.json import Json
from callwright.core.spec import ToolSpec
from callwright.registry.search.text import SYNONYMS, Spelling, chunk_terms, normalize_name, split_chunks, terms

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

_Value = TypeVar("_Value")


class IndexedTool:
    """A tool of the index; compared by identity, because tools are the keys of many tables."""

    __slots__ = ("spec",)

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec


def _read_texts(spec: ToolSpec) -> Iterator[tuple[str, _Field]]:
    """Return the texts of a tool, each with the kind of field it is."""
    names: list[str] = []
    texts: list[str] = []
    choices: list[str] = []
    _read_parameters(spec.input_schema, names, texts, choices)
    yield spec.name, _NAME
    yield spec.description, _DESCRIPTION
    yield spec.search_hint, _HINT
    yield spec.group, _GROUP
    for alias in spec.aliases:
        yield alias, _NAME
    yield " ".join(names), _PARAMETER
    yield " ".join(texts), _PARAMETER_TEXT
    yield " ".join(choices), _CHOICE


def _read_parameters(schema: Json, names: list[str], texts: list[str], choices: list[str], depth: int = 0) -> None:
    """Collect the names, descriptions and enum values of a schema at any depth."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:  # a spec's schema is frozen: all its mappings are dicts
        return
    text = schema.get("description")
    if isinstance(text, str):
        texts.append(text)
    if _NESTING.isdisjoint(schema):  # most parameters are plain
        return
    if "enum" in schema:
        choices.extend([choice for choice in _several(schema["enum"]) if isinstance(choice, str)])
    properties = schema.get("properties")
    if isinstance(properties, dict):
        names.extend(properties)
        for part in properties.values():
            _read_parameters(part, names, texts, choices, depth + 1)
    for key in _BRANCHES:
        if key in schema:
            for branch in _several(schema[key]):
                _read_parameters(branch, names, texts, choices, depth + 1)


def _several(value: Json) -> Sequence[Json]:
    return value if isinstance(value, (list, tuple)) else (value,)


_SYNONYM = 0.4
_SIMILAR = 0.3
_PUNCTUATION = str.maketrans("", "", string.punctuation + " ")


class _Saturated(dict[float, float]):
    """BM25's saturation by weight. Many tools share a weight: one number for all of them is soon in the CPU's cache."""

    __slots__ = ()

    def __missing__(self, weight: float) -> float:
        saturated = self[weight] = (_SATURATION + 1) * weight / (weight + _SATURATION)
        return saturated


class Postings:
    """The tools by term; values derived from them are computed when needed and cached until a change.

    Each text of a tool is a field with a number. A term has the numbers of the fields that contain it, once for each
    time; a field has an owner, its tool, and a weight for each term in it.
    """

    __slots__ = (
        "_by_name",
        "_by_term",
        "_impacts",
        "_meanings",
        "_name_rarities",
        "_name_terms",
        "_owners",
        "_prose",
        "_rarities",
        "_removed",
        "_saturated",
        "_spelling",
        "_unused",
        "_weights",
        "tools",
    )

    def __init__(self) -> None:
        self.tools: dict[str, IndexedTool] = {}
        self._by_name: defaultdict[str, list[IndexedTool]] = defaultdict(list)
        self._by_term: defaultdict[str, list[int]] = defaultdict(list)
        self._owners: list[IndexedTool | None] = []
        self._weights: list[float] = []
        self._unused = 0
        self._name_terms: dict[IndexedTool, frozenset[str]] = {}
        self._prose: dict[IndexedTool, str] = {}
        self._removed: set[IndexedTool] = set()
        self._impacts: dict[str, dict[IndexedTool, float]] = {}
        self._saturated = _Saturated()
        self._clear_rarities()

    def add(self, specs: Iterable[ToolSpec]) -> None:
        """Add tools, each replacing one of the same name."""
        owners: list[IndexedTool] = []
        texts: list[str] = []
        fields: list[_Field] = []
        for spec in specs:
            self.remove(spec.name)
            tool = self.tools[spec.name] = IndexedTool(spec)
            for name in (spec.name, *spec.aliases):
                self._by_name[_key(name)].append(tool)
            for text, field in _read_texts(spec):
                if text:
                    owners.append(tool)
                    texts.append(text)
                    fields.append(field)
        first = len(self._owners)
        self._weights[first:] = [0.0] * len(owners)  # also in place of those that an interrupted call has left
        self._owners += owners  # before the numbers are used: `rebuild` drops them by owner
        lengths = self._add_texts(texts, first)
        self._weights[first:] = [
            field.weight / (1 + field.dilution * length) for field, length in zip(fields, lengths, strict=True)
        ]
        self._clear_rarities()

    def _add_texts(self, texts: Sequence[str], first: int) -> list[int]:
        """Add the fields numbered from `first` to the terms in their texts, and return how many terms each has."""
        lengths: list[int] = []
        by_chunk: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts, first):
            chunks = split_chunks(text)
            lengths.append(len(chunks))
            for chunk in chunks:
                by_chunk[chunk].append(number)
        for chunk, numbers in by_chunk.items():  # texts repeat themselves: most chunks stand for many
            found = chunk_terms(chunk)
            for term in found:
                self._extend(term, numbers)
            if len(found) != 1:
                more = len(found) - 1
                for number in numbers:
                    lengths[number - first] += more
        for place, length in enumerate(lengths):
            if not length:  # stop words only, which are kept
                words = terms(texts[place])
                lengths[place] = len(words)
                for word in words:
                    self._extend(word, [first + place])
        return lengths

    def _extend(self, term: str, numbers: list[int]) -> None:
        self._by_term[term] += numbers
        self._impacts.pop(term, None)

    def remove(self, name: str) -> None:
        """Remove a tool if it is known; `rebuild` must be called before the next query."""
        tool = self.tools.pop(name, None)
        if tool is not None:
            self._name_terms.pop(tool, None)
            self._prose.pop(tool, None)
            self._removed.add(tool)

    def rebuild(self) -> None:
        """Drop the fields of removed tools: one pass for all of them is cheaper than one search per tool."""
        if not self._removed:
            return
        numbers = {number for number, tool in enumerate(self._owners) if tool in self._removed}
        _drop(self._by_term, numbers)
        _drop(self._by_name, self._removed)
        for number in numbers:
            self._owners[number] = None
        self._unused += len(numbers)
        self._removed = set()
        self._impacts.clear()
        self._saturated.clear()
        self._clear_rarities()

    @property
    def mostly_unused(self) -> bool:
        """Whether most fields are those of removed tools: new postings would take less memory."""
        return 2 * self._unused > len(self._owners)

    def impacts(self, term: str) -> dict[IndexedTool, float]:
        """Return the impact of a known term on each tool that contains it.

        The impact is what the term adds per unit of rarity: BM25's saturation, between 0 and `_SATURATION` + 1.
        """
        found = self._impacts.get(term)
        if found is None:
            found, tool, weight = dict[IndexedTool, float](), None, 0.0
            owners, weights, saturated = self._owners, self._weights, self._saturated
            for number in sorted(self._by_term.get(term, ())):  # so that the fields of a tool follow each other
                owner = owners[number]
                if owner is tool:
                    weight += weights[number]
                    continue
                if tool is not None:
                    found[tool] = saturated[weight]
                tool, weight = owner, weights[number]
            if tool is not None:
                found[tool] = saturated[weight]
            self._impacts[term] = found
        return found

    def find_named(self, name: str) -> list[IndexedTool]:
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
            owners = self._impacts.get(term) or set(map(self._owners.__getitem__, self._by_term.get(term, ())))
            rarity = log(1 + (len(self.tools) - len(owners) + 0.5) / (len(owners) + 0.5))
            self._rarities[term] = rarity
        return rarity

    def name_terms(self, tool: IndexedTool) -> frozenset[str]:
        """Return the terms in a tool's name."""
        found = self._name_terms.get(tool)
        if found is None:
            found = self._name_terms[tool] = frozenset(terms(tool.spec.name))
        return found

    def name_rarity(self, tool: IndexedTool) -> float:
        """Return the summed rarity of the terms in a tool's name."""
        rarity = self._name_rarities.get(tool)
        if rarity is None:
            rarity = self._name_rarities[tool] = fsum(map(self.rarity, self.name_terms(tool)))
        return rarity

    def prose(self, tool: IndexedTool) -> str:
        """Return the terms of a tool's name, description and hint, a line each, with spaces around each term."""
        prose = self._prose.get(tool)
        if prose is None:
            texts = (tool.spec.name, tool.spec.description, tool.spec.search_hint)
            prose = self._prose[tool] = "\n".join([f" {' '.join(terms(text))} " for text in texts if text])
        return prose

    def meanings(self, term: str) -> list[tuple[str, float]]:
        """Return the known terms a query term may stand for, each with its rarity times a certainty from 0 to 1."""
        known = self._meanings.get(term)
        if known is None:
            known = list[tuple[str, float]]()
            for other, certainty in self._interpret(term):
                self.impacts(other)  # needed next, and its length is the count that the rarity needs
                known.append((other, certainty * self.rarity(other)))
            self._meanings[term] = known
        return known

    def _interpret(self, term: str) -> list[tuple[str, float]]:
        same = [(other, _SYNONYM) for other in SYNONYMS.get(term, ()) if other in self._by_term]
        if term in self._by_term:
            return [(term, 1.0), *same]
        if self._spelling is None:
            self._spelling = Spelling(self._by_term)
        return same or [(other, _SIMILAR) for other in self._spelling.near(term)]

    def _clear_rarities(self) -> None:
        """Forget what depends on the number of tools, or on which terms are known."""
        self._rarities: dict[str, float] = {}
        self._name_rarities: dict[IndexedTool, float] = {}
        self._meanings: dict[str, list[tuple[str, float]]] = {}
        self._spelling: Spelling | None = None


def _drop(lists: dict[str, list[_Value]], dropped: set[_Value]) -> None:
    for key in [key for key, values in lists.items() if not dropped.isdisjoint(values)]:
        if left := [value for value in lists[key] if value not in dropped]:
            lists[key] = left
        else:
            del lists[key]


def _spellings(tool: IndexedTool) -> set[str]:
    return set(map(normalize_name, (tool.spec.name, *tool.spec.aliases)))


def _key(name: str) -> str:
    """Return a key shared by names that normalize alike; cheaper than `normalize_name`, called for every name."""
    if name.isascii():
        return name.replace("_", "").lower() if name.isidentifier() else name.translate(_PUNCTUATION).lower()
    return normalize_name(name).translate(_PUNCTUATION).lower()
