"""A function's parameters to a parser and a JSON Schema; what cannot be sent as JSON is refused at definition."""

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from pydantic_core import CoreSchema, SchemaValidator, core_schema

from toolwright.core.errors import UsageError
from toolwright.core.json import JsonObject, freeze
from toolwright.tool.base import ToolContext
from toolwright.tool.compact import compact_arguments
from toolwright.tool.compile import Compiled, compile_annotation, schema_of
from toolwright.tool.parse import Parser

MISSING = inspect.Parameter.empty


@dataclass(slots=True)
class Parameter:
    """One argument of a function tool."""

    name: str
    annotation: object
    default: object = MISSING
    positional: bool = False
    description: str = ""

    @property
    def required(self) -> bool:
        return self.default is MISSING


@dataclass(slots=True)
class Shape:
    """What a function wants: its arguments, where the context goes, and what it returns."""

    function: str
    parameters: list[Parameter]
    context: str = ""
    returns: object = MISSING


def read_signature(function: Callable[..., object]) -> Shape:
    """Look at a function once; raise `UsageError` for what no model could fill in."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    hints = _hints(function, name)
    shape = Shape(name, [], returns=hints.get("return", MISSING))
    for at, parameter in enumerate(_parameters(function)):
        if at == 0 and parameter.name in ("self", "cls") and parameter.name not in hints:
            continue  # decorated inside a class: bound when it is taken from an instance
        _refuse_variadic(name, parameter)
        if parameter.name not in hints:
            raise UsageError(f"{name}: parameter {parameter.name!r} has no annotation; write {parameter.name}: str")
        if hints[parameter.name] is ToolContext:
            shape.context = parameter.name
            continue
        positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        shape.parameters.append(Parameter(parameter.name, hints[parameter.name], parameter.default, positional))
    return shape


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(f"{function!r} has no readable signature; wrap it in a function with annotations") from error


def _hints(function: Callable[..., object], name: str) -> Mapping[str, object]:
    target: Any = inspect.unwrap(function)
    while hasattr(target, "func"):  # functools.partial
        target = target.func
    if not isinstance(target, (types.FunctionType, types.MethodType)):
        target = type(target).__call__
    plain = cast("dict[str, object]", getattr(target, "__annotations__", {}))
    if not any(isinstance(value, str) for value in plain.values()):
        return plain  # nothing to resolve, and resolving costs more than the rest
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise UsageError(
            f"{name}: annotation {error.name!r} is not defined where the tool is; import it there"
        ) from error


def _refuse_variadic(name: str, parameter: inspect.Parameter) -> None:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        fix = f"write {parameter.name}: list[str]"
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        fix = f"write {parameter.name}: dict[str, str]"
    else:
        return
    raise UsageError(f"{name}: parameter '{parameter}' cannot be described to a model; {fix} instead")


class Contract:
    """A function's arguments as parser and schema, each built when first needed."""

    __slots__ = ("_adapters", "_compiled", "_parser", "_schema", "defaults", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.defaults: dict[str, object] = {}
        self._parser: Parser[dict[str, Any]] | None = None
        self._schema: JsonObject | None = None
        self._adapters: dict[str, Any] = {}
        self._compiled: dict[str, Compiled] = {}
        for parameter in shape.parameters:
            self._examine(parameter)

    def _examine(self, parameter: Parameter) -> None:
        compiled = compile_annotation(parameter.annotation)
        if compiled is not None and not _is_field(parameter.default):
            self._compiled[parameter.name] = compiled
            return
        from toolwright.tool.schema import adapter_for, field_default, is_field

        annotation = parameter.annotation
        if is_field(parameter.default):
            annotation = Annotated[cast(Any, annotation), parameter.default]
            optional, value = field_default(parameter.default)
            parameter.default = value if optional else MISSING
            if optional:
                self.defaults[parameter.name] = value
        about = f"{self.shape.function}: parameter {parameter.name!r}"
        self._adapters[parameter.name] = adapter_for(annotation, about=about)

    @property
    def parser(self) -> Parser[dict[str, Any]]:
        """Turns argument text into keyword arguments."""
        if self._parser is None:
            self._parser = self._build_parser()
        return self._parser

    @property
    def plain(self) -> bool:
        """Whether validated values are JSON as they stand."""
        return not self._adapters and all(part.plain for part in self._compiled.values())

    def _build_parser(self) -> Parser[dict[str, Any]]:
        fields: dict[str, core_schema.TypedDictField] = {}
        shared: dict[str, CoreSchema] = {}
        for parameter in self.shape.parameters:
            core = self._core(parameter.name, shared)
            aliases = self._aliases(parameter)
            names: Any = [[parameter.name], *([name] for name in aliases)] if aliases else None
            fields[parameter.name] = core_schema.typed_dict_field(
                core, required=parameter.required, validation_alias=names
            )
        root: CoreSchema = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        if shared:
            root = core_schema.definitions_schema(root, list(shared.values()))
        tight = not self._adapters and all(part.tight for part in self._compiled.values())
        return Parser(SchemaValidator(root), list(fields), tight=tight)

    def _core(self, name: str, shared: dict[str, CoreSchema]) -> CoreSchema:
        if name in self._compiled:
            return self._compiled[name].core
        from toolwright.tool.schema import split_definitions

        core, definitions = split_definitions(self._adapters[name].core_schema)
        shared.update({cast(str, cast(Any, part)["ref"]): part for part in definitions})
        return core

    def _aliases(self, parameter: Parameter) -> tuple[str, ...]:
        if parameter.name not in self._adapters or get_origin(parameter.annotation) is not Annotated:
            return ()
        from toolwright.tool.schema import field_names

        return field_names(get_args(parameter.annotation)[1:])

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments: compact, frozen, the same value every time."""
        if self._schema is None:
            self._schema = freeze(self._build_schema())
        return self._schema

    def _build_schema(self) -> dict[str, Any]:
        annotations = {parameter.name: parameter.annotation for parameter in self.shape.parameters}
        properties = {name: schema_of(annotations[name]) for name in self._compiled}
        definitions: dict[str, Any] = {}
        if self._adapters:
            from toolwright.tool.schema import argument_schemas

            extra, definitions = argument_schemas(list(self._adapters.items()))
            properties |= extra
        described = {p.name: self._described(p, properties[p.name]) for p in self.shape.parameters}
        schema: dict[str, Any] = {"type": "object", "properties": described}
        required = [parameter.name for parameter in self.shape.parameters if parameter.required]
        if required:
            schema["required"] = required
        return compact_arguments({**schema, "$defs": definitions}) if self._adapters else schema

    def _described(self, parameter: Parameter, schema: dict[str, Any]) -> dict[str, Any]:
        own = dict(schema)
        if parameter.description:
            own["description"] = parameter.description
        default = _json_default(parameter.default)
        if default is not None:
            own["default"] = default
        return own


def _is_field(default: object) -> bool:
    fields = sys.modules.get("pydantic.fields")  # whoever wrote Field(...) has imported it
    return fields is not None and isinstance(default, fields.FieldInfo)


def _json_default(default: object) -> object:
    """A default worth telling the model: JSON, and not the null that absence already means."""
    if default is MISSING or default is None:
        return None
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(default)
    except ValueError:
        return None
