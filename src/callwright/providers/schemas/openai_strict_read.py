"""How large a schema strict mode takes, as documented by OpenAI.

The pieces a strict schema is put together from.

The first look strict mode takes at a subschema: what it can keep, what it must tell in words, what it cannot do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from callwright.core.json import JsonObject
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    STRUCTURE,
    Schema,
    as_list,
    as_object,
    exclusive,
    fact,
    is_known,
    mentioned,
    refers,
    told,
    without,
)
from callwright.providers.schemas.merge import dereferenced, folded
from callwright.providers.schemas.openai_strict_codec import Codec

_PROPERTIES = 5_000
_LEVELS = 10
_NAME_CHARS = 120_000
_CHOICES = 1_000
_LONG_ENUM = 250
_LONG_ENUM_CHARS = 15_000


def over_limit(schema: JsonObject) -> str:
    """Name the first documented limit that a strict schema exceeds; empty when it keeps to all of them."""
    count = _Count(as_object(schema.get("$defs")))
    levels = count.levels(schema)
    for name in count.definitions:
        count.levels_of(name)
    chars = count.chars + sum(map(len, count.definitions))
    if count.properties > _PROPERTIES:
        return f"{count.properties} properties, and {_PROPERTIES} are allowed"
    if levels > _LEVELS:
        return f"objects nested {levels} deep, and {_LEVELS} are allowed"
    if chars > _NAME_CHARS:
        return f"{chars} characters of names and choices, and {_NAME_CHARS} are allowed"
    if count.choices > _CHOICES:
        return f"{count.choices} choices in all, and {_CHOICES} are allowed"
    return (
        f"an enum of over {_LONG_ENUM} values is longer than {_LONG_ENUM_CHARS} characters" if count.long_enum else ""
    )


class _Count:
    """Adds up a schema, each definition once."""

    def __init__(self, definitions: JsonObject) -> None:
        self.definitions = definitions
        self.properties = self.chars = self.choices = 0
        self.long_enum = False
        self._known: dict[str, int] = {}

    def levels(self, node: JsonObject) -> int:
        names, values = as_object(node.get("properties")), as_list(node.get("enum"))
        length = sum(len(str(value)) for value in values)
        self.properties += len(names)
        self.choices += len(values)
        self.chars += sum(map(len, names)) + length
        self.long_enum = self.long_enum or (len(values) > _LONG_ENUM and length > _LONG_ENUM_CHARS)
        inside = (*names.values(), *as_list(node.get("anyOf")), node.get("items"))
        deepest = max((self.levels(child) for child in inside if isinstance(child, dict)), default=0)
        reference = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if reference in self.definitions:
            deepest = max(deepest, self.levels_of(reference))
        return deepest + ("properties" in node)

    def levels_of(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = 0  # a definition inside itself adds no level: recursion is allowed
            self._known[name] = self.levels(as_object(self.definitions[name]))
        return self._known[name]


NULL: Schema = {"type": "null"}


class Part(NamedTuple):
    """One place of the schema, compiled."""

    schema: Schema
    codec: Codec
    wire: frozenset[str]
    """The kinds of JSON value the model may write here."""
    rewritten: frozenset[str] = frozenset()
    """Those of them that stand for another kind on the tool's side."""


def closed(properties: Schema) -> Schema:
    """Write an object in the one form strict mode knows: nothing optional, nothing more."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nullable(schema: Schema) -> Schema:
    """Let null fit too."""
    kind = schema.get("type")
    if isinstance(kind, str):
        wider = {**schema, "type": [kind, "null"]}
        return {**wider, "enum": [*schema["enum"], None]} if "enum" in schema else wider
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], NULL]}
    return {"anyOf": [schema, NULL]}


def ambiguous(parts: Sequence[Part]) -> bool:
    """Whether a value could be read as one branch's rewriting and as another branch's own."""
    return any(one.rewritten & (other.wire - other.rewritten) for one in parts for other in parts if one is not other)


_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
KEPT: dict[str, tuple[str, ...]] = {
    "string": ("pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
}
_READ = (
    STRUCTURE | {"items", "prefixItems", "description", "default"} | {"propertyNames", "minProperties", "maxProperties"}
)
"""Keywords the compiler itself makes something of."""
_SPREAD = ("then", "else", "dependentSchemas", "dependencies", "patternProperties", "unevaluatedProperties")
"""Keywords that may bring in properties declared nowhere else."""
_UNCERTAIN_PATTERN = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9bB]|\\k<")


class Inexpressible(Exception):
    """Strict mode has no shape that would keep every valid call."""


class Impossible(Inexpressible):
    """No value fits at all, so a property of that kind can only be left out."""


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema after the first look."""

    schema: JsonObject
    path: str
    facts: tuple[str, ...] = ()
    """What its description must tell, now that no keyword does."""

    def described(self, schema: Schema, *facts: str) -> Schema:
        """Give what the subschema became its description."""
        text = told(self.schema.get("description"), (*facts, *self.facts))
        return {**schema, "description": text} if text else schema


