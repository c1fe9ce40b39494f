"""Questions about JSON Schemas: kinds, keywords, references, bounds.

Schemas are read by position, so that a keyword and a property of the same name are never confused.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from callwright.core.json import Json, JsonObject, compact, follow_pointer, read_object

Schema: TypeAlias = dict[str, Any]
"""A schema under construction, mutable until it is frozen."""

KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")

_DESCRIPTIVE = (
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
)
ANNOTATIONS = frozenset((*_DESCRIPTIVE, "$schema", "$id", "id", "$defs", "definitions", "$vocabulary", "discriminator"))
"""Keywords that describe a value without restricting it."""

COMBINERS = ("allOf", "anyOf", "oneOf")

STRUCTURE = frozenset((*COMBINERS, "type", "enum", "const", "$ref", "properties", "required", "additionalProperties"))
"""Keywords that every format can express."""

_KIND_OF_KEYWORD = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), "object"),
    **dict.fromkeys(("unevaluatedProperties", "dependencies"), "object"),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("contains", "minContains", "maxContains", "unevaluatedItems"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("contentEncoding", "contentMediaType", "contentSchema"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}
_ANY_KIND = frozenset(("type", "enum", "const", "not", "if", "then", "else", "$ref", *COMBINERS))


def as_list(value: object) -> Sequence[Json]:
    """Read a value as a list; anything else reads as an empty one."""
    return cast(Sequence[Json], value) if isinstance(value, (list, tuple)) else ()


def drop_keyword(schema: JsonObject, keyword: str) -> Schema:
    """Copy a schema without a keyword."""
    return {key: value for key, value in schema.items() if key != keyword}


def make_closed_object(properties: Schema) -> Schema:
    """Build the schema of an object with all of these properties and no others, as strict mode requires it."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def names_in(value: object) -> list[str]:
    """Read a list of names, such as `required`."""
    return [name for name in as_list(value) if isinstance(name, str)]


def is_known(keyword: str) -> bool:
    """Whether JSON Schema defines the keyword."""
    return keyword in ANNOTATIONS or keyword in _ANY_KIND or keyword in _KIND_OF_KEYWORD


def applies_to(keyword: str, kind: str) -> bool:
    """Whether a keyword applies to values of a kind."""
    return _KIND_OF_KEYWORD.get(keyword) in (None, "number" if kind == "integer" else kind)


def constrains(schema: JsonObject) -> bool:
    """Whether a schema allows less than everything."""
    return any(key not in ANNOTATIONS and is_known(key) for key in schema)


def kind_of(value: object) -> str:
    """Name the kind of a JSON value; a number without a fraction is an integer."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def is_of(value: object, kind: str) -> bool:
    """Whether a JSON value is of a kind; every integer is a number."""
    found = kind_of(value)
    return found == kind or (found == "integer" and kind == "number")


def kinds_of(schema: JsonObject) -> list[str]:
    """List the kinds of value a schema restricts itself to, in a fixed order; empty where it allows all."""
    stated = schema.get("type")
    if isinstance(stated, str):
        return [stated]
    if isinstance(stated, (list, tuple)):
        found = set(names_in(stated))
    elif "enum" in schema or "const" in schema:
        found = {kind_of(value) for value in list_choices(schema) or ()}
    else:
        found = {_KIND_OF_KEYWORD[key] for key in schema if key in _KIND_OF_KEYWORD}
    if "number" in found:
        found.discard("integer")
    return [kind for kind in KINDS if kind in found] + sorted(found.difference(KINDS))


def list_choices(schema: JsonObject) -> list[Json] | None:
    """List the values that an `enum` or a `const` allows; None where there is neither."""
    if "const" in schema:
        return [schema["const"]]
    return list(as_list(schema["enum"])) if "enum" in schema else None


def are_equal(first: object, second: object) -> bool:
    """Whether two JSON values are equal; unlike in Python, true is not 1."""
    return isinstance(first, bool) == isinstance(second, bool) and first == second


def resolve(root: JsonObject, reference: object) -> Json:
    """Follow a reference inside the same document; None where it leads nowhere."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    return cast(Json, follow_pointer(root, reference[1:]))


