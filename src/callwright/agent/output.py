"""The final answer as a type: its schema, its value, and what to say when it does not fit."""

import re
from typing import Any

from callwright.core.errors import InvalidArguments
from callwright.core.json import JsonObject, freeze
from callwright.tool.compact import compact_schema
from callwright.tool.parse import Parser
from callwright.tool.schema import adapter_for, parse_options

_FENCED = re.compile(r"\A\s*```(?:json)?[ \t]*\n(?P<body>.*)\n[ \t]*```\s*\Z", re.DOTALL)


class OutputShape:
    """What the final answer must be."""

    def __init__(self, kind: object) -> None:
        adapter = adapter_for(kind, about="output")
        schema = compact_schema(adapter.json_schema())
        self.schema: JsonObject = freeze(schema)
        fields = tuple(schema.get("properties", ()))
        self._parser: Parser[Any] = Parser(
            adapter.validator.validate_json, fields, options=parse_options(adapter.core_schema)
        )

    def read(self, text: str) -> Any:
        """Return the answer as a value, looking through a code fence; raises `InvalidArguments`."""
        fenced = _FENCED.match(text)
        return self._parser.parse(fenced["body"] if fenced else text)

    def complaint(self, error: InvalidArguments) -> str:
        """What the model is told so that the next answer fits."""
        return f"the answer is not what was asked for: {error.detail}; answer again with JSON of the given schema only"
