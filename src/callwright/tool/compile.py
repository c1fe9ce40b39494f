"""Compiles common annotations to a validator and a JSON Schema without importing pydantic.

Only what is proven equal to pydantic's own answer is compiled here (a test compares the two); for everything else
`compile_annotation` returns None and `schema.py` handles the annotation.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from inspect import cleandoc
from typing import Any, Literal, TypeGuard, Union, cast, get_args, get_origin

from callwright.core._fast import frozen
from callwright.core.json import is_finite
from callwright.tool.validators import CoreSchema, EnumSchema

_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "enum", "default", "examples", "required"})
_NOISE = frozenset({"title", "$schema", "discriminator"})  # the last points at definitions that are inlined


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop titles and inline non-recursive definitions, because every model request repeats the schema."""
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))
    recursive = {name for name, part in definitions.items() if name in _list_mentioned(part, definitions)}
    inliner = _Inliner(definitions, recursive)
    body = inliner.shrink({key: value for key, value in schema.items() if key != "$defs"})
    kept = recursive & _list_mentioned(body, definitions)
    if kept:
        body["$defs"] = {name: inliner.shrink(definitions[name]) for name in sorted(kept)}
    return body


def compact_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compact form of an arguments object, without its own description and `additionalProperties`."""
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
    """Return a set as a list with the same order in every process; anything else unchanged."""
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
        name = _read_reference(schema)
        if name is not None and name in self._definitions and name not in self._recursive:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self._object({**self._definitions[name], **beside})
        shrunk: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _NOISE or (key == "default" and (value is None or not is_finite(value))):
                continue
            if key in _MAPS_OF_SCHEMAS:
                shrunk[key] = {name: self.shrink(part) for name, part in value.items()}
            else:
                shrunk[key] = value if key in _DATA else self.shrink(value)
        if shrunk.get("uniqueItems") and isinstance(shrunk.get("default"), list):
            shrunk["default"] = sorted(shrunk["default"], key=repr)  # it was a set, and sets have no order
        return shrunk


def _read_reference(schema: Mapping[str, Any]) -> str | None:
    target = schema.get("$ref")
    return target.removeprefix("#/$defs/") if isinstance(target, str) and target.startswith("#/$defs/") else None


def _references(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        schema = cast("Mapping[str, Any]", value)
        own = _read_reference(schema)
        found = {own} if own is not None else set[str]()
        return found.union(*(_references(part) for part in schema.values()))
    if isinstance(value, (list, tuple)):
        return set[str]().union(*(_references(part) for part in cast("Sequence[Any]", value)))
    return set()


def _list_mentioned(part: Any, definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions that a part of a schema refers to, directly or through others."""
    seen: set[str] = set()
    waiting = list(_references(part))
    while waiting:
        name = waiting.pop()
        if name not in seen and name in definitions:
            seen.add(name)
            waiting.extend(_references(definitions[name]))
    return seen


INTEGER_RANGE = (-(2**63), 2**64 - 1)
"""The integers that fit 64 bits, signed or not; a longer one is a mistake of the model."""
FLOAT_RANGE = 2**53
"""Below it a float is one integer; beyond, other integers are read as the same float."""


@frozen
class Compiled:
    """The validator of one annotation."""

    core: CoreSchema
    plain: bool = True
    """Whether valid values are plain JSON."""
    tight: bool = True
    """Whether NaN and integers beyond 64 bits cannot pass."""


_NONE = Compiled({"type": "none"})
_ANY = Compiled({"type": "any"}, tight=False)
_SCALARS: dict[object, Compiled] = {
    str: Compiled({"type": "str"}),
    int: Compiled({"type": "int", "ge": INTEGER_RANGE[0], "le": INTEGER_RANGE[1]}),
    float: Compiled({"type": "float", "allow_inf_nan": False}),
    bool: Compiled({"type": "bool"}),
    None: _NONE,
    type(None): _NONE,
    Any: _ANY,
    object: _ANY,
    list: Compiled({"type": "list"}, tight=False),
    dict: Compiled({"type": "dict", "keys_schema": {"type": "str"}}, tight=False),
}
_SCHEMAS: dict[object, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array", "items": {}},
    dict: {"type": "object", "additionalProperties": True},
}


_STANDARD_MISSING = cast(Any, Enum)._missing_.__func__


def compile_annotation(annotation: object) -> Compiled | None:
    """Compile an annotation, or return None if it needs pydantic."""
    try:
        known = _SCALARS.get(annotation)
    except TypeError:  # unhashable, as Literal of a list would be
        return None
    if known is not None:
        return known
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return Compiled({"type": "literal", "expected": list(arguments)}) if _same_scalar(arguments) else None
    if _is_union(origin):
        return _compile_union(arguments)
    if _is_array(origin, arguments):
        return _compile_container(arguments[0], _list_of)
    if _is_map(origin, arguments):
        return _compile_container(arguments[1], _dict_of)
    if _is_enum(annotation):
        return _compile_enum(annotation)
    if _is_model(annotation):
        return Compiled(cast(CoreSchema, cast(Any, annotation).__pydantic_core_schema__), plain=False, tight=False)
    return None


