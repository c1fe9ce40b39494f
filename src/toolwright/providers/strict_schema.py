"""The compiler behind strict mode: schema in, strict schema and argument codec out, losses noted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from toolwright.core.json import Json, JsonObject, compact
from toolwright.providers.schema_merge import allows_null, dereferenced, merged, merged_all
from toolwright.providers.schema_parts import (
    ANNOTATIONS,
    KINDS,
    Schema,
    as_list,
    as_object,
    belongs,
    choices,
    constrains,
    exclusive,
    fact,
    is_known,
    is_of,
    kinds_of,
    mentioned,
    names_in,
    refers,
    resolve,
    told,
)
from toolwright.providers.strict_arguments import (
    Absence,
    Codec,
    Field,
    Fields,
    Listed,
    Named,
    OneOf,
    Pairs,
    Scalar,
    Text,
)

_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_KEPT = {
    "string": ("pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
}
_READ = frozenset(
    ("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "properties", "required", "additionalProperties")
    + ("items", "prefixItems", "description", "default", "propertyNames", "minProperties", "maxProperties")
)
"""Keywords the compiler itself makes something of."""
_SPREAD = ("if", "then", "else", "dependentSchemas", "not", "unevaluatedProperties", "dependencies")
"""Keywords that may speak of properties declared nowhere else."""
_UNCERTAIN_PATTERN = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9bB]|\\k<")
_NULL: Schema = {"type": "null"}
_ROOT = "arguments"


class Inexpressible(Exception):  # noqa: N818 - the reason reads as one: inexpressible, because
    """Strict mode has no shape that would keep every valid call."""


class Impossible(Inexpressible):
    """No value fits at all, so a property of that kind can only be left out."""


class Part(NamedTuple):
    """One place of the schema, compiled."""

    schema: Schema
    codec: Codec
    wire: frozenset[str]
    """The kinds of JSON value the model may write here."""
    rewritten: frozenset[str] = frozenset()
    """Those of them that stand for another kind on the tool's side."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A subschema with all its keywords read that only limit it."""

    schema: JsonObject
    path: str
    facts: tuple[str, ...] = ()

    def described(self, schema: Schema, *facts: str) -> Schema:
        text = told(self.schema.get("description"), (*facts, *self.facts))
        return {**schema, "description": text} if text else schema


