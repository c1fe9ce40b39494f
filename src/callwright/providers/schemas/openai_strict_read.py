"""Reading one subschema for strict mode: which keywords stay, which move into the description, which prevent it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from callwright.core.json import JsonObject, read_object
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    STRUCTURE,
    Schema,
    add_facts,
    are_exclusive,
    as_list,
    collect_property_names,
    describe_fact,
    drop_keyword,
    has_reference,
    is_known,
)
from callwright.providers.schemas.merge import dereference, fold_all_of
from callwright.providers.schemas.openai_strict_codec import Codec

NULL: Schema = {"type": "null"}


class CompiledPart(NamedTuple):
    """One compiled part of a schema."""

    schema: Schema
    codec: Codec
    wire: frozenset[str]
    """The kinds of JSON value the model may write here."""
    rewritten: frozenset[str] = frozenset()
    """Those of them that are another kind on the tool's side."""


def make_nullable(schema: Schema) -> Schema:
    """Allow null as well."""
    kind = schema.get("type")
    if isinstance(kind, str):
        wider = {**schema, "type": [kind, "null"]}
        return {**wider, "enum": [*schema["enum"], None]} if "enum" in schema else wider
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], NULL]}
    return {"anyOf": [schema, NULL]}


def are_ambiguous(parts: Sequence[CompiledPart]) -> bool:
    """Whether a value could be both a rewritten value of one branch and a plain one of another."""
    # no kind is both in one branch, so that these are two
    rewritten = frozenset[str]().union(*(part.rewritten for part in parts))
    plain = frozenset[str]().union(*(part.wire - part.rewritten for part in parts))
    return bool(rewritten & plain)


_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
KEPT: dict[str, tuple[str, ...]] = {
    "string": ("pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
}
_READ = (
    STRUCTURE | {"items", "prefixItems", "description", "default"} | {"propertyNames", "minProperties", "maxProperties"}
)
"""Keywords that the compiler handles itself."""
_SPREAD = ("then", "else", "dependentSchemas", "dependencies", "patternProperties", "unevaluatedProperties")
"""Keywords that may introduce properties declared nowhere else."""
_UNCERTAIN_PATTERN = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9bB]|\\k<")


class Inexpressible(Exception):
    """Strict mode cannot express the schema without rejecting valid calls."""


class Impossible(Inexpressible):
    """No value fits, so an optional property with this schema can be left out."""


@dataclass(frozen=True, slots=True)
class Subschema:
    """A subschema without the keywords that strict mode does not support."""

    schema: JsonObject
    path: str
    facts: tuple[str, ...] = ()
    """What its description must say instead of keywords."""

    def with_description(self, schema: Schema, *facts: str) -> Schema:
        """Add the description, with the facts, to the strict schema."""
        text = add_facts(self.schema.get("description"), (*facts, *self.facts))
        return {**schema, "description": text} if text else schema


class SchemaReader:
    """Reads the subschemas of one tool and collects the notes."""

    def __init__(self, root: JsonObject) -> None:
        self.notes: list[str] = []
        self._root = root

    def read(self, schema: JsonObject, path: str) -> Subschema:
        """Merge `allOf` and `oneOf`, and drop the keywords that strict mode does not support."""
        schema = self._fold_all_of(schema, path)
        if "oneOf" in schema:
            schema = self._rewrite_one_of(schema, path)
        facts: list[str] = []
        for key in [key for key in schema if key not in _READ]:
            if key in _SPREAD:
                self.check_spread(schema, key, path)
            if not self._is_supported(schema, key):
                facts += self._drop(schema, key, path)
                schema = {other: value for other, value in schema.items() if other != key}
        if schema.get("default") is not None:
            facts.append(describe_fact("default", schema["default"]))
        return Subschema(schema, path, tuple(facts))

    def _is_supported(self, schema: JsonObject, key: str) -> bool:
        if key == "format":
            return schema[key] in _FORMATS
        if key == "pattern":
            return not _UNCERTAIN_PATTERN.search(str(schema[key]))
        # older drafts write exclusive bounds as true or false
        return any(key in keys for keys in KEPT.values()) and not isinstance(schema[key], bool)

    def _drop(self, schema: JsonObject, key: str, path: str) -> list[str]:
        if key in ANNOTATIONS:
            return []
        if not is_known(key):
            self.note(path, f"'{key}' is not a JSON Schema keyword; left out")
            return []
        if key == "unevaluatedProperties" and schema[key] is False:
            return []
        checked = "" if key == "format" else " and checked at call time"
        self.note(path, f"strict mode does not support '{key}'; it is moved to the description{checked}")
        return [] if has_reference(schema[key]) else [describe_fact(key, schema[key])]

    def check_spread(self, schema: JsonObject, key: str, path: str) -> None:
        """Raise for a keyword that cannot be dropped, because valid calls would then be excluded."""
        unseen = collect_property_names({key: schema[key]}) - set(read_object(schema.get("properties")))
        open_ended = key in ("patternProperties", "dependencies", "unevaluatedProperties") and schema[key] is not False
        if unseen or open_ended or has_reference(schema[key]):
            raise Inexpressible(f"{path}: '{key}' concerns properties that strict mode would exclude")

    def _fold_all_of(self, schema: JsonObject, path: str) -> JsonObject:
        if "allOf" not in schema:
            return schema
        whole = fold_all_of(schema, self._root)
        if whole is None:
            raise Inexpressible(f"{path}: 'allOf' cannot be merged into one schema")
        return self._fold_all_of(whole, path)

    def _rewrite_one_of(self, schema: JsonObject, path: str) -> JsonObject:
        branches = as_list(schema["oneOf"])
        if not are_exclusive([dereference(branch, self._root) or {} for branch in branches]):
            self.note(path, "'oneOf' is sent as anyOf; that no second branch fits is checked at call time")
        base = drop_keyword(schema, "oneOf")
        if "anyOf" in base:
            raise Inexpressible(f"{path}: 'oneOf' beside 'anyOf' is not supported")
        return {**base, "anyOf": branches}

    def note(self, path: str, text: str) -> None:
        """Add a note on what is lost at a path, once."""
        note = f"{path}: {text}"
        if note not in self.notes:
            self.notes.append(note)