def schema_of(annotation: object) -> dict[str, Any]:
    """Return the JSON Schema of an annotation that `compile_annotation` supports."""
    if annotation in _SCHEMAS:
        return dict(_SCHEMAS[annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _choice_schema(arguments)
    if _is_union(origin):
        return _union_schema(arguments)
    if _is_array(origin, arguments):
        return {"type": "array", "items": schema_of(arguments[0])}
    if _is_map(origin, arguments):
        return {"type": "object", "additionalProperties": schema_of(arguments[1]) or True}
    if _is_enum(annotation):
        words = cleandoc(annotation.__doc__ or "")
        about = {"description": words} if words and words != "An enumeration." else {}
        values = [member.value for member in annotation]
        return {**about, "enum": values, "type": _scalar_name(values)}
    return compact_schema(cast(Any, annotation).model_json_schema())


def _union_schema(arguments: Sequence[object]) -> dict[str, Any]:
    members = [schema_of(argument) for argument in arguments if not _is_none(argument)]
    if len(members) < len(arguments):
        members.append({"type": "null"})
    different = [member for at, member in enumerate(members) if member not in members[:at]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _list_of(item: CoreSchema) -> CoreSchema:
    return {"type": "list", "items_schema": item}


def _dict_of(value: CoreSchema) -> CoreSchema:
    return {"type": "dict", "keys_schema": {"type": "str"}, "values_schema": value}


def _compile_container(item: object, wrap: Callable[[CoreSchema], CoreSchema]) -> Compiled | None:
    inner = compile_annotation(item)
    return None if inner is None else Compiled(wrap(inner.core), inner.plain, inner.tight)


def _compile_union(arguments: Sequence[object]) -> Compiled | None:
    members = [compile_annotation(argument) for argument in arguments if not _is_none(argument)]
    known = [member for member in members if member is not None]
    if len(known) != len(members):
        return None
    core: CoreSchema = (
        known[0].core if len(known) == 1 else {"type": "union", "choices": [member.core for member in known]}
    )
    if len(members) < len(arguments):
        core = {"type": "nullable", "schema": core}
    return Compiled(core, all(member.plain for member in known), all(member.tight for member in known))


def _compile_enum(kind: type[Enum]) -> Compiled | None:
    members = list(kind)
    missing = cast(Any, kind)._missing_.__func__
    if not _same_scalar([member.value for member in members]) or missing is not _STANDARD_MISSING:
        return None
    core: EnumSchema = {"type": "enum", "cls": kind, "members": cast("list[Any]", members)}
    if issubclass(kind, (str, int)):
        core["sub_type"] = "str" if issubclass(kind, str) else "int"
    return Compiled(core, plain=False)


def _choice_schema(values: Sequence[Any]) -> dict[str, Any]:
    kind = _scalar_name(values)
    return {"const": values[0], "type": kind} if len(values) == 1 else {"enum": list(values), "type": kind}


def _scalar_name(values: Sequence[Any]) -> str:
    return "string" if isinstance(values[0], str) else "integer"


def _same_scalar(values: Sequence[object]) -> bool:
    """Whether all are texts, or all integers. Mixed ones are rare, and pydantic's answer for them has many cases."""
    return {type(value) for value in values} in ({str}, {int})


def _is_none(annotation: object) -> bool:
    return annotation is None or annotation is type(None)


def _is_union(origin: object) -> bool:
    return origin is Union or origin is types.UnionType


def _is_array(origin: object, arguments: Sequence[object]) -> bool:
    # an Iterable too: pydantic would pass an iterator, which is empty once the arguments were shown
    return (origin is list or origin is Sequence or origin is Iterable) and len(arguments) == 1


def _is_map(origin: object, arguments: Sequence[object]) -> bool:
    return (origin is dict or origin is Mapping) and len(arguments) == 2 and arguments[0] is str


def _is_enum(annotation: object) -> TypeGuard[type[Enum]]:
    own = hasattr(annotation, "__get_pydantic_core_schema__") or hasattr(annotation, "__get_pydantic_json_schema__")
    return isinstance(annotation, type) and issubclass(annotation, Enum) and not own


def _is_model(annotation: object) -> bool:
    """A pydantic model brings its own validator; one that refers to itself needs pydantic to place it."""
    core = vars(annotation).get("__pydantic_core_schema__") if isinstance(annotation, type) else None
    return isinstance(core, dict) and cast("dict[str, Any]", core).get("type") == "model"
