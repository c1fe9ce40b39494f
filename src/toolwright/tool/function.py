"""`@tool`: a typed function as a tool."""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, cast, overload

from pydantic_core import to_jsonable_python

from toolwright.core.access import Access
from toolwright.core.errors import UsageError
from toolwright.core.json import FrozenDict, Json, JsonObject
from toolwright.core.spec import Annotations, Effect, Limits, ToolSpec, check_name
from toolwright.tool.base import LazyTool, ToolContext
from toolwright.tool.docstring import read_docstring
from toolwright.tool.signature import MISSING, Contract, read_signature
from toolwright.tool.threads import threads

Isolation: TypeAlias = Literal["thread", "process", "inline"]
AccessesOf: TypeAlias = Callable[[JsonObject], Iterable[Access]]
_NO_METADATA: Mapping[str, Json] = FrozenDict()


@dataclass(frozen=True, slots=True)
class Traits:
    """Everything about a function tool that its signature does not say."""

    name: str
    description: str = ""
    annotations: Annotations = Annotations()
    limits: Limits = Limits()
    aliases: tuple[str, ...] = ()
    group: str = ""
    deferred: bool = False
    search_hint: str = ""
    metadata: Mapping[str, Json] = _NO_METADATA
    accesses: AccessesOf | None = None
    isolation: Isolation = "thread"


class FunctionTool(LazyTool):
    """A function a model can call. Calling it directly is calling the function."""

    def __init__(self, function: Callable[..., Any], traits: Traits) -> None:
        self.function = function
        self.traits = traits
        self.name = check_name(traits.name)
        self.aliases = traits.aliases
        self._contract = Contract(read_signature(function))
        self._context = self._contract.shape.context
        self._positional = tuple(p.name for p in self._contract.shape.parameters if p.positional)
        self._kind = _kind_of(function)
        self._simple = not (self._context or self._positional or self._contract.defaults)
        self.direct = function if self._simple and self._kind == "async" else None
        """The function itself, where calling it is all there is to do."""
        if self._kind == "async" and traits.isolation == "process":
            raise UsageError(f"{self.name}: isolation='process' is for synchronous functions; this one is async")
        if not traits.description and not (function.__doc__ or "").strip():
            raise UsageError(f"{self.name}: no description; write a docstring, the model chooses tools by it")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __get__(self, instance: object, owner: type | None = None) -> "FunctionTool":
        """Taken from an instance, a tool defined in a class is bound to it like a method."""
        if instance is None:
            return self
        return FunctionTool(partial_method(self.function, instance), self.traits)

    @cached_property
    def spec(self) -> ToolSpec:
        """What the model is told; derived once, when first needed."""
        traits, shape = self.traits, self._contract.shape
        words, described = read_docstring(self.function.__doc__)
        for parameter in shape.parameters:
            parameter.description = described.get(parameter.name, "")
        return ToolSpec(
            name=self.name,
            description=traits.description or words,
            input_schema=self._contract.schema,
            output_schema=_output_schema(shape.returns),
            annotations=traits.annotations,
            limits=traits.limits,
            aliases=traits.aliases,
            group=traits.group,
            deferred=traits.deferred,
            search_hint=traits.search_hint,
            metadata=traits.metadata,
        )

    @cached_property
    def _parse(self) -> Callable[[JsonObject | str | bytes], dict[str, Any]]:
        return self._contract.parser.parse

    def bind(self, arguments: JsonObject | str | bytes) -> "Bound":
        """Check arguments and make them an invocation."""
        return Bound(self, self._parse(arguments))

    def complete(self, values: Mapping[str, Any]) -> JsonObject:
        """The arguments as JSON, defaults filled in."""
        defaults = {p.name: p.default for p in self._contract.shape.parameters if p.default is not MISSING}
        whole = {**defaults, **values}
        return whole if self._contract.plain and not defaults else to_jsonable_python(whole, serialize_unknown=True)

    def start(self, values: dict[str, Any], context: ToolContext) -> Any:
        """Call the function: a value, or for async functions something to await."""
        if self._simple:
            return self.function(**values)
        if self._contract.defaults:
            values = {**self._contract.defaults, **values}
        if self._context:
            values = {**values, self._context: context}
        given = [values.pop(name) for name in self._positional if name in values]
        return self.function(*given, **values)

    def perform(self, values: dict[str, Any], context: ToolContext) -> Coroutine[Any, Any, object]:
        """Run the function the way its kind wants to be run."""
        if self._kind == "async":
            return self.start(values, context)
        return self._elsewhere(values, context)

    async def _elsewhere(self, values: dict[str, Any], context: ToolContext) -> object:
        if self._kind == "stream":
            return await _last(self.start(values, context), context)
        if self.traits.isolation == "inline":
            return _exhaust(self.start(values, context), context)
        if self.traits.isolation == "process":
            from toolwright.tool.isolate import run_isolated

            return await run_isolated(self.function, values)
        return await threads.run(lambda: _exhaust(self.start(values, context), context))


