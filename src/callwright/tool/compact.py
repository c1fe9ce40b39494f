"""Makes a generated JSON Schema say what the model needs and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "enum", "default", "examples", "required"})
_NOISE = frozenset({"title", "$schema", "discriminator"})  # the last points at definitions that are inlined


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop titles and inline definitions that do not refer to themselves; properties keep whatever name they have."""
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))
    recursive = {name for name in definitions if _reaches(name, definitions)}
    body = _Inliner(definitions, recursive).shrink({key: value for key, value in schema.items() if key != "$defs"})
    kept = {name: definitions[name] for name in sorted(recursive) if _mentions(body, name, definitions)}
    if kept:
        inliner = _Inliner(definitions, recursive)
        body["$defs"] = {name: inliner.shrink(part) for name, part in kept.items()}
    return body


def compact_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The compact form of an arguments object: its own description and closedness are not the model's business."""
    body = compact_schema(schema)
    if body.get("additionalProperties") is False:
        del body["additionalProperties"]
    body.pop("description", None)
    body.setdefault("properties", {})
    order = ("type", "properties", "required")
    return {
        **{key: body[key] for key in order if key in body},
        **{key: value for key, value in body.items() if key not in order},
    }


def in_stable_order(value: object) -> object:
    """A set as a list that is the same in every process; anything else as it is."""
    return sorted(cast("set[Any]", value), key=repr) if isinstance(value, (set, frozenset)) else value


class _Inliner:
    def __init__(self, definitions: Mapping[str, Any], recursive: set[str]) -> None:
        self._definitions = definitions
        self._recursive = recursive

    def shrink(self, schema: Any) -> Any:
        if isinstance(schema, Mapping):
            return self._object(cast("Mapping[str, Any]", schema))
        if isinstance(schema, (list, tuple)):
            return [self.shrink(item) for item in cast("Sequence[Any]", schema)]
        return schema

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        name = _referenced(schema)
        if name is not None and name in self._definitions and name not in self._recursive:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self._object({**self._definitions[name], **beside})
        shrunk: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _NOISE or (key == "default" and value is None):
                continue
            if key in _MAPS_OF_SCHEMAS:
                shrunk[key] = {name: self.shrink(part) for name, part in value.items()}
            else:
                shrunk[key] = value if key in _DATA else self.shrink(value)
        if shrunk.get("uniqueItems") and isinstance(shrunk.get("default"), list):
            shrunk["default"] = sorted(shrunk["default"], key=repr)  # it was a set, and sets have no order
        return shrunk


def _referenced(schema: Mapping[str, Any]) -> str | None:
    target = schema.get("$ref")
    return target.removeprefix("#/$defs/") if isinstance(target, str) and target.startswith("#/$defs/") else None


def _references(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        schema = cast("Mapping[str, Any]", value)
        own = _referenced(schema)
        found = {own} if own is not None else set[str]()
        return found.union(*(_references(part) for part in schema.values()))
    if isinstance(value, (list, tuple)):
        return set[str]().union(*(_references(part) for part in cast("Sequence[Any]", value)))
    return set()


def _closure(start: set[str], definitions: Mapping[str, Any]) -> set[str]:
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name not in seen and name in definitions:
            seen.add(name)
            waiting.extend(_references(definitions[name]))
    return seen


def _reaches(name: str, definitions: Mapping[str, Any]) -> bool:
    return name in _closure(_references(definitions[name]), definitions)


def _mentions(body: Any, name: str, definitions: Mapping[str, Any]) -> bool:
    return name in _closure(_references(body), definitions)
