"""The JSON Schema of `--json-schema`, as a type that the agent checks answers with."""

import json
from typing import Annotated, Any, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from callwright.app.settings_file import read_named
from callwright.core.errors import UsageError
from callwright.tool.schema_worker import make_validator


def load_output_schema(given: str) -> object:
    """Return a type that accepts what a JSON Schema accepts.

    Args:
        given: The schema as JSON, or the name of a file that holds it.

    Raises:
        UsageError: The file cannot be read, or its content is not a JSON Schema.
    """
    written = given.lstrip().startswith(("{", "["))
    source = given if written else read_named("--json-schema", given, "; give a file name or the schema itself")
    where = "--json-schema" if written else f"--json-schema {given}"
    try:
        schema: object = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not valid JSON: {error}") from None
    try:
        validator = _SchemaValidator(schema)
    except ValueError as error:
        raise UsageError(f"{where}: not a valid JSON Schema: {str(error).splitlines()[0]}") from None
    return Annotated[Any, validator]


class _SchemaValidator:
    """Presents a JSON Schema to pydantic, which the agent uses to check answers."""

    def __init__(self, schema: object) -> None:
        if not isinstance(schema, dict):
            raise UsageError(f"--json-schema: expected a JSON object, got {schema!r}")
        self._schema = cast("dict[str, Any]", schema)
        self._validator = make_validator(self._schema, bounded=False)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self._schema

    def _check(self, value: Any) -> Any:
        for error in self._validator.iter_errors(value):
            place = ".".join(map(str, error.instance_path)) or "the answer"
            raise PydanticCustomError("json_schema", "{place}: {message}", {"place": place, "message": error.message})
        return value
