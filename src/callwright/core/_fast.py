"""Frozen values: classes that are quick to define, and a fast way to make many of one.

`frozen` stands for `dataclass(frozen=True, slots=True)`, which compiles six methods from source text: 76 classes took
a quarter of the time until the first tool had run. Here all classes share their methods, and what differs between them
(`__init__`, the fields, comparing) is made when a class first needs it. The module `dataclasses` is loaded with the
first description of fields, which no call needs.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field

Value = TypeVar("Value")
_Make: TypeAlias = Callable[[type], Any]


class _Factory:
    """The default of a field whose value is made for each instance."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Value]) -> Value:
    """Return the default of a field whose value is made for each instance, as `dataclasses.field` does."""
    return cast(Value, _Factory(default_factory))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[Value]) -> type[Value]:
    """Make a class a frozen dataclass with slots.

    Methods that the class defines itself are kept.

    Raises:
        TypeError: A base class is a dataclass, or a default is made by `dataclasses.field`. A class variable is found
            on first use.
    """
    return _define(kind, _FROZEN_LATE, _FROZEN_SHARED)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def slotted(kind: type[Value]) -> type[Value]:
    """Make a class a dataclass with slots that may change and equals only itself; otherwise like `frozen`."""
    return _define(kind, _SLOTTED_LATE, _SLOTTED_SHARED)


def _define(kind: type[Value], made_late: Mapping[str, _Make], shared: Mapping[str, Any]) -> type[Value]:
    if hasattr(kind, "__dataclass_fields__"):
        raise TypeError(f"{kind.__qualname__} inherits from a dataclass; use dataclass(frozen=True, slots=True)")
    names = tuple(kind.__annotations__)
    space: dict[str, Any] = dict(vars(kind))
    space.pop("__dict__", None)
    space.pop("__weakref__", None)
    defaults = {name: space.pop(name) for name in names if name in space}
    if _has_standard_field(defaults.values()):
        raise _unusual(kind)
    for name, method in shared.items():
        if space.get(name) is None:
            space[name] = method
    for name, make in made_late.items():
        if space.get(name) is None:  # Python sets `__hash__` to None beside an `__eq__`
            space[name] = _Late(make)
    if "__init__" not in space:
        space["__init__"] = _LateInit(_compile_init)
    space["__slots__"] = space["__match_args__"] = names
    space["__qualname__"] = kind.__qualname__
    space["__doc__"] = kind.__doc__ or kind.__name__
    space["__field_defaults__"] = defaults
    return type(kind)(kind.__name__, kind.__bases__, space)


def _unusual(kind: type) -> TypeError:
    return TypeError(f"{kind.__qualname__} has unusual fields; use dataclass(frozen=True, slots=True)")


def _has_standard_field(defaults: Iterable[object]) -> bool:
    dataclasses = sys.modules.get("dataclasses")  # without the module there is no such field
    return dataclasses is not None and any(isinstance(default, dataclasses.Field) for default in defaults)


def _describe(kind: type) -> dict[str, "Field[Any]"]:
    """Let the standard library describe the fields of a class, on a class that has nothing else."""
    from dataclasses import dataclass, field as standard_field

    defaults = {
        name: standard_field(default_factory=given.make) if isinstance(given, _Factory) else given
        for name, given in cast(Any, kind).__field_defaults__.items()
    }
    same = {"__annotations__": kind.__annotations__, "__module__": kind.__module__, "__doc__": kind.__doc__, **defaults}
    return cast(Any, dataclass(init=False, repr=False, eq=False)(type(kind.__name__, (), same))).__dataclass_fields__


def _describe_parameters(_: type, *, is_frozen: bool) -> Any:
    """Return the parameters of a dataclass: one that inherits from a frozen one has to be frozen too."""
    from dataclasses import dataclass

    sample = dataclass(init=False, repr=False, eq=False, frozen=is_frozen)(type("_", (), {}))
    return cast(Any, sample).__dataclass_params__


