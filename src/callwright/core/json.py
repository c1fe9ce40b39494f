"""JSON as Python values: the types, the frozen form, and the two ways we write it as text.

Where the members of objects and lists stand in JSON text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this value is shared and frozen; take a copy with thaw() to change it")


class FrozenDict(dict[str, Any]):
    """A dict nobody can change: compares, prints and serialises as one."""

    __slots__ = ("_hash",)
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override] - frozen, so hashing is sound
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[type["FrozenDict"], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list nobody can change: compares, prints and serialises as one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = extend = insert = _refuse
    pop = remove = clear = sort = reverse = _refuse

    def __hash__(self) -> int:  # type: ignore[override] - frozen, so hashing is sound
        return hash(tuple(self))

    def __copy__(self) -> "FrozenList":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenList":
        return self

    def __reduce__(self) -> tuple[type["FrozenList"], tuple[list[Any]]]:
        return FrozenList, (list(self),)


def freeze(value: object) -> Any:
    """Copy JSON into its frozen form; what is frozen already is returned as it is."""
    if isinstance(value, (FrozenDict, FrozenList)):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in cast(Mapping[str, object], value).items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(item) for item in cast(Sequence[object], value)])
    return value


def thaw(value: object) -> Any:
    """Copy JSON into plain dicts and lists that may be changed."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in cast(Mapping[str, object], value).items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in cast(Sequence[object], value)]
    return value


# Encoders are kept, because json.dumps with any option makes a new one for every call.
compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
"""Write a value as JSON text without spaces, keys in their order."""
canonical = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False).encode
"""Write a value as JSON text that is the same for equal values, as digests need it."""


_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One value with its key, or with its place in a list, by where they stand."""

    name: str | int
    begin: int
    value: int
    end: int


def members_at(text: str, at: int) -> list[Member]:
    """Every member of the object or list at a position, in order; none of any other value. The text must be valid."""
    found: list[Member] = []
    if text[at] not in "{[":
        return found
    keyed, at = text[at] == "{", skip_space(text, at + 1)
    while text[at] not in "}]":
        name: str | int = len(found)
        begin = at
        if keyed:
            name, at = _DECODER.raw_decode(text, at)
            at = skip_space(text, skip_space(text, at) + 1)
        end = _DECODER.raw_decode(text, at)[1]
        found.append(Member(name, begin, at, end))
        at = skip_space(text, end)
        at = skip_space(text, at + 1) if text[at] == "," else at
    return found


def skip_space(text: str, at: int) -> int:
    """The next position that is not blank."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
