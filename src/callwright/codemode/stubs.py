"""Writes tools as Python functions: what a model reads before it writes a program."""

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, cast

from callwright.core.json import thaw
from callwright.core.spec import ToolSpec

_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)
_PLAIN_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_MAX_DEPTH = 6
_MAX_LITERALS = 20
_MAX_DESCRIPTION_CHARS = 2_000
_RESERVED = frozenset({*dir(builtins), "asyncio", "json", "math", "re", "datetime", "random", "time"})
"""Names that mean something else in programs."""


def name_functions(names: Iterable[str]) -> dict[str, str]:
    """Return a Python function name for each tool, with the tool's name; no two tools share one.

    Args:
        names: The tools' names.
    """
    functions: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (not _is_free(name), name)):  # valid names stay as they are
        function = name if _is_free(name) else _NOT_IN_NAMES.sub("_", name)
        if not _is_free(function):
            function = f"call_{function}"
        if function in functions:
            function = f"{function}_{sha256(name.encode(errors='surrogatepass')).hexdigest()[:7]}"
        functions[function] = name
    return functions


def _is_free(name: str) -> bool:
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and name not in _RESERVED


def write_stub(function: str, spec: ToolSpec) -> str:
    """Return a tool as the stub of an async function, with the types that its schemas need.

    Args:
        function: The name of the function.
        spec: The tool.
    """
    writer = _Writer(function)
    schema: dict[str, Any] = thaw(spec.input_schema)
    returns = "str" if spec.output_schema is None else writer.type_of(thaw(spec.output_schema), "Result")
    parameters, documented = writer.parameters(schema)
    signature = f"async def {function}({parameters}) -> {returns}:"
    text = spec.description.strip()[:_MAX_DESCRIPTION_CHARS]
    lines = [*text.splitlines(), *(["", "Args:", *documented] if documented else [])]
    body = "\n".join(f"    {line}".rstrip() for line in lines).replace('"""', "'''").replace("\\", "\\\\")
    return "\n".join([*writer.classes.values(), signature, f'    """{body.lstrip()}"""'])


class _Writer:
    """Writes the types of one tool; objects become `TypedDict` classes."""

    def __init__(self, function: str) -> None:
        self._prefix = "".join(part.capitalize() for part in function.split("_") if part)
        self._definitions: Mapping[str, Any] = {}
        self.classes: dict[str, str] = {}

    def parameters(self, schema: dict[str, Any]) -> tuple[str, list[str]]:
        """Return the parameters of a function, and a line about each that is described."""
        self._definitions = _mapping(schema.get("$defs") or schema.get("definitions"))
        required = set[str](schema.get("required") or ())
        ordered = order_parameters(schema)
        written, documented = list[str](), list[str]()
        for name in ordered:
            part = _mapping(_mapping(schema.get("properties")).get(name))
            kind = self.type_of(part, name.capitalize())
            default = "" if name in required else f" = {part['default']!r}" if "default" in part else " = ..."
            written.append(f"{name}: {kind}{default}")
            if about := str(part.get("description") or "").strip():
                documented.append(f"    {name}: {' '.join(about.split())}")
        return ", ".join(written), documented

    def type_of(self, schema: object, name: str, depth: int = 0) -> str:
        """Return the Python type of a schema; what cannot be said in one is `Any`."""
        if depth > _MAX_DEPTH or not isinstance(schema, dict):
            return "Any"
        part = cast("dict[str, Any]", schema)
        if reference := part.get("$ref"):
            known = str(reference).rpartition("/")[2]
            if f"{self._prefix}{known}" in self.classes or known not in self._definitions:
                return f"{self._prefix}{known}" if known in self._definitions else "Any"
            return self.type_of(self._definitions[known], known, depth + 1)
        if choices := part.get("enum"):
            return f"Literal[{', '.join(map(repr, choices))}]" if len(choices) <= _MAX_LITERALS else "Any"
        if "const" in part:
            return f"Literal[{part['const']!r}]"
        if options := part.get("anyOf") or part.get("oneOf"):
            return self._union(self.type_of(option, name, depth + 1) for option in options)
        kind = part.get("type")
        if isinstance(kind, list):
            return self._union(
                self.type_of({**part, "type": each}, name, depth + 1) for each in cast("list[Any]", kind)
            )
        if kind == "array":
            return f"list[{self.type_of(part.get('items'), name, depth + 1)}]"
        if kind == "object" or "properties" in part:
            return self._object(part, name, depth)
        return _PLAIN_TYPES.get(str(kind), "Any")

    def _union(self, kinds: Iterable[str]) -> str:
        found = list(dict.fromkeys(kinds))
        return "Any" if "Any" in found or not found else " | ".join(found)

    def _object(self, part: dict[str, Any], name: str, depth: int) -> str:
        properties = _mapping(part.get("properties"))
        if not properties or not all(key.isidentifier() and not keyword.iskeyword(key) for key in properties):
            return f"dict[str, {self.type_of(part.get('additionalProperties'), name, depth + 1)}]"
        title = f"{self._prefix}{_NOT_IN_NAMES.sub('_', name)}"
        self.classes[title] = ""  # taken now: a schema may contain itself
        required = set[str](part.get("required") or ())
        fields = list[str]()
        for key, value in properties.items():
            kind = self.type_of(value, key.capitalize(), depth + 1)
            fields.append(f"    {key}: {kind if key in required else f'NotRequired[{kind}]'}")
        self.classes.pop(title)  # after the classes it uses
        self.classes[title] = "\n".join([f"class {title}(TypedDict):", *fields])
        return title


def order_parameters(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters in the order of the stub: required ones first."""
    required = set[str](schema.get("required") or ())
    properties = _mapping(schema.get("properties"))
    return [*(name for name in properties if name in required), *(name for name in properties if name not in required)]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
