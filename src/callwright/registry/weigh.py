"""How much each term says about a tool, by the place where it stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from callwright.core.json import Json
from callwright.core.spec import ToolSpec
from callwright.core.value import maker
from callwright.registry.words import terms

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
