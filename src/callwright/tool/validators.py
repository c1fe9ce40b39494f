"""What a call needs of pydantic-core, and how many of the keys in a JSON text its validated values show.

The types of core schemas are for type checkers only, and cost nothing here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic_core import SchemaValidator, ValidationError, from_json, to_json, to_jsonable_python

__all__ = [
    "CoreSchema",
    "EnumSchema",
    "KeyCounter",
    "SchemaValidator",
    "TypedDictField",
    "ValidationError",
    "count_json_keys",
    "from_json",
    "make_key_counter",
    "to_json",
    "to_jsonable_python",
]

if TYPE_CHECKING:
    from pydantic_core import CoreSchema
    from pydantic_core.core_schema import EnumSchema, TypedDictField
else:
    CoreSchema = EnumSchema = TypedDictField = dict[str, Any]


KeyCounter: TypeAlias = Callable[[Any], int]
_KEYLESS_SCHEMAS = frozenset("bool date datetime decimal enum float int literal none str time timedelta uuid".split())
_KEYLESS_VALUES = frozenset({str, int, float, bool, type(None)})
_PARTS = {"list": "items_schema", "dict": "values_schema", "nullable": "schema"}


class _Uncountable(Exception):
    """Values of a schema may hold more keys than were written."""


def make_key_counter(core: Any) -> KeyCounter | None:
    """Return what counts the keys in validated values that were written in the JSON text: never more than those.

    Defaults do not count: a model knows which of its fields were set. None if that cannot be said of the schema: a
    function may add keys, and one key may set two fields if it is an alias of one of them.
    """
    try:
        return _count_in(core, {})
    except _Uncountable:
        return None


def count_json_keys(value: Any) -> int:
    """Return how many keys the objects of a JSON value have."""
    if type(value) is not dict and type(value) is not list:
        return 0
    held = cast("dict[str, Any] | list[Any]", value)
    parts, count = (held.values(), len(held)) if isinstance(held, dict) else (held, 0)
    for part in parts:
        if type(part) not in _KEYLESS_VALUES:  # the reader limits how deep they are
            count += count_json_keys(part)
    return count


def _count_nothing(value: object) -> int:
    return 0


def _count_in(core: Any, shared: dict[str, KeyCounter]) -> KeyCounter:
    kind = core["type"]
    if kind in _KEYLESS_SCHEMAS:
        return _count_nothing
    if kind == "any":
        return count_json_keys
    if kind == "typed-dict":
        return _count_in_object(core, shared)
    if kind == "model":
        return _count_in_model(core, shared)
    if kind == "definition-ref":
        return _count_late(core["schema_ref"], shared)
    if kind == "definitions":
        shared |= {part["ref"]: _count_in(part, shared) for part in core["definitions"]}
        return _count_in(core["schema"], shared)
    if kind in _PARTS:
        return _count_in_parts(kind, _count_in(core.get(_PARTS[kind], {"type": "any"}), shared))
    if kind == "union" and all(isinstance(part, dict) and _is_keyless(part, shared) for part in core["choices"]):
        return _count_nothing
    raise _Uncountable


def _is_keyless(core: Any, shared: dict[str, KeyCounter]) -> bool:
    return _count_in(core, shared) is _count_nothing


def _count_late(reference: str, shared: dict[str, KeyCounter]) -> KeyCounter:
    def count(value: Any) -> int:  # looked up when it is called: a schema may refer to itself
        return shared[reference](value)

    return count


def _count_in_parts(kind: str, count_below: KeyCounter) -> KeyCounter:
    if kind == "dict" and count_below is _count_nothing:
        return len
    if kind == "dict":
        return lambda value: len(value) + sum(map(count_below, value.values()))
    if count_below is _count_nothing:
        return _count_nothing
    if kind == "list":
        return lambda value: sum(map(count_below, value))
    return lambda value: 0 if value is None else count_below(value)


def _count_in_object(core: Any, shared: dict[str, KeyCounter]) -> KeyCounter:
    holders = _find_holders(core, shared)

    def count(value: Any) -> int:
        total = len(value)
        for name, count_below in holders:
            if name in value:
                total += count_below(value[name])
        return total

    return count if holders else len


def _count_in_model(core: Any, shared: dict[str, KeyCounter]) -> KeyCounter:
    if core.get("custom_init") or core.get("post_init") or core["schema"]["type"] != "model-fields":
        raise _Uncountable
    holders = _find_holders(core["schema"], shared)

    def count(value: Any) -> int:
        given = value.__pydantic_fields_set__
        total = len(given)
        for name, count_below in holders:
            if name in given:
                total += count_below(value.__dict__[name])
        return total

    return count


def _find_holders(core: Any, shared: dict[str, KeyCounter]) -> list[tuple[str, KeyCounter]]:
    """Return the fields whose values may hold keys."""
    if "extras_schema" in core or "extras_keys_schema" in core:
        raise _Uncountable
    found: list[tuple[str, KeyCounter]] = []
    for name, field in core["fields"].items():
        if "validation_alias" in field:
            raise _Uncountable
        inner = field["schema"]
        if field["type"] == "model-field" and inner["type"] == "default" and "on_error" not in inner:
            inner = inner["schema"]  # its default is not among the fields that were set
        count_below = _count_in(inner, shared)
        if count_below is not _count_nothing:
            found.append((name, count_below))
    return found
