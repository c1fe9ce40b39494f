"""JSON: types, frozen values, compact and canonical text, and strict reading."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from callwright.core.errors import shorten

if TYPE_CHECKING:  # otherwise loaded with the first text: a call whose arguments fit needs none of it
    from json import JSONDecoder, JSONEncoder

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this value is shared and immutable; make a copy with thaw() to change it")


class FrozenDict(dict[str, Any]):
    """An immutable dict; compares, prints and serialises as a dict."""

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
    """An immutable list; compares, prints and serialises as a list."""

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


_PLAIN_KINDS = frozenset((str, int, float, bool, type(None)))  # asking an abstract class takes ten times as long


def freeze(value: object) -> Any:
    """Return an immutable copy of a JSON value; a value that is already frozen is returned as it is."""
    if type(value) in _PLAIN_KINDS or isinstance(value, (FrozenDict, FrozenList)):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in cast(Mapping[str, object], value).items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(item) for item in cast(Sequence[object], value)])
    return value


def thaw(value: object) -> Any:
    """Return a copy of a JSON value made of plain dicts and lists."""
    if type(value) in _PLAIN_KINDS:
        return value
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in cast(Mapping[str, object], value).items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in cast(Sequence[object], value)]
    return value


def make_json_writer(encoder: "JSONEncoder") -> Callable[[object], str]:
    """Return a function that writes what an encoder without indentation writes, in two thirds of the time.

    Its `encode` builds the encoder of the standard library's C module again for every value. Here it is kept, without
    the search for cycles, which needs a memory for each value: a value that turns out too deep is left to `encode`.
    """
    from json import encoder as standard

    make: Any = getattr(standard, "c_make_encoder", None)
    if make is None:  # an interpreter without the C module
        return encoder.encode
    quote: Any = getattr(standard, "encode_basestring_ascii" if encoder.ensure_ascii else "encode_basestring")
    separators = (encoder.key_separator, encoder.item_separator)
    chunks = make(
        None, encoder.default, quote, None, *separators, encoder.sort_keys, encoder.skipkeys, encoder.allow_nan
    )

    def write(value: object) -> str:
        try:
            return "".join(chunks(value, 0))
        except RecursionError:
            return encoder.encode(value)

    return write


def compact(value: object) -> str:
    """Write a value as JSON text without spaces, keys in their order."""
    return _compact_writer()(value)


def canonical(value: object) -> str:
    """Write a value as JSON text that is the same for equal values, as digests need it."""
    return _canonical_writer()(value)


@cache
def _compact_writer() -> Callable[[object], str]:
    from json import JSONEncoder

    return make_json_writer(JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False))


@cache
def _canonical_writer() -> Callable[[object], str]:
    from json import JSONEncoder

    return make_json_writer(JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False))


def copy_json(value: Any) -> Any:
    """Return a value with its lists and objects copied, so that changing one changes nothing of the other."""
    if type(value) is dict:
        items = cast("dict[str, Any]", value).items()
        return {key: item if type(item) in _PLAIN_KINDS else copy_json(item) for key, item in items}
    return [copy_json(item) for item in cast("list[Any]", value)] if type(value) is list else value


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: map_texts(part, change) for key, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [map_texts(part, change) for part in cast("list[Any]", value)]
    return value


def list_scalars(value: Any) -> Iterator[str | float]:
    """Yield the texts and numbers in a JSON value, without its keys."""
    if isinstance(value, Mapping):
        for member in cast(JsonObject, value).values():
            yield from list_scalars(member)
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[Any]", value):
            yield from list_scalars(item)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield value


def is_finite(value: Any) -> bool:
    """Whether a value has no infinite number and no NaN in it, which JSON cannot carry."""
    return all(-1e309 < number < 1e309 for number in list_scalars(value) if isinstance(number, float))


_MAX_DEPTH = 100
_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_LONG_NUMBER = r"\d{4000}"
_BRACKET = r"[\[\]{}]"


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal."""
    return _sha256()(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _sha256() -> Callable[[bytes], Any]:
    from hashlib import sha256  # OpenSSL is loaded with the first digest

    return sha256


def check_json(value: object) -> Any:
    """Return a JSON value as plain data that can be stored, sent and read back anywhere; lone surrogates become `?`.

    Raises:
        ValueError: It is not JSON: a foreign type, a cycle, NaN, a number of thousands of digits, or nested too deep.
    """
    if type(value) is str and value.isascii():
        return value
    from json import loads

    try:
        text = compact(thaw(value))
        _check_readable(re.sub(_QUOTED, "", text))
        return loads(text.encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deep, or part of itself") from None
    except (TypeError, ValueError) as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # whatever a foreign mapping raises when it is read
        raise ValueError(f"reading it failed with {type(error).__name__}") from error


def _check_readable(text: str) -> None:
    """Refuse what other readers of JSON would refuse, or an interpreter with its usual limits."""
    if re.search(_LONG_NUMBER, text):
        raise ValueError("a number has more than 4,000 digits")
    if is_deep(text):
        raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")


def is_deep(text: str) -> bool:
    """Whether JSON is nested too deep for code that goes through it by recursion; parsers of Python 3.13 read more."""
    if text.count("{") + text.count("[") <= _MAX_DEPTH:
        return False
    depth = 0
    for bracket in re.findall(_BRACKET, re.sub(_QUOTED, "", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > _MAX_DEPTH:
            return True
    return False


def read_object(value: object) -> Mapping[str, Any]:
    """Read a value as an object; anything else reads as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def follow_pointer(document: object, pointer: str) -> object:
    """Return the part of a document that the fragment of a reference names, as in `/$defs/Name`; None if there is none.

    Args:
        document: The document; its arrays may be lists or tuples.
        pointer: The fragment, as a URL holds it.
    """
    from urllib.parse import unquote  # for schemas with references only

    found = document
    for step in pointer.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = cast("Mapping[str, object]", found).get(key)
        elif isinstance(found, (list, tuple)) and key.isdecimal():
            items, index = cast("Sequence[object]", found), key.lstrip("0") or "0"
            # `int` refuses thousands of digits
            found = items[int(index)] if len(index) < 10 and int(index) < len(items) else None
        else:
            return None
    return found


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, as in undecodable file names, by question marks, because they cannot be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


class RepeatedKey(ValueError):
    """An object in JSON text has a key twice, with different values: readers disagree about which one counts."""

    def __init__(self, key: str) -> None:
        shown = replace_surrogates(shorten(key, _SHOWN_KEY_CHARS))
        super().__init__(f'the key "{shown}" is written twice with different values; write it once')


_SHOWN_KEY_CHARS = 100


def make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; an `object_pairs_hook` for readers of JSON.

    Raises:
        RepeatedKey: A key has two different values.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        from json import dumps

        for key, value in pairs:
            # compared as text: in Python, 1 equals true and 1.0
            if value is not found[key] and dumps(value, sort_keys=True) != dumps(found[key], sort_keys=True):
                raise RepeatedKey(key)
    return found


class DuplicateKey(ValueError):
    """An object in JSON text has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} is given twice")
        self.key = key


def make_unique_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members, for answers and settings; an `object_pairs_hook` for readers of JSON.

    Raises:
        DuplicateKey: A key is given twice, so that one reader could see a yes and another a no.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise DuplicateKey(next(name for name in names if names.count(name) > 1))
    return found


def refuse_constant(constant: str) -> NoReturn:
    """Refuse NaN and Infinity; a `parse_constant` for readers of JSON.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{constant} is not JSON")


def parse_finite(digits: str) -> float:
    """Read a number that is not whole; a `parse_float` for readers of JSON.

    Raises:
        ValueError: It is out of range.
    """
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits:.20} is too large")
    return number


def parse_strictly(text: str | bytes, make: Callable[[list[tuple[str, Any]]], object] = make_unique_object) -> object:
    """Parse JSON of answers and settings; `make` makes the objects of it.

    Raises:
        DuplicateKey: A key of an object is given twice.
        ValueError: It is not JSON, or has NaN or an infinite number in it.
        RecursionError: It is nested too deeply.
    """
    from json import loads

    return loads(text, object_pairs_hook=make, parse_constant=refuse_constant, parse_float=parse_finite)


@cache
def _checking_decoder() -> "JSONDecoder":
    from json import JSONDecoder

    return JSONDecoder(object_pairs_hook=make_object, strict=False)


def refuse_repeated_keys(text: str | bytes) -> None:
    """Refuse JSON text in which an object has one key twice with different values; other mistakes are ignored here.

    Raises:
        RepeatedKey: A key has two different values.
    """
    written = text if isinstance(text, str) else text.decode("utf-8", "replace")
    try:
        _checking_decoder().raw_decode(written.lstrip())
    except RepeatedKey:
        raise
    except (ValueError, RecursionError):
        return
