"""Writes tools as Python functions: what a model reads before it writes a program."""

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from callwright.core.json import hash_text, read_object, thaw
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
            function = f"{function}_{hash_text(name)[:7]}"
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
    returns = "str" if spec.output_schema is None else writer.result(thaw(spec.output_schema))
    parameters, documented = writer.parameters(thaw(spec.input_schema))
    signature = f"async def {function}({parameters}) -> {returns}:"
    text = spec.description.strip()[:_MAX_DESCRIPTION_CHARS]
    lines = [*text.splitlines(), *(["", "Args:", *documented] if documented else [])]
    body = "\n".join(f"    {line}".rstrip() for line in lines).replace('"""', "'''").replace("\\", "\\\\")
    body = f"{body.lstrip()} " if body.endswith('"') else body.lstrip()  # a quote would join those that end the text
    return "\n".join([*writer.classes.values(), signature, f'    """{body}"""'])


class _Writer:
    """Writes the types of one tool; objects become `TypedDict` classes."""

    def __init__(self, function: str) -> None:
        self._prefix = "".join(part.capitalize() for part in function.split("_") if part)
        self._definitions: Mapping[str, Any] = {}
        self._defined: dict[str, str] = {}
        """The classes of definitions, by the definition's name."""
        self.classes: dict[str, str] = {}

    def result(self, schema: dict[str, Any]) -> str:
        """Return the type of what a function returns."""
        self._read_definitions(schema)
        return self.type_of(schema, "Result")

    def parameters(self, schema: dict[str, Any]) -> tuple[str, list[str]]:
        """Return the parameters of a function, and a line about each that is described."""
        self._read_definitions(schema)
        properties, required = _fields(schema)
        ordered = order_parameters(schema)
        written, documented = list[str](), list[str]()
        for name in ordered:
            part = read_object(properties[name])
            kind = self.type_of(part, name.capitalize())
            default = "" if name in required else f" = {part['default']!r}" if "default" in part else " = ..."
            written.append(f"{name}: {kind}{default}")
            if about := _describe(part):
                documented.append(f"    {name}: {about}")
        named = set(ordered)
        others = [name for name in properties if name not in named]
        for name in others:  # Python has no parameters of these names
            part = read_object(properties[name])
            kind = self.type_of(part, _NOT_IN_NAMES.sub("_", name).capitalize())
            must = " (required)" if name in required else ""
            documented.append(f"    **{{{name!r}: {kind}}}{must}: {_describe(part)}".rstrip(": "))
        return ", ".join([*written, *(["**others: Any"] if others else [])]), documented

    def _read_definitions(self, schema: Mapping[str, Any]) -> None:
        self._definitions = read_object(schema.get("$defs") or schema.get("definitions"))
        self._defined = {}

    def type_of(self, schema: object, name: str, depth: int = 0, definition: str | None = None) -> str:
        """Return the Python type of a schema; what cannot be said in one is `Any`."""
        if depth > _MAX_DEPTH or not isinstance(schema, dict):
            return "Any"
        part = cast("dict[str, Any]", schema)
        if reference := part.get("$ref"):
            known = str(reference).rpartition("/")[2]
            if known in self._defined or known not in self._definitions:
                return self._defined.get(known, "Any")
            return self.type_of(self._definitions[known], known, depth + 1, known)
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
            return self._object(part, name, depth, definition)
        return _PLAIN_TYPES.get(str(kind), "Any")

    def _union(self, kinds: Iterable[str]) -> str:
        found = list(dict.fromkeys(kinds))
        return "Any" if "Any" in found or not found else " | ".join(found)

    def _object(self, part: dict[str, Any], name: str, depth: int, definition: str | None) -> str:
        properties = read_object(part.get("properties"))
        if not properties or not all(key.isidentifier() and not keyword.iskeyword(key) for key in properties):
            return f"dict[str, {self.type_of(part.get('additionalProperties'), name, depth + 1)}]"
        title = base = f"{self._prefix}{_NOT_IN_NAMES.sub('_', name)}"
        while title in self.classes:  # another object with a field of the same name
            title = f"{base}{len(self.classes) + 1}"
        self.classes[title] = ""  # taken now: a schema may contain itself
        if definition is not None:
            self._defined[definition] = title
        required = set[str](part.get("required") or ())
        fields = list[str]()
        for key, value in properties.items():
            kind = self.type_of(value, key.capitalize(), depth + 1)
            fields.append(f"    {key}: {kind if key in required else f'NotRequired[{kind}]'}")
        self.classes.pop(title)  # after the classes it uses
        self.classes[title] = "\n".join([f"class {title}(TypedDict):", *fields])
        return title


def order_parameters(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters in the order of the stub: required ones first.

    Names that are no Python names are left out: programs pass them as `**{"from": …}`.
    """
    properties, required = _fields(schema)
    named = [name for name in properties if name.isidentifier() and not keyword.iskeyword(name)]
    return [*(name for name in named if name in required), *(name for name in named if name not in required)]


def _fields(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the properties of an object's schema and the names that are required."""
    reference = str(schema.get("$ref") or "").rpartition("/")[2]  # how a model that contains itself is described
    if reference and "properties" not in schema:
        schema = read_object(read_object(schema.get("$defs") or schema.get("definitions")).get(reference))
    return read_object(schema.get("properties")), frozenset(schema.get("required") or ())


def _describe(part: Mapping[str, Any]) -> str:
    return " ".join(str(part.get("description") or "").split())
