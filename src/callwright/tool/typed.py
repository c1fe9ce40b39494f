"""`TypedTool`: tools written as classes, for tools with dependencies or declared accesses."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from callwright.core.access import Access
from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, Json, JsonObject
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec, annotate, check_aliases
from callwright.tool.arguments import ArgumentParser
from callwright.tool.base import ToolContext
from callwright.tool.render import settle

Given = TypeVar("Given")


class Described:
    """A spec without its schema, which is derived from the arguments class on first use."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __get__(self, instance: object, owner: type["TypedTool[Any]"]) -> ToolSpec:
        return owner.contract().spec

    def complete(self, input_schema: JsonObject) -> ToolSpec:
        """Complete the spec with the schema of the arguments class."""
        return ToolSpec(input_schema=input_schema, **self._fields)


def describe(
    name: str,
    description: str,
    *,
    effect: Effect | None = None,
    annotations: Annotations | None = None,
    limits: Limits = Limits(),
    aliases: Sequence[str] = (),
    group: str = "",
    deferred: bool = False,
    search_hint: str = "",
    output_schema: JsonObject | None = None,
    origin: str = "local",
    metadata: Mapping[str, Json] = FrozenDict(),
) -> ToolSpec:
    """Describe a `TypedTool`; the schema comes from its arguments class.

    Args:
        name: The name the model calls the tool by.
        description: What the tool is for; the model chooses tools by it.
        effect: Short for `annotations=Annotations(effect)`; WRITE if neither is given.
        annotations: The effect and the other hints, instead of `effect`.
        limits: Time and output limits.
        aliases: Other names the model may use.
        group: The group the tool is listed in.
        deferred: Shown to the model only after a tool search found it.
        search_hint: Words for the tool search that the description lacks.
        output_schema: JSON Schema of the structured output, if there is one.
        origin: Where the tool comes from.
        metadata: Anything else, as JSON.

    Raises:
        UsageError: `effect` and `annotations` name different effects, or `aliases` is one string.
    """
    check_aliases(aliases, about=f"describe({name!r})")
    described = Described(
        name=name,
        description=description,
        annotations=annotate(effect, annotations, about=f"describe({name!r})"),
        limits=limits,
        aliases=tuple(aliases),
        group=group,
        deferred=deferred,
        search_hint=search_hint,
        output_schema=output_schema,
        origin=origin,
        metadata=metadata,
    )
    return cast(ToolSpec, described)  # reading it from the class it is defined in returns a ToolSpec


@dataclass(frozen=True, slots=True)
class _Contract:
    spec: ToolSpec
    parser: ArgumentParser[Any]
    dump: Any
    concealed: frozenset[str]
    fresh: Mapping[str, frozenset[str]]
    """The fields whose default is made for each call, such as an identifier, and may be another one each time; with
    all of their names."""


def _dump_infinite(dump: Callable[..., Any], given: object, *, mode: str) -> Any:
    """Return arguments as JSON, with null for infinite numbers, which only defaults can be."""
    from callwright.tool.validators import to_jsonable_python

    return to_jsonable_python(dump(given, mode=mode), inf_nan_mode="null")


