"""Frozen values: classes that are quick to define, and a fast way to make many of one.

`frozen` stands for `dataclass(frozen=True, slots=True)`, which compiles six methods from source text: 76 classes took
a quarter of the time until the first tool had run. Here all classes share their methods, and `__init__` is compiled
when a class is first used.
"""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

Value = TypeVar("Value")


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def frozen(kind: type[Value]) -> type[Value]:
    """Make a class a frozen dataclass with slots.

    Methods that the class defines itself are kept.

    Raises:
        TypeError: A base class is a dataclass, or a field is keyword-only or no parameter.
    """
    if hasattr(kind, "__dataclass_fields__"):
        raise TypeError(f"{kind.__qualname__} inherits from a dataclass; use dataclass(frozen=True, slots=True)")
    kind.__doc__ = kind.__doc__ or kind.__name__  # dataclass would compile `__init__` to write a docstring
    made = dataclass(init=False, repr=False, eq=False, slots=True)(kind)
    if not all(each.init and not each.kw_only for each in _fields(made)):
        raise TypeError(f"{kind.__qualname__} has unusual fields; use dataclass(frozen=True, slots=True)")
    cast(Any, made).__dataclass_params__.frozen = True  # a dataclass that inherits from it has to be frozen too
    methods = {"__init__": _Init(made), "__repr__": _represent, "__getstate__": _get_state, "__setstate__": _set_state}
    for name, method in (methods | _comparing(made) | _freezing(made)).items():
        if vars(made).get(name) is None:  # Python sets `__hash__` to None beside an `__eq__`
            setattr(made, name, method)
    return made


class _Unset:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


class _Init:
    """The `__init__` of a frozen class until it is first needed: compiles the method and takes its place."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __get__(self, instance: object, owner: type) -> Any:
        if vars(self._kind).get("__init__") is self:  # another thread may have been faster
            cast(Any, self._kind).__init__ = _compile_init(self._kind)
        return vars(self._kind)["__init__"].__get__(instance, owner)


def _compile_init(kind: type) -> Callable[..., None]:
    space: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    parameters, lines = ["self"], list[str]()
    for each in _fields(kind):
        name, default, value = each.name, "", each.name
        if each.default is not MISSING:
            space[f"_default_{name}"], default = each.default, f"=_default_{name}"
        elif each.default_factory is not MISSING:
            space[f"_make_{name}"], default = each.default_factory, "=_unset"
            value = f"_make_{name}() if {name} is _unset else {name}"
        parameters.append(name + default)
        lines.append(f"    _set(self, {name!r}, {value})\n")
    if hasattr(kind, "__post_init__"):
        lines.append("    self.__post_init__()\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(lines) or '    pass'}", space)  # as dataclasses do
    init = space["__init__"]
    init.__qualname__, init.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    init.__annotations__ = {each.name: each.type for each in _fields(kind)} | {"return": None}
    return init


def _comparing(kind: type) -> dict[str, Any]:
    """Return `__eq__` and `__hash__`, by the fields that count for each."""
    compared = _reader(each.name for each in _fields(kind) if each.compare)
    hashed = _reader(each.name for each in _fields(kind) if (each.compare if each.hash is None else each.hash))

    def equals(self: object, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_value(self: object) -> int:
        return hash(hashed(self))

    return {"__eq__": equals, "__hash__": hash_value}


def _reader(names: Iterable[str]) -> Callable[[object], object]:
    given = tuple(names)
    if len(given) > 1:
        return attrgetter(*given)
    return lambda value: tuple([getattr(value, name) for name in given])


def _freezing(kind: type) -> dict[str, Any]:
    names = frozenset(each.name for each in _fields(kind))

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)  # of a subclass with fields of its own

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


@recursive_repr()
def _represent(self: object) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _get_state(self: object) -> list[object]:
    return [getattr(self, each.name) for each in _fields(self)]


def _set_state(self: object, state: Iterable[object]) -> None:
    for each, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _fields(value: object) -> "tuple[Field[Any], ...]":
    return fields(cast(Any, value))


def make_constructor(kind: type[Value]) -> Callable[..., Value]:
    """Return a function that makes values of a frozen, slotted dataclass from all of its fields, in order.

    A frozen dataclass sets each field through `object.__setattr__`, which costs more than all checks of a call. Here an
    unfrozen twin class with the same slots is filled at full speed and then given the frozen class. The value is the
    same. `__post_init__` and default values are skipped, so this is for classes that check nothing.
    """
    names = [each.name for each in _fields(kind)]
    twin = type(f"_{kind.__name__}", (), {"__slots__": tuple(names)})
    filled = "".join(f"    value.{name} = {name}\n" for name in names)
    source = (
        f"def make({', '.join(names)}):\n    value = new(twin)\n{filled}    value.__class__ = kind\n    return value"
    )
    space: dict[str, Any] = {"new": object.__new__, "twin": twin, "kind": kind}
    exec(source, space)  # as dataclasses make their __init__; the names are those of fields
    return space["make"]
