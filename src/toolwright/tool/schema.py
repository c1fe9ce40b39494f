"""The one door to pydantic: argument models, and annotations the direct compiler does not know."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticUndefined, SchemaValidator

from toolwright.core.errors import UsageError
from toolwright.core.json import JsonObject, freeze
from toolwright.tool.compact import compact_arguments, compact_schema

AnyAdapter = TypeAdapter[Any]


class Arguments(BaseModel):
    """Base of a tool's arguments: closed, frozen, and the string under a field is what the model reads about it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def adapter_for(annotation: object, *, about: str) -> AnyAdapter:
    """Return pydantic's view of an annotation; `about` names the place for the error."""
    try:
        return cast(AnyAdapter, TypeAdapter(annotation))
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError, TypeError) as error:
        shown = getattr(annotation, "__name__", repr(annotation))
        raise UsageError(
            f"{about}: the type {shown} cannot be sent as JSON; use JSON types, a dataclass, a TypedDict or a pydantic "
            f"model ({str(error).splitlines()[0]})"
        ) from error


def split_definitions(core: CoreSchema) -> tuple[CoreSchema, list[CoreSchema]]:
    """Part a core schema from the definitions it carries, so that several can share one list."""
    if core["type"] == "definitions":
        return core["schema"], list(core["definitions"])
    return core, []


def argument_schemas(adapters: Sequence[tuple[str, AnyAdapter]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """JSON Schemas of several arguments by name, and the definitions they share."""
    inputs = [(name, "validation", adapter) for name, adapter in adapters]
    by_name, shared = TypeAdapter.json_schemas(cast("Any", inputs))
    return {name: by_name[name, "validation"] for name, _ in adapters}, shared.get("$defs", {})


def model_schema(kind: Any, *, about: str) -> tuple[SchemaValidator, JsonObject, tuple[str, ...], AnyAdapter]:
    """Validator, compact JSON Schema, accepted names and adapter of an arguments class."""
    adapter = adapter_for(kind, about=about)
    schema = compact_arguments(adapter.json_schema())
    if schema.get("type") != "object":
        raise UsageError(f"{about}: arguments must be an object with named fields, not {schema.get('type', 'a union')}")
    return cast(SchemaValidator, adapter.validator), freeze(schema), tuple(schema["properties"]), adapter


def output_schema(annotation: object) -> JsonObject | None:
    """JSON Schema of what a tool returns, where it returns data."""
    try:
        schema = compact_schema(adapter_for(annotation, about="return value").json_schema(mode="serialization"))
    except Exception:  # noqa: BLE001 - a return type pydantic cannot describe simply has no schema
        return None
    return freeze(schema) if schema else None


def field_default(default: object) -> tuple[bool, object]:
    """Whether a parameter's default leaves it optional, and its value; sees through `Field(...)`."""
    if not isinstance(default, FieldInfo):
        return True, default
    if default.is_required():
        return False, None
    value = default.get_default(call_default_factory=True, validated_data={})
    return value is not PydanticUndefined, value


def field_names(metadata: Sequence[object]) -> tuple[str, ...]:
    """The other names `Field(alias=…, validation_alias=…)` gives an argument."""
    names: list[str] = []
    for info in metadata:
        if isinstance(info, FieldInfo):
            choices = getattr(info.validation_alias, "choices", [info.validation_alias])
            names += [name for name in (*choices, info.alias) if isinstance(name, str)]
    return tuple(dict.fromkeys(names))


def is_field(value: object) -> bool:
    """Whether a default is a pydantic `Field(...)`."""
    return isinstance(value, FieldInfo)


def fields_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of an object schema's properties."""
    return tuple(schema.get("properties", {}))