class StrictCompiler:
    """Compiles one tool's schema; `notes` says what was lost on the way."""

    def __init__(self, root: JsonObject) -> None:
        self.notes: list[str] = []
        self._root = root
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Schema] = {}
        self._parts: dict[str, Part] = {}
        self._codecs: dict[str, Codec] = {}

    def compiled(self) -> tuple[Schema, Codec]:
        """Give the strict schema of the root and the codec of its arguments."""
        place = self._read(self._root, _ROOT)
        part = self._fields(place)
        self._codecs["#"] = part.codec
        schema = part.schema
        if self._definitions:
            schema = {**schema, "$defs": dict(self._definitions)}
        return schema, part.codec

    def _part(self, schema: Json, path: str) -> Part:
        if schema is False:
            raise Impossible(f"{path}: nothing fits")
        place = self._read(as_object(schema), path)
        if "$ref" in place.schema:
            return self._reference(place)
        if "anyOf" in place.schema:
            return self._union(place)
        kinds = kinds_of(place.schema)
        if not kinds:
            return self._text(place, KINDS)
        if "type" not in place.schema and choices(place.schema) is None:
            self._note(path, f"has no type; taken as {' or '.join(kinds)}")
        return self._of_kinds(place, kinds)

    def _read(self, schema: JsonObject, path: str) -> _Place:
        """Merge what can be merged, and take out what strict mode does not know and validity can do without."""
        schema = self._without_all_of(schema, path)
        if "oneOf" in schema:
            schema = self._without_one_of(schema, path)
        facts: list[str] = []
        for key in [key for key in schema if key not in _READ]:
            if key in _SPREAD or key == "patternProperties":
                self._check_spread(schema, key, path)
            if not self._kept(schema, key):
                facts += self._dropped(schema, key, path)
                schema = {other: value for other, value in schema.items() if other != key}
        if schema.get("default") is not None:
            facts.append(fact("default", schema["default"]))
        return _Place(schema, path, tuple(facts))

    def _kept(self, schema: JsonObject, key: str) -> bool:
        if key == "format":
            return schema[key] in _FORMATS
        if key == "pattern":
            return not _UNCERTAIN_PATTERN.search(str(schema[key]))
        return any(key in keys for keys in _KEPT.values())

    def _dropped(self, schema: JsonObject, key: str, path: str) -> list[str]:
        if key in ANNOTATIONS:
            return []
        if not is_known(key):
            self._note(path, f"'{key}' is no JSON Schema; left out")
            return []
        if key == "unevaluatedProperties" and schema[key] is False:
            return []
        self._note(path, f"'{key}' is not in strict mode; it is told in the description and checked on the call")
        return [] if refers(schema[key]) else [fact(key, schema[key])]

    def _check_spread(self, schema: JsonObject, key: str, path: str) -> None:
        unseen = mentioned({key: schema[key]}) - set(as_object(schema.get("properties")))
        open_ended = key == "patternProperties" or (key == "unevaluatedProperties" and schema[key] is not False)
        if unseen or open_ended or key == "dependencies":
            raise Inexpressible(f"{path}: '{key}' speaks of properties that strict mode would close out")

    def _without_all_of(self, schema: JsonObject, path: str) -> JsonObject:
        parts = as_list(schema.get("allOf"))
        if "allOf" not in schema:
            return schema
        base = {key: value for key, value in schema.items() if key != "allOf"}
        if len(parts) == 1 and not constrains(base):
            return {**base, "anyOf": parts}
        flat = [dereferenced(part, self._root) for part in parts]
        known = [part for part in flat if part is not None]
        whole = merged_all([base, *known]) if len(known) == len(flat) else None
        if whole is None:
            raise Inexpressible(f"{path}: 'allOf' does not come down to one schema")
        return self._without_all_of(whole, path)

    def _without_one_of(self, schema: JsonObject, path: str) -> JsonObject:
        branches = as_list(schema["oneOf"])
        if not exclusive([dereferenced(branch, self._root) or {} for branch in branches]):
            self._note(path, "'oneOf' is sent as anyOf; that no second branch fits is checked on the call")
        base = {key: value for key, value in schema.items() if key != "oneOf"}
        if "anyOf" in base:
            raise Inexpressible(f"{path}: 'oneOf' beside 'anyOf'")
        return {**base, "anyOf": branches}

    def _reference(self, place: _Place) -> Part:
        reference = str(place.schema["$ref"])
        target = resolve(self._root, reference)
        if target is None:
            raise Inexpressible(f"{place.path}: {reference!r} leads out of the schema")
        beside = {key: value for key, value in place.schema.items() if key != "$ref"}
        if constrains(beside):
            return self._beside(place, reference, beside)
        part = self._definition(reference, target)
        described = place.described({})
        # strict mode allows nothing beside a $ref
        schema = {"anyOf": [part.schema], **described} if described else part.schema
        return part._replace(schema=schema)

    def _beside(self, place: _Place, reference: str, beside: JsonObject) -> Part:
        whole = dereferenced(place.schema, self._root)
        if whole is None or reference in self._names:  # a definition that is still open may refer to itself
            raise Inexpressible(f"{place.path}: keywords beside {reference!r} that do not merge with it")
        del beside
        return self._part(whole, place.path)

    def _definition(self, reference: str, target: Json) -> Part:
        if reference == "#":
            return Part({"$ref": "#"}, Named(self._codecs, "#"), frozenset(("object",)))
        if reference not in self._names:
            name = self._fresh_name(reference)
            self._names[reference] = name
            self._definitions[name] = {}  # holds its place in the order of first mention
            part = self._part(target, name)
            self._definitions[name], self._codecs[name], self._parts[name] = part.schema, part.codec, part
            if part.schema.get("$ref") == f"#/$defs/{name}":
                raise Inexpressible(f"{name}: refers to itself and nothing else")
        name = self._names[reference]
        known = self._parts.get(name)
        wire, rewritten = (known.wire, known.rewritten) if known else (frozenset[str](), frozenset[str]())
        return Part({"$ref": f"#/$defs/{name}"}, Named(self._codecs, name), wire, rewritten)

    def _fresh_name(self, reference: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2]) or "definition"
        taken = set(self._names.values())
        return next(name for name in (stem, *(f"{stem}_{n}" for n in range(2, len(taken) + 3))) if name not in taken)

    def _union(self, place: _Place) -> Part:
        base = {k: v for k, v in place.schema.items() if k != "anyOf" and k not in ANNOTATIONS}
        branches = as_list(place.schema["anyOf"])
        joined = self._joined(base, branches) if constrains(base) else list(branches)
        if joined is None:
            self._check_spread({**base, "anyOf": branches}, "anyOf", place.path)
            self._note(place.path, "'anyOf' does not join with what stands beside it; it is checked on the call")
            rest = {key: value for key, value in place.schema.items() if key != "anyOf"}
            return self._part(rest, place.path)
        parts = [self._part(branch, f"{place.path}.{n}") for n, branch in enumerate(joined) if branch is not False]
        if not parts:
            raise Impossible(f"{place.path}: nothing fits")
        return self._any_of(place, parts)

    def _joined(self, base: JsonObject, branches: Sequence[Json]) -> list[Json] | None:
        found: list[Json] = []
        for branch in branches:
            flat = {} if branch is True else dereferenced(branch, self._root)
            whole = merged(base, flat) if flat is not None else None
            if whole is None:
                return None
            found.append(whole)
        return found

    def _any_of(self, place: _Place, parts: Sequence[Part]) -> Part:
        if _ambiguous(parts):
            self._note(place.path, "alternatives that look alike in strict mode; sent as JSON text, checked on the call")
            return self._text(place, KINDS, place.schema)
        wire = frozenset[str]().union(*(part.wire for part in parts))
        rewritten = frozenset[str]().union(*(part.rewritten for part in parts))
        codec = OneOf(tuple(part.codec for part in parts))
        solid = [part for part in parts if part.schema != _NULL]
        if len(solid) == 1 and len(parts) == 2:
            return Part(place.described(_nullable(solid[0].schema)), codec, wire, rewritten)
        schemas: list[Schema] = []
        for part in parts:
            schemas += [part.schema] if part.schema not in schemas else []
        only = schemas[0] if len(schemas) == 1 and "$ref" not in schemas[0] else {"anyOf": schemas}
        return Part(place.described(only), codec, wire, rewritten)

    def _of_kinds(self, place: _Place, kinds: Sequence[str]) -> Part:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise Inexpressible(f"{place.path}: unknown type {unknown[0]!r}")
        values = choices(place.schema)
        fitting = [k for k in kinds if values is None or any(is_of(value, k) for value in values)]
        if not fitting:
            raise Impossible(f"{place.path}: no choice is of type {' or '.join(kinds)}")
        if len(fitting) == 1:
            return self._of_kind(place, fitting[0])
        silent = replace(place, schema={**place.schema, "description": ""}, facts=())
        return self._any_of(place, [self._of_kind(silent, kind) for kind in fitting])

    def _of_kind(self, place: _Place, kind: str) -> Part:
        schema = {key: value for key, value in place.schema.items() if belongs(key, kind)}
        place = replace(place, schema=schema)
        values = choices(schema)
        if kind in ("object", "array") and values is not None:
            raise Inexpressible(f"{place.path}: choices that are objects or lists")
        if kind == "object":
            return self._object(place)
        if kind == "array":
            return self._array(place)
        known = {key: schema[key] for key in _KEPT.get("number" if kind == "integer" else kind, ()) if key in schema}
        strict: Schema = {"type": kind, **known}
        if values is not None and kind != "null":
            strict["enum"] = [value for value in values if is_of(value, kind)]
        return Part(place.described(strict), Scalar(strict), frozenset((kind,)))

    def _text(self, place: _Place, kinds: tuple[str, ...], schema: JsonObject | None = None) -> Part:
        what = "any JSON value" if len(kinds) > 1 else f"a JSON {kinds[0]}"
        told_schema = f" for the schema {compact(schema)}" if schema and not refers(schema) else ""
        strict = place.described({"type": "string"}, f"{what}{told_schema}, written as JSON text")
        return Part(strict, Text(kinds), frozenset(("string",)), frozenset(("string",)))

    def _array(self, place: _Place) -> Part:
        schema = place.schema
        bounds = {key: schema[key] for key in _KEPT["array"] if key in schema}
        first = as_list(schema.get("prefixItems")) or as_list(schema.get("items"))
        if first:
            return self._tuple(place, bounds, first)
        if schema.get("maxItems") == 0 or schema.get("items") is False:
            raise Inexpressible(f"{place.path}: a list that is always empty")
        if not constrains(as_object(schema.get("items"))):
            for key in bounds:
                self._note(place.path, f"'{key}' of a list sent as JSON text is checked on the call")
            facts = tuple(fact(key, value) for key, value in bounds.items())
            return self._text(replace(place, facts=(*facts, *place.facts)), ("array",))
        item = self._part(schema["items"], f"{place.path}[]")
        strict = place.described({"type": "array", "items": item.schema, **bounds})
        return Part(strict, Listed(bounds, (), item.codec), frozenset(("array",)))

    def _tuple(self, place: _Place, bounds: JsonObject, first: Sequence[Json]) -> Part:
        schema = place.schema
        rest = schema.get("items", True) if "prefixItems" in schema else True
        longest = schema.get("maxItems")
        if rest is not False and not (isinstance(longest, int) and longest <= len(first)):
            raise Inexpressible(f"{place.path}: a list with places of their own and no end")
        items = [self._part(item, f"{place.path}[{n}]") for n, item in enumerate(first)]
        if len({compact(item.schema) for item in items}) > 1:
            self._note(place.path, "the order of unlike items is told in the description and checked on the call")
        either = self._any_of(_Place({}, place.path), items)
        bounds = {"minItems": 0, **bounds, "maxItems": min(len(first), longest if isinstance(longest, int) else len(first))}
        facts = [fact("items in order", [item.schema for item in items])] if len(items) > 1 else []
        strict = place.described({"type": "array", "items": either.schema, **bounds}, *facts)
        return Part(strict, Listed(bounds, tuple(item.codec for item in items), None), frozenset(("array",)))

    def _object(self, place: _Place) -> Part:
        schema = place.schema
        declared = as_object(schema.get("properties")) or names_in(schema.get("required"))
        more = schema.get("additionalProperties", True)
        if declared or more is False:
            return self._fields(place)
        if more is True or not constrains(as_object(more)):
            return self._text(self._counted(place), ("object",))
        pairs, codec = self._pairs(schema, more, place.path)
        strict = place.described(pairs, "a list of keys and values")
        return Part(strict, codec, frozenset(("array",)), frozenset(("array",)))

    def _counted(self, place: _Place) -> _Place:
        limits = [key for key in ("minProperties", "maxProperties", "propertyNames") if key in place.schema]
        for key in limits:
            self._note(place.path, f"'{key}' is not in strict mode; it is told in the description and checked on the call")
        return replace(place, facts=(*(fact(key, place.schema[key]) for key in limits), *place.facts))

    def _pairs(self, schema: JsonObject, more: Json, path: str) -> tuple[Schema, Pairs]:
        names = as_object(schema.get("propertyNames"))
        key = self._part(merged({"type": "string"}, names) or {"type": "string"}, f"{path}{{name}}")
        value = self._part(more, f"{path}{{}}")
        member = _closed({"key": key.schema, "value": value.schema})
        sizes = {"minItems": "minProperties", "maxItems": "maxProperties"}
        bounds = {ours: schema[theirs] for ours, theirs in sizes.items() if theirs in schema}
        return {"type": "array", "items": member, **bounds}, Pairs(key.codec, value.codec)

    def _fields(self, place: _Place) -> Part:
        schema, path = place.schema, place.path
        properties = dict(as_object(schema.get("properties")))
        required = names_in(schema.get("required"))
        more = schema.get("additionalProperties")
        for name in required:
            properties.setdefault(name, True if more is None else more)
        written: Schema = {}
        fields: list[Field] = []
        for name, value in properties.items():
            try:
                written[name], field = self._field(name, value, f"{path}.{name}", required=name in required)
            except Impossible:
                if name in required:
                    raise
                continue  # it can never be given, so leaving it out of the schema loses nothing
            fields.append(field)
        if more is None:
            self._note(path, "closed: properties that are not declared cannot be sent")
        if more is None or more is False:
            sized = self._counted(place)
            strict = sized.described(_closed(written))
            return Part(strict, Fields(tuple(fields)), frozenset(("object",)))
        return self._open(self._counted(place), more, written, fields)

    def _open(self, place: _Place, more: Json, written: Schema, fields: Sequence[Field]) -> Part:
        name = next(n for n in ("additional_properties", *(f"additional_properties_{i}" for i in range(2, len(written) + 3))) if n not in written)
        pairs, codec = self._pairs({}, more, place.path)
        pairs = {**pairs, "description": "further properties, as a list of keys and values"}
        strict = place.described(_closed({**written, name: pairs}))
        return Part(strict, Fields(tuple(fields), codec, name), frozenset(("object",)))

    def _field(self, name: str, value: Json, path: str, *, required: bool) -> tuple[Schema, Field]:
        part = self._part(value, path)
        if required:
            return part.schema, Field(name, part.codec, "never")
        # a definition that is still open has no wire kinds yet
        if "null" not in part.wire and (part.wire or not allows_null(value, self._root)):
            return _nullable(part.schema), Field(name, part.codec, "null")
        absence: Absence = "same" if as_object(value).get("default", ...) is None else "boxed"
        if absence == "same":
            return part.schema, Field(name, part.codec, absence)
        text = part.schema.get("description")
        told_box = {"description": told(text, ["null to leave it out, else an object holding the value"])}
        inner = {key: word for key, word in part.schema.items() if key != "description"}
        return {"anyOf": [_closed({"value": inner}), _NULL], **told_box}, Field(name, part.codec, absence)

    def _note(self, path: str, text: str) -> None:
        note = f"{path}: {text}"
        if note not in self.notes:
            self.notes.append(note)


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _nullable(schema: Schema) -> Schema:
    """Let null fit too."""
    kind = schema.get("type")
    if isinstance(kind, str):
        wider = {**schema, "type": [kind, "null"]}
        return {**wider, "enum": [*schema["enum"], None]} if "enum" in schema else wider
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NULL]}
    return {"anyOf": [schema, _NULL]}


def _ambiguous(parts: Sequence[Part]) -> bool:
    """Whether a value could be read as one branch's rewriting and as another branch's own."""
    return any(
        one.rewritten & (other.wire - other.rewritten) for one in parts for other in parts if one is not other
    )
