"""Tools written as typed functions, and their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from types import MethodType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from callwright.core._fast import frozen
from callwright.core.access import Access
from callwright.core.content import Output
from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, Json, JsonObject
from callwright.core.spec import (
    Annotations,
    Limits,
    ToolSpec,
    check_name,
)
from callwright.tool.base import LazyTool, ToolContext
from callwright.tool.compile import compile_annotation, schema_of
from callwright.tool.contract import Contract
from callwright.tool.render import exhaust, settle
from callwright.tool.signature import MISSING, has_description, innermost, read_docstring, read_signature

if TYPE_CHECKING:
    from callwright.tool.threads import Threads


def output_schema_of(function: Callable[..., object], returns: object) -> JsonObject | None:
    """Return the JSON Schema of structured results; None for text, content parts, or a union with them."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yielded, *_, returned = (*get_args(returns), MISSING, None)[:3]
        returns = yielded if returned in (MISSING, None, type(None)) else returned  # which wins over what was yielded
    if returns is MISSING or returns in (Any, object) or _has_text(returns):
        return None
    compiled = compile_annotation(returns)
    if compiled is not None and compiled.plain:  # a model may write its fields under other names than it reads them
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


Isolation: TypeAlias = Literal["thread", "process", "inline"]
AccessesOf: TypeAlias = Callable[[JsonObject], Iterable[Access]]
_NO_METADATA: Mapping[str, Json] = FrozenDict()


