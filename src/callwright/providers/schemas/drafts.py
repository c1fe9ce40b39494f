"""Schemas of older drafts in the words of draft 2020-12, which the model APIs check; arrays as OpenAI wants them.

One tool whose schema is not accepted makes an API refuse every request that lists it.
"""

import re
from collections.abc import Callable, Sequence

from callwright.core.json import Json, JsonObject
from callwright.providers.schemas.inspect import COMBINERS, as_list, as_object, is_object, same

_TABLES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset((*COMBINERS, "prefixItems"))
_SINGLE = frozenset(
    "items additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames not if "
    "then else".split()
)
_TUPLE_POINTER = re.compile(r"/items/([0-9]+)(?=/|\Z)")


def to_current_draft(schema: JsonObject) -> JsonObject:
    """Return a schema with tuples and exclusive bounds as draft 2020-12 writes them; the same object if it has none.

    A list of schemas under `items` becomes `prefixItems`, and `additionalItems` becomes `items`.
    """
    current = _rewrite(schema, _modernise)
    return schema if current is schema else {key: value for key, value in current.items() if key != "$schema"}


def with_items(schema: JsonObject) -> JsonObject:
    """Return a schema in which every array has `items`: OpenAI rejects one without, also beside `prefixItems`."""
    return _rewrite(schema, _add_items)


def _rewrite(schema: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    try:
        return as_object(_rewrite_node(schema, change))
    except RecursionError:  # nested deeper than any API accepts
        return schema


def _rewrite_node(node: Json, change: Callable[[JsonObject], JsonObject]) -> Json:
    """Change a schema and the schemas in it, found by position; what stays as it is stays the same object."""
    if not is_object(node):
        return node
    given, changed = as_object(node), dict[str, Json]()
    for key, value in given.items():
        if key in _TABLES and is_object(value):
            table = as_object(value)
            written = {name: _rewrite_node(part, change) for name, part in table.items()}
            if any(written[name] is not part for name, part in table.items()):
                changed[key] = written
        elif key in _LISTS or (key in _SINGLE and _is_list(value)):
            parts = as_list(value)
            rewritten = [_rewrite_node(part, change) for part in parts]
            if any(one is not other for one, other in zip(rewritten, parts, strict=True)):
                changed[key] = rewritten
        elif key in _SINGLE and (inner := _rewrite_node(value, change)) is not value:
            changed[key] = inner
    return change({**given, **changed} if changed else given)


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _modernise(node: JsonObject) -> JsonObject:
    reference = node.get("$ref")
    if isinstance(reference, str) and (pointer := _TUPLE_POINTER.sub(r"/prefixItems/\1", reference)) != reference:
        node = {**node, "$ref": pointer}
    if _is_list(node.get("items")):
        places, rest = as_list(node["items"]), node.get("additionalItems", True)
        node = {key: value for key, value in node.items() if key not in ("items", "additionalItems")}
        node |= {"prefixItems": places} if places else {}
        node |= {"items": rest} if rest is not True else {}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool):
            limit = node.get(bound) if node[exclusive] is True else None
            node = {key: value for key, value in node.items() if key != exclusive and (limit is None or key != bound)}
            node |= {} if limit is None else {exclusive: limit}
    return node


def _add_items(node: JsonObject) -> JsonObject:
    kind = node.get("type")
    if kind != "array" and not (_is_list(kind) and "array" in as_list(kind)):
        return node
    places, limit = as_list(node.get("prefixItems")), node.get("maxItems")
    closed = node.get("items") is False or (isinstance(limit, int) and limit <= len(places))
    if not places or not closed:
        return node if "items" in node else {**node, "items": {}}
    distinct = [place for at, place in enumerate(places) if not any(same(place, other) for other in places[:at])]
    most = min(len(places), limit) if isinstance(limit, int) else len(places)
    # no further element is allowed, so these items restrict nothing; a model that ignores prefixItems reads them
    return {**node, "items": distinct[0] if len(distinct) == 1 else {"anyOf": distinct}, "maxItems": most}