def pick_unused_name(name: str, taken: Collection[str]) -> str:
    """Return the name, numbered if it is taken."""
    numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    return next(found for found in (name, *numbered) if found not in taken)


def definition_name(reference: str, taken: Collection[str]) -> str:
    """Return a name for the target of a reference, in characters that providers accept."""
    return pick_unused_name(re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2]) or "arguments", taken)


def add_facts(description: object, facts: Iterable[str]) -> str:
    """Append to a description what the schema can no longer express."""
    text = description if isinstance(description, str) else ""
    extra = "; ".join(facts)
    return f"{text} ({extra})".strip() if text and extra else text or extra


def describe_fact(keyword: str, value: object) -> str:
    """Format one keyword for a description."""
    return f"{keyword}: {compact(value)}"


def collect_property_names(schema: Json) -> set[str]:
    """Collect the property names that a schema and its alternatives mention at this level."""
    node = read_object(schema)
    found = set(read_object(node.get("properties"))) | set(names_in(node.get("required")))
    for keyword in COMBINERS:
        for branch in as_list(node.get(keyword)):
            found |= collect_property_names(branch)
    for keyword in ("if", "then", "else", "not"):
        found |= collect_property_names(node[keyword]) if keyword in node else set[str]()
    for branch in read_object(node.get("dependentSchemas")).values():
        found |= collect_property_names(branch)
    return found


def has_reference(schema: Json) -> bool:
    """Whether there is a `$ref` anywhere inside. A property of that name counts too, which errs on the safe side."""
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(has_reference(value) for value in cast(JsonObject, schema).values())
    return isinstance(schema, (list, tuple)) and any(has_reference(item) for item in cast(Sequence[Json], schema))


def are_exclusive(branches: Sequence[Json]) -> bool:
    """Whether no value can fit two branches: their kinds, or the choices of a required property, are disjoint."""
    nodes = [read_object(branch) for branch in branches]
    if _are_disjoint([_wide_kinds(node) for node in nodes]):
        return True
    shared = set[str].intersection(*[set(names_in(node.get("required"))) for node in nodes]) if nodes else set[str]()
    return any(_are_disjoint([_tags(node, name) for node in nodes]) for name in shared)


def _wide_kinds(node: JsonObject) -> set[str] | None:
    stated = set(kinds_of(node)) if "type" in node or "enum" in node or "const" in node else None
    return {"number" if kind == "integer" else kind for kind in stated} if stated else None


def _tags(node: JsonObject, name: str) -> set[str] | None:
    values = list_choices(read_object(read_object(node.get("properties")).get(name)))
    if values is None or set(kinds_of(node)) != {"object"}:
        return None
    return {compact(value) for value in values}


def _are_disjoint(groups: Sequence[set[str] | None]) -> bool:
    known = [group for group in groups if group is not None]
    return len(known) == len(groups) and sum(map(len, known)) == len(set[str]().union(*known))


def is_within_bounds(schema: JsonObject, value: object) -> bool:
    """Whether a number, or the length of a list, is within the bounds of a schema."""
    if isinstance(value, (list, tuple)):
        size = len(cast(Sequence[Json], value))
        return _get_bound(schema, "minItems", 0) <= size <= _get_bound(schema, "maxItems", math.inf)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    inside = _get_bound(schema, "minimum", -math.inf) <= value <= _get_bound(schema, "maximum", math.inf)
    between = (
        _get_bound(schema, "exclusiveMinimum", -math.inf) < value < _get_bound(schema, "exclusiveMaximum", math.inf)
    )
    return inside and between and _is_multiple(value, _get_bound(schema, "multipleOf", 0))


def _is_multiple(value: float, step: float) -> bool:
    if not step or (isinstance(value, int) and isinstance(step, int)):
        return not step or value % step == 0
    try:
        return float(value / step).is_integer()
    except OverflowError:  # an integer beyond any float
        return False


def _get_bound(schema: JsonObject, keyword: str, otherwise: float) -> float:
    found = schema.get(keyword)
    return otherwise if isinstance(found, bool) or not isinstance(found, (int, float)) else found