@frozen
class Traits:
    """The options of `@tool`: everything about a function tool that is not in its signature."""

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
        self.aliases = tuple(check_name(alias) for alias in traits.aliases)
        self.contract = Contract(read_signature(function))
        """The parser and schema derived from the signature."""
        shape = self.contract.shape
        self._template: FunctionTool | None = None
        self._spec: ToolSpec | None = None
        self._async = _is_async(function)
        self._inline = traits.isolation == "inline" or inspect.isasyncgenfunction(innermost(function))
        self._simple = not (shape.context or shape.positional)
        self.direct = function if self._simple and self._async else None
        """The function itself, if a call needs nothing else."""
        if traits.isolation == "process":
            _check_isolable(self, function)
        if not traits.description and not has_description(_docstring(function)):
            raise UsageError(f"{self.name}: no description; write a docstring, the model chooses tools by it")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool:
        """Bind a tool that is defined in a class to an instance, like a method."""
        if instance is None or not self.contract.shape.method:
            return self
        from copy import copy

        bound = copy(self)
        bound.function = MethodType(self.function, instance)
        bound.direct = None if self.direct is None else bound.function
        bound._template = self._template or self  # noqa: SLF001 - its own class
        return bound

    @property
    def spec(self) -> ToolSpec:
        """The spec, derived on first use and shared by all instances of a method's class."""
        if self._spec is None:
            self._spec = self._derive_spec() if self._template is None else self._template.spec
        return self._spec

    def _derive_spec(self) -> ToolSpec:
        traits = self.traits
        words, described = read_docstring(_docstring(self.function))
        return ToolSpec(
            name=self.name,
            description=traits.description or words,
            input_schema=self.contract.schema(described),
            output_schema=output_schema_of(innermost(self.function), self.contract.shape.returns),
            annotations=traits.annotations,
            limits=traits.limits,
            aliases=self.aliases,
            group=traits.group,
            deferred=traits.deferred,
            search_hint=traits.search_hint,
            metadata=traits.metadata,
        )

    def require_bound(self) -> None:
        """Raise a `UsageError` for a method that was taken from its class."""
        if self.contract.shape.method and self._template is None:
            owner, name = self.contract.shape.function.split(".")[-2:]
            raise UsageError(f"{owner}.{name} is a method; take the tool from an instance, as in {owner}(…).{name}")

    @cached_property
    def _parse(self) -> Callable[[JsonObject | str | bytes], dict[str, Any]]:
        self.require_bound()
        return self.contract.parser.parse

    def bind(self, arguments: JsonObject | str | bytes) -> Bound:
        """Validate arguments and return an invocation."""
        if not self.contract.special:
            return Bound(self, self._parse(arguments))
        return (FreshBound if self.contract.fresh else ConcealingBound)(self, self._parse(arguments), arguments)

    def complete(self, values: Mapping[str, Any]) -> JsonObject:
        """Return the arguments as JSON, with defaults filled in."""
        plain, defaults = self._json_form
        given = values if plain else self.contract.write(_sort_sets(values))
        if not defaults:
            return dict(given)
        return {**given, **{name: value for name, value in defaults.items() if name not in given}}

    @cached_property
    def _json_form(self) -> tuple[bool, Mapping[str, Any]]:
        """Whether validated values are plain JSON, and the defaults; cached, because every observed call needs both."""
        return self.contract.plain, self.contract.defaults

    def perform(self, values: dict[str, Any], context: ToolContext) -> Coroutine[Any, Any, object]:
        """Run the function: awaited, in a thread, or in a process."""
        given, named = ((), values) if self._simple else self._place_values(values, context)
        if self._async:
            return self.function(*given, **named)
        return self._run_elsewhere(given, named, context)

    def _place_values(self, values: dict[str, Any], context: ToolContext) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return positional and named values; a copy, because a call may be retried."""
        shape, named = self.contract.shape, dict(values)
        if shape.context:
            named[shape.context] = context
        return [named.pop(name) for name in shape.positional], named

    async def _run_elsewhere(self, given: Sequence[Any], named: dict[str, Any], context: ToolContext) -> object:
        if self.traits.isolation == "process":
            from callwright.tool.subprocess import run_isolated

            return await run_isolated(self.function, given, named)
        if self._inline:
            return await settle(self._call(given, named, context), context)
        run = _load_threads().start(self._call, given, named, context)
        try:  # as `threads.run`, whose coroutine would live as long as the call
            await run.future
        except BaseException:
            run.leave()
            raise
        value = run.result()
        return value if type(value) is str else await settle(value, context)

    def _call(self, given: Sequence[Any], named: dict[str, Any], context: ToolContext) -> object:
        return exhaust(self.function(*given, **named), context)


@cache
def _load_threads() -> Threads:
    from callwright.tool.threads import threads  # loaded with the first function that needs one

    return threads


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

    def take_values(self, other: Bound) -> None:
        """Take the values of another call of the same tool, to run with them."""
        self.values, self._arguments = other.values, None

    def accesses(self) -> Sequence[Access]:
        declare = self.tool.traits.accesses
        return () if declare is None else tuple(declare(self.arguments))

    def run(self, context: ToolContext) -> Coroutine[Any, Any, object]:
        """Return the coroutine of an async function itself: a wrapper would cost every call."""
        direct = self.tool.direct
        return self.tool.perform(self.values, context) if direct is None else direct(**self.values)


class ConcealingBound(Bound):
    """One call of a function tool whose arguments are not all shown as they are."""

    __slots__ = ("concealed",)

    def __init__(self, tool: FunctionTool, values: dict[str, Any], written: JsonObject | str | bytes) -> None:
        from callwright.tool.concealment import digest_written

        super().__init__(tool, values)
        self.concealed = digest_written(written) if tool.contract.concealed else ""
        """A digest of the arguments as they were written; empty if they are all shown."""

    def restore_concealed(self, edited: JsonObject, shown: JsonObject, written: JsonObject | str | bytes) -> JsonObject:
        """Return edited arguments with what they do not show as it was written."""
        contract = self.tool.contract
        if not contract.concealed:
            return edited
        from callwright.tool.concealment import restore_concealed

        return restore_concealed(edited, shown, written, contract.concealed, self._aliases)

    @property
    def _aliases(self) -> dict[str, str]:
        return {alias: each.name for each in self.tool.contract.shape.parameters for alias in each.aliases}


class FreshBound(ConcealingBound):
    """One call of a function tool with a default that is made for each call: it cannot be made again for a retry."""

    __slots__ = ()

    def take_values(self, other: Bound) -> None:
        """Keep the values: the others have another default."""

    def recall_defaults(self, shown: JsonObject, written: JsonObject | str | bytes) -> JsonObject | None:
        """Return the arguments with the defaults of each call as they were shown before."""
        from callwright.tool.concealment import recall_defaults

        contract = self.tool.contract
        return recall_defaults(written, shown, contract.fresh, contract.concealed, self._aliases)

    def run(self, context: ToolContext) -> Coroutine[Any, Any, object]:
        """Run with a copy, so that a function that changes its arguments does not change those of a retry."""
        from callwright.tool.concealment import copy_values

        return self.tool.perform(copy_values(self.values), context)


def _sort_sets(value: Any) -> Any:
    """Return a value with its sets in one order, because the order of a set differs from process to process."""
    if isinstance(value, (set, frozenset)):
        return sorted((_sort_sets(item) for item in cast("set[Any]", value)), key=repr)
    if isinstance(value, dict):
        return {key: _sort_sets(item) for key, item in cast("dict[Any, Any]", value).items()}
    if type(value) in (list, tuple):
        return [_sort_sets(item) for item in cast("list[Any]", value)]
    return value


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether a call returns a coroutine; checked on the outermost function, since wrappers may change it."""
    target: Any = function
    while isinstance(target, partial):
        target = cast("partial[Any]", target).func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def _docstring(function: Callable[..., Any]) -> str | None:
    """Return the docstring; for a callable object that of its `__call__` or its class."""
    target = innermost(function)
    return target.__doc__ or (None if isinstance(function, partial) else function.__doc__)


def _check_isolable(made: FunctionTool, function: Callable[..., Any]) -> None:
    from callwright.tool.subprocess import check_importable

    reason = ""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        reason = "is for synchronous functions; this one is async"
    elif inspect.isgeneratorfunction(function):
        reason = "cannot carry progress; return the value instead of yielding"
    elif made.contract.shape.context:
        reason = f"cannot carry the context; leave out {made.contract.shape.context!r}"
    if reason:
        raise UsageError(f"{made.name}: isolation='process' {reason}")
    check_importable(function)
