"""Turns a function's parameters into a parser and a JSON Schema; types that JSON cannot carry raise at definition."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, cast, get_args, get_origin

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, freeze, is_finite
from callwright.tool.arguments import ArgumentParser
from callwright.tool.compile import Compiled, compact_arguments, compile_annotation, in_stable_order, schema_of
from callwright.tool.signature import MISSING, FunctionShape, Parameter, is_mutable
from callwright.tool.validators import (
    CoreSchema,
    PydanticSerializationError,
    SchemaValidator,
    TypedDictField,
    to_jsonable_python,
)


class Contract:
    """The parser and schema of a function's arguments, each built on first use."""

    __slots__ = ("_adapters", "_compiled", "_defaults", "_parser", "concealed", "fresh", "shape", "special")

    def __init__(self, shape: FunctionShape) -> None:
        self.shape = shape
        self._parser: ArgumentParser[dict[str, Any]] | None = None
        self._defaults: dict[str, Any] | None = None
        self._adapters: dict[str, Any] = {}
        self._compiled: dict[str, Compiled] = {}
        self.concealed: frozenset[str] = frozenset()
        """The parameters whose JSON form may show something else than the argument."""
        self.fresh: dict[str, frozenset[str]] = {}
        """The arguments, or fields inside them, whose default is made for each call, such as an identifier, and may be
        another one each time; with all of their names."""
        for parameter in shape.parameters:
            self._examine(parameter)
        self.special = bool(self.fresh or self.concealed)
        """Whether a call needs more than its values."""
        if self._adapters:
            self._check_aliases()

    def _examine(self, parameter: Parameter) -> None:
        compiled = compile_annotation(parameter.annotation)
        about = f"{self.shape.function}: parameter {parameter.name!r}"
        if compiled is not None and not _is_field(parameter.default):
            self._compiled[parameter.name] = compiled
            if not compiled.plain:
                self._look_for_concealment(compiled.core, parameter, about)
                _require_json_form(parameter.annotation, compiled.core, about)
            return
        from callwright.tool.schema import adapter_for, read_field

        traits = read_field(parameter.annotation, parameter.default)
        parameter.default, parameter.factory = traits.default, traits.factory
        parameter.filled, parameter.aliases = parameter.filled or traits.filled, traits.aliases
        self._adapters[parameter.name] = adapter = adapter_for(traits.annotation, about=about)
        self._look_for_concealment(adapter.core_schema, parameter, about)

    def _check_aliases(self) -> None:
        """Refuse a name that stands for two parameters: what is written for one would be read as both."""
        known = {parameter.name for parameter in self.shape.parameters}
        for parameter in self.shape.parameters:
            for alias in (alias for alias in parameter.aliases if alias != parameter.name):
                if alias in known:
                    about = f"{self.shape.function}: parameter {parameter.name!r}"
                    raise UsageError(f"{about} has the alias {alias!r}, which means another parameter; choose another")
                known.add(alias)

    def _look_for_concealment(self, core: Any, parameter: Parameter, about: str) -> None:
        # plain arguments need none of it
        from callwright.tool.concealment import find_concealed, find_fresh, is_fresh

        if find_concealed(core, about=about, required=parameter.required):
            self.concealed |= {parameter.name}
        fresh = find_fresh(core, parameter.name)
        if is_fresh(parameter.factory):
            fresh[parameter.name] = frozenset({parameter.name, *parameter.aliases})
        self.fresh |= {name: names | self.fresh.get(name, frozenset()) for name, names in fresh.items()}

    @property
    def parser(self) -> ArgumentParser[dict[str, Any]]:
        """The parser from argument text to keyword arguments."""
        if self._parser is None:
            self._parser = self._build_parser()
        return self._parser

    @property
    def plain(self) -> bool:
        """Whether validated values are plain JSON."""
        return not self._adapters and all(part.plain for part in self._compiled.values())

    @property
    def tight(self) -> bool:
        """Whether NaN and integers beyond 64 bits cannot pass the validator."""
        return not self._adapters and all(part.tight for part in self._compiled.values())

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The defaults that the function itself fills in, as JSON; without those that JSON cannot carry.

        Hooks and users who edit a call give back what they were shown, and the function would get that instead.
        """
        known = self._defaults
        if known is None:
            filling = (each for each in self.shape.parameters if each.default is not MISSING and not each.filled)
            own = {parameter.name: parameter.default for parameter in filling if _can_be_json(parameter.default)}
            known = self._defaults = self.write(own)
        return known

    def write(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values as JSON; bytes that are no text as their annotation writes them, such as `Base64Bytes`."""
        try:
            written: dict[str, Any] = to_jsonable_python(values, serialize_unknown=True)
        except ValueError:
            written = {name: self._write_one(name, value) for name, value in values.items()}
        return to_jsonable_python(written, inf_nan_mode="null")  # models write infinite defaults as they are

    def _write_one(self, name: str, value: object) -> object:
        try:
            return to_jsonable_python(value, serialize_unknown=True)
        except ValueError:
            if name not in self._adapters or name not in self.concealed:
                raise
            return self._adapters[name].dump_python(value, mode="json")

    def _build_parser(self) -> ArgumentParser[dict[str, Any]]:
        shared: dict[str, CoreSchema] = {}
        fields = {parameter.name: self._field(parameter, shared) for parameter in self.shape.parameters}
        root: CoreSchema = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"}
        if shared:
            root = {"type": "definitions", "schema": root, "definitions": list(shared.values())}
        options: dict[str, Any] = {}
        if not self.plain and not self.tight:
            from callwright.tool.schema import forbid_unknown_fields, parse_options

            options = parse_options(root)
            if "extra" not in options:
                root, validator = forbid_unknown_fields(root)
                return ArgumentParser(validator.validate_json, list(fields), root, options=options)
        validate = SchemaValidator(root).validate_json
        return ArgumentParser(validate, list(fields), root, tight=self.tight, options=options)

    def _field(self, parameter: Parameter, shared: dict[str, CoreSchema]) -> TypedDictField:
        core = self._core(parameter.name, shared)
        if parameter.filled:
            core = _fill_default(core, parameter)
        field: TypedDictField = {"type": "typed-dict-field", "schema": core, "required": parameter.required}
        if parameter.aliases:
            field["validation_alias"] = [[parameter.name], *([name] for name in parameter.aliases)]
        return field

    def _core(self, name: str, shared: dict[str, CoreSchema]) -> CoreSchema:
        if name in self._compiled:
            return self._compiled[name].core
        from callwright.tool.schema import split_definitions

        core, definitions = split_definitions(self._adapters[name].core_schema)
        shared.update({cast(str, cast(Any, part)["ref"]): part for part in definitions})
        return core

    def schema(self, described: Mapping[str, str]) -> JsonObject:
        """The JSON Schema of the arguments, compact and frozen, with the descriptions from the docstring."""
        annotations = {parameter.name: parameter.annotation for parameter in self.shape.parameters}
        properties = {name: self._schema_of(name, annotations[name]) for name in self._compiled}
        properties = {name: _add_description(part, described.get(name)) for name, part in properties.items()}
        definitions: dict[str, Any] = {}
        if self._adapters:
            from callwright.tool.schema import argument_schemas

            extra, definitions = argument_schemas(list(self._adapters.items()), about=self.shape.function)
            # a description in Field(…) or Annotated is closer to the parameter than the docstring, so it wins
            properties |= {
                name: _add_description(
                    part, part.get("description") or _find_note(annotations[name]) or described.get(name)
                )
                for name, part in extra.items()
            }
        whole = {each.name: _with_default(each, properties[each.name]) for each in self.shape.parameters}
        schema: dict[str, Any] = {"type": "object", "properties": whole}
        required = [parameter.name for parameter in self.shape.parameters if parameter.required]
        if required:
            schema["required"] = required
        return freeze(compact_arguments({**schema, "$defs": definitions}) if self._adapters else schema)

    def _schema_of(self, name: str, annotation: object) -> dict[str, Any]:
        try:
            return schema_of(annotation)
        except PydanticSerializationError as error:  # an enum in a model may have any value
            raise UsageError(f"{self.shape.function}: parameter {name!r}: {error}") from error


