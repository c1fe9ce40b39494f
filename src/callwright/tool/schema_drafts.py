"""Schemas of older drafts in the words of draft 2020-12, in which values are validated and tools are sent to models.

One tool whose schema is not accepted makes a model API refuse every request that lists it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeGuard, cast

from callwright.core.json import Json, JsonObject, follow_pointer

_TABLES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_PARTS = frozenset(
    "allOf anyOf oneOf prefixItems items additionalItems unevaluatedItems contains additionalProperties "
    "unevaluatedProperties propertyNames not if then else".split()
)
_TUPLE_POINTER = re.compile(r"/items(?=/[0-9]+(?:/|\Z))")


def to_current_draft(schema: JsonObject) -> JsonObject:
    """Return a schema with tuples and exclusive bounds as draft 2020-12 writes them; the same object if it has none.

    A list of schemas under `items` becomes `prefixItems`, and `additionalItems` becomes `items`.
    """
    current = rewrite_schema(schema, partial(_modernise, root=schema))
    return schema if current is schema else {key: value for key, value in current.items() if key != "$schema"}


def rewrite_schema(schema: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Change a schema and the schemas in it, found by position; what stays as it is stays the same object."""
    try:
        return cast("JsonObject", _rewrite(schema, change))
    except RecursionError:  # nested deeper than any API accepts
        return schema


def _is_list(value: object) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, (list, tuple))


def _rewrite(node: Json, change: Callable[[JsonObject], JsonObject]) -> Json:
    if not isinstance(node, Mapping):
        return node
    changed: dict[str, Json] = {}
    for key, value in node.items():
        if key in _TABLES and isinstance(value, Mapping):
            table = {name: _rewrite(part, change) for name, part in value.items()}
            if any(table[name] is not part for name, part in value.items()):
                changed[key] = table
        elif key in _PARTS and _is_list(value):
            parts = [_rewrite(part, change) for part in value]
            if any(one is not other for one, other in zip(parts, value, strict=True)):
                changed[key] = parts
        elif key in _PARTS and (inner := _rewrite(value, change)) is not value:
            changed[key] = inner
    return change({**node, **changed} if changed else node)


def _modernise(node: JsonObject, root: JsonObject) -> JsonObject:
    reference = node.get("$ref")
    if isinstance(reference, str) and (pointer := _modernise_pointer(reference, root)) != reference:
        node = {**node, "$ref": pointer}
    if _is_list(places := node.get("items")):
        rest = node.get("additionalItems", True)
        node = {key: value for key, value in node.items() if key not in ("items", "additionalItems")}
        node |= {"prefixItems": places} if places else {}
        node |= {"items": rest} if rest is not True else {}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool):
            limit = node.get(bound) if node[exclusive] is True else None
            node = {key: value for key, value in node.items() if key != exclusive and (limit is None or key != bound)}
            node |= {} if limit is None else {exclusive: limit}
    return node


def _modernise_pointer(reference: str, root: JsonObject) -> str:
    def rename(found: re.Match[str]) -> str:
        # a property or a definition may have the name items
        places = follow_pointer(root, reference[1 : found.end()])
        return "/prefixItems" if _is_list(places) else found[0]

    return _TUPLE_POINTER.sub(rename, reference) if reference.startswith("#") else reference
