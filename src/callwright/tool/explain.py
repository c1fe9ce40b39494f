"""What the model is told when its arguments do not fit: each field, what was expected, what came."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias, cast

from callwright.core.json import compact
from callwright.tool.compile import INTEGER_RANGE

Path: TypeAlias = tuple[str | int, ...]
MISSING_FIELD = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
"""Kinds of problem that mean a field that is not there."""
UNKNOWN_FIELD = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
"""Kinds of problem that mean a field nobody asked for: pydantic's words for models and for dataclasses."""
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
_ARTICLE = re.compile(r"\ba (?=(?:array|integer|object)\b)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: where it is in what the model wrote, and what the validator says about it."""

    path: Path
    details: Mapping[str, Any]


def trace(whole: Any, location: Sequence[str | int], kind: str) -> Path:
    """The steps of a location that exist in the data; validators add the names of union members, which do not."""
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


def describe_problems(problems: Sequence[Problem], fields: Sequence[str]) -> str:
    """One clause per fault; what several members of a union wanted of one value is one clause."""
    clauses: dict[str, list[str]] = {}
    for problem in problems:
        message = str(problem.details["msg"])
        if message.startswith(_EXPECTED):
            clauses.setdefault(f"{dotted(problem.path)}: expected ", []).append(_wish(problem.details))
        else:
            clauses.setdefault(_clause(problem, message, fields), [])
    values = {f"{dotted(problem.path)}: expected ": problem.details.get("input") for problem in problems}
    written = [
        f"{start}{' or '.join(dict.fromkeys(wishes))}, got {show_value(values[start])}" if wishes else start
        for start, wishes in list(clauses.items())[:_SHOWN_PROBLEMS]
    ]
    if len(clauses) > _SHOWN_PROBLEMS:
        written.append(f"and {len(clauses) - _SHOWN_PROBLEMS} more")
    return "; ".join(written)


def _wish(details: Mapping[str, Any]) -> str:
    if details["type"] == "string_unicode":
        return "valid Unicode without lone surrogates"
    bounds = set(details.get("ctx", {}).values()) if "than_equal" in details["type"] else set[Any]()
    if bounds & set(INTEGER_RANGE):
        return "an integer of at most 64 bits"
    return _ARTICLE.sub("an ", str(details["msg"]).removeprefix(_EXPECTED).replace("a valid ", "a "))


def _clause(problem: Problem, message: str, fields: Sequence[str]) -> str:
    kind, where = problem.details["type"], dotted(problem.path)
    if kind == "json_invalid":
        return f"not valid JSON: {problem.details['ctx']['error']}"
    if kind in MISSING_FIELD:
        return f"{where}: missing, and it is required"
    if kind in UNKNOWN_FIELD:
        return f"{where}: unknown field{_suggestion(problem.path, fields)}"
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"{where}: {message[:1].lower()}{message[1:]}, got {show_value(problem.details.get('input'))}"


def _suggestion(path: Path, fields: Sequence[str]) -> str:
    if len(path) != 1:
        return ""
    near = get_close_matches(str(path[0])[:_SHOWN_CHARS], fields, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    if not fields:
        return "; there are none"
    return f"; known are {', '.join(fields[:_SHOWN_FIELDS])}{' and more' if len(fields) > _SHOWN_FIELDS else ''}"


def dotted(path: Sequence[str | int]) -> str:
    """A place in the arguments as one word: `filter.tags.0`."""
    steps = [str(step) for step in path]
    return clip_value(".".join(_cut(step, _SHOWN_STEP_CHARS) for step in steps)) or "arguments"


def show_value(value: Any) -> str:
    """Name a value and its JSON type, shortened."""
    if value is None:
        return "null"
    kind = cast("type[object]", type(value))
    try:
        written = compact(value)
    except (TypeError, ValueError, RecursionError):
        written = kind.__name__
    return f"{clip_value(written)} ({_JSON_NAMES.get(kind, kind.__name__)})"


def clip_value(text: str) -> str:
    """Shorten what came so that a huge argument does not become a huge error."""
    return _cut(text, _SHOWN_CHARS)


def _cut(text: str, chars: int) -> str:
    short = text if len(text) <= chars else f"{text[: chars - 1]}…"
    return short.encode("utf-8", "replace").decode()  # what is not Unicode must not break whoever sends the error on
