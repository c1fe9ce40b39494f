"""The root of a tool's schema as model APIs accept it: one object, without alternatives at the top."""

from collections.abc import Iterable, Sequence

from callwright.core.json import Json, JsonObject, compact
from callwright.providers.schema_merge import dereferenced, merged_all
from callwright.providers.schema_parts import Schema, as_list, as_object, kinds_of, names_in, told, without

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
