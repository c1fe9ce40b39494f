"""Parses the arguments a model wrote into validated values, and explains to the model what does not fit.

Valid means strictly valid JSON of the right types. Three unambiguous mistakes are repaired: JSON text inside a string
where no string is expected ("5" for an integer, an object written as text, the whole object written as text), a whole
number written as 5.0, and an alias of an argument (which is part of the schema). Nothing else is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast

from callwright.core._fast import frozen
from callwright.core.errors import InvalidArguments
from callwright.core.json import JsonObject, RepeatedKey, compact, refuse_repeated_keys, replace_surrogates
from callwright.tool.compile import FLOAT_RANGE, INTEGER_RANGE
from callwright.tool.validators import ValidationError, count_json_keys, from_json, make_key_counter, to_json

Path: TypeAlias = tuple[str | int, ...]
MISSING_FIELD = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
"""Pydantic's error types for a missing field."""
UNKNOWN_FIELD = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
"""Pydantic's error types for an unknown field: of models and of dataclasses."""
_SHOWN_CHARS = 80
_SHOWN_STEP_CHARS = 40
_SHOWN_PROBLEMS = 8
_SHOWN_FIELDS = 20
_JSON_NAMES: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}
_EXPECTED = "Input should be "
_ARTICLE = r"\ba (?=(?:array|integer|object)\b)"


@frozen
class ArgumentProblem:
    """One problem: its path in what the model wrote, and the validator's details."""

    path: Path
    details: Mapping[str, Any]


def trace(whole: Any, location: Sequence[str | int], kind: str) -> Path:
    """Return the steps of a location that exist in the data; validators add names of union members, which do not."""
    path: list[str | int] = []
    here = whole
    for step in location:
        found = _step_into(here, step)
        if found is None:
            continue
        path.append(step)
        here = found[0]
    if kind in MISSING_FIELD:
        path.append(location[-1])
    return tuple(path)


def _step_into(holder: Any, step: str | int) -> tuple[Any] | None:
    try:
        return None if isinstance(holder, str) else (holder[step],)
    except (KeyError, IndexError, TypeError):
        return None


def describe_problems(problems: Sequence[ArgumentProblem], fields: Sequence[str]) -> str:
    """Describe problems to the model, one clause each; the members of a union share one clause per value."""
    clauses: dict[str, list[str]] = {}
    for problem in problems:
        message = str(problem.details["msg"])
        if message.startswith(_EXPECTED):
            clauses.setdefault(f"{join_path(problem.path)}: expected ", []).append(_expected_type(problem.details))
        else:
            clauses.setdefault(_clause(problem, message, fields), [])
    values = {f"{join_path(problem.path)}: expected ": problem.details.get("input") for problem in problems}
    written = [
        f"{start}{' or '.join(dict.fromkeys(expected))}, got {show_value(values[start])}" if expected else start
        for start, expected in list(clauses.items())[:_SHOWN_PROBLEMS]
    ]
    if len(clauses) > _SHOWN_PROBLEMS:
        written.append(f"and {len(clauses) - _SHOWN_PROBLEMS} more")
    return "; ".join(written)


def _expected_type(details: Mapping[str, Any]) -> str:
    if details["type"] == "string_unicode":
        return "valid Unicode without lone surrogates"
    bounds = set(details.get("ctx", {}).values()) if "than_equal" in details["type"] else set[Any]()
    if bounds & set(INTEGER_RANGE):
        return "an integer of at most 64 bits"
    return re.sub(_ARTICLE, "an ", str(details["msg"]).removeprefix(_EXPECTED).replace("a valid ", "a "))


def _clause(problem: ArgumentProblem, message: str, fields: Sequence[str]) -> str:
    kind, where = problem.details["type"], join_path(problem.path)
    if kind == "json_invalid" and not problem.path:  # a field of type Json[…] has one
        return f"not valid JSON: {problem.details['ctx']['error']}"
    if kind in MISSING_FIELD:
        return f"{where}: missing, and it is required"
    if kind in UNKNOWN_FIELD:
        return f"{where}: unknown field{_suggestion(problem.path, fields)}"
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    start = message[:1] if message[1:2].isupper() else message[:1].lower()  # URL, JSON
    return f"{where}: {start}{message[1:]}, got {show_value(problem.details.get('input'))}"


