"""Arguments as the model wrote them to values, and what the model is told when that fails.

Valid means strictly valid JSON of the right types. Three slips that can mean only one thing are mended: JSON text
inside a string where no string is wanted ("5" for an integer, an object written as text), a whole number written
as 5.0, and an alias of an argument (which is part of the schema). Nothing else is.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

from pydantic_core import SchemaValidator, ValidationError, from_json, to_json

from toolwright.core.errors import InvalidArguments
from toolwright.core.json import JsonObject, compact
from toolwright.tool.compile import INTEGER_RANGE

Parsed = TypeVar("Parsed")
_SUSPECT = re.compile(r"NaN|Infinity|\d{19}|\d[eE]\+?\d{3}")
_SHOWN_CHARS = 80
_SHOWN_ERRORS = 8


class Parser(Generic[Parsed]):
    """Turns argument text or objects into validated values."""

    __slots__ = ("_fields", "_tight", "_validate")

    def __init__(self, validator: SchemaValidator, fields: Sequence[str], *, tight: bool = False) -> None:
        self._validate = validator.validate_json
        self._fields = tuple(fields)
        self._tight = tight

    def parse(self, arguments: JsonObject | str | bytes) -> Parsed:
        """Validate; raise `InvalidArguments` naming each field, what was expected and what came."""
        text = arguments if isinstance(arguments, (str, bytes)) else as_text(arguments)
        try:
            if not self._tight:
                refuse_odd_numbers(text)
            return self._validate(text, strict=True)
        except ValidationError as error:
            return self._mended(text, error)
        except UnicodeEncodeError:
            raise InvalidArguments("the text holds a lone surrogate, which is not valid Unicode") from None

    def _mended(self, text: str | bytes, error: ValidationError) -> Parsed:
        problems = cast("list[Mapping[str, Any]]", error.errors(include_url=False))
        whole, changed = _unwrapped(text)
        changed |= _mend(whole, problems)
        if changed:
            try:
                return self._validate(to_json(whole), strict=True)
            except (ValidationError, ValueError):
                pass  # the slip was not the only fault: report what the model really wrote
        raise InvalidArguments(describe_problems(problems, self._fields)) from None


def as_text(arguments: JsonObject) -> bytes:
    """Write an arguments object as JSON text, so that objects and text are judged alike."""
    try:
        return to_json(arguments, inf_nan_mode="constants")
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"they cannot be written as JSON: {clip_value(str(error))}") from None


def from_text(text: str | bytes) -> Any:
    """Read JSON text under the same rules: no NaN, no endless nesting, no lone surrogates."""
    try:
        refuse_odd_numbers(text)
        return from_json(text, allow_inf_nan=False)
    except UnicodeEncodeError:
        raise InvalidArguments("the text holds a lone surrogate, which is not valid Unicode") from None
    except ValueError as error:
        raise InvalidArguments(f"not valid JSON: {error}") from None


def refuse_odd_numbers(text: str | bytes) -> None:
    """Refuse NaN, infinities and integers beyond 64 bits wherever they stand."""
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if _SUSPECT.search(shown) is None:
        return
    try:
        value = from_json(text)
    except ValueError:
        return  # not JSON at all: the validator says so in better words
    for path, number in _numbers(value, ()):
        if isinstance(number, float) and not (-1e309 < number < 1e309):
            raise InvalidArguments(f"{_dotted(path)}: expected a finite number, got {number}")
        if isinstance(number, int) and not INTEGER_RANGE[0] <= number <= INTEGER_RANGE[1]:
            raise InvalidArguments(f"{_dotted(path)}: expected an integer of at most 64 bits, got a longer one")


def _numbers(value: Any, path: tuple[str | int, ...]) -> "list[tuple[tuple[str | int, ...], int | float]]":
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return [found for key, part in items for found in _numbers(part, (*path, key))]
    if isinstance(value, list):
        return [found for at, part in enumerate(cast("list[Any]", value)) for found in _numbers(part, (*path, at))]
    return [(path, value)] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def _unwrapped(text: str | bytes) -> tuple[Any, bool]:
    """The arguments as plain JSON, and whether the whole object had been written as text inside a string."""
    try:
        value = from_json(text, allow_inf_nan=False)
        if isinstance(value, str):
            return from_json(value, allow_inf_nan=False), True
        return value, False
    except ValueError:
        return None, False


def _mend(whole: Any, problems: Sequence[Mapping[str, Any]]) -> bool:
    changed = False
    for problem in problems:
        spot = _spot(whole, problem["loc"])
        better = None if spot is None else _reread(spot[0][spot[1]])
        if spot is not None and better is not None:
            spot[0][spot[1]] = better
            changed = True
    return changed


def _spot(whole: Any, location: tuple[str | int, ...]) -> tuple[Any, str | int] | None:
    """The deepest container and key on the way to a fault; union members add steps that are not in the data."""
    spot: tuple[Any, str | int] | None = None
    value = whole
    for step in location:
        try:
            value, spot = value[step], (value, step)
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(value, (str, float)):
            break
    return spot


def _reread(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    try:
        inner = from_json(value, allow_inf_nan=False)
    except ValueError:
        return None
    return None if isinstance(inner, str) else inner


def describe_problems(problems: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> str:
    """One clause per fault: the field, what was expected, what came."""
    clauses = list(dict.fromkeys(_clause(problem, fields) for problem in problems))
    if len(clauses) > _SHOWN_ERRORS:
        clauses[_SHOWN_ERRORS:] = [f"and {len(clauses) - _SHOWN_ERRORS} more"]
    return "; ".join(clauses)


def _clause(problem: Mapping[str, Any], fields: Sequence[str]) -> str:
    kind, where, value = problem["type"], _dotted(problem["loc"]), problem.get("input")
    if kind == "json_invalid":
        return f"not valid JSON: {problem['ctx']['error']}"
    if kind == "missing":
        return f"{where}: missing, and it is required"
    if kind == "extra_forbidden":
        name = str(problem["loc"][-1])
        near = get_close_matches(name, fields, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(fields) or 'none'}"
        return f"{where}: unknown field{hint}"
    expected = str(problem["msg"]).replace("Input should be", "expected").replace("Value error, ", "")
    return f"{where}: {expected[:1].lower()}{expected[1:]}, got {show_value(value)}"


def _dotted(location: Sequence[str | int]) -> str:
    return ".".join(str(step) for step in location) or "arguments"


def show_value(value: Any) -> str:
    """Name a value and its JSON type, shortened."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
    try:
        written = compact(value)
    except (TypeError, ValueError, RecursionError):
        written = repr(type(value).__name__)
    if value is None:
        return "null"
    return f"{clip_value(written)} ({names.get(type(value), type(value).__name__)})"


def clip_value(text: str) -> str:
    """Shorten what came so that a huge argument does not become a huge error."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
