"""The root of a tool's schema as model APIs accept it: one object, without alternatives at the top.

Joining schemas: what two of them accept together, and the plain object that every provider wants at the root.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from callwright.core.json import Json, JsonObject, compact
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    KINDS,
    Schema,
    as_list,
    as_object,
    choices,
    constrains,
    kinds_of,
    names_in,
    resolve,
    same,
    told,
    without,
)

_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties"), min),
}
_READ_TOGETHER = (("if", "then", "else"), ("items", "prefixItems"), ("contains", "minContains", "maxContains"))
"""Keywords that change meaning when one of them moves in beside another."""


def merged(first: JsonObject, second: JsonObject) -> Schema | None:
    """Build the schema that accepts exactly what both accept; None where that takes more than putting them together."""
    if _interfere(first, second) or _interfere(second, first):
        return None
    joined = dict(first)
    for key, value in second.items():
        if key not in joined or key in ANNOTATIONS:
            joined.setdefault(key, value)
        elif joined[key] != value:
            both = _both(key, joined[key], value)
            if both is None:
                return None
            joined[key] = both
    return joined


def merged_all(schemas: Sequence[JsonObject]) -> Schema | None:
    """Merge any number of schemas, or give None."""
    joined: Schema | None = {}
    for schema in schemas:
        joined = merged(joined, schema) if joined is not None else None
    return joined


def _interfere(first: JsonObject, second: JsonObject) -> bool:
    """Whether a keyword of the first would judge parts of the second that it never saw."""
    named = set(as_object(second.get("properties"))) - set(as_object(first.get("properties")))
    if (first.get("additionalProperties", True) is not True and named) or "patternProperties" in first:
        return True
    if "unevaluatedProperties" in first or "unevaluatedItems" in first:
        return True
    return any(
        any(key in first for key in group) and any(key in second and key not in first for key in group)
        for group in _READ_TOGETHER
    )


def _both(key: str, first: Json, second: Json) -> Json:
    if key == "required":
        return list(dict.fromkeys([*names_in(first), *names_in(second)]))
    if key == "properties":
        return _both_properties(as_object(first), as_object(second))
    if key == "type":
        return _both_kinds({"type": first}, {"type": second})
    if key == "enum":
        return [value for value in as_list(first) if any(same(value, other) for other in as_list(second))] or None
    if key in _TIGHTER and isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return _TIGHTER[key](first, second)
    return None


def _both_properties(first: JsonObject, second: JsonObject) -> JsonObject:
    joined = dict(first)
    for name, value in second.items():
        if name in joined and joined[name] != value:
            whole = merged(as_object(joined[name]), as_object(value)) if joined[name] and value else None
            joined[name] = whole if whole is not None else {"allOf": [joined[name], value]}
        else:
            joined[name] = value
    return joined


def _both_kinds(first: JsonObject, second: JsonObject) -> Json:
    mine, yours = set(kinds_of(first)), set(kinds_of(second))
    for here, there in ((mine, yours), (yours, mine)):
        if "number" in here and "integer" in there:
            here.add("integer")
    shared = [kind for kind in KINDS if kind in mine & yours]
    if "number" in shared and "integer" in shared:
        shared.remove("integer")
    return shared[0] if len(shared) == 1 else shared or None


def dereferenced(schema: Json, root: JsonObject) -> JsonObject | None:
    """Follow a schema's own `$ref` until it is none, keeping what stands beside it; None where that goes wrong."""
    if schema is False:
        return None
    node, seen = as_object(schema), set[str]()
    while "$ref" in node:
        reference = node["$ref"]
        target = resolve(root, reference)
        if not isinstance(reference, str) or reference in seen or not as_object(target):
            return None
        seen.add(reference)
        beside = without(node, "$ref")
        joined = merged(
            beside, {key: value for key, value in as_object(target).items() if key not in ("$defs", "definitions")}
        )
        if joined is None:
            return None
        node = joined
    return node


def folded(schema: JsonObject, root: JsonObject) -> JsonObject | None:
    """Fold `allOf` into the schema around it, one layer of it; None where that does not come down to one schema."""
    parts = as_list(schema["allOf"])
    base = without(schema, "allOf")
    if len(parts) == 1 and not constrains(base):
        return {**base, "anyOf": parts}
    flat = [dereferenced(part, root) for part in parts]
    known = [part for part in flat if part is not None]
    return merged_all([base, *known]) if len(known) == len(flat) else None