def _suggestion(path: Path, fields: Sequence[str]) -> str:
    if len(path) != 1:
        return ""
    from difflib import get_close_matches  # loaded with the first unknown field

    near = get_close_matches(str(path[0])[:_SHOWN_CHARS], fields, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    if not fields:
        return "; there are none"
    return f"; known are {', '.join(fields[:_SHOWN_FIELDS])}{' and more' if len(fields) > _SHOWN_FIELDS else ''}"


def join_path(path: Sequence[str | int]) -> str:
    """Write a path in the arguments as one word: `filter.tags.0`."""
    steps = [str(step) for step in path]
    return clip_value(".".join(_cut(step, _SHOWN_STEP_CHARS) for step in steps)) or "arguments"


def show_value(value: Any) -> str:
    """Return a value, shortened, with its JSON type."""
    if value is None:
        return "null"
    kind = cast("type[object]", type(value))
    try:
        written = compact(value)
    except (TypeError, ValueError, RecursionError):
        written = kind.__name__
    return f"{clip_value(written)} ({_JSON_NAMES.get(kind, kind.__name__)})"


def clip_value(text: str) -> str:
    """Shorten a value so that a huge argument does not become a huge error."""
    return _cut(text, _SHOWN_CHARS)


def _cut(text: str, chars: int) -> str:
    short = text if len(text) <= chars else f"{text[: chars - 1]}…"
    return replace_surrogates(short)  # invalid Unicode must not break the code that sends the error on


Parsed = TypeVar("Parsed")
_SUSPECT = r"[0-9NI](?:[0-9]{18}|[eE]\+?[0-9]{3}|aN|nfinity)"  # one way to begin: much quicker than an alternation
_MANY_PROBLEMS = 1000
_SHOWN_ITEMS = 8
_SURROGATE = "the text holds a lone surrogate, which is not valid Unicode"


class ArgumentParser(Generic[Parsed]):
    """Turns argument text or objects into validated values."""

    __slots__ = ("_fields", "_options", "_tight", "_validate", "_with_names", "count_keys", "extra", "sees_numbers")

    def __init__(
        self,
        validate: Callable[..., Parsed],
        fields: Sequence[str],
        core: Any = None,
        *,
        tight: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._validate = validate
        self._fields = tuple(fields)
        self._tight = tight
        looking = None if tight or core is None else make_key_counter(core, with_numbers=True)
        self.sees_numbers = looking is not None
        """Whether validated values show unusual numbers; otherwise they are searched in the text."""
        self.count_keys = looking or (None if core is None else make_key_counter(core))
        """Counts the written keys in validated values; None if they do not show them."""
        self._options = dict(options or {})
        # named one by one in the first attempt: passing them as ** takes a fifth of its time
        self._with_names: bool | None = self._options.get("by_name")
        self.extra: str | None = self._options.get("extra")
        """What is done with unknown fields of models; None: what each model says."""

    @property
    def strict_validator(self) -> Callable[..., Parsed] | None:
        """The bare validator, if it and `count_keys` are enough; to be called with `strict=True` and with `extra`.

        Of a repeated key it takes the last value: call `check_unseen` if the text has more colons than the values have
        keys. Where keys are counted there are no aliases, so `by_alias` and `by_name` would change nothing.
        """
        return self._validate if self.count_keys is not None and (self._tight or self.sees_numbers) else None

    def check_unseen(self, text: str | bytes) -> None:
        """Refuse what validated values do not show: unusual numbers and repeated keys.

        Raises:
            InvalidArguments: The text holds one of them.
        """
        if self.sees_numbers:
            refuse_odd_numbers(text)
        check_keys(text)

    def parse(self, arguments: JsonObject | str | bytes) -> Parsed:
        """Validate arguments, repairing unambiguous mistakes.

        Raises:
            InvalidArguments: The message names each field, what was expected and what was received.
        """
        text = arguments if type(arguments) is str or isinstance(arguments, (str, bytes)) else as_text(arguments)
        count_keys = self.count_keys
        if count_keys is None and text is arguments:  # what was written here has every key once
            check_keys(text)
        try:
            if not self._tight and not self.sees_numbers:
                refuse_odd_numbers(text)
            if self._tight or not self._options:
                values = self._validate(text, strict=True)
            else:
                names = self._with_names
                values = self._validate(text, strict=True, by_alias=names, by_name=names, extra=self.extra)
        except ValidationError as error:
            if self.sees_numbers:
                refuse_odd_numbers(text)
            return self._look_again(text, error)
        if count_keys is not None:
            colons = text.count(":") if isinstance(text, str) else text.count(b":")
            if colons > count_keys(values):  # the values do not show all of the text
                if self.sees_numbers:
                    refuse_odd_numbers(text)
                if text is arguments:
                    check_keys(text)
        return values

    def _parse_strictly(self, text: str | bytes) -> Parsed:
        if not self._tight:
            refuse_odd_numbers(text)
        return self._validate(text, strict=True, **self._options)

    def _look_again(self, text: str | bytes, error: ValidationError) -> Parsed:
        check_keys(text)
        whole = _read(text)
        if not isinstance(whole, str) or not isinstance(_read(whole), dict):
            return self._repair(whole, error)
        check_keys(whole)
        try:
            return self._parse_strictly(whole)
        except ValidationError as inner:
            error = inner
        return self._repair(_read(whole), error)

    def _repair(self, whole: Any, error: ValidationError) -> Parsed:
        problems = self._problems(whole, error)
        detail = describe_problems(problems, self._fields)
        if _correct(whole, problems):
            try:
                return self._parse_strictly(to_json(whole))
            except (ValidationError, InvalidArguments):
                pass  # there were other problems too: report what the model really wrote
        raise InvalidArguments(detail)

    def _problems(self, whole: Any, error: ValidationError) -> list[ArgumentProblem]:
        if error.error_count() <= _MANY_PROBLEMS:
            return _locate_problems(whole, error)
        try:  # a list of a million wrong items would become a gigabyte of error text
            self._validate(to_json(_shorten(whole)), strict=True, **self._options)
        except ValidationError as fewer:
            if fewer.error_count() <= _MANY_PROBLEMS:
                return _locate_problems(whole, fewer)
        raise InvalidArguments(f"{error.error_count()} values are not what was expected") from None


def as_text(arguments: JsonObject) -> bytes:
    """Write an arguments object as JSON text, so that objects and text are validated by the same code."""
    if isinstance(arguments, dict) and not arguments:
        return b"{}"
    try:
        return to_json(arguments, inf_nan_mode="constants", fallback=_plain)
    except (ValueError, RecursionError) as error:
        if "surrogates not allowed" in str(error):
            raise InvalidArguments(_SURROGATE) from None
        raise InvalidArguments(f"they cannot be written as JSON: {clip_value(str(error))}") from None


def from_text(text: str | bytes) -> Any:
    """Read JSON text under the same rules: no NaN, no deep nesting, no lone surrogates."""
    refuse_odd_numbers(text)
    try:
        value = from_json(text, allow_inf_nan=False)
    except TypeError:
        raise InvalidArguments(_SURROGATE) from None
    except ValueError as error:
        raise InvalidArguments(f"not valid JSON: {error}") from None
    check_keys(text, count_json_keys(value))
    return value


def check_keys(text: str | bytes, read: int = 1) -> None:
    """Refuse JSON text in which a key has two values: the validator would silently take the last one.

    Args:
        text: What the model wrote.
        read: How many different keys were found in it, at least. Each key that is written has a colon: with as many
            colons as keys none is repeated, and the text need not be read again.
    """
    colons = text.count(":") if isinstance(text, str) else text.count(b":")
    if colons <= read:
        return
    try:
        refuse_repeated_keys(text)
    except RepeatedKey as error:
        raise InvalidArguments(str(error)) from None


def refuse_odd_numbers(text: str | bytes) -> None:
    """Refuse NaN, infinities and integers beyond 64 bits at any depth."""
    if not (re.search(_SUSPECT, text) if isinstance(text, str) else re.search(_SUSPECT.encode(), text)):
        return
    for path, number in _numbers(_read(text), ()):
        if isinstance(number, float) and not -1e309 < number < 1e309:
            raise InvalidArguments(f"{join_path(path)}: expected a finite number, got {number}")
        if isinstance(number, int) and not INTEGER_RANGE[0] <= number <= INTEGER_RANGE[1]:
            raise InvalidArguments(f"{join_path(path)}: expected an integer of at most 64 bits, got a longer one")


def _numbers(value: Any, path: Path) -> Iterator[tuple[Path, int | float]]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield from _numbers(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(cast("list[Any]", value)):
            yield from _numbers(part, (*path, at))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def _read(text: str | bytes) -> Any:
    """Return the text as plain JSON; None if it is not JSON, which the validator has reported already."""
    try:
        return from_json(text)
    except (ValueError, TypeError):
        return None


def describe_first_problem(error: ValidationError) -> str:
    """Return where a value is not valid and why, without the value, which may be large or secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def _locate_problems(whole: Any, error: ValidationError) -> list[ArgumentProblem]:
    found = cast("list[dict[str, Any]]", error.errors(include_url=False))
    return [ArgumentProblem(trace(whole, problem["loc"], problem["type"]), problem) for problem in found]


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shorten(part) for key, part in cast("dict[str, Any]", value).items()}
    return [_shorten(part) for part in cast("list[Any]", value[:_SHOWN_ITEMS])] if isinstance(value, list) else value


def _correct(whole: Any, problems: Sequence[ArgumentProblem]) -> bool:
    """Repair, in place, every value with a problem; return whether any changed."""
    changed = False
    for problem in problems:
        if not problem.path or problem.details["type"] in MISSING_FIELD | UNKNOWN_FIELD:
            continue
        holder = whole
        for step in problem.path[:-1]:
            holder = holder[step]
        value = holder[problem.path[-1]]
        better = _reread(value)
        if better is not value:
            holder[problem.path[-1]] = better
            changed = True
    return changed


def _reread(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < FLOAT_RANGE:
        return int(value)
    if not isinstance(value, str):
        return value
    try:
        inner = from_json(value, allow_inf_nan=False)
    except (ValueError, TypeError):
        return value
    check_keys(value)
    return value if isinstance(inner, str) else inner
