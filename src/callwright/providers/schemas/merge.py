"""Merging schemas, the plain object that every model API requires at the root, and the items that OpenAI requires."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from callwright.core.json import Json, JsonObject, compact, read_object
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    KINDS,
    Schema,
    add_facts,
    are_equal,
    as_list,
    constrains,
    drop_keyword,
    kinds_of,
    list_choices,
    names_in,
    resolve,
)
from callwright.tool.schema_drafts import rewrite_schema

_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties"), min),
}
_READ_TOGETHER = (("if", "then", "else"), ("items", "prefixItems"), ("contains", "minContains", "maxContains"))
"""Keywords that change meaning next to each other."""


def merge(first: JsonObject, second: JsonObject) -> Schema | None:
    """Build the schema that accepts exactly what both accept; None where they cannot be merged into one."""
    if _interfere(first, second) or _interfere(second, first):
        return None
    joined = dict(first)
    for key, value in second.items():
        if key not in joined or key in ANNOTATIONS:
            joined.setdefault(key, value)
        elif joined[key] != value:
            both = _merge_values(key, joined[key], value)
            if both is None:
                return None
            joined[key] = both
    return joined


def merge_all(schemas: Sequence[JsonObject]) -> Schema | None:
    """Merge any number of schemas; None where they cannot be merged."""
    joined: Schema | None = {}
    for schema in schemas:
        joined = merge(joined, schema) if joined is not None else None
    return joined


def _interfere(first: JsonObject, second: JsonObject) -> bool:
    """Whether a keyword of the first schema would apply to properties of the second."""
    named = set(read_object(second.get("properties"))) - set(read_object(first.get("properties")))
    if (first.get("additionalProperties", True) is not True and named) or "patternProperties" in first:
        return True
    if "unevaluatedProperties" in first or "unevaluatedItems" in first:
        return True
    return any(
        any(key in first for key in group) and any(key in second and key not in first for key in group)
        for group in _READ_TOGETHER
    )


def _merge_values(key: str, first: Json, second: Json) -> Json:
    if key == "required":
        return list(dict.fromkeys([*names_in(first), *names_in(second)]))
    if key == "properties":
        return _merge_properties(read_object(first), read_object(second))
    if key == "type":
        return _merge_kinds({"type": first}, {"type": second})
    if key == "enum":
        return [value for value in as_list(first) if any(are_equal(value, other) for other in as_list(second))] or None
    if key in _TIGHTER and isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return _TIGHTER[key](first, second)
    return None


def _merge_properties(first: JsonObject, second: JsonObject) -> JsonObject:
    joined = dict(first)
    for name, value in second.items():
        if name in joined and joined[name] != value:
            whole = merge(read_object(joined[name]), read_object(value)) if joined[name] and value else None
            joined[name] = whole if whole is not None else {"allOf": [joined[name], value]}
        else:
            joined[name] = value
    return joined


def _merge_kinds(first: JsonObject, second: JsonObject) -> Json:
    mine, yours = set(kinds_of(first)), set(kinds_of(second))
    for here, there in ((mine, yours), (yours, mine)):
        if "number" in here and "integer" in there:
            here.add("integer")
    shared = [kind for kind in KINDS if kind in mine & yours]
    if "number" in shared and "integer" in shared:
        shared.remove("integer")
    return shared[0] if len(shared) == 1 else shared or None


def dereference(schema: Json, root: JsonObject) -> JsonObject | None:
    """Follow a schema's `$ref`, keeping the keywords beside it; None where it cannot be followed or merged."""
    if schema is False:
        return None
    node, seen = read_object(schema), set[str]()
    while "$ref" in node:
        reference = node["$ref"]
        target = resolve(root, reference)
        if not isinstance(reference, str) or reference in seen or not read_object(target):
            return None
        seen.add(reference)
        beside = drop_keyword(node, "$ref")
        joined = merge(
            beside, {key: value for key, value in read_object(target).items() if key not in ("$defs", "definitions")}
        )
        if joined is None:
            return None
        node = joined
    return node


def fold_all_of(schema: JsonObject, root: JsonObject) -> JsonObject | None:
    """Merge one layer of `allOf` into the schema around it; None where that is not possible."""
    parts = as_list(schema["allOf"])
    base = drop_keyword(schema, "allOf")
    if len(parts) == 1 and not constrains(base):
        return {**base, "anyOf": parts}
    flat = [dereference(part, root) for part in parts]
    known = [part for part in flat if part is not None]
    return merge_all([base, *known]) if len(known) == len(flat) else None


def allows_null(schema: Json, root: JsonObject, seen: frozenset[str] = frozenset()) -> bool:
    """Whether null fits a schema. One without any restriction counts as no."""
    node = read_object(schema)
    reference = node.get("$ref")
    if isinstance(reference, str):
        return reference not in seen and allows_null(resolve(root, reference), root, seen | {reference})
    for keyword in ("anyOf", "oneOf"):
        if keyword in node and not any(allows_null(branch, root, seen) for branch in as_list(node[keyword])):
            return False
    if "allOf" in node and not all(allows_null(branch, root, seen) for branch in as_list(node["allOf"])):
        return False
    values, kinds = list_choices(node), kinds_of(node) if "type" in node else []
    if values is not None and None not in values:
        return False
    return "null" in kinds if kinds else values is not None or any(key in node for key in ("allOf", "anyOf", "oneOf"))


