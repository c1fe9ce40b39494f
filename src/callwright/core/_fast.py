"""Frozen values: classes that are quick to define, and a fast way to make many of one.

`frozen` stands for `dataclass(frozen=True, slots=True)`, which compiles six methods from source text: 76 classes took
a quarter of the time until the first tool had run. Here all classes share their methods, and what differs between them
(`__init__`, the fields, comparing) is made when a class first needs it.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeAlias, TypeVar, cast, dataclass_transform

Value = TypeVar("Value")
_Make: TypeAlias = Callable[[type], Any]


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def frozen(kind: type[Value]) -> type[Value]:
    """Make a class a frozen dataclass with slots.

    Methods that the class defines itself are kept.

    Raises:
        TypeError: A base class is a dataclass, or a field is keyword-only or no parameter. A class variable is found
            on first use.
    """
    return _define(kind, _FROZEN_LATE, _FROZEN_SHARED)


@dataclass_transform(eq_default=False, field_specifiers=(field, Field))
def slotted(kind: type[Value]) -> type[Value]:
    """Make a class a dataclass with slots that may change and equals only itself; otherwise like `frozen`."""
    return _define(kind, {"__init__": _compile_init}, {"__repr__": _represent})


def _define(kind: type[Value], made_late: Mapping[str, _Make], shared: Mapping[str, Any]) -> type[Value]:
    if hasattr(kind, "__dataclass_fields__"):
        raise TypeError(f"{kind.__qualname__} inherits from a dataclass; use dataclass(frozen=True, slots=True)")
    names = tuple(kind.__annotations__)
    space = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    defaults = {name: space.pop(name) for name in names if name in space}
    for given in defaults.values():
        if isinstance(given, Field) and not (given.init and given.kw_only in (MISSING, False)):
            raise _unusual(kind)
    late = {name: _Late(make) for name, make in made_late.items()}
    for name, method in {**late, **shared}.items():
        if space.get(name) is None:  # Python sets `__hash__` to None beside an `__eq__`
            space[name] = method
    space |= {
        "__slots__": names,
        "__match_args__": names,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__ or kind.__name__,
        "__dataclass_fields__": _Late(lambda made: _describe(made, defaults)),
        "__dataclass_params__": _FROZEN_PARAMS if shared is _FROZEN_SHARED else _PARAMS,
    }
    return type(kind)(kind.__name__, kind.__bases__, space)


def _unusual(kind: type) -> TypeError:
    return TypeError(f"{kind.__qualname__} has unusual fields; use dataclass(frozen=True, slots=True)")


def _describe(kind: type, defaults: dict[str, Any]) -> dict[str, "Field[Any]"]:
    """Let the standard library describe the fields of a class, on a class that has nothing else."""
    same = {"__annotations__": kind.__annotations__, "__module__": kind.__module__, "__doc__": kind.__doc__, **defaults}
    twin: Any = dataclass(init=False, repr=False, eq=False)(type(kind.__name__, (), same))
    if tuple(each.name for each in fields(twin)) != cast(Any, kind).__slots__:
        raise _unusual(kind)
    return twin.__dataclass_fields__


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


class _Unset:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _compile_init(kind: type) -> Callable[..., None]:
    space: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    parameters, lines, annotations = ["self"], list[str](), dict[str, Any]()
    for each in _fields(kind):
        name, default, value = each.name, "", each.name
        if each.default is not MISSING:
            space[f"_default_{name}"], default = each.default, f"=_default_{name}"
        elif each.default_factory is not MISSING:
            space[f"_make_{name}"], default = each.default_factory, "=_unset"
            value = f"_make_{name}() if {name} is _unset else {name}"
        parameters.append(name + default)
        annotations[name] = each.type
        lines.append(f"    _set(self, {name!r}, {value})\n")
    if hasattr(kind, "__post_init__"):
        lines.append("    self.__post_init__()\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(lines) or '    pass'}", space)  # as dataclasses do
    init = space["__init__"]
    init.__qualname__, init.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    init.__annotations__ = {**annotations, "return": None}
    return init


def _make_equals(kind: type) -> Callable[[object, object], Any]:
    compared = _reader(each.name for each in _fields(kind) if each.compare)

    def equals(self: object, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equals


def _make_hash(kind: type) -> Callable[[object], int]:
    hashed = _reader(each.name for each in _fields(kind) if (each.compare if each.hash is None else each.hash))

    def hash_value(self: object) -> int:
        return hash(hashed(self))

    return hash_value


def _reader(names: Iterable[str]) -> Callable[[object], object]:
    given = tuple(names)
    if len(given) > 1:
        return attrgetter(*given)
    return lambda value: tuple([getattr(value, name) for name in given])


def _set_attribute(self: object, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete_attribute(self: object, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(value: object, name: str) -> bool:
    """Whether an attribute may not change: all of a frozen class; of a subclass those it inherits."""
    kind = next(each for each in type(value).__mro__ if vars(each).get("__setattr__") is _set_attribute)
    return type(value) is kind or name in cast(Any, kind).__slots__


@recursive_repr()
def _represent(self: object) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _get_state(self: object) -> list[object]:
    return [getattr(self, each.name) for each in _fields(self)]


def _set_state(self: object, state: Iterable[object]) -> None:
    for each, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


@dataclass(init=False, repr=False, eq=False)
class _Sample:
    """Has the parameters that the standard library gives to a dataclass."""


_PARAMS = cast(Any, _Sample).__dataclass_params__
_FROZEN_PARAMS = copy(_PARAMS)
_FROZEN_PARAMS.frozen = True  # a dataclass that inherits from a frozen one has to be frozen too
_FROZEN_LATE: dict[str, _Make] = {
    "__init__": _compile_init,
    "__eq__": _make_equals,
    "__hash__": _make_hash,
}
_FROZEN_SHARED: dict[str, Any] = {
    "__repr__": _represent,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
    "__setattr__": _set_attribute,
    "__delattr__": _delete_attribute,
}


def _fields(value: object) -> "tuple[Field[Any], ...]":
    return fields(cast(Any, value))


def make_constructor(kind: type[Value]) -> Callable[..., Value]:
    """Return a function that makes values of a frozen, slotted dataclass from all of its fields, in order.

    A frozen dataclass sets each field through `object.__setattr__`, which costs more than all checks of a call. Here an
    unfrozen twin class with the same slots is filled at full speed and then given the frozen class. The value is the
    same. `__post_init__` and default values are skipped, so this is for classes that check nothing.
    """
    return _compile_constructor(kind)


@cache
def _compile_constructor(kind: type) -> Callable[..., Any]:
    names = cast(Any, kind).__match_args__
    twin = type(f"_{kind.__name__}", (), {"__slots__": names})
    filled = "".join(f"    value.{name} = {name}\n" for name in names)
    source = f"def make({', '.join(names)}):\n    value = twin()\n{filled}    value.__class__ = kind\n    return value"
    space: dict[str, Any] = {"twin": twin, "kind": kind}
    exec(source, space)  # as dataclasses make their __init__; the names are those of fields
    return space["make"]
