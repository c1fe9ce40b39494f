"""`SchemaTool`: tools with a hand-written JSON Schema, which is not changed."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from callwright.core.access import Access
from callwright.core.errors import InvalidArguments, UsageError, check_callable, check_kind
from callwright.core.json import JsonObject, thaw
from callwright.core.spec import ACCESSES_FORM, ToolSpec
from callwright.tool.arguments import as_text, clip_value, from_text, join_path, show_value
from callwright.tool.base import ToolContext
from callwright.tool.render import exhaust, settle
from callwright.tool.schema_cost import MOST_EVALUATIONS, SchemaCost
from callwright.tool.schema_worker import make_validator
from callwright.tool.threads import threads

Handler: TypeAlias = Callable[..., object | Awaitable[object]]
"""Takes the arguments as a dict and, if it has a second parameter, the `ToolContext`; sync or async."""
_SHOWN_ERRORS = 8
_MOST_EXPLAINED = 10_000


class SchemaTool:
    """A tool whose arguments are described by any JSON Schema, drafts 4 to 2020-12.

    Args:
        spec: The spec, with the schema as `input_schema`.
        handler: The function to call with the arguments and, if it has a second parameter, the context.
        accesses: Returns what a call with these arguments would access.

    Raises:
        UsageError: The schema is not a valid JSON Schema or expands too far, or the handler takes other parameters.
    """

    def __init__(
        self,
        spec: ToolSpec,
        handler: Handler,
        *,
        accesses: Callable[[JsonObject], Iterable[Access]] | None = None,
    ) -> None:
        check_kind("spec", spec, ToolSpec, "write SchemaTool(ToolSpec(name, description, input_schema), handler)")
        self.spec = spec
        self.handler = handler
        if accesses is not None:
            check_callable(f"the accesses of {spec.name}", accesses, ACCESSES_FORM)
        self.declare = accesses
        self.wants_context = _takes_context(spec.name, handler)
        self.is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - an object with an async __call__ is async too
        )
        self._check_schema()

    def _check_schema(self) -> None:
        """Raise `UsageError` now, at definition, if the schema is invalid or expands too far."""
        # before the validator is made, which takes the time and memory that a schema can ask for
        self._cost = SchemaCost(thaw(self.spec.input_schema), about=self.spec.name)
        _ = self._validator

    @cached_property
    def _validator(self) -> Any:
        try:
            return make_validator(thaw(self.spec.input_schema), bounded=False)
        except ValueError as error:
            raise UsageError(f"{self.spec.name}: input_schema is not a JSON Schema: {error}") from error

    def bind(self, arguments: JsonObject | str | bytes) -> "SchemaInvocation":
        """Validate arguments against the schema and return an invocation."""
        text = arguments if isinstance(arguments, (str, bytes)) else as_text(arguments)
        value = from_text(text)
        if not isinstance(value, dict):
            raise InvalidArguments(f"arguments: expected an object, got {show_value(value)}")
        given = cast("dict[str, Any]", value)
        self.validate(given)
        return SchemaInvocation(self, given)

    def validate(self, arguments: dict[str, Any]) -> None:
        """Raise `InvalidArguments` for arguments that do not match the schema."""
        if fault := find_mismatch(self._validator, self._cost, arguments):
            raise InvalidArguments(fault)


class SchemaInvocation:
    """One call of a `SchemaTool`, validated and ready to run."""

    __slots__ = ("arguments", "tool")

    def __init__(self, tool: SchemaTool, arguments: Mapping[str, Any]) -> None:
        self.tool = tool
        self.arguments: JsonObject = arguments

    def accesses(self) -> Sequence[Access]:
        return () if self.tool.declare is None else tuple(self.tool.declare(self.arguments))

    async def run(self, context: ToolContext) -> object:
        own = thaw(self.arguments)  # a handler may change its arguments, and a call may be tried again
        given = (own, context) if self.tool.wants_context else (own,)
        if self.tool.is_async:
            return await settle(self.tool.handler(*given), context)
        return await settle(await threads.run(lambda: exhaust(self.tool.handler(*given), context)), context)


_methods: WeakKeyDictionary[Callable[..., object], bool] = WeakKeyDictionary()
"""Whether methods take the context; a server with thousands of tools has one method for all."""


def _takes_context(name: str, handler: Handler) -> bool:
    method = getattr(handler, "__func__", None)
    if method is None:
        return _read_signature(name, handler)
    if method not in _methods:
        _methods[method] = _read_signature(name, handler)
    return _methods[method]


def _read_signature(name: str, handler: Handler) -> bool:
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: the handler {handler!r} has no readable signature") from error
    wanted = len(signature.parameters) > 1
    try:
        signature.bind(*(None, None) if wanted else (None,))
    except TypeError as error:
        raise UsageError(f"{name}: the handler takes {signature}; write (arguments) or (arguments, context)") from error
    return wanted


def find_mismatch(validator: Any, cost: SchemaCost, value: object) -> str:
    """Return why a value does not match a schema, empty if it does. The work is bounded.

    Args:
        validator: Of jsonschema_rs.
        cost: Of the same schema.
        value: Plain JSON.
    """
    if not cost.linear and cost.count(value, most=MOST_EVALUATIONS) > MOST_EVALUATIONS:
        return "arguments: too large or too deeply nested for the tool's schema; send less at once"
    if validator.is_valid(value):
        return ""
    if cost.count(value, most=_MOST_EXPLAINED) <= _MOST_EXPLAINED:
        return _explain(validator.iter_errors(value))
    # the validator collects all errors before it returns the first, and all those of alternatives
    return "arguments: do not match the tool's schema" if cost.has_alternatives else _explain_first(validator, value)


def _explain_first(validator: Any, value: object) -> str:
    try:
        validator.validate(value)
    except ValueError as error:
        return _explain([error])
    return "arguments: do not match the tool's schema"


def _explain(errors: Iterable[Any]) -> str:
    return explain_errors((error.instance_path, error.message) for error in errors)


def explain_errors(errors: Iterable[tuple[Any, str]]) -> str:
    """Return a message for the paths and messages of the first errors."""
    clauses: list[str] = []
    for path, message in errors:
        clauses.append(f"{join_path(path)}: {clip_value(str(message))}")
        if len(clauses) == _SHOWN_ERRORS:
            break
    return "; ".join(dict.fromkeys(clauses))
