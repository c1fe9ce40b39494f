"""Codecs that convert arguments into strict mode's shape and back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias, cast

from callwright.core.json import (
    Json,
    JsonObject,
    RepeatedKey,
    canonical,
    compact,
    make_object,
    parse_strictly,
    read_object,
)
from callwright.providers.schemas.inspect import are_equal, is_of, is_within_bounds, kinds_of, list_choices

Direction: TypeAlias = Literal["out", "back"]
"""`out` to the model's shape, or `back` to the tool's."""

Absence: TypeAlias = Literal["never", "null", "same", "boxed"]
"""How a property is left out in strict mode: never; by null; by the null that is its default; or by null, while
a value (null included) is wrapped in an object."""


class Converted(NamedTuple):
    """A converted value and whether it fitted; one that did not stays unchanged, for `bind` to report."""

    value: Json
    fits: bool


class RepeatedMember(RepeatedKey):
    """A further property of an object has two values. Only an object with one value could be made of them."""

    def __init__(self, key: str, first: Json, second: Json) -> None:
        super().__init__(key)
        self._members = f"{compact(key)}:{compact(first)},{compact(key)}:{compact(second)}"

    def write_into(self, text: str) -> str:
        """Return the text of an object that has members with both values too, for `bind` to refuse."""
        begin, brace, rest = text.partition("{")
        return f"{begin}{brace}{self._members}{'' if rest.lstrip().startswith('}') else ','}{rest}"


class Codec(Protocol):
    """Converts the values of one part of a schema in both directions."""

    def convert(self, value: Json, direction: Direction) -> Converted:
        """Convert the value to the other side's shape.

        Raises:
            RepeatedMember: A further property of an object has two values. Nothing else is raised on any JSON.
        """
        ...

    def accepts(self, value: Json, direction: Direction) -> bool:
        """Whether the value may fit, without looking deeper: keeps unions from converting every branch completely."""
        ...


@dataclass(frozen=True, slots=True)
class ScalarCodec:
    """A value that is the same on both sides."""

    schema: JsonObject

    def convert(self, value: Json, direction: Direction) -> Converted:
        allowed = list_choices(self.schema)
        fits = any(is_of(value, kind) for kind in kinds_of(self.schema)) and is_within_bounds(self.schema, value)
        if fits and allowed is not None:
            fits = any(are_equal(value, other) for other in allowed)
        return Converted(value, fits and self._matches(value))

    def accepts(self, value: Json, direction: Direction) -> bool:
        return self.convert(value, direction).fits

    def _matches(self, value: Json) -> bool:
        pattern = self.schema.get("pattern")
        if not isinstance(pattern, str) or not isinstance(value, str):
            return True
        try:
            return re.search(pattern, value) is not None
        except re.error:  # an ECMA pattern that Python cannot read
            return True  # accepting too much is harmless when choosing a branch


@dataclass(frozen=True, slots=True)
class JsonTextCodec:
    """A free-form value; JSON text on the model's side."""

    kinds: tuple[str, ...]

    def convert(self, value: Json, direction: Direction) -> Converted:
        if direction == "out":
            return (
                Converted(compact(value), fits=True) if self.accepts(value, direction) else Converted(value, fits=False)
            )
        try:
            read = cast("Json", parse_strictly(value, make_object)) if isinstance(value, str) else None
        except ValueError:
            return Converted(value, fits="string" in self.kinds)  # a bare string, where strings are allowed
        fits = isinstance(value, str) and any(is_of(read, kind) for kind in self.kinds)
        return Converted(read, fits=True) if fits else Converted(value, fits=False)

    def accepts(self, value: Json, direction: Direction) -> bool:
        return isinstance(value, str) if direction == "back" else any(is_of(value, kind) for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class ListCodec:
    """A list; the first items may each have their own codec, the rest share one."""

    schema: JsonObject
    first: tuple[Codec, ...]
    rest: Codec | None

    def convert(self, value: Json, direction: Direction) -> Converted:
        if not isinstance(value, (list, tuple)):
            return Converted(value, fits=False)
        items = [self._item(place, item, direction) for place, item in enumerate(cast(Sequence[Json], value))]
        fits = is_within_bounds(self.schema, value) and all(item.fits for item in items)
        return Converted([item.value for item in items], fits)

    def accepts(self, value: Json, direction: Direction) -> bool:
        return isinstance(value, (list, tuple)) and is_within_bounds(self.schema, value)

    def _item(self, place: int, item: Json, direction: Direction) -> Converted:
        codec = self.first[place] if place < len(self.first) else self.rest
        return codec.convert(item, direction) if codec else Converted(item, fits=False)


@dataclass(frozen=True, slots=True)
class PairsCodec:
    """A map; a list of keys and values on the model's side."""

    key: Codec
    value: Codec

    def convert(self, value: Json, direction: Direction) -> Converted:
        if direction == "back":
            return self._read_pairs(value)
        if not isinstance(value, Mapping):
            return Converted(value, fits=False)
        members = [
            (self.key.convert(k, direction), self.value.convert(v, direction))
            for k, v in cast(JsonObject, value).items()
        ]
        fits = all(k.fits and v.fits for k, v in members)
        return Converted([{"key": k.value, "value": v.value} for k, v in members], fits)

    def accepts(self, value: Json, direction: Direction) -> bool:
        return isinstance(value, Mapping if direction == "out" else (list, tuple))

    def check_repeated(self, value: Json) -> None:
        """Raise `RepeatedMember` for pairs with two values for one key."""
        found: dict[str, Json] = {}
        for pair in map(read_object, cast(Sequence[Json], value) if isinstance(value, (list, tuple)) else ()):
            key = pair.get("key")
            if isinstance(key, str) and "value" in pair:
                add_member(found, key, self.value.convert(pair["value"], "back").value)

    def _read_pairs(self, value: Json) -> Converted:
        if not isinstance(value, (list, tuple)):
            return Converted(value, fits=False)
        found: dict[str, Json] = {}
        fits = True
        for pair in map(read_object, cast(Sequence[Json], value)):
            key = pair.get("key")
            if set(pair) != {"key", "value"} or not isinstance(key, str):
                return Converted(value, fits=False)
            read = self.value.convert(pair["value"], "back")
            if key in found and canonical(found[key]) != canonical(read.value):
                return Converted(value, fits=False)  # two values for one key
            fits = fits and read.fits and self.key.convert(key, "back").fits
            found[key] = read.value
        return Converted(found, fits)


def add_member(members: dict[str, Json], key: str, value: Json) -> None:
    """Add a member to an object.

    Raises:
        RepeatedMember: The object has another value for the key.
    """
    if key in members and canonical(members[key]) != canonical(value):
        raise RepeatedMember(key, members[key], value)
    members[key] = value


@dataclass(frozen=True, slots=True)
class FieldCodec:
    """One declared property."""

    name: str
    codec: Codec
    absence: Absence

    def out(self, given: JsonObject) -> Converted:
        """Convert the property, or its absence, to the model's side."""
        if self.name not in given:
            return Converted(None, fits=self.absence != "never")
        value, fits = self.codec.convert(given[self.name], "out")
        return Converted({"value": value} if fits and self.absence == "boxed" else value, fits)

    def back(self, value: Json) -> Converted:
        """Convert the property from the model's side."""
        if self.absence == "boxed" and isinstance(value, Mapping) and set(value) == {"value"}:
            return self.codec.convert(cast(JsonObject, value)["value"], "back")
        return self.codec.convert(value, "back")

    def accepts(self, given: JsonObject, direction: Direction) -> bool:
        """Whether the property fits if it is a scalar; anything deeper is not checked."""
        if not isinstance(self.codec, ScalarCodec) or (direction == "back" and self.is_left_out(given.get(self.name))):
            return True
        return (self.out(given) if direction == "out" else self.back(given.get(self.name))).fits

    def is_left_out(self, value: Json) -> bool:
        """Whether this value means that the property is left out."""
        return value is None and self.absence in ("null", "boxed")


@dataclass(frozen=True, slots=True)
class ObjectCodec:
    """An object; all its properties are present on the model's side."""

    fields: tuple[FieldCodec, ...]
    more: PairsCodec | None = None
    more_name: str = ""

    def convert(self, value: Json, direction: Direction) -> Converted:
        if not isinstance(value, Mapping):
            return Converted(value, fits=False)
        given = cast(JsonObject, value)
        return self._out(given) if direction == "out" else self._back(given)

    def accepts(self, value: Json, direction: Direction) -> bool:
        if not isinstance(value, Mapping):
            return False
        given = cast(JsonObject, value)
        written = {field.name for field in self.fields} | ({self.more_name} if self.more else set[str]())
        needed = {field.name for field in self.fields if field.absence == "never"}
        if direction == "out" and not (needed <= given.keys() and (self.more or given.keys() <= written)):
            return False
        if direction == "back" and set(given) != written:
            return False
        return all(field.accepts(given, direction) for field in self.fields)

    def _out(self, given: JsonObject) -> Converted:
        written: dict[str, Json] = {}
        fits = True
        for field in self.fields:
            value, fitted = field.out(given)
            fits = fits and fitted
            if field.name in given or field.absence != "never":
                written[field.name] = value
        others = {name: value for name, value in given.items() if name not in written}
        if self.more is None:  # undeclared properties stay, for `bind` to report
            return Converted({**written, **others}, fits and not others)
        pairs = self.more.convert(others, "out")
        return Converted({**written, self.more_name: pairs.value}, fits and pairs.fits)

    def _back(self, given: JsonObject) -> Converted:
        known = {field.name: field for field in self.fields}
        read: dict[str, Json] = {}
        fits = known.keys() <= given.keys() and (self.more is None or self.more_name in given)
        for name, value in sorted(given.items(), key=lambda member: member[0] == self.more_name):  # those last
            field = known.get(name)
            if field is None:
                fits = self._read_undeclared(name, value, read) and fits
            elif not field.is_left_out(value):
                read[name], fitted = field.back(value)
                fits = fits and fitted
        return Converted(read, fits)

    def _read_undeclared(self, name: str, value: Json, read: dict[str, Json]) -> bool:
        if self.more is None or name != self.more_name:
            read[name] = value
            return False
        pairs = self.more.convert(value, "back")
        if not pairs.fits:
            self.more.check_repeated(value)  # the list of pairs would be taken for a property itself
            read[name] = value
            return False
        members = cast(JsonObject, pairs.value)
        for key, member in members.items():
            add_member(read, key, member)
        return not any(field.name in members for field in self.fields)


@dataclass(frozen=True, slots=True)
class UnionCodec:
    """The first branch that fits."""

    branches: tuple[Codec, ...]

    def convert(self, value: Json, direction: Direction) -> Converted:
        accepting = [branch for branch in self.branches if branch.accepts(value, direction)]
        # a call with one bad field is still converted, so that the tool's own check can report that field
        near = accepting or [
            branch for branch in self.branches if isinstance(value, Mapping) and _reads_objects(branch)
        ]
        for branch in near:
            converted = branch.convert(value, direction)
            if converted.fits or len(near) == 1:
                return converted
        return Converted(value, fits=False)

    def accepts(self, value: Json, direction: Direction) -> bool:
        return any(branch.accepts(value, direction) for branch in self.branches)


@dataclass(frozen=True, slots=True)
class ReferenceCodec:
    """A definition that may refer to itself."""

    table: Mapping[str, Codec]
    name: str

    def convert(self, value: Json, direction: Direction) -> Converted:
        return self.table[self.name].convert(value, direction)

    def accepts(self, value: Json, direction: Direction) -> bool:
        return self.table[self.name].accepts(value, direction)


def _reads_objects(codec: Codec) -> bool:
    while isinstance(codec, ReferenceCodec):
        codec = codec.table[codec.name]
    return isinstance(codec, ObjectCodec)
