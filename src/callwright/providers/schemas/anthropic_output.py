"""The schema of a final answer as Anthropic's structured output accepts it: the form that its SDK's transform gives."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from callwright.core.json import Json, JsonObject, thaw


def anthropic_output_schema(schema: JsonObject) -> JsonObject | None:
    """Return the schema that Anthropic enforces, or None where it would forbid valid answers or be refused.

    Those are objects with arbitrary keys, values of any type and recursive definitions.
    """
    from anthropic import transform_schema

    plain = cast("dict[str, Any]", _split_types(thaw(schema)))
    if _has_open_part(plain) or _is_recursive(plain):
        return None
    try:
        return cast("JsonObject", transform_schema(plain))
    except (ValueError, AssertionError, AttributeError, TypeError):  # keywords that the SDK does not know in that place
        return None


def _split_types(value: Any) -> Json:
    """Write a list of types as alternatives, which is the only way that Anthropic accepts them."""
    if isinstance(value, list):
        return [_split_types(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    node = {key: _split_types(each) for key, each in cast("dict[str, Any]", value).items()}
    types = node.get("type")
    if not isinstance(types, list) or ("properties" in value and "type" in cast("dict[str, Any]", value["properties"])):
        return node
    rest = {key: each for key, each in node.items() if key not in ("type", "description", "title", "default", "enum")}
    kept = {key: node[key] for key in ("description", "title", "enum") if key in node}
    return {**kept, "anyOf": [{"type": kind, **(rest if kind in ("object", "array") else {})} for kind in types]}


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every schema inside a schema, without the mappings from names to schemas."""
    if not isinstance(schema, Mapping):
        return
    node = cast("Mapping[str, Any]", schema)
    yield node
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        for each in cast("Mapping[str, Any]", node.get(key) or {}).values():
            yield from _nodes(each)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for each in node.get(key) or ():
            yield from _nodes(each)
    for key in ("items", "additionalProperties", "not"):
        yield from _nodes(node.get(key))


def _has_open_part(schema: Mapping[str, Any]) -> bool:
    return any(
        (node.get("type") == "object" and not node.get("properties") and node.get("additionalProperties") is not False)
        or (node.get("type") == "object" and isinstance(node.get("additionalProperties"), Mapping))
        or "patternProperties" in node
        or (node.get("type") == "array" and "items" not in node)
        for node in _nodes(schema)
    )


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    definitions = cast("Mapping[str, Any]", schema.get("$defs") or {})
    uses = {
        name: {str(node["$ref"]).removeprefix("#/$defs/") for node in _nodes(body) if "$ref" in node}
        for name, body in definitions.items()
    }
    if any(node.get("$ref") == "#" for node in _nodes(schema)):
        return True
    return any(_reaches(uses, name, name, set()) for name in uses)


def _reaches(uses: Mapping[str, set[str]], start: str, goal: str, seen: set[str]) -> bool:
    for name in uses.get(start, ()):
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            if _reaches(uses, name, goal, seen):
                return True
    return False
