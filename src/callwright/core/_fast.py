"""Fast construction of the frozen values that every call makes.

A frozen dataclass sets each field through `object.__setattr__`, which costs more than all checks of a call. Here an
unfrozen twin class with the same slots is filled at full speed and then given the frozen class. The value is the same.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


def make_constructor(kind: type[Value]) -> Callable[..., Value]:
    """Return a function that makes values of a frozen, slotted dataclass from all of its fields, in order.

    `__post_init__` and default values are skipped, so this is for classes that check nothing.
    """
    names = [field.name for field in fields(cast(Any, kind))]
    twin = type(f"_{kind.__name__}", (), {"__slots__": tuple(names)})
    filled = "".join(f"    value.{name} = {name}\n" for name in names)
    source = (
        f"def make({', '.join(names)}):\n    value = new(twin)\n{filled}    value.__class__ = kind\n    return value"
    )
    space: dict[str, Any] = {"new": object.__new__, "twin": twin, "kind": kind}
    exec(source, space)  # as dataclasses make their __init__; the names are those of fields
    return space["make"]