class _Late:
    """An attribute of a class until it is first needed: makes the value, which takes its place."""

    __slots__ = ("_kind", "_make", "_name")

    def __init__(self, make: _Make) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._kind, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        made = vars(self._kind)[self._name]
        if made is self:  # another thread may have been faster
            made = self._make(self._kind)
            setattr(self._kind, self._name, made)
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


class _LateInit(_Late):
    """The `__init__` of a class. It fills the first instances itself: compiling takes as long as filling twenty."""

    __slots__ = ("_filled",)

    def __init__(self, make: _Make) -> None:
        super().__init__(make)
        self._filled = 0

    def __get__(self, instance: object, owner: type) -> Any:
        if not isinstance(instance, self._kind) or self._filled >= _MOST_FILLED:  # signatures are read from the class
            return super().__get__(instance, owner)
        if self._filled == 0 and _is_unusual(self._kind):  # the compiled one says what is wrong
            return super().__get__(instance, owner)
        self._filled += 1
        return partial(self._fill, instance)

    def _fill(self, instance: object, /, *args: Any, **named: Any) -> None:
        values = _match_fields(self._kind, args, named)
        if values is None:  # as above
            super().__get__(instance, type(instance))(*args, **named)
            return
        for name, value in values.items():
            object.__setattr__(instance, name, value)
        if hasattr(instance, "__post_init__"):
            cast(Any, instance).__post_init__()


_MOST_FILLED = 8


