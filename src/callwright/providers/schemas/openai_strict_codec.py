"""Arguments on their way into strict mode's shape and back out of it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn, Protocol, TypeAlias, cast

from callwright.core.json import Json, JsonObject, compact
from callwright.providers.schemas.inspect import as_object, choices, is_of, kinds_of, same, within

Way: TypeAlias = Literal["out", "back"]
"""Out to the model's shape, or back to the tool's."""

Absence: TypeAlias = Literal["never", "null", "same", "boxed"]
"""How strict mode says that a property is left out: it cannot; by null; by the null that is its default; by null,
while a value, null too, comes in a box."""


class Converted(NamedTuple):
    """A converted value and whether it fitted; one that did not is passed on untouched for `bind` to name."""

    value: Json
    fits: bool


class Codec(Protocol):
    """Converts the values of one place in a schema, both ways. Never raises on any JSON."""

    def convert(self, value: Json, way: Way) -> Converted:
        """Write the value in the other side's shape."""
        ...

    def suits(self, value: Json, way: Way) -> bool:
        """Whether a look at the surface leaves it open: keeps unions from converting every branch to the bottom."""
        ...


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value that is the same on both sides."""

    schema: JsonObject

    def convert(self, value: Json, way: Way) -> Converted:
        allowed = choices(self.schema)
        fits = any(is_of(value, kind) for kind in kinds_of(self.schema)) and within(self.schema, value)
        if fits and allowed is not None:
            fits = any(same(value, other) for other in allowed)
        return Converted(value, fits and self._matches(value))

    def suits(self, value: Json, way: Way) -> bool:
        return self.convert(value, way).fits

    def _matches(self, value: Json) -> bool:
        pattern = self.schema.get("pattern")
        if not isinstance(pattern, str) or not isinstance(value, str):
            return True
        try:
            return re.search(pattern, value) is not None
        except re.error:  # ECMA patterns that Python does not read; choosing a branch may be generous
            return True


@dataclass(frozen=True, slots=True)
class Text:
    """A free-form value, written as JSON text on the model's side."""

    kinds: tuple[str, ...]

    def convert(self, value: Json, way: Way) -> Converted:
        if way == "out":
            return Converted(compact(value), fits=True) if self.suits(value, way) else Converted(value, fits=False)
        try:
            read = json.loads(value, parse_constant=_refuse) if isinstance(value, str) else None
        except ValueError:
            return Converted(value, fits="string" in self.kinds)  # a bare string, where strings are welcome
        fits = isinstance(value, str) and any(is_of(read, kind) for kind in self.kinds)
        return Converted(read, fits=True) if fits else Converted(value, fits=False)

    def suits(self, value: Json, way: Way) -> bool:
        return isinstance(value, str) if way == "back" else any(is_of(value, kind) for kind in self.kinds)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


@dataclass(frozen=True, slots=True)
class Listed:
    """A list; the first items may each have their own codec, the rest share one."""

    schema: JsonObject
    first: tuple[Codec, ...]
    rest: Codec | None

    def convert(self, value: Json, way: Way) -> Converted:
        if not isinstance(value, (list, tuple)):
            return Converted(value, fits=False)
        items = [self._item(place, item, way) for place, item in enumerate(cast(Sequence[Json], value))]
        fits = within(self.schema, value) and all(item.fits for item in items)
        return Converted([item.value for item in items], fits)

    def suits(self, value: Json, way: Way) -> bool:
        return isinstance(value, (list, tuple)) and within(self.schema, value)

    def _item(self, place: int, item: Json, way: Way) -> Converted:
        codec = self.first[place] if place < len(self.first) else self.rest
        return codec.convert(item, way) if codec else Converted(item, fits=False)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A map, written as a list of keys and values on the model's side."""

    key: Codec
    value: Codec

    def convert(self, value: Json, way: Way) -> Converted:
        if way == "back":
            return self._joined(value)
        if not isinstance(value, Mapping):
            return Converted(value, fits=False)
        members = [(self.key.convert(k, way), self.value.convert(v, way)) for k, v in cast(JsonObject, value).items()]
        fits = all(k.fits and v.fits for k, v in members)
        return Converted([{"key": k.value, "value": v.value} for k, v in members], fits)

    def suits(self, value: Json, way: Way) -> bool:
        return isinstance(value, Mapping if way == "out" else (list, tuple))

    def _joined(self, value: Json) -> Converted:
        if not isinstance(value, (list, tuple)):
            return Converted(value, fits=False)
        found: dict[str, Json] = {}
        fits = True
        for pair in map(as_object, cast(Sequence[Json], value)):
            key = pair.get("key")
            if set(pair) != {"key", "value"} or not isinstance(key, str):
                return Converted(value, fits=False)
            read = self.value.convert(pair["value"], "back")
            fits = fits and read.fits and self.key.convert(key, "back").fits
            found[key] = read.value
        return Converted(found, fits)


