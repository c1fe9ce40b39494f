"""What pydantic does for tools: argument models, and the annotations that `compile.py` does not support."""

import inspect
import sys
import typing
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import GenericAlias, UnionType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import CoreSchema, PydanticSerializationError, SchemaError, SchemaValidator

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, freeze, is_finite
from callwright.tool.arguments import ArgumentParser
from callwright.tool.compile import compact_arguments, compact_schema


def modernize_typed_dicts(annotation: object, above: tuple[object, ...] = ()) -> object:
    """Rebuild every `typing.TypedDict` in an annotation with `typing_extensions`, as pydantic needs before 3.12."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(cast(Any, annotation)) and type(annotation).__module__ == "typing":
        if annotation in above:
            raise TypeError("a TypedDict that holds itself must come from typing_extensions before Python 3.12")
        return _rebuild_typed_dict(annotation, (*above, annotation))
    parts = cast("tuple[object, ...]", getattr(annotation, "__args__", ()))
    newer = tuple(modernize_typed_dicts(part, above) for part in parts)
    if all(a is b for a, b in zip(parts, newer, strict=True)):
        return annotation
    if isinstance(annotation, UnionType):
        return typing.Union[newer]  # noqa: UP007 - made of parts known only now
    if isinstance(annotation, GenericAlias):
        return GenericAlias(cast(Any, annotation.__origin__), newer)
    return cast(Any, annotation).copy_with(newer)


def _rebuild_typed_dict(annotation: Any, above: tuple[object, ...]) -> object:
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(annotation, include_extras=True).items():
        needed = name in annotation.__required_keys__
        if get_origin(hint) in (typing.Required, typing.NotRequired):
            # of an annotation that is text, as all are after `from __future__ import annotations`, only this is true
            needed, hint = get_origin(hint) is typing.Required, get_args(hint)[0]
        inner = modernize_typed_dicts(hint, above)
        wrap = typing_extensions.Required if needed else typing_extensions.NotRequired
        fields[name] = wrap[cast(Any, inner)]
    made: Any = typing_extensions.TypedDict(annotation.__name__, fields)  # type: ignore[misc] - fields known only now
    made.__doc__, made.__module__ = annotation.__doc__, annotation.__module__
    return made


AnyAdapter = TypeAdapter[Any]
_UNSET = inspect.Parameter.empty
_NOT_JSON = frozenset({"callable", "is-instance", "is-subclass", "generator"})
_NOT_SEEN = frozenset({"metadata", "serialization", "python_schema", "strict_schema"})


class Arguments(BaseModel):
    """Base class of tool arguments: frozen, without unknown fields; the string under a field is its description."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def adapter_for(annotation: object, *, about: str) -> AnyAdapter:
    """Return the pydantic adapter of an annotation.

    Raises:
        UsageError: The type cannot be sent as JSON; `about` names the place in the message.
    """
    try:
        if issubclass(type(annotation), dict):  # pydantic would take it for a schema in its own words
            raise TypeError("a JSON Schema is not a type")
        with warnings.catch_warnings():  # an alias in Annotated is news to pydantic; `read_field` sees to it
            warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
            adapter: AnyAdapter = TypeAdapter(cast(Any, modernize_typed_dicts(annotation)))
        if may_lack_json_form(adapter.core_schema):
            read_schema(adapter, annotation, about=about)
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError, TypeError) as error:
        raise _make_error(annotation, about, error) from error
    except SchemaError as error:  # such as a regular expression with a look-ahead
        *_, reason = str(error).splitlines()
        raise UsageError(f"{about}: its constraints are not valid: {reason.removeprefix('error: ')}") from error
    return adapter


def read_schema(adapter: AnyAdapter, annotation: object, *, about: str) -> dict[str, Any]:
    """Return the JSON Schema of an adapter.

    Raises:
        UsageError: There is none, as of an enum with a value that JSON cannot carry.
    """
    try:
        return adapter.json_schema()
    except (PydanticUserError, PydanticSerializationError) as error:
        raise _make_error(annotation, about, error) from error


def _make_error(annotation: object, about: str, error: Exception) -> UsageError:
    kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    shown = kind.__name__ if isinstance(kind, type) else inspect.formatannotation(kind)
    return UsageError(
        f"{about}: the type {shown} cannot be sent as JSON; use JSON types, a dataclass, a TypedDict or a pydantic "
        f"model ({str(error).splitlines()[0]})"
    )


def may_lack_json_form(core: Any) -> bool:
    """Whether a core schema has parts of a kind that mostly have no JSON form; some have one all the same."""
    return _holds(core, "type", _NOT_JSON)


def _holds(core: Any, key: str, values: frozenset[str]) -> bool:
    """Whether any part of a core schema that validates JSON has one of these values under a key."""
    if isinstance(core, dict):
        parts = cast("dict[str, Any]", core)
        own = parts.get(key)
        if isinstance(own, str) and own in values:
            return True
        return any(_holds(part, key, values) for name, part in parts.items() if name not in _NOT_SEEN)
    return isinstance(core, (list, tuple)) and any(_holds(part, key, values) for part in cast("Sequence[Any]", core))


def parse_options(core: Any) -> dict[str, Any]:
    """Return the validation options for nested models: names and aliases are accepted, unknown fields are not.

    A model that sets `extra=…` itself keeps its setting.
    """
    # a TypedDict has "ignore" even where its author set nothing
    accepts_extra = _holds(core, "extra_fields_behavior", frozenset({"allow", "ignore"}))
    accepts_extra = accepts_extra or _holds(core, "extra_behavior", frozenset({"allow"}))
    names: dict[str, Any] = {"by_alias": True, "by_name": True}
    return names if accepts_extra else {**names, "extra": "forbid"}


