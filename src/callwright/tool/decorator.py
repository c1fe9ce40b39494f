"""`@tool`: makes a typed function a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_args, overload

from callwright.core.errors import UsageError, check_callable, check_kind
from callwright.core.json import Json
from callwright.core.spec import ACCESSES_FORM, Annotations, Effect, Limits, annotate, check_aliases
from callwright.tool.function import AccessesOf, FunctionTool, Isolation, Traits
from callwright.tool.signature import innermost

_OPTIONS = frozenset("description aliases group deferred search_hint metadata accesses isolation".split())


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    effect: Effect = ...,
    annotations: Annotations | None = ...,
    limits: Limits = ...,
    seconds: float | None = ...,
    aliases: Sequence[str] = ...,
    group: str = ...,
    deferred: bool = ...,
    search_hint: str = ...,
    metadata: Mapping[str, Json] = ...,
    accesses: AccessesOf | None = ...,
    isolation: Isolation = ...,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(function: Callable[..., Any] | None = None, /, **traits: Any) -> Any:
    """Make a typed function a tool: `@tool` or `@tool(effect=Effect.READ, …)`.

    The name and description come from the function and its docstring, the schema from its annotations.

    Args:
        function: The function, sync or async; omitted in `@tool(…)` with options.
        traits: Options such as `name`, `effect` (short for `annotations=Annotations(effect)`) and `seconds` (short for
            `limits=Limits(seconds)`); the overload above lists them all.

    Raises:
        UsageError: The definition is wrong; raised here, not when a model calls the tool.
    """
    if function is None:
        return partial(_define, **traits)
    return _define(function, **traits)


def _define(
    function: Callable[..., Any],
    *,
    name: str = "",
    effect: Effect | None = None,
    annotations: Annotations | None = None,
    limits: Limits = Limits(),
    seconds: float | None = None,
    **rest: Any,
) -> FunctionTool:
    if not callable(function) or isinstance(function, (FunctionTool, type)):
        raise UsageError(f"@tool needs a function, got {function!r}{_advise(function)}")
    _check_options(rest)
    own = name or str(getattr(innermost(function), "__name__", ""))
    if own == "__call__":
        own = type(function).__name__.lower()
    if own == "<lambda>":
        raise UsageError("@tool: a lambda has no name and no annotations; write a function with def")
    check_kind("the limits of @tool", limits, Limits, "write limits=Limits(seconds=10), or seconds=10")
    if seconds is not None:
        limits = Limits(seconds, limits.output_chars, limits.concurrency)
    claims = annotate(effect, annotations, about="@tool")
    return FunctionTool(function, Traits(own, annotations=claims, limits=limits, **rest))


def _advise(mistaken: object) -> str:
    """Return what to write instead of something that is not a function; empty if that is not known."""
    match mistaken:
        case str():
            return f"; write @tool(name={mistaken!r})"
        case classmethod():
            return "; leave @tool out, and after the class write tool(Class.method)"
        case type():
            return "; decorate one of its methods, or derive it from TypedTool"
        case FunctionTool():
            return ", which is a tool already"
        case _:
            return ""


def _check_options(options: dict[str, Any]) -> None:
    for unknown in sorted(options.keys() - _OPTIONS):
        if unknown in Annotations.__dataclass_fields__:
            raise UsageError(f"@tool has no option {unknown!r}; write annotations=Annotations(effect, {unknown}=…)")
        known = {"name", "effect", "annotations", "limits", "seconds", *_OPTIONS}
        raise UsageError(f"@tool has no option {unknown!r}; the options are {', '.join(sorted(known))}")
    aliases = options.get("aliases", ())
    check_aliases(aliases, about="@tool")
    options["aliases"] = tuple(aliases)
    if options.get("accesses") is not None:
        check_callable("the accesses of @tool", options["accesses"], ACCESSES_FORM)
    isolation = options.get("isolation", "thread")
    if isolation not in get_args(Isolation):
        raise UsageError(f"@tool: isolation must be one of {', '.join(get_args(Isolation))}, not {isolation!r}")