def _require_json_form(annotation: object, core: CoreSchema, about: str) -> None:
    """Refuse a model with a field that JSON cannot carry; `adapter_for` refuses other annotations."""
    if "pydantic" not in sys.modules:  # an enum, then
        return
    from callwright.tool.schema import adapter_for, may_lack_json_form

    if may_lack_json_form(core):
        adapter_for(annotation, about=about)


def _fill_default(core: CoreSchema, parameter: Parameter) -> CoreSchema:
    """Let the parser fill in the default; a mutable one is copied for every call."""
    factory, default = parameter.factory, parameter.default
    if factory is None and is_mutable(default):
        factory = _find_copier(default)
    if factory is not None:
        return {"type": "default", "schema": core, "default_factory": factory}
    return {"type": "default", "schema": core, "default": default}


def _find_copier(default: object) -> Callable[[], object]:
    """Return what copies a default; one that cannot be copied, with a lock or a connection in it, is shared."""
    from copy import deepcopy

    try:
        deepcopy(default)
    except Exception:  # noqa: BLE001 - whatever its own methods raise
        return lambda: default
    return partial(deepcopy, default)


def _find_note(annotation: object) -> str | None:
    """Return the plain text in `Annotated[str, "City name"]`."""
    notes = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((note for note in notes if isinstance(note, str)), None)


def _add_description(schema: Mapping[str, Any], words: str | None) -> dict[str, Any]:
    return {**schema, "description": words} if words else dict(schema)


def _with_default(parameter: Parameter, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter's schema with its default, unless that is null, which absence already means."""
    own = {key: value for key, value in schema.items() if key != "default"}
    if parameter.default is MISSING or parameter.default is None or not _can_be_json(parameter.default):
        return own
    with suppress(ValueError):  # bytes that are no text
        own["default"] = to_jsonable_python(in_stable_order(parameter.default))
    return own


def _can_be_json(default: object) -> bool:
    """Whether JSON can carry a default, unlike an infinite number or a mark such as `object()`."""
    if default is None or isinstance(default, (str, int)):  # most of them
        return True
    try:
        written = to_jsonable_python(default)
    except PydanticSerializationError:
        return False
    except ValueError:  # bytes that are no text, which their annotation may be able to write
        return True
    return is_finite(written)


def _is_field(default: object) -> bool:
    fields = sys.modules.get("pydantic.fields")  # a tool with Field(...) has imported it already
    return fields is not None and isinstance(default, fields.FieldInfo)
