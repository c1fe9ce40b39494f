"""What a JSON Schema says about the fields of an object, as far as repairs need it; in doubt it says nothing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from callwright.core.json import follow_pointer, read_object
from callwright.repairs.names import clean_name, fold_name

Schema: TypeAlias = Mapping[str, Any]
Object: TypeAlias = dict[str, Any]
Change: TypeAlias = tuple[Object, str] | None
"""The changed arguments and the note; None if the repair does not apply."""
_ANY = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_MOST_STEPS = 20


def resolve(schema: Any, root: Schema) -> Schema:
    """Follow `$ref` inside one document; an unknown reference gives a schema that permits everything."""
    for _ in range(_MOST_STEPS):
        reference = read_object(schema).get("$ref")
        if not isinstance(reference, str):
            break
        schema = follow_pointer(root, reference[1:]) if reference.startswith("#/") else {}
    return read_object(schema)


def _alternatives(schema: Schema) -> Sequence[Schema] | None:
    """Return the alternatives that a schema leaves the choice between; None if it has none."""
    given = (schema.get(choice) for choice in ("anyOf", "oneOf"))
    return next((cast("Sequence[Schema]", parts) for parts in given if isinstance(parts, (list, tuple))), None)


def _object_in(schema: Schema, root: Schema) -> Schema:
    """Return the schema that names an object's fields: of a choice, its only object, or nothing."""
    schema = resolve(schema, root)
    parts = _alternatives(schema)
    if parts is None or "properties" in schema:
        return schema
    objects = [part for part in parts if "object" in kinds_of(part, root)]
    return _object_in(objects[0], root) if len(objects) == 1 else {}


def fields_of(schema: Schema, root: Schema) -> dict[str, Schema]:
    """Return the named fields of an object schema; of a choice, those of its only object."""
    named = read_object(_object_in(schema, root).get("properties"))
    return {name: resolve(field, root) for name, field in named.items()}


def required_of(schema: Schema, root: Schema) -> frozenset[str]:
    """Return the names of the fields that must be given."""
    found = resolve(schema, root).get("required")
    return frozenset(cast("Sequence[str]", found)) if isinstance(found, (list, tuple)) else frozenset()


_PLAIN = frozenset({"type", "properties", "required", "title", "description", "default", "examples", "$defs"})


def is_closed(schema: Schema, root: Schema, *, unsaid: bool) -> bool:
    """Tell whether an object takes only the fields that its schema names; of a choice, its only object.

    Args:
        schema: The schema of the object.
        root: What references in the schema refer to.
        unsaid: What holds for an object that names its fields and says nothing about others.
    """
    found = _object_in(schema, root)
    if found.get("additionalProperties") is False:
        return "patternProperties" not in found
    return unsaid and "properties" in found and found.keys() <= _PLAIN


def kinds_of(schema: Schema, root: Schema) -> frozenset[str]:
    """Return the JSON types that a value may have."""
    schema = resolve(schema, root)
    if isinstance(schema.get("enum"), (list, tuple)):
        return frozenset(kind_of(value) for value in schema["enum"])
    if "const" in schema:
        return frozenset({kind_of(schema["const"])})
    if (parts := _alternatives(schema)) is not None:
        return frozenset[str]().union(*(kinds_of(part, root) for part in parts))
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    return frozenset(cast("Sequence[str]", kind)) if isinstance(kind, (list, tuple)) else _ANY


def items_of(schema: Schema, root: Schema) -> Schema:
    """Return the schema of a list's items; of a choice, that of its only list."""
    schema = resolve(schema, root)
    parts = _alternatives(schema)
    if parts is None:
        return resolve(schema.get("items", {}), root)
    lists = [part for part in parts if "array" in kinds_of(part, root)]
    return items_of(lists[0], root) if len(lists) == 1 else {}


def choices_of(schema: Schema, root: Schema) -> tuple[Any, ...] | None:
    """Return the fixed values that a field may have; None if it takes others too."""
    schema = resolve(schema, root)
    if isinstance(schema.get("enum"), (list, tuple)):
        return tuple(schema["enum"])
    if "const" in schema:
        return (schema["const"],)
    found = [choices_of(part, root) for part in _alternatives(schema) or () if kinds_of(part, root) - {"null"}]
    known = [values for values in found if values is not None]
    return tuple(value for values in known for value in values) if found and len(known) == len(found) else None


_QUOTED_CHOICE = re.compile(r"""\s*(["'`])(.*)\1\s*""", re.DOTALL)
_SEPARATOR = re.compile(r"(?<=[^\W\d_])(?:[\s_]+|-+)(?=[^\W\d_])")


def fold_choice(text: str) -> str:
    """Return a choice without letter case, quotes around it and separators between its words.

    Everything else may have a meaning: "-1" is not "1", "1.0" is not "10", and "c++" is not "c".
    """
    if (quoted := _QUOTED_CHOICE.fullmatch(text)) is not None:
        text = quoted[2]
    return _SEPARATOR.sub("", text.strip()).lower()


def kind_of(value: Any) -> str:
    """Return the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def fits(value: Any, kinds: frozenset[str]) -> bool:
    """Tell whether a value has one of the types; an integer is a number too."""
    kind = kind_of(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


@dataclass(frozen=True, slots=True)
class Target:
    """The tool that arguments are for."""

    name: str
    schema: Schema
    aliases: tuple[str, ...] = ()
    field_aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names that a field may be given by, which the schema does not show."""
    lines: tuple[str, ...] = ()
    """Fields that hold a shell line, in which marks of Markdown and JSON are slips."""
    document: Schema | None = None
    """What references in the schema refer to, if the schema is only a part of it."""
    closed: bool = False
    """Whether the tool refuses unknown fields although its schema does not say so."""

    @property
    def root(self) -> Schema:
        """The document that the schema is a part of."""
        return self.schema if self.document is None else self.document

    @property
    def fields(self) -> dict[str, Schema]:
        """The fields of the arguments."""
        return fields_of(self.schema, self.root)

    def names(self, value: object) -> bool:
        """Tell whether a value is the tool's name or an alias of it, but for letter case and separators."""
        if not isinstance(value, str):
            return False
        folded = fold_name(clean_name(value))
        return bool(folded) and folded in {fold_name(name) for name in (self.name, *self.aliases)}

    def inside(self, schema: Schema) -> "Target":
        """Return the target for an object in a field, whose names have no aliases."""
        return Target("", schema, document=self.root)
