"""The schema of one action: a call of one of several tools, or the final answer."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from callwright.core.json import Json, JsonObject, freeze
from callwright.core.spec import ToolSpec


def action_schema(tools: Sequence[ToolSpec], answer: JsonObject | None = None) -> JsonObject:
    """Give the schema of a call of one of the tools, or of an answer, which is text unless it has a shape."""
    definitions: dict[str, Json] = {}
    choices: list[Json] = []
    for number, spec in enumerate(tools):
        arguments = _placed(spec.input_schema, f"tool{number}", definitions)
        choices.append(_closed({"tool": {"const": spec.name}, "arguments": arguments}))
    shape: Json = {"type": "string"} if answer is None else _placed(answer, "answer", definitions)
    schema: dict[str, Json] = {"anyOf": [*choices, _closed({"answer": shape})]}
    if definitions:
        schema["$defs"] = definitions
    return freeze(schema)


def _closed(properties: dict[str, Json]) -> Json:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _placed(schema: JsonObject, name: str, definitions: dict[str, Json]) -> Json:
    """Make a schema part of another. One that refers to itself moves to where its references can follow it."""
    moved = _moved(schema, f"#/$defs/{name}")
    if moved == schema:
        return schema
    definitions[name] = moved
    return {"$ref": f"#/$defs/{name}"}


def _moved(value: Json, root: str) -> Json:
    if isinstance(value, Mapping):
        return {key: _followed(part, root) if key == "$ref" else _moved(part, root) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_moved(part, root) for part in cast("Sequence[Any]", value)]
    return value


def _followed(reference: Json, root: str) -> Json:
    if isinstance(reference, str) and reference.startswith("#"):
        return root + reference[1:]
    return _moved(reference, root)  # a property of that name