_WITH_FIELDS = frozenset({"model-fields", "typed-dict", "dataclass-args"})
_DATA = frozenset({"default", "expected", "members", "metadata", "serialization"})


def forbid_unknown_fields(core: CoreSchema) -> tuple[CoreSchema, SchemaValidator]:
    """Return a core schema whose parts refuse unknown fields unless they say something else, and its validator.

    For a schema in which one part accepts them: the option to refuse them would be for all of its parts.
    """
    closed = cast("CoreSchema", _forbid_unknown(core, explicit=False))
    try:
        return closed, SchemaValidator(closed, None, False)  # not with the validators that its classes have already
    except TypeError:  # a version of pydantic-core that does not take the last argument
        return closed, SchemaValidator(closed)


def _forbid_unknown(node: Any, *, explicit: bool) -> Any:
    if isinstance(node, (list, tuple)):
        items = [_forbid_unknown(part, explicit=explicit) for part in cast("Sequence[Any]", node)]
        return tuple(items) if isinstance(node, tuple) else items
    if not isinstance(node, dict):
        return node
    parts = cast("dict[str, Any]", node)
    kind = parts.get("type")
    if not isinstance(kind, str):  # fields or choices by name
        return {name: _forbid_unknown(part, explicit=explicit) for name, part in parts.items()}
    if isinstance(config := parts.get("config"), dict):
        explicit = "extra_fields_behavior" in config
    closed = {key: part if key in _DATA else _forbid_unknown(part, explicit=explicit) for key, part in parts.items()}
    if kind in _WITH_FIELDS and not explicit and parts.get("extra_behavior") != "allow":
        closed["extra_behavior"] = "forbid"
    return closed


def split_definitions(core: CoreSchema) -> tuple[CoreSchema, list[CoreSchema]]:
    """Separate a core schema from its default and its definitions, so that several can share one list."""
    inner, definitions = cast(Any, core), cast("list[CoreSchema]", [])
    if inner["type"] == "definitions":
        inner, definitions = inner["schema"], list(inner["definitions"])
    while inner["type"] == "default":
        inner = inner["schema"]
    return inner, definitions


def argument_schemas(
    adapters: Sequence[tuple[str, AnyAdapter]], *, about: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON Schemas of several arguments by name, and the definitions they share."""
    inputs = [(name, "validation", adapter) for name, adapter in adapters]
    try:
        by_name, shared = TypeAdapter.json_schemas(cast("Any", inputs))
    except (PydanticUserError, PydanticSerializationError) as error:
        raise UsageError(f"{about}: {str(error).splitlines()[0]}") from error
    return {name: by_name[name, "validation"] for name, _ in adapters}, shared.get("$defs", {})


def model_schema(kind: Any, *, about: str) -> tuple[ArgumentParser[Any], JsonObject, AnyAdapter, bool]:
    """Return the parser, compact JSON Schema and adapter of an arguments class, and whether its defaults are finite."""
    adapter = adapter_for(kind, about=about)
    whole = read_schema(adapter, kind, about=about)
    schema = compact_arguments(whole)
    if schema.get("type") != "object":
        raise UsageError(f"{about}: arguments must be an object with named fields, not {schema.get('type', 'a union')}")
    core, validator, options = adapter.core_schema, adapter.validator, parse_options(adapter.core_schema)
    if "extra" not in options:
        core, validator = forbid_unknown_fields(core)
    parser = ArgumentParser(validator.validate_json, tuple(schema["properties"]), core, options=options)
    return parser, freeze(schema), adapter, is_finite(whole)


def output_schema(annotation: object) -> JsonObject | None:
    """Return the JSON Schema of the data that a tool returns, or None."""
    try:
        schema = compact_schema(adapter_for(annotation, about="return value").json_schema(mode="serialization"))
    except Exception:  # noqa: BLE001 - a return type pydantic cannot describe simply has no schema
        return None
    return freeze(schema) if schema else None


@dataclass(frozen=True, slots=True)
class FieldTraits:
    """The traits that `Field(…)` gives a parameter beyond its type."""

    annotation: object
    default: object = _UNSET
    factory: Callable[[], object] | None = None
    filled: bool = False
    """Whether pydantic fills in the default, because the function has none."""
    aliases: tuple[str, ...] = ()


def read_field(annotation: object, default: object) -> FieldTraits:
    """Read `Annotated[…, Field(…)]` and `= Field(…)`; a plain default of the function wins over one in `Field`."""
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[cast(Any, annotation), default], _UNSET
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    infos = [item for item in metadata if isinstance(item, FieldInfo)]
    aliases = field_names(infos)
    if default is not _UNSET:
        return FieldTraits(annotation, default, aliases=aliases)
    for info in reversed(infos):
        if info.default_factory is not None:
            return FieldTraits(annotation, _UNSET, _factory(info), filled=True, aliases=aliases)
        if not info.is_required():
            return FieldTraits(annotation, info.default, filled=True, aliases=aliases)
    return FieldTraits(annotation, aliases=aliases)


def _factory(info: FieldInfo) -> Callable[[], object]:
    if info.default_factory_takes_validated_data:
        raise UsageError("a default_factory with parameters is not supported; write one without parameters")
    return cast("Callable[[], object]", info.default_factory)


def field_names(infos: Sequence[FieldInfo]) -> tuple[str, ...]:
    """Return the other names that `Field(alias=…, validation_alias=…)` gives an argument."""
    names: list[str] = []
    for info in infos:
        choices = getattr(info.validation_alias, "choices", [info.validation_alias])
        names += [name for name in (*choices, info.alias) if isinstance(name, str)]
    return tuple(dict.fromkeys(names))