@dataclass(frozen=True, slots=True)
class Field:
    """One declared property."""

    name: str
    codec: Codec
    absence: Absence

    def out(self, given: JsonObject) -> Converted:
        """Write the property, or that it is left out."""
        if self.name not in given:
            return Converted(None, fits=self.absence != "never")
        value, fits = self.codec.convert(given[self.name], "out")
        return Converted({"value": value} if fits and self.absence == "boxed" else value, fits)

    def back(self, value: Json) -> Converted:
        """Read the property as the model wrote it."""
        if self.absence == "boxed" and isinstance(value, Mapping) and set(value) == {"value"}:
            return self.codec.convert(cast(JsonObject, value)["value"], "back")
        return self.codec.convert(value, "back")

    def suits(self, given: JsonObject, way: Way) -> bool:
        """Whether a scalar here fits; anything deeper is not looked at."""
        if not isinstance(self.codec, Scalar) or (way == "back" and self.left_out(given.get(self.name))):
            return True
        return (self.out(given) if way == "out" else self.back(given.get(self.name))).fits

    def left_out(self, value: Json) -> bool:
        """Whether the model says by this value that there is none."""
        return value is None and self.absence in ("null", "boxed")


@dataclass(frozen=True, slots=True)
class Fields:
    """An object whose properties are all written on the model's side."""

    fields: tuple[Field, ...]
    more: Pairs | None = None
    more_name: str = ""

    def convert(self, value: Json, way: Way) -> Converted:
        if not isinstance(value, Mapping):
            return Converted(value, fits=False)
        given = cast(JsonObject, value)
        return self._out(given) if way == "out" else self._back(given)

    def suits(self, value: Json, way: Way) -> bool:
        if not isinstance(value, Mapping):
            return False
        given = cast(JsonObject, value)
        written = {field.name for field in self.fields} | ({self.more_name} if self.more else set[str]())
        needed = {field.name for field in self.fields if field.absence == "never"}
        if way == "out" and not (needed <= given.keys() and (self.more or given.keys() <= written)):
            return False
        if way == "back" and set(given) != written:
            return False
        return all(field.suits(given, way) for field in self.fields)

    def _out(self, given: JsonObject) -> Converted:
        written: dict[str, Json] = {}
        fits = True
        for field in self.fields:
            value, fitted = field.out(given)
            fits = fits and fitted
            if field.name in given or field.absence != "never":
                written[field.name] = value
        others = {name: value for name, value in given.items() if name not in written}
        if self.more is None:
            return Converted({**written, **others}, fits and not others)
        pairs = self.more.convert(others, "out")
        return Converted({**written, self.more_name: pairs.value}, fits and pairs.fits)

    def _back(self, given: JsonObject) -> Converted:
        known = {field.name: field for field in self.fields}
        read: dict[str, Json] = {}
        fits = known.keys() <= given.keys() and (self.more is None or self.more_name in given)
        for name, value in given.items():
            field = known.get(name)
            if field is None:
                fits = self._undeclared(name, value, read) and fits
            elif not field.left_out(value):
                read[name], fitted = field.back(value)
                fits = fits and fitted
        return Converted(read, fits)

    def _undeclared(self, name: str, value: Json, read: dict[str, Json]) -> bool:
        pairs = self.more.convert(value, "back") if self.more and name == self.more_name else None
        if pairs is None or not pairs.fits:
            read[name] = value
            return False
        members = cast(JsonObject, pairs.value)
        read.update({key: member for key, member in members.items() if key not in read})
        return not any(field.name in members for field in self.fields)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The first branch that fits."""

    branches: tuple[Codec, ...]

    def convert(self, value: Json, way: Way) -> Converted:
        suiting = [branch for branch in self.branches if branch.suits(value, way)]
        # a call with one bad field is still converted, so that the tool's own check can name that field
        near = suiting or [branch for branch in self.branches if isinstance(value, Mapping) and _reads_objects(branch)]
        for branch in near:
            converted = branch.convert(value, way)
            if converted.fits or len(near) == 1:
                return converted
        return Converted(value, fits=False)

    def suits(self, value: Json, way: Way) -> bool:
        return any(branch.suits(value, way) for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Named:
    """A definition that may refer to itself."""

    table: Mapping[str, Codec]
    name: str

    def convert(self, value: Json, way: Way) -> Converted:
        return self.table[self.name].convert(value, way)

    def suits(self, value: Json, way: Way) -> bool:
        return self.table[self.name].suits(value, way)


def _reads_objects(codec: Codec) -> bool:
    while isinstance(codec, Named):
        codec = codec.table[codec.name]
    return isinstance(codec, Fields)