def allows_null(schema: Json, root: JsonObject, seen: frozenset[str] = frozenset()) -> bool:
    """Whether null fits a schema that says something about kinds; one that allows everything is not asked."""
    node = as_object(schema)
    reference = node.get("$ref")
    if isinstance(reference, str):
        return reference not in seen and allows_null(resolve(root, reference), root, seen | {reference})
    for keyword in ("anyOf", "oneOf"):
        if keyword in node and not any(allows_null(branch, root, seen) for branch in as_list(node[keyword])):
            return False
    if "allOf" in node and not all(allows_null(branch, root, seen) for branch in as_list(node["allOf"])):
        return False
    values, kinds = choices(node), kinds_of(node) if "type" in node else []
    if values is not None and None not in values:
        return False
    return "null" in kinds if kinds else values is not None or any(key in node for key in ("allOf", "anyOf", "oneOf"))


_FORBIDDEN = ("allOf", "anyOf", "oneOf", "not", "enum", "const")
_TOLD_CHARS = 2_000


def object_root(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Give a schema whose root is a plain object and accepts at least what the given one does, and what was lost.

    A schema that is fine already is returned as it is.
    """
    if schema.get("type") == "object" and "$ref" not in schema and not any(key in schema for key in _FORBIDDEN):
        return schema, ()
    notes: list[str] = []
    flat = _flat(schema, schema, notes, depth=0)
    kinds = kinds_of(flat)
    if kinds and "object" not in kinds:
        notes.append("arguments: the schema describes no object; it is sent as one without properties")
        flat = {key: flat[key] for key in ("description", "$defs", "definitions") if key in flat}
    head = {key: value for key, value in flat.items() if key not in ("type", "$defs", "definitions")}
    tail = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {"type": "object", "properties": {}, **head, **tail}, tuple(notes)


def _flat(schema: Json, root: JsonObject, notes: list[str], depth: int) -> Schema:
    node = dereferenced(schema, root)
    if node is None or depth > 4:  # alternatives nested deeper than this are a cycle
        notes.append("arguments: a reference at the root leads nowhere; what it says is left to the tool")
        return {}
    base = {key: value for key, value in node.items() if key not in _FORBIDDEN}
    facts: list[str] = []
    if "allOf" in node:
        base = _all_of(base, [_flat(part, root, notes, depth + 1) for part in as_list(node["allOf"])], notes)
    for keyword in ("anyOf", "oneOf"):
        if keyword in node:
            base = _any_of(base, [_flat(branch, root, notes, depth + 1) for branch in as_list(node[keyword])])
    for keyword in _FORBIDDEN[1:]:
        if keyword in node:
            notes.append(f"arguments: '{keyword}' cannot stand at the root; it is told and checked on the call")
            facts.append(f"must fit {keyword}: {compact(node[keyword])[:_TOLD_CHARS]}")
    return {**base, "description": told(base.get("description"), facts)} if facts else base


def _all_of(base: Schema, parts: Sequence[Schema], notes: list[str]) -> Schema:
    whole = merged_all([base, *parts])
    if whole is not None:
        return whole
    notes.append("arguments: 'allOf' does not come down to one schema; its properties are sent, the rest is checked")
    properties = _together([as_object(part.get("properties")) for part in (base, *parts)], "allOf")
    required = [name for part in (base, *parts) for name in names_in(part.get("required"))]
    open_base = without(base, "additionalProperties")
    return {**open_base, "properties": properties, "required": list(dict.fromkeys(required))}


def _any_of(base: Schema, branches: Sequence[Schema]) -> Schema:
    mine = as_object(base.get("properties"))
    offered = _together([as_object(branch.get("properties")) for branch in branches], "anyOf")
    joined = {**base, "properties": {**mine, **{name: offered[name] for name in offered if name not in mine}}}
    needed = [names_in(branch.get("required")) for branch in branches]
    always = [name for name in needed[0] if all(name in names for names in needed)] if needed else []
    required = list(dict.fromkeys([*names_in(base.get("required")), *always]))
    if required:
        joined["required"] = required
    if branches and all(branch.get("additionalProperties") is False for branch in branches):
        joined.setdefault("additionalProperties", False)
    return joined


def _together(tables: Iterable[JsonObject], keyword: str) -> Schema:
    """Offer every property once; what several tables say of one is kept under the keyword."""
    said: dict[str, list[Json]] = {}
    for table in tables:
        for name, value in table.items():
            if value not in said.setdefault(name, []):
                said[name].append(value)
    return {name: values[0] if len(values) == 1 else {keyword: values} for name, values in said.items()}