class TypedTool(Generic[Given]):
    """Base class of tools with an arguments class in brackets, a `spec = describe(…)` and an async `run`."""

    spec: ClassVar[ToolSpec]
    _contract: ClassVar[_Contract | None] = None

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._contract = None
        run = vars(cls).get("run")
        if run is not None and not (inspect.iscoroutinefunction(run) or inspect.isasyncgenfunction(run)):
            raise UsageError(f"{cls.__name__}.run must be async; write async def run(self, arguments, context)")

    @classmethod
    def contract(cls) -> _Contract:
        """Return the spec and parser of the class, derived once."""
        if cls._contract is None:
            cls._contract = cls._derive()
        return cls._contract

    @classmethod
    def _derive(cls) -> _Contract:
        from callwright.tool.concealment import find_concealed, find_fresh
        from callwright.tool.schema import model_schema

        described = next((vars(base)["spec"] for base in cls.__mro__ if "spec" in vars(base)), None)
        if not isinstance(described, Described):
            raise UsageError(f'{cls.__name__} has no spec; write spec = describe("name", "what it is for")')
        parser, schema, adapter, finite = model_schema(cls._arguments_class(), about=cls.__name__)
        hidden = find_concealed(adapter.core_schema, about=cls.__name__)
        dump = adapter.dump_python if finite else partial(_dump_infinite, adapter.dump_python)
        return _Contract(described.complete(schema), parser, dump, hidden, find_fresh(adapter.core_schema))

    @classmethod
    def _arguments_class(cls) -> object:
        for base in cls.__mro__:
            for parent in vars(base).get("__orig_bases__", ()):
                if get_origin(parent) is TypedTool and not isinstance(get_args(parent)[0], TypeVar):
                    return get_args(parent)[0]
        raise UsageError(
            f"{cls.__name__} does not name its arguments; write class {cls.__name__}(TypedTool[MyArguments])"
        )

    @classmethod
    def field_aliases(cls) -> Mapping[str, str]:
        """Return the other names that fields may be given by, each with the name of its field."""
        fields = cast("Mapping[str, Any]", getattr(cls._arguments_class(), "model_fields", {}))
        choices = {name: getattr(field.validation_alias, "choices", ()) for name, field in fields.items()}
        return {alias: name for name, aliases in choices.items() for alias in aliases if alias != name}

    def bind(self, arguments: JsonObject | str | bytes) -> "TypedInvocation[Given]":
        """Validate arguments and return an invocation."""
        contract = self.contract()
        given, concealed = contract.parser.parse(arguments), ""
        if contract.concealed:
            from callwright.tool.concealment import digest_written

            concealed = digest_written(arguments)
        return TypedInvocation(self, given, contract.dump, concealed)

    def accesses(self, arguments: Given) -> Sequence[Access]:
        """Return what a run would access; without accesses, policies judge the call by the tool's effect."""
        return ()

    async def run(self, arguments: Given, context: ToolContext) -> object:
        """Run the tool.

        Args:
            arguments: The validated arguments.
            context: What a running tool can read and do.

        Raises:
            ToolError: The call failed; the model sees the message.
        """
        raise NotImplementedError(f"{type(self).__name__} has no run")


class TypedInvocation(Generic[Given]):
    """One call of a `TypedTool`, validated and ready to run."""

    __slots__ = ("_arguments", "_dump", "concealed", "given", "tool")

    def __init__(self, tool: TypedTool[Given], given: Given, dump: Any, concealed: str = "") -> None:
        self.tool = tool
        self.given = given
        self._dump = dump
        self.concealed = concealed
        """A digest of the arguments as they were written, if they are not all shown as they are."""
        self._arguments: JsonObject | None = None

    @property
    def arguments(self) -> JsonObject:
        if self._arguments is None:
            self._arguments = cast("Mapping[str, Json]", self._dump(self.given, mode="json"))
        return self._arguments

    def take_values(self, other: "TypedInvocation[Given]") -> None:
        """Take the arguments of another call of the same tool, to run with them, unless a default would be another."""
        if not self.tool.contract().fresh:
            self.given, self._arguments = other.given, None

    def accesses(self) -> Sequence[Access]:
        return self.tool.accesses(self.given)

    def recall_defaults(self, shown: JsonObject, written: JsonObject | str | bytes) -> JsonObject | None:
        """Return the arguments with the defaults of each call as they were shown before; None if it has none."""
        contract = self.tool.contract()
        if not contract.fresh:
            return None
        from callwright.tool.concealment import recall_defaults

        return recall_defaults(written, shown, contract.fresh, contract.concealed, self.tool.field_aliases())

    def restore_concealed(self, edited: JsonObject, shown: JsonObject, written: JsonObject | str | bytes) -> JsonObject:
        """Return edited arguments with what they do not show as it was written."""
        if not self.concealed:
            return edited
        from callwright.tool.concealment import restore_concealed

        return restore_concealed(edited, shown, written, self.tool.contract().concealed, self.tool.field_aliases())

    async def run(self, context: ToolContext) -> object:
        given = self.given
        if self.tool.contract().fresh:  # they cannot be made again if the tool changes them and is retried
            from callwright.tool.concealment import copy_values

            given = copy_values(given)
        return await settle(self.tool.run(given, context), context)
