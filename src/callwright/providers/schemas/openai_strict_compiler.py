"""The compiler behind OpenAI's strict mode: a schema in, a strict schema and an argument codec out."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from callwright.core.json import Json, JsonObject, compact, read_object
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    KINDS,
    Schema,
    add_facts,
    applies_to,
    as_list,
    constrains,
    definition_name,
    describe_fact,
    drop_keyword,
    has_reference,
    is_of,
    kinds_of,
    list_choices,
    make_closed_object,
    names_in,
    pick_unused_name,
    resolve,
)
from callwright.providers.schemas.merge import allows_null, dereference, merge
from callwright.providers.schemas.openai_strict_codec import (
    Absence,
    Codec,
    FieldCodec,
    JsonTextCodec,
    ListCodec,
    ObjectCodec,
    PairsCodec,
    ReferenceCodec,
    ScalarCodec,
    UnionCodec,
)
from callwright.providers.schemas.openai_strict_read import (
    KEPT,
    NULL,
    CompiledPart,
    Impossible,
    Inexpressible,
    SchemaReader,
    Subschema,
    are_ambiguous,
    make_nullable,
)

_ROOT = "arguments"


class StrictCompiler:
    """Compiles one tool's schema; `notes` lists what was lost."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._reader = SchemaReader(root)
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Schema] = {}
        self._parts: dict[str, CompiledPart] = {}
        self._codecs: dict[str, Codec] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the strict schema no longer expresses, in schema order."""
        return tuple(self._reader.notes)

    def compile(self) -> tuple[Schema, Codec]:
        """Return the strict schema of the root and the codec of its arguments."""
        place = self._reader.read(self._root, _ROOT)
        part = self._compile_fields(place)
        self._codecs["#"] = part.codec
        schema = part.schema
        if self._definitions:
            schema = {**schema, "$defs": dict(self._definitions)}
        return schema, part.codec

    def _compile(self, schema: Json, path: str) -> CompiledPart:
        if schema is False:
            raise Impossible(f"{path}: no value fits")
        place = self._reader.read(read_object(schema), path)
        if "$ref" in place.schema:
            return self._compile_reference(place)
        if "anyOf" in place.schema:
            return self._compile_union(place)
        kinds = kinds_of(place.schema)
        if not kinds:
            return self._compile_text(place, KINDS)
        if "type" not in place.schema and list_choices(place.schema) is None:
            self._reader.note(path, f"has no type; taken as {' or '.join(kinds)}")
        return self._compile_kinds(place, kinds)

    def _compile_reference(self, place: Subschema) -> CompiledPart:
        reference = str(place.schema["$ref"])
        target = resolve(self._root, reference)
        if target is None:
            raise Inexpressible(f"{place.path}: {reference!r} cannot be resolved inside the schema")
        beside = drop_keyword(place.schema, "$ref")
        if constrains(beside):
            return self._merge_reference(place, reference)
        part = self._compile_definition(reference, target)
        described = place.with_description({})
        # strict mode allows nothing beside a $ref
        schema = {"anyOf": [part.schema], **described} if described else part.schema
        return part._replace(schema=schema)

    def _merge_reference(self, place: Subschema, reference: str) -> CompiledPart:
        whole = dereference(place.schema, self._root)
        if whole is None:
            raise Inexpressible(f"{place.path}: the keywords beside {reference!r} cannot be merged with it")
        return self._compile(whole, place.path)

    def _compile_definition(self, reference: str, target: Json) -> CompiledPart:
        if reference == "#":
            return CompiledPart({"$ref": "#"}, ReferenceCodec(self._codecs, "#"), frozenset(("object",)))
        if reference not in self._names:
            name = definition_name(reference, self._names.values())
            self._names[reference] = name
            self._definitions[name] = {}  # reserves its place in the order of first mention, and ends recursion
            part = self._compile_required(target, name)
            self._definitions[name], self._codecs[name], self._parts[name] = part.schema, part.codec, part
            if part.schema.get("$ref") == f"#/$defs/{name}":
                raise Inexpressible(f"{name}: refers to itself and nothing else")
        name = self._names[reference]
        known = self._parts.get(name)
        wire, rewritten = (known.wire, known.rewritten) if known else (frozenset[str](), frozenset[str]())
        return CompiledPart({"$ref": f"#/$defs/{name}"}, ReferenceCodec(self._codecs, name), wire, rewritten)

    def _compile_union(self, place: Subschema) -> CompiledPart:
        base = {key: value for key, value in place.schema.items() if key != "anyOf" and key not in ANNOTATIONS}
        branches = [branch for branch in as_list(place.schema["anyOf"]) if branch is not False]
        joined = self._merge_branches(base, branches) if constrains(base) else branches
        if joined is None:
            self._reader.check_spread({**base, "anyOf": branches}, "anyOf", place.path)
            self._reader.note(
                place.path,
                "'anyOf' cannot be merged with the keywords beside it; it is checked at call time",
            )
            rest = drop_keyword(place.schema, "anyOf")
            return self._compile(rest, place.path)
        return self._join_branches(place, self._compile_branches(joined, place.path))

    def _compile_branches(self, branches: Sequence[Json], path: str) -> list[CompiledPart]:
        parts: list[CompiledPart] = []
        for number, branch in enumerate(branches):
            with suppress(Impossible):
                parts.append(self._compile(branch, f"{path}.{number}"))
        if not parts:
            raise Impossible(f"{path}: no value fits")
        return parts

    def _compile_required(self, schema: Json, path: str) -> CompiledPart:
        """Compile a part that several properties may depend on: one that no value fits then rules out strict mode."""
        try:
            return self._compile(schema, path)
        except Impossible as error:
            raise Inexpressible(str(error)) from None

    def _merge_branches(self, base: JsonObject, branches: Sequence[Json]) -> list[Json] | None:
        found: list[Json] = []
        for branch in branches:
            flat = dereference(branch, self._root)  # `true` reads as a schema without keywords
            whole = merge(base, flat) if flat is not None else None
            if whole is None:
                return None
            found.append(whole)
        return found

    def _join_branches(self, place: Subschema, parts: Sequence[CompiledPart]) -> CompiledPart:
        if are_ambiguous(parts):
            self._reader.note(
                place.path,
                "alternatives that look alike in strict mode; sent as JSON text, checked at call time",
            )
            return self._compile_text(place, KINDS, place.schema)
        return self._unite(place, parts)

    def _unite(self, place: Subschema, parts: Sequence[CompiledPart]) -> CompiledPart:
        wire = frozenset[str]().union(*(part.wire for part in parts))
        rewritten = frozenset[str]().union(*(part.rewritten for part in parts))
        codec = UnionCodec(tuple(part.codec for part in parts))
        solid = [part for part in parts if part.schema != NULL]
        if len(solid) == 1 and len(parts) == 2:
            return CompiledPart(place.with_description(make_nullable(solid[0].schema)), codec, wire, rewritten)
        # alternatives may differ on the tool's side only
        schemas = list({compact(part.schema): part.schema for part in parts}.values())
        only = schemas[0] if len(schemas) == 1 and "$ref" not in schemas[0] else {"anyOf": schemas}
        return CompiledPart(place.with_description(only), codec, wire, rewritten)

    def _compile_kinds(self, place: Subschema, kinds: Sequence[str]) -> CompiledPart:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise Inexpressible(f"{place.path}: unknown type {unknown[0]!r}")
        values = list_choices(place.schema)
        fitting = [kind for kind in kinds if values is None or any(is_of(value, kind) for value in values)]
        if not fitting:
            raise Impossible(f"{place.path}: no choice is of type {' or '.join(kinds)}")
        if len(fitting) == 1:
            return self._compile_kind(place, fitting[0])
        silent = replace(place, schema={**place.schema, "description": ""}, facts=())
        return self._join_branches(place, [self._compile_kind(silent, kind) for kind in fitting])

    def _compile_kind(self, place: Subschema, kind: str) -> CompiledPart:
        schema = {key: value for key, value in place.schema.items() if applies_to(key, kind)}
        place = replace(place, schema=schema)
        values = list_choices(schema)
        if kind in ("object", "array") and values is not None:
            raise Inexpressible(f"{place.path}: choices that are objects or lists are not supported")
        if kind == "object":
            return self._compile_object(place)
        if kind == "array":
            return self._compile_array(place)
        known = {key: schema[key] for key in KEPT.get("number" if kind == "integer" else kind, ()) if key in schema}
        strict: Schema = {"type": kind, **known}
        if values is not None and kind != "null":
            strict["enum"] = [value for value in values if is_of(value, kind)]
        return CompiledPart(place.with_description(strict), ScalarCodec(strict), frozenset((kind,)))

    def _compile_text(self, place: Subschema, kinds: tuple[str, ...], schema: JsonObject | None = None) -> CompiledPart:
        what = "any JSON value" if kinds == KINDS else f"a JSON {' or '.join(kinds)}"
        suffix = f" for the schema {compact(schema)}" if schema and not has_reference(schema) else ""
        strict = place.with_description({"type": "string"}, f"{what}{suffix}, written as JSON text")
        return CompiledPart(strict, JsonTextCodec(kinds), frozenset(("string",)), frozenset(("string",)))

    def _compile_array(self, place: Subschema) -> CompiledPart:
        schema = place.schema
        bounds = {key: schema[key] for key in KEPT["array"] if key in schema}
        first = as_list(schema.get("prefixItems")) or as_list(schema.get("items"))
        if first:
            return self._compile_tuple(place, bounds, first)
        if schema.get("maxItems") == 0 or schema.get("items") is False:
            raise Inexpressible(f"{place.path}: a list that is always empty is not supported")
        if not constrains(read_object(schema.get("items"))):
            for key in bounds:
                self._reader.note(place.path, f"'{key}' of a list sent as JSON text is checked at call time")
            facts = tuple(describe_fact(key, value) for key, value in bounds.items())
            return self._compile_text(replace(place, facts=(*facts, *place.facts)), ("array",))
        item = self._compile_required(schema["items"], f"{place.path}[]")
        strict = place.with_description({"type": "array", "items": item.schema, **bounds})
        return CompiledPart(strict, ListCodec(bounds, (), item.codec), frozenset(("array",)))

    def _compile_tuple(self, place: Subschema, bounds: JsonObject, first: Sequence[Json]) -> CompiledPart:
        schema = place.schema
        rest = schema.get("items", True) if "prefixItems" in schema else True
        longest = schema.get("maxItems")
        if rest is not False and not (isinstance(longest, int) and longest <= len(first)):
            raise Inexpressible(f"{place.path}: a tuple of unlimited length is not supported")
        items = [self._compile_required(item, f"{place.path}[{index}]") for index, item in enumerate(first)]
        if len({compact(item.schema) for item in items}) > 1:
            self._reader.note(
                place.path,
                "the order of different items is moved to the description and checked at call time",
            )
        either = self._unite(Subschema({}, place.path), items)  # the index says which one it is, so none is ambiguous
        most = min(len(first), longest if isinstance(longest, int) else len(first))
        bounds = {"minItems": 0, **bounds, "maxItems": most}
        facts = [describe_fact("items in order", [item.schema for item in items])] if len(items) > 1 else []
        strict = place.with_description({"type": "array", "items": either.schema, **bounds}, *facts)
        return CompiledPart(strict, ListCodec(bounds, tuple(item.codec for item in items), None), frozenset(("array",)))

    def _compile_object(self, place: Subschema) -> CompiledPart:
        schema = place.schema
        declared = read_object(schema.get("properties")) or names_in(schema.get("required"))
        more = schema.get("additionalProperties", True)
        if declared or more is False:
            return self._compile_fields(place)
        if more is True or not constrains(read_object(more)):
            return self._compile_text(self._note_size_limits(place), ("object",))
        pairs, codec = self._compile_pairs(schema, more, place.path)
        strict = place.with_description(pairs, "a list of keys and values")
        return CompiledPart(strict, codec, frozenset(("array",)), frozenset(("array",)))

    def _note_size_limits(self, place: Subschema) -> Subschema:
        limits = [key for key in ("minProperties", "maxProperties", "propertyNames") if key in place.schema]
        for key in limits:
            self._reader.note(
                place.path,
                f"strict mode does not support '{key}'; it is moved to the description and checked at call time",
            )
        return replace(place, facts=(*(describe_fact(key, place.schema[key]) for key in limits), *place.facts))

    def _compile_pairs(self, schema: JsonObject, more: Json, path: str) -> tuple[Schema, PairsCodec]:
        names = merge({"type": "string"}, read_object(schema.get("propertyNames")))
        if names is None:
            self._reader.note(path, "'propertyNames' is checked at call time")
        key = self._compile_required(names or {"type": "string"}, f"{path}{{name}}")
        value = self._compile_required(more, f"{path}{{}}")
        member = make_closed_object({"key": key.schema, "value": value.schema})
        sizes = {"minItems": "minProperties", "maxItems": "maxProperties"}
        bounds = {ours: schema[theirs] for ours, theirs in sizes.items() if theirs in schema}
        return {"type": "array", "items": member, **bounds}, PairsCodec(key.codec, value.codec)

    def _compile_fields(self, place: Subschema) -> CompiledPart:
        schema, path = place.schema, place.path
        properties = dict(read_object(schema.get("properties")))
        required = names_in(schema.get("required"))
        more = schema.get("additionalProperties")
        for name in required:
            properties.setdefault(name, True if more is None else more)
        written: Schema = {}
        fields: list[FieldCodec] = []
        for name, value in properties.items():
            try:
                written[name], field = self._compile_field(name, value, f"{path}.{name}", required=name in required)
            except Impossible:
                if name in required:
                    raise
                continue  # no value fits it, so leaving it out of the schema loses nothing
            fields.append(field)
        if more is None:
            self._reader.note(path, "closed: properties that are not declared cannot be sent")
        if more is None or more is False:
            sized = self._note_size_limits(place)
            strict = sized.with_description(make_closed_object(written))
            return CompiledPart(strict, ObjectCodec(tuple(fields)), frozenset(("object",)))
        return self._compile_open(self._note_size_limits(place), more, written, fields)

    def _compile_open(
        self, place: Subschema, more: Json, written: Schema, fields: Sequence[FieldCodec]
    ) -> CompiledPart:
        name = pick_unused_name("additional_properties", written)
        pairs, codec = self._compile_pairs({}, more, place.path)
        pairs = {**pairs, "description": "further properties, as a list of keys and values"}
        strict = place.with_description(make_closed_object({**written, name: pairs}))
        return CompiledPart(strict, ObjectCodec(tuple(fields), codec, name), frozenset(("object",)))

    def _compile_field(self, name: str, value: Json, path: str, *, required: bool) -> tuple[Schema, FieldCodec]:
        part = self._compile(value, path)
        if required:
            return part.schema, FieldCodec(name, part.codec, "never")
        # a definition that is still being compiled has no wire kinds yet
        if "null" not in part.wire and (part.wire or not allows_null(value, self._root)):
            return make_nullable(part.schema), FieldCodec(name, part.codec, "null")
        absence: Absence = "same" if read_object(value).get("default", ...) is None else "boxed"
        if absence == "same":
            return part.schema, FieldCodec(name, part.codec, absence)
        text = part.schema.get("description")
        described = {"description": add_facts(text, ["null to leave it out, else an object holding the value"])}
        inner = {key: value for key, value in part.schema.items() if key != "description"}
        return {"anyOf": [make_closed_object({"value": inner}), NULL], **described}, FieldCodec(
            name, part.codec, absence
        )
