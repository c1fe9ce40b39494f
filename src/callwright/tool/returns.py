"""What a function's return annotation says about the structured output of its tool."""

import inspect
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Union, get_args, get_origin

from callwright.core.content import Output
from callwright.core.json import JsonObject
from callwright.tool.compile import compile_annotation, schema_of
from callwright.tool.signature import MISSING


def output_schema_of(function: Callable[..., object], returns: object) -> JsonObject | None:
    """JSON Schema of structured results; there is none for text, parts, or what may be either."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        returns = next(iter(get_args(returns)), MISSING)
    if returns is MISSING or returns in (Any, object) or _has_text(returns):
        return None
    if compile_annotation(returns) is not None:
        return schema_of(returns)
    from callwright.tool.schema import output_schema

    return output_schema(returns)


def _has_text(returns: object) -> bool:
    if returns in (None, type(None), str, bytes):
        return True
    if inspect.isclass(returns) and returns.__module__ == Output.__module__:
        return True
    origin, parts = get_origin(returns), get_args(returns)
    if origin in (list, tuple):
        return any(inspect.isclass(part) and part.__module__ == Output.__module__ for part in _members(parts))
    return origin in (Union, UnionType) and any(_has_text(part) for part in parts)


def _members(annotations: Iterable[object]) -> Iterable[object]:
    for annotation in annotations:
        yield from get_args(annotation) or (annotation,)