class Reader:
    """Reads the subschemas of one tool and keeps the notes."""

    def __init__(self, root: JsonObject) -> None:
        self.notes: list[str] = []
        self._root = root

    def read(self, schema: JsonObject, path: str) -> Place:
        """Merge what can be merged, and take out what strict mode does not know and validity can do without."""
        schema = self._without_all_of(schema, path)
        if "oneOf" in schema:
            schema = self._without_one_of(schema, path)
        facts: list[str] = []
        for key in [key for key in schema if key not in _READ]:
            if key in _SPREAD:
                self.check_spread(schema, key, path)
            if not self._kept(schema, key):
                facts += self._dropped(schema, key, path)
                schema = {other: value for other, value in schema.items() if other != key}
        if schema.get("default") is not None:
            facts.append(fact("default", schema["default"]))
        return Place(schema, path, tuple(facts))

    def _kept(self, schema: JsonObject, key: str) -> bool:
        if key == "format":
            return schema[key] in _FORMATS
        if key == "pattern":
            return not _UNCERTAIN_PATTERN.search(str(schema[key]))
        # a bound that is true or false is an older draft's way to say exclusive
        return any(key in keys for keys in KEPT.values()) and not isinstance(schema[key], bool)

    def _dropped(self, schema: JsonObject, key: str, path: str) -> list[str]:
        if key in ANNOTATIONS:
            return []
        if not is_known(key):
            self.note(path, f"'{key}' is no JSON Schema; left out")
            return []
        if key == "unevaluatedProperties" and schema[key] is False:
            return []
        checked = "" if key == "format" else " and checked on the call"
        self.note(path, f"'{key}' is not in strict mode; it is told in the description{checked}")
        return [] if refers(schema[key]) else [fact(key, schema[key])]

    def check_spread(self, schema: JsonObject, key: str, path: str) -> None:
        """Refuse a keyword that cannot be dropped, because calls it allows would then be closed out."""
        unseen = mentioned({key: schema[key]}) - set(as_object(schema.get("properties")))
        open_ended = key in ("patternProperties", "dependencies", "unevaluatedProperties") and schema[key] is not False
        if unseen or open_ended or refers(schema[key]):
            raise Inexpressible(f"{path}: '{key}' speaks of properties that strict mode would close out")

    def _without_all_of(self, schema: JsonObject, path: str) -> JsonObject:
        if "allOf" not in schema:
            return schema
        whole = folded(schema, self._root)
        if whole is None:
            raise Inexpressible(f"{path}: 'allOf' does not come down to one schema")
        return self._without_all_of(whole, path)

    def _without_one_of(self, schema: JsonObject, path: str) -> JsonObject:
        branches = as_list(schema["oneOf"])
        if not exclusive([dereferenced(branch, self._root) or {} for branch in branches]):
            self.note(path, "'oneOf' is sent as anyOf; that no second branch fits is checked on the call")
        base = without(schema, "oneOf")
        if "anyOf" in base:
            raise Inexpressible(f"{path}: 'oneOf' beside 'anyOf'")
        return {**base, "anyOf": branches}

    def note(self, path: str, text: str) -> None:
        """Keep a note on what is lost at a place, once."""
        note = f"{path}: {text}"
        if note not in self.notes:
            self.notes.append(note)