def _match_fields(kind: Any, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
    """Return the values of all fields, or None if the arguments are not as they should be."""
    names, defaults = kind.__slots__, kind.__field_defaults__
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not named.keys() <= set(names) - values.keys():
        return None
    values |= named
    for name in names:
        if name not in values:
            if name not in defaults:
                return None
            given = defaults[name]
            values[name] = given.make() if isinstance(given, _Factory) else given
    return values


class _Unset:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _compile_init(kind: type) -> Callable[..., None]:
    space: dict[str, Any] = {"_unset": _UNSET}
    parameters, lines, annotations = ["self"], list[str](), kind.__annotations__
    defaults = cast(Any, kind).__field_defaults__
    for name, annotation in annotations.items():
        default, value = "", name
        if _is_class_variable(annotation):
            raise _unusual(kind)
        if name in defaults:
            given = defaults[name]
            if _is_mutable(given):
                raise ValueError(f"{kind.__qualname__}.{name} has a mutable default, which all instances would share")
            made = isinstance(given, _Factory)
            space[f"_default_{name}"], default = (given.make, "=_unset") if made else (given, f"=_default_{name}")
            value = f"_default_{name}() if {name} is _unset else {name}" if made else name
        parameters.append(name + default)
        space[f"_set_{name}"] = vars(kind)[name].__set__  # of the slot itself: half the cost of `object.__setattr__`
        lines.append(f"    _set_{name}(self, {value})\n")
    if hasattr(kind, "__post_init__"):
        lines.append("    self.__post_init__()\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(lines) or '    pass'}", space)  # as dataclasses do
    init = space["__init__"]
    init.__qualname__, init.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    init.__annotations__ = {**annotations, "return": None}
    return init


def _is_unusual(kind: Any) -> bool:
    unusual = any(map(_is_class_variable, kind.__annotations__.values()))
    return unusual or any(map(_is_mutable, kind.__field_defaults__.values()))


def _is_mutable(default: object) -> bool:
    return type(default).__hash__ is None


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return "ClassVar" in annotation
    return annotation is ClassVar or getattr(annotation, "__origin__", None) is ClassVar


def _make_equals(kind: type) -> Callable[[object, object], Any]:
    compared = _reader(cast(Any, kind).__slots__)

    def equals(self: object, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equals


def _make_hash(kind: type) -> Callable[[object], int]:
    hashed = _reader(cast(Any, kind).__slots__)

    def hash_value(self: object) -> int:
        return hash(hashed(self))

    return hash_value


def _reader(names: tuple[str, ...]) -> Callable[[object], object]:
    if len(names) == 1:
        read = attrgetter(names[0])
        return lambda value: (read(value),)
    return attrgetter(*names) if names else lambda value: ()


def _set_attribute(self: object, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise _refusal(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete_attribute(self: object, name: str) -> None:
    if _is_frozen(self, name):
        raise _refusal(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _refusal(message: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(message)


def _is_frozen(value: object, name: str) -> bool:
    """Whether an attribute may not change: all of a frozen class; of a subclass those it inherits."""
    kind = next(each for each in type(value).__mro__ if vars(each).get("__setattr__") is _set_attribute)
    return type(value) is kind or name in cast(Any, kind).__slots__


@recursive_repr()
def _represent(self: object) -> str:
    shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in _field_names(self)])
    return f"{type(self).__qualname__}({shown})"


def _get_state(self: object) -> list[object]:
    return [getattr(self, name) for name in _field_names(self)]


def _set_state(self: object, state: Iterable[object]) -> None:
    for name, value in zip(_field_names(self), state, strict=True):
        object.__setattr__(self, name, value)


def _field_names(value: object) -> tuple[str, ...]:
    """Return the names of a value's fields; a dataclass that inherits from a class made here may add some."""
    kind = next(each for each in type(value).__mro__ if "__dataclass_fields__" in vars(each))
    if "__field_defaults__" in vars(kind):
        return cast(Any, kind).__slots__
    from dataclasses import fields

    return tuple(each.name for each in fields(cast(Any, kind)))


def replace(value: Value, **changes: Any) -> Value:
    """Return a copy of a value with some fields changed, as `dataclasses.replace` does, without loading its module.

    It is `__replace__` too, by which `copy.replace` of Python 3.13 does the same.
    """
    given = {name: getattr(value, name) for name in _field_names(value)}
    return type(value)(**given | changes)


_SLOTTED_LATE: dict[str, _Make] = {
    "__dataclass_fields__": _describe,
    "__dataclass_params__": partial(_describe_parameters, is_frozen=False),
}
_SLOTTED_SHARED: dict[str, Any] = {"__repr__": _represent, "__replace__": replace}
_FROZEN_LATE: dict[str, _Make] = {
    **_SLOTTED_LATE,
    "__dataclass_params__": partial(_describe_parameters, is_frozen=True),
    "__eq__": _make_equals,
    "__hash__": _make_hash,
}
_FROZEN_SHARED: dict[str, Any] = {
    **_SLOTTED_SHARED,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
    "__setattr__": _set_attribute,
    "__delattr__": _delete_attribute,
}


def make_constructor(kind: type[Value]) -> Callable[..., Value]:
    """Return a function that makes values of a frozen, slotted dataclass from all of its fields, in order.

    A frozen dataclass sets each field through `object.__setattr__`, which costs more than all checks of a call. Here an
    instance of an unfrozen subclass is filled at full speed and then given the frozen class. The value is the same.
    `__post_init__` and default values are skipped, so this is for classes that check nothing.
    """
    return _compile_constructor(kind)


@cache
def _compile_constructor(kind: type) -> Callable[..., Any]:
    names = cast(Any, kind).__match_args__
    # a subclass, not a class like it: whether an object may change between two classes takes long to find out otherwise
    methods = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
    twin = type(f"_{kind.__name__}", (kind,), {"__slots__": (), **methods})
    filled = "".join(f"    value.{name} = {name}\n" for name in names)
    source = f"def make({', '.join(names)}):\n    value = twin()\n{filled}    value.__class__ = kind\n    return value"
    space: dict[str, Any] = {"twin": twin, "kind": kind}
    exec(source, space)  # as dataclasses make their __init__; the names are those of fields
    return space["make"]
