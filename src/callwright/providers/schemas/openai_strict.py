"""OpenAI's strict mode: the schema it accepts, and the way of arguments into its shape and back.

The compiler behind strict mode: schema in, strict schema and argument codec out, losses noted.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from callwright.core.json import Json, JsonObject, compact
from callwright.core.spec import ToolSpec
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    KINDS,
    Schema,
    as_list,
    as_object,
    belongs,
    choices,
    constrains,
    definition_name,
    fact,
    is_of,
    kinds_of,
    names_in,
    refers,
    resolve,
    told,
    unused,
    without,
)
from callwright.providers.schemas.merge import allows_null, dereferenced, merged, object_root
from callwright.providers.schemas.openai_strict_codec import (
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
    Way,
)
from callwright.providers.schemas.openai_strict_read import (
    KEPT,
    NULL,
    Impossible,
    Inexpressible,
    Part,
    Place,
    Reader,
    ambiguous,
    closed,
    nullable,
    over_limit,
)

_ROOT = "arguments"


class StrictCompiler:
    """Compiles one tool's schema; `notes` says what was lost on the way."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._reader = Reader(root)
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Schema] = {}
        self._parts: dict[str, Part] = {}
        self._codecs: dict[str, Codec] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the strict schema no longer says, in the order it was met."""
        return tuple(self._reader.notes)

    def compiled(self) -> tuple[Schema, Codec]:
        """Give the strict schema of the root and the codec of its arguments."""
        place = self._reader.read(self._root, _ROOT)
        part = self._fields(place)
        self._codecs["#"] = part.codec
        schema = part.schema
        if self._definitions:
            schema = {**schema, "$defs": dict(self._definitions)}
        return schema, part.codec

    def _part(self, schema: Json, path: str) -> Part:
        if schema is False:
            raise Impossible(f"{path}: nothing fits")
        place = self._reader.read(as_object(schema), path)
        if "$ref" in place.schema:
            return self._reference(place)
        if "anyOf" in place.schema:
            return self._union(place)
        kinds = kinds_of(place.schema)
        if not kinds:
            return self._text(place, KINDS)
        if "type" not in place.schema and choices(place.schema) is None:
            self._reader.note(path, f"has no type; taken as {' or '.join(kinds)}")
        return self._of_kinds(place, kinds)

    def _reference(self, place: Place) -> Part:
        reference = str(place.schema["$ref"])
        target = resolve(self._root, reference)
        if target is None:
            raise Inexpressible(f"{place.path}: {reference!r} leads out of the schema")
        beside = without(place.schema, "$ref")
        if constrains(beside):
            return self._beside(place, reference)
        part = self._definition(reference, target)
        described = place.described({})
        # strict mode allows nothing beside a $ref
        schema = {"anyOf": [part.schema], **described} if described else part.schema
        return part._replace(schema=schema)

    def _beside(self, place: Place, reference: str) -> Part:
        whole = dereferenced(place.schema, self._root)
        if whole is None:
            raise Inexpressible(f"{place.path}: keywords beside {reference!r} that do not merge with it")
        return self._part(whole, place.path)

    def _definition(self, reference: str, target: Json) -> Part:
        if reference == "#":
            return Part({"$ref": "#"}, Named(self._codecs, "#"), frozenset(("object",)))
        if reference not in self._names:
            name = definition_name(reference, self._names.values())
            self._names[reference] = name
            self._definitions[name] = {}  # holds its place in the order of first mention
            part = self._needed(target, name)
            self._definitions[name], self._codecs[name], self._parts[name] = part.schema, part.codec, part
            if part.schema.get("$ref") == f"#/$defs/{name}":
                raise Inexpressible(f"{name}: refers to itself and nothing else")
        name = self._names[reference]
        known = self._parts.get(name)
        wire, rewritten = (known.wire, known.rewritten) if known else (frozenset[str](), frozenset[str]())
        return Part({"$ref": f"#/$defs/{name}"}, Named(self._codecs, name), wire, rewritten)

    def _union(self, place: Place) -> Part:
        base = {key: value for key, value in place.schema.items() if key != "anyOf" and key not in ANNOTATIONS}
        branches = [branch for branch in as_list(place.schema["anyOf"]) if branch is not False]
        joined = self._joined(base, branches) if constrains(base) else branches
        if joined is None:
            self._reader.check_spread({**base, "anyOf": branches}, "anyOf", place.path)
            self._reader.note(place.path, "'anyOf' does not join with what stands beside it; it is checked on the call")
            rest = without(place.schema, "anyOf")
            return self._part(rest, place.path)
        return self._any_of(place, self._possible(joined, place.path))

    def _possible(self, branches: Sequence[Json], path: str) -> list[Part]:
        parts: list[Part] = []
        for number, branch in enumerate(branches):
            with suppress(Impossible):
                parts.append(self._part(branch, f"{path}.{number}"))
        if not parts:
            raise Impossible(f"{path}: nothing fits")
        return parts

    def _needed(self, schema: Json, path: str) -> Part:
        """Compile what more than one property may hang on: that nothing fits it is then no reason to leave one out."""
        try:
            return self._part(schema, path)
        except Impossible as error:
            raise Inexpressible(str(error)) from None

    def _joined(self, base: JsonObject, branches: Sequence[Json]) -> list[Json] | None:
        found: list[Json] = []
        for branch in branches:
            flat = dereferenced(branch, self._root)  # `true` reads as a schema without keywords
            whole = merged(base, flat) if flat is not None else None
            if whole is None:
                return None
            found.append(whole)
        return found

    def _any_of(self, place: Place, parts: Sequence[Part]) -> Part:
        if ambiguous(parts):
            self._reader.note(
                place.path, "alternatives that look alike in strict mode; sent as JSON text, checked on the call"
            )
            return self._text(place, KINDS, place.schema)
        return self._either(place, parts)

    def _either(self, place: Place, parts: Sequence[Part]) -> Part:
        wire = frozenset[str]().union(*(part.wire for part in parts))
        rewritten = frozenset[str]().union(*(part.rewritten for part in parts))
        codec = OneOf(tuple(part.codec for part in parts))
        solid = [part for part in parts if part.schema != NULL]
        if len(solid) == 1 and len(parts) == 2:
            return Part(place.described(nullable(solid[0].schema)), codec, wire, rewritten)
        schemas: list[Schema] = []
        for part in parts:
            schemas += [part.schema] if part.schema not in schemas else []
        only = schemas[0] if len(schemas) == 1 and "$ref" not in schemas[0] else {"anyOf": schemas}
        return Part(place.described(only), codec, wire, rewritten)

    def _of_kinds(self, place: Place, kinds: Sequence[str]) -> Part:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise Inexpressible(f"{place.path}: unknown type {unknown[0]!r}")
        values = choices(place.schema)
        fitting = [kind for kind in kinds if values is None or any(is_of(value, kind) for value in values)]
        if not fitting:
            raise Impossible(f"{place.path}: no choice is of type {' or '.join(kinds)}")
        if len(fitting) == 1:
            return self._of_kind(place, fitting[0])
        silent = replace(place, schema={**place.schema, "description": ""}, facts=())
        return self._any_of(place, [self._of_kind(silent, kind) for kind in fitting])

    def _of_kind(self, place: Place, kind: str) -> Part:
        schema = {key: value for key, value in place.schema.items() if belongs(key, kind)}
        place = replace(place, schema=schema)
        values = choices(schema)
        if kind in ("object", "array") and values is not None:
            raise Inexpressible(f"{place.path}: choices that are objects or lists")
        if kind == "object":
            return self._object(place)
        if kind == "array":
            return self._array(place)
        known = {key: schema[key] for key in KEPT.get("number" if kind == "integer" else kind, ()) if key in schema}
        strict: Schema = {"type": kind, **known}
        if values is not None and kind != "null":
            strict["enum"] = [value for value in values if is_of(value, kind)]
        return Part(place.described(strict), Scalar(strict), frozenset((kind,)))

    def _text(self, place: Place, kinds: tuple[str, ...], schema: JsonObject | None = None) -> Part:
        what = "any JSON value" if kinds == KINDS else f"a JSON {' or '.join(kinds)}"
        told_schema = f" for the schema {compact(schema)}" if schema and not refers(schema) else ""
        strict = place.described({"type": "string"}, f"{what}{told_schema}, written as JSON text")
        return Part(strict, Text(kinds), frozenset(("string",)), frozenset(("string",)))

    def _array(self, place: Place) -> Part:
        schema = place.schema
        bounds = {key: schema[key] for key in KEPT["array"] if key in schema}
        first = as_list(schema.get("prefixItems")) or as_list(schema.get("items"))
        if first:
            return self._tuple(place, bounds, first)
        if schema.get("maxItems") == 0 or schema.get("items") is False:
            raise Inexpressible(f"{place.path}: a list that is always empty")
        if not constrains(as_object(schema.get("items"))):
            for key in bounds:
                self._reader.note(place.path, f"'{key}' of a list sent as JSON text is checked on the call")
            facts = tuple(fact(key, value) for key, value in bounds.items())
            return self._text(replace(place, facts=(*facts, *place.facts)), ("array",))
        item = self._needed(schema["items"], f"{place.path}[]")
        strict = place.described({"type": "array", "items": item.schema, **bounds})
        return Part(strict, Listed(bounds, (), item.codec), frozenset(("array",)))

    def _tuple(self, place: Place, bounds: JsonObject, first: Sequence[Json]) -> Part:
        schema = place.schema
        rest = schema.get("items", True) if "prefixItems" in schema else True
        longest = schema.get("maxItems")
        if rest is not False and not (isinstance(longest, int) and longest <= len(first)):
            raise Inexpressible(f"{place.path}: a list with places of their own and no end")
        items = [self._needed(item, f"{place.path}[{index}]") for index, item in enumerate(first)]
        if len({compact(item.schema) for item in items}) > 1:
            self._reader.note(
                place.path, "the order of unlike items is told in the description and checked on the call"
            )
        either = self._either(Place({}, place.path), items)  # the place says which it is, so none is ambiguous
        most = min(len(first), longest if isinstance(longest, int) else len(first))
        bounds = {"minItems": 0, **bounds, "maxItems": most}
        facts = [fact("items in order", [item.schema for item in items])] if len(items) > 1 else []
        strict = place.described({"type": "array", "items": either.schema, **bounds}, *facts)
        return Part(strict, Listed(bounds, tuple(item.codec for item in items), None), frozenset(("array",)))

    def _object(self, place: Place) -> Part:
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

    def _counted(self, place: Place) -> Place:
        limits = [key for key in ("minProperties", "maxProperties", "propertyNames") if key in place.schema]
        for key in limits:
            self._reader.note(
                place.path, f"'{key}' is not in strict mode; it is told in the description and checked on the call"
            )
        return replace(place, facts=(*(fact(key, place.schema[key]) for key in limits), *place.facts))

    def _pairs(self, schema: JsonObject, more: Json, path: str) -> tuple[Schema, Pairs]:
        names = merged({"type": "string"}, as_object(schema.get("propertyNames")))
        if names is None:
            self._reader.note(path, "'propertyNames' is checked on the call")
        key = self._needed(names or {"type": "string"}, f"{path}{{name}}")
        value = self._needed(more, f"{path}{{}}")
        member = closed({"key": key.schema, "value": value.schema})
        sizes = {"minItems": "minProperties", "maxItems": "maxProperties"}
        bounds = {ours: schema[theirs] for ours, theirs in sizes.items() if theirs in schema}
        return {"type": "array", "items": member, **bounds}, Pairs(key.codec, value.codec)

    def _fields(self, place: Place) -> Part:
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
            self._reader.note(path, "closed: properties that are not declared cannot be sent")
        if more is None or more is False:
            sized = self._counted(place)
            strict = sized.described(closed(written))
            return Part(strict, Fields(tuple(fields)), frozenset(("object",)))
        return self._open(self._counted(place), more, written, fields)

    def _open(self, place: Place, more: Json, written: Schema, fields: Sequence[Field]) -> Part:
        name = unused("additional_properties", written)
        pairs, codec = self._pairs({}, more, place.path)
        pairs = {**pairs, "description": "further properties, as a list of keys and values"}
        strict = place.described(closed({**written, name: pairs}))
        return Part(strict, Fields(tuple(fields), codec, name), frozenset(("object",)))

    def _field(self, name: str, value: Json, path: str, *, required: bool) -> tuple[Schema, Field]:
        part = self._part(value, path)
        if required:
            return part.schema, Field(name, part.codec, "never")
        # a definition that is still open has no wire kinds yet
        if "null" not in part.wire and (part.wire or not allows_null(value, self._root)):
            return nullable(part.schema), Field(name, part.codec, "null")
        absence: Absence = "same" if as_object(value).get("default", ...) is None else "boxed"
        if absence == "same":
            return part.schema, Field(name, part.codec, absence)
        text = part.schema.get("description")
        told_box = {"description": told(text, ["null to leave it out, else an object holding the value"])}
        inner = {key: word for key, word in part.schema.items() if key != "description"}
        return {"anyOf": [closed({"value": inner}), NULL], **told_box}, Field(name, part.codec, absence)


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A tool's schema in strict mode, or why it has none. Made once per tool and kept by whoever sends it."""

    schema: JsonObject | None
    """What strict mode accepts; None where the tool must be sent without it."""
    notes: tuple[str, ...]
    """What strict mode cannot say about this tool, place by place."""
    codec: Codec | None = None

    def outward(self, arguments: JsonObject) -> JsonObject:
        """Write the tool's arguments as a model in strict mode would: for replaying calls to it."""
        return self._convert(arguments, "out")

    def inward(self, arguments: JsonObject) -> JsonObject:
        """Read a model's strict arguments as the tool's. What does not fit is passed on for `bind` to name."""
        return self._convert(arguments, "back")

    def _convert(self, arguments: JsonObject, way: Way) -> JsonObject:
        if self.codec is None:
            return arguments
        try:
            converted: Json = self.codec.convert(arguments, way).value
        except RecursionError:  # nested deeper than any tool reads; `bind` says so
            return arguments
        return converted if isinstance(converted, dict) else arguments


def strict_form(schema: JsonObject) -> StrictForm:
    """Put a tool's input schema into strict mode, or say why that cannot be done without losing calls."""
    root, lost = object_root(schema)
    compiler = StrictCompiler(root)
    try:
        strict, codec = compiler.compiled()
    except (Inexpressible, RecursionError) as error:
        reason = str(error) if isinstance(error, Inexpressible) else "arguments: nested too deeply"
        return StrictForm(None, (f"not sent in strict mode: {reason}",))
    excess = over_limit(strict)
    if excess:
        return StrictForm(None, (f"not sent in strict mode: {excess}",))
    return StrictForm(strict, lost + compiler.notes, codec)


def from_strict(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Read the arguments a model gave in strict mode as the tool's own.

    Nulls that stand for "left out" go, nulls the tool's schema allows stay, and maps and free-form values get their
    own shape again. A tool that strict mode cannot express was sent without it: its arguments come back as they are.
    """
    return strict_form(spec.input_schema).inward(arguments)


def to_strict(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Write a tool's own arguments as a model in strict mode gives them: the inverse of `from_strict`."""
    return strict_form(spec.input_schema).outward(arguments)
