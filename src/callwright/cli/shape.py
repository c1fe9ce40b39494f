"""`--json-schema`: an answer held to a JSON Schema, by way of the types the agent understands."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from callwright.core.errors import UsageError, plainly


def shape_of(given: str) -> object:
    """Read a schema from a file or from JSON and make it a type of which the answer must be."""
    source = given if given.lstrip().startswith(("{", "[")) else _read(given)
    where = "--json-schema" if source == given else f"--json-schema {given}"
    try:
        schema: object = json.loads(source)
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}") from None
    try:
        shape = _Shape(schema)
    except ValueError as error:
        raise UsageError(f"{where} is no JSON Schema: {str(error).splitlines()[0]}") from None
    return Annotated[Any, shape]


def _read(name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except OSError as error:
        raise UsageError(f"--json-schema {name}: {plainly(error)}; give a file, or the schema itself") from None


class _Shape:
    """Tells pydantic what a schema says."""

    def __init__(self, schema: object) -> None:
        import jsonschema_rs

        if not isinstance(schema, dict):
            raise UsageError(f"--json-schema: a schema is an object, not {schema!r}")
        self._schema = cast("dict[str, Any]", schema)
        self._validator = jsonschema_rs.validator_for(self._schema)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self._schema

    def _check(self, value: Any) -> Any:
        for error in self._validator.iter_errors(value):
            place = ".".join(map(str, error.instance_path)) or "the answer"
            raise PydanticCustomError("json_schema", "{place}: {message}", {"place": place, "message": error.message})
        return value
