"""What a call needs of pydantic-core, and what validated values show of the JSON text they were read from.

The types of core schemas are for type checkers only, and cost nothing here.
"""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, TypeAlias, cast

__all__ = [
    "CoreSchema",
    "EnumSchema",
    "KeyCounter",
    "PydanticSerializationError",
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
    from pydantic_core import (
        CoreSchema,
        PydanticSerializationError,
        SchemaValidator,
        ValidationError,
        from_json,
        to_json,
        to_jsonable_python,
    )
    from pydantic_core.core_schema import EnumSchema, TypedDictField
else:

    def _load_core() -> Any:
        """Load the compiled module of pydantic-core without the package around it, unless that is loaded anyway.

        The package adds types for type checkers, which took a quarter of the time until a first tool had run. Code that
        imports it later gets the same classes.
        """
        if "pydantic_core" not in sys.modules and (package := PathFinder.find_spec("pydantic_core")):
            spec = PathFinder.find_spec("pydantic_core._pydantic_core", package.submodule_search_locations)
            if spec is not None:
                module = spec.loader.create_module(spec)
                spec.loader.exec_module(module)
                if sys.modules.get(spec.name) is module:  # older ones enter themselves, unknown to the package
                    del sys.modules[spec.name]
                return module
        import pydantic_core

        return pydantic_core

    _core = _load_core()
    PydanticSerializationError = _core.PydanticSerializationError
    SchemaValidator = _core.SchemaValidator
    ValidationError = _core.ValidationError
    from_json, to_json, to_jsonable_python = _core.from_json, _core.to_json, _core.to_jsonable_python
    CoreSchema = EnumSchema = TypedDictField = dict[str, Any]


KeyCounter: TypeAlias = Callable[[Any], int]
_KEYLESS_SCHEMAS = frozenset("bool date datetime decimal enum float int literal none str time timedelta uuid".split())
_KEYLESS_VALUES = frozenset({str, int, float, bool, type(None)})
_LARGEST = 2**63 - 1
_UNSEEN = -(2**63)
"""What an unusual number counts: whatever else the values show, it is less than nothing."""
_PARTS = {"list": "items_schema", "dict": "values_schema", "nullable": "schema"}


class _Uncountable(Exception):
    """Values of a schema may hold more keys than were written, or fewer numbers."""


class _Build:
    """The counters of definitions, while the counter of a schema is made."""

    __slots__ = ("shared", "with_numbers")

    def __init__(self, *, with_numbers: bool) -> None:
        self.shared: dict[str, KeyCounter] = {}
        self.with_numbers = with_numbers


def make_key_counter(core: Any, *, with_numbers: bool = False) -> KeyCounter | None:
    """Return what counts the keys in validated values that were written in the JSON text: never more than those.

    Defaults do not count: a model knows which of its fields were set. None if that cannot be said of the schema: a
    function may add keys, and one key may set two fields if it is an alias of one of them.

    Args:
        core: The schema that the values are validated by.
        with_numbers: Look at the numbers too. The count is negative if one is NaN, infinite or beyond 64 bits, and
            None is returned if a number in the text may not be among the values.
    """
    try:
        return _count_in(core, _Build(with_numbers=with_numbers))
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


def _count_in(core: Any, build: _Build) -> KeyCounter:
    kind = core["type"]
    if kind in _KEYLESS_SCHEMAS:
        return _look_at_number if build.with_numbers and _may_be_unusual(core) else _count_nothing
    if kind == "any" and not build.with_numbers:
        return count_json_keys
    if kind == "typed-dict":
        return _count_in_object(core, build)
    if kind == "model":
        return _count_in_model(core, build)
    if kind == "definition-ref":
        return _count_late(core["schema_ref"], build)
    if kind == "definitions":
        build.shared |= {part["ref"]: _count_in(part, build) for part in core["definitions"]}
        return _count_in(core["schema"], build)
    if kind in _PARTS:
        return _count_in_parts(kind, _count_in(core.get(_PARTS[kind], {"type": "any"}), build))
    if kind == "union" and all(isinstance(part, dict) for part in core["choices"]):
        counters = {_count_in(part, build) for part in core["choices"]}
        if counters <= {_count_nothing, _look_at_number}:
            return _count_nothing if counters == {_count_nothing} else _look_at_number
    raise _Uncountable


def _may_be_unusual(core: Any) -> bool:
    """Whether a value of a keyless schema may be an unusual number; raise if one may be read and not be seen."""
    kind = core["type"]
    if "strict" in core or core.get("coerce_numbers_to_str"):
        raise _Uncountable
    if kind == "int":
        least, most = core.get("ge"), core.get("le")
        return not (type(least) is type(most) is int and least >= -_LARGEST - 1 and most <= 2 * _LARGEST + 1)
    if kind == "literal":
        texts = all(type(value) is str for value in core["expected"])
    else:
        texts = kind in ("bool", "none", "str") or (
            kind == "enum" and core.get("sub_type") == "str" and "missing" not in core
        )
    if not texts and kind != "float":
        raise _Uncountable
    return not texts


def _look_at_number(value: Any) -> int:
    if type(value) is int or type(value) is float:
        return 0 if -_LARGEST <= value <= _LARGEST else _UNSEEN  # NaN is not, either
    return 0 if type(value) in _KEYLESS_VALUES else _UNSEEN


def _count_late(reference: str, build: _Build) -> KeyCounter:
    def count(value: Any) -> int:  # looked up when it is called: a schema may refer to itself
        return build.shared[reference](value)

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


def _count_in_object(core: Any, build: _Build) -> KeyCounter:
    holders = _find_holders(core, build)

    def count(value: Any) -> int:
        total = len(value)
        for name, count_below in holders:
            if name in value:
                total += count_below(value[name])
        return total

    return count if holders else len


def _count_in_model(core: Any, build: _Build) -> KeyCounter:
    if core.get("custom_init") or core.get("post_init") or core["schema"]["type"] != "model-fields":
        raise _Uncountable
    if build.with_numbers and _keeps_unknown_fields(core):
        raise _Uncountable
    holders = _find_holders(core["schema"], build)

    def count(value: Any) -> int:
        given = value.__pydantic_fields_set__
        total = len(given)
        for name, count_below in holders:
            if name in given:
                total += count_below(value.__dict__[name])
        return total

    return count


def _keeps_unknown_fields(core: Any) -> bool:
    """Whether values may have fields that the schema does not describe; they count as keys, and nothing is seen."""
    return "allow" in (core.get("extra_behavior"), core.get("config", {}).get("extra_fields_behavior"))


def _find_holders(core: Any, build: _Build) -> list[tuple[str, KeyCounter]]:
    """Return the fields whose values may hold keys."""
    if "extras_schema" in core or "extras_keys_schema" in core or (build.with_numbers and _keeps_unknown_fields(core)):
        raise _Uncountable
    found: list[tuple[str, KeyCounter]] = []
    for name, field in core["fields"].items():
        if "validation_alias" in field:
            raise _Uncountable
        inner = field["schema"]
        if field["type"] == "model-field" and inner["type"] == "default" and "on_error" not in inner:
            inner = inner["schema"]  # its default is not among the fields that were set
        count_below = _count_in(inner, build)
        if count_below is not _count_nothing:
            found.append((name, count_below))
    return found