_FORBIDDEN = ("allOf", "anyOf", "oneOf", "not", "enum", "const")
_FACT_CHARS = 2_000


def object_root(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return a schema whose root is a plain object and accepts at least the same values, and notes on what it lost.

    A root that is a plain object already is returned unchanged.
    """
    if schema.get("type") == "object" and "$ref" not in schema and not any(key in schema for key in _FORBIDDEN):
        return schema, ()
    notes: list[str] = []
    flat = _flatten(schema, schema, notes, depth=0)
    kinds = kinds_of(flat)
    if kinds and "object" not in kinds:
        notes.append("arguments: the schema does not describe an object; it is sent as one without properties")
        flat = {key: flat[key] for key in ("description", "$defs", "definitions") if key in flat}
    head = {key: value for key, value in flat.items() if key not in ("type", "$defs", "definitions")}
    tail = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {"type": "object", "properties": {}, **head, **tail}, tuple(notes)


def _flatten(schema: Json, root: JsonObject, notes: list[str], depth: int) -> Schema:
    node = dereference(schema, root)
    if node is None or depth > 4:  # alternatives nested deeper than this are a cycle
        notes.append("arguments: a reference at the root cannot be resolved; it is checked at call time")
        return {}
    base = {key: value for key, value in node.items() if key not in _FORBIDDEN}
    facts: list[str] = []
    if "allOf" in node:
        base = _all_of(base, [_flatten(part, root, notes, depth + 1) for part in as_list(node["allOf"])], notes)
    for keyword in ("anyOf", "oneOf"):
        if keyword in node:
            base = _any_of(base, [_flatten(branch, root, notes, depth + 1) for branch in as_list(node[keyword])])
    for keyword in _FORBIDDEN[1:]:
        if keyword in node:
            notes.append(f"arguments: '{keyword}' is not allowed at the root; it is described and checked at call time")
            facts.append(f"must fit {keyword}: {compact(node[keyword])[:_FACT_CHARS]}")
    return {**base, "description": add_facts(base.get("description"), facts)} if facts else base


def _all_of(base: Schema, parts: Sequence[Schema], notes: list[str]) -> Schema:
    whole = merge_all([base, *parts])
    if whole is not None:
        return whole
    notes.append(
        "arguments: 'allOf' cannot be merged into one schema; its properties are sent, the rest is checked at call time"
    )
    properties = _combine_properties([read_object(part.get("properties")) for part in (base, *parts)], "allOf")
    required = [name for part in (base, *parts) for name in names_in(part.get("required"))]
    open_base = drop_keyword(base, "additionalProperties")
    return {**open_base, "properties": properties, "required": list(dict.fromkeys(required))}


def _any_of(base: Schema, branches: Sequence[Schema]) -> Schema:
    mine = read_object(base.get("properties"))
    offered = _combine_properties([read_object(branch.get("properties")) for branch in branches], "anyOf")
    joined = {**base, "properties": {**mine, **{name: offered[name] for name in offered if name not in mine}}}
    needed = [names_in(branch.get("required")) for branch in branches]
    always = [name for name in needed[0] if all(name in names for names in needed)] if needed else []
    required = list(dict.fromkeys([*names_in(base.get("required")), *always]))
    if required:
        joined["required"] = required
    if branches and all(branch.get("additionalProperties") is False for branch in branches):
        joined.setdefault("additionalProperties", False)
    return joined


def _combine_properties(tables: Iterable[JsonObject], keyword: str) -> Schema:
    """Collect every property once; several schemas of one property are combined with the keyword."""
    found: dict[str, list[Json]] = {}
    for table in tables:
        for name, value in table.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return {name: values[0] if len(values) == 1 else {keyword: values} for name, values in found.items()}


def with_items(schema: JsonObject) -> JsonObject:
    """Return a schema in which every array has `items`: OpenAI rejects one without, also beside `prefixItems`."""
    return rewrite_schema(schema, _add_items)


def _add_items(node: JsonObject) -> JsonObject:
    kind = node.get("type")
    if kind != "array" and "array" not in as_list(kind):
        return node
    places, limit = as_list(node.get("prefixItems")), node.get("maxItems")
    closed = node.get("items") is False or (isinstance(limit, int) and limit <= len(places))
    if not places or not closed:
        return node if "items" in node else {**node, "items": {}}
    distinct = [place for at, place in enumerate(places) if not any(are_equal(place, other) for other in places[:at])]
    most = min(len(places), limit) if isinstance(limit, int) else len(places)
    # no further element is allowed, so these items restrict nothing; a model that ignores prefixItems reads them
    return {**node, "items": distinct[0] if len(distinct) == 1 else {"anyOf": distinct}, "maxItems": most}
