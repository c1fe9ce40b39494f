"""The first look strict mode takes at a subschema: what it can keep, what it must tell in words, what it cannot do."""

import re
from dataclasses import dataclass

from callwright.core.json import JsonObject
from callwright.providers.schema_merge import dereferenced, folded
from callwright.providers.schema_parts import (
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
