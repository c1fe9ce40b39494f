"""The pieces a strict schema is put together from."""

from collections.abc import Sequence
from typing import NamedTuple

from callwright.providers.schema_parts import Schema
from callwright.providers.strict_arguments import Codec

NULL: Schema = {"type": "null"}


class Part(NamedTuple):
    """One place of the schema, compiled."""

    schema: Schema
    codec: Codec
    wire: frozenset[str]
    """The kinds of JSON value the model may write here."""
    rewritten: frozenset[str] = frozenset()
    """Those of them that stand for another kind on the tool's side."""


def closed(properties: Schema) -> Schema:
    """Write an object in the one form strict mode knows: nothing optional, nothing more."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nullable(schema: Schema) -> Schema:
    """Let null fit too."""
    kind = schema.get("type")
    if isinstance(kind, str):
        wider = {**schema, "type": [kind, "null"]}
        return {**wider, "enum": [*schema["enum"], None]} if "enum" in schema else wider
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], NULL]}
    return {"anyOf": [schema, NULL]}


def ambiguous(parts: Sequence[Part]) -> bool:
    """Whether a value could be read as one branch's rewriting and as another branch's own."""
    return any(one.rewritten & (other.wire - other.rewritten) for one in parts for other in parts if one is not other)