class Bound:
    """One call of a function tool, validated and ready to run."""

    __slots__ = ("_arguments", "tool", "values")

    def __init__(self, tool: FunctionTool, values: dict[str, Any]) -> None:
        self.tool = tool
        self.values = values
        self._arguments: JsonObject | None = None

    @property
    def arguments(self) -> JsonObject:
        if self._arguments is None:
            self._arguments = self.tool.complete(self.values)
        return self._arguments

    def accesses(self) -> Sequence[Access]:
        declare = self.tool.traits.accesses
        return () if declare is None else tuple(declare(self.arguments))

    def run(self, context: ToolContext) -> Coroutine[Any, Any, object]:
        """The function's own coroutine where it is async: a layer between would cost each call."""
        direct = self.tool.direct
        return self.tool.perform(self.values, context) if direct is None else direct(**self.values)


def _kind_of(function: Callable[..., Any]) -> Literal["async", "stream", "sync"]:
    target: Any = inspect.unwrap(function)
    while isinstance(target, partial):
        target = cast("partial[Any]", target).func
    if not inspect.isroutine(target):
        target = type(target).__call__
    if inspect.isasyncgenfunction(target):
        return "stream"
    return "async" if inspect.iscoroutinefunction(target) else "sync"


def partial_method(function: Callable[..., Any], instance: object) -> Callable[..., Any]:
    """Bind a function to an instance the way attribute access would."""
    return cast("Callable[..., Any]", function.__get__(instance, type(instance)))  # type: ignore[attr-defined] - any function has it


async def _last(stream: AsyncIterator[object], context: ToolContext) -> object:
    """An async generator's values are progress; the last one is the result."""
    last: object = None
    first = True
    async for value in stream:
        if not first:
            context.report(last)
        last, first = value, False
    return last


def _exhaust(value: object, context: ToolContext) -> object:
    """The same for a plain generator, on the thread it runs in."""
    if not isinstance(value, Iterator) or not inspect.isgenerator(value):
        return value
    last: object = None
    first = True
    for item in cast("Iterator[object]", value):
        if not first:
            context.report(last)
        last, first = item, False
    return last


def _output_schema(returns: object) -> JsonObject | None:
    if returns in (MISSING, None, type(None), str, Any, object, bytes):
        return None
    if inspect.isclass(returns) and returns.__module__ == "toolwright.core.content":
        return None
    from toolwright.tool.compile import compile_annotation, schema_of

    if compile_annotation(returns) is not None:
        return schema_of(returns)
    from toolwright.tool.schema import output_schema

    return output_schema(returns)


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

    The name and description come from the function and its docstring, the schema from its annotations. `effect`
    is short for `annotations=Annotations(effect)`, `seconds` for `limits=Limits(seconds)`. Mistakes in the
    definition raise `UsageError` here, not when a model calls the tool.
    """
    if function is None:
        return partial(_define, **traits)
    return _define(function, **traits)


def _define(
    function: Callable[..., Any],
    *,
    name: str = "",
    effect: Effect = Effect.WRITE,
    annotations: Annotations | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    seconds: float | None = None,
    **rest: Any,
) -> FunctionTool:
    if not callable(function):
        raise UsageError(f"@tool needs a function, not {function!r}")
    known = {"description", "aliases", "group", "deferred", "search_hint", "metadata", "accesses", "isolation"}
    for unknown in rest.keys() - known:
        raise UsageError(f"@tool has no option {unknown!r}; it knows {', '.join(sorted(known))}")
    if "aliases" in rest:
        rest["aliases"] = tuple(rest["aliases"])
    own = name or str(getattr(function, "__name__", "") or type(function).__name__.lower())
    if seconds is not None:
        limits = Limits(seconds, limits.output_chars, limits.concurrency)
    return FunctionTool(function, Traits(own, annotations=annotations or Annotations(effect), limits=limits, **rest))
