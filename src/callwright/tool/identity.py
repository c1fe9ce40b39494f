"""Tells whether two tools are the same: by a fingerprint that survives a restart, or as objects of one process."""

import json
from dataclasses import fields
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

from callwright.core.json import hash_text
from callwright.core.spec import ToolSpec
from callwright.tool.base import Tool, WrapperTool
from callwright.tool.function import FunctionTool
from callwright.tool.schema_tool import SchemaTool

_PLAIN = (str, bytes, int, float, bool, type(None))
_MAX_DEPTH = 6
_METHODS = ("bind", "accesses", "run")


def fingerprint(tool: Tool) -> str:
    """Return a digest of a tool's spec and code, the same in every process that runs the same version of both.

    Values that the code works with count only where they are plain (text, numbers): an address in memory would make
    each process a different one.
    """
    marks = [_describe_spec(tool.spec), *(_describe(part, 0) for part in _implementation(tool))]
    return hash_text("\0".join(marks))


def is_same_tool(one: object, other: object) -> bool:
    """Whether two tools of one process run the same code on the same objects."""
    if one is other:
        return True
    if isinstance(one, FunctionTool) and isinstance(other, FunctionTool):
        return one.function == other.function and one.traits == other.traits
    if isinstance(one, SchemaTool) and isinstance(other, SchemaTool):
        return one.handler == other.handler and one.declare == other.declare and one.spec == other.spec
    if isinstance(one, WrapperTool) and isinstance(other, WrapperTool):  # made anew whenever a toolset changes
        return type(one) is type(other) and is_same_tool(one.inner, other.inner) and _have_same_spec(one, other)
    return False


def _have_same_spec(one: object, other: object) -> bool:
    return isinstance(one, Tool) and isinstance(other, Tool) and one.spec == other.spec


def _describe_spec(spec: ToolSpec) -> str:
    known = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return json.dumps(known, sort_keys=True, default=repr)


def _implementation(tool: Tool) -> list[object]:
    if isinstance(tool, FunctionTool):
        return [tool.function, tool.traits.accesses, tool.traits.isolation]
    if isinstance(tool, SchemaTool):
        return [tool.handler, tool.declare]
    inner: object = getattr(tool, "inner", None)  # of any wrapper: what runs is the tool inside
    wrapped = _implementation(inner) if isinstance(inner, Tool) and inner is not tool else []
    return [type(tool), *(getattr(type(tool), name, None) for name in _METHODS), *wrapped]


def _describe(value: Any, depth: int) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)
    if depth >= _MAX_DEPTH:
        return _type_name(type(cast("object", value)))
    match value:
        case type():
            return _type_name(cast("type[Any]", value))
        case FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
            parts = [value.__code__, value.__defaults__, value.__kwdefaults__, *cells]
            # without its module, which is __main__ in one process and has a name in another
            return f"{value.__name__}({_describe_all(parts, depth)})"
        case MethodType():
            return f"{_type_name(type(value.__self__))}:{_describe(value.__func__, depth + 1)}"
        case partial():
            made = cast("partial[Any]", value)
            return f"partial({_describe_all([made.func, made.args, made.keywords], depth)})"
        case CodeType():
            parts = [value.co_code, value.co_names, value.co_varnames, value.co_consts]
            return f"code({_describe_all(parts, depth)})"
        case tuple() | list():
            return f"[{_describe_all(cast('list[Any]', value), depth)}]"
        case dict() | frozenset() | set():
            items = cast("dict[Any, Any]", value).items() if isinstance(value, dict) else cast("set[Any]", value)
            return "{" + ",".join(sorted(_describe(item, depth + 1) for item in items)) + "}"
        case _:
            return _type_name(type(cast("object", value)))


def _describe_all(values: "list[Any] | tuple[Any, ...]", depth: int) -> str:
    return ",".join(_describe(value, depth + 1) for value in values)


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # a name that its function has not bound yet
        return False
    return True


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
