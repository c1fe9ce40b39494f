"""Arguments as a whole: read from text, and advice for the model where they have no reading, or more than one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from callwright.core.calls import Repair
from callwright.core.json import JsonObject, make_object, refuse_constant, thaw
from callwright.repairs.lenient_json import CutOff, NotJson, TwoReadings, TwoValues, read_lenient, try_read
from callwright.repairs.schemas import Object, Target, fits, kinds_of, required_of

_NO_VALUE = ("{", "[", "```", "\n")
"""In a bare string: it may be a whole call, or a text with one in it."""
_KEY = re.compile(r"""[\\"'\s]*(?P<name>\w+)[\\"'\s]*:""")
_EMPTY = frozenset({"", "null", "None", "undefined", "[]", '""', "''"})
"""How models and servers write that there are no arguments."""
ReadArguments: TypeAlias = tuple[Object, list[Repair]]


def read_arguments(arguments: JsonObject | str | bytes, target: Target) -> ReadArguments | None:
    """Return the arguments as an object, and what was repaired to get it; None if they have no reading, or two."""
    if isinstance(arguments, Mapping):
        return cast("Object", thaw(arguments)), []
    try:
        text = arguments.decode() if isinstance(arguments, bytes) else arguments
    except UnicodeDecodeError:
        return None
    if text.strip() in _EMPTY:
        return {}, [Repair("empty", "no arguments read as {}")]
    repairs: list[Repair] = []
    try:
        value = _read_strictly(text)
    except ValueError:
        try:
            value = read_lenient(text)
        except NotJson:
            return None
        repairs.append(Repair("json", "invalid JSON corrected"))
    if isinstance(value, str):  # the whole object written as text, perhaps with mistakes of its own
        inner = try_read(value)
        if isinstance(inner, (dict, list)):
            value = cast("Any", inner)
            repairs.append(Repair("wrapped", "an object written as text was read"))
    if isinstance(value, list) and len(cast("list[Any]", value)) == 1 and isinstance(value[0], dict):
        return cast("Object", value[0]), [*repairs, Repair("list", "a list with one object read as the object")]
    if isinstance(value, dict):
        return cast("Object", value), repairs
    return _name_only_field(value, target, repairs)


def _name_only_field(value: Any, target: Target, repairs: list[Repair]) -> ReadArguments | None:
    """Read a bare string, also in a list, as the value of the tool's only required field; words as a command line."""
    required = required_of(target.schema, target.schema)
    if len(required) != 1:
        return None
    (field,) = required
    if isinstance(value, list) and field in target.lines and len(cast("list[Any]", value)) > 1:
        return {field: value}, [*repairs, Repair("wrapped", f"a bare list read as {field}")]
    if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
        value = cast("Any", value[0])
    if not isinstance(value, str) or any(mark in value for mark in _NO_VALUE):
        return None
    if "string" not in kinds_of(target.fields.get(field, {}), target.schema):
        return None
    if (key := _KEY.match(value)) is not None and key["name"] in target.fields:
        return None  # a part of an object, such as `command": "ls"}`
    return {field: value}, [*repairs, Repair("wrapped", f"a bare string read as {field}")]


def _read_strictly(text: str) -> Any:
    from json import loads

    return loads(text, object_pairs_hook=make_object, parse_constant=refuse_constant)


def advise(arguments: JsonObject | str | bytes, target: Target, error: str) -> str:
    """Return what to send instead of refused arguments; empty where the error itself says it."""
    if not isinstance(arguments, Mapping):
        text = arguments.decode("utf-8", "replace") if isinstance(arguments, bytes) else arguments
        try:
            value: Any = read_lenient(text)
        except CutOff:
            return (
                _advise_text(text, target)
                if not text.strip()
                else (
                    "the text ends before the call does, so nothing ran: send the whole call again; if it was cut off, "
                    "write less in one call"
                )
            )
        except (TwoReadings, TwoValues) as problem:
            return str(problem) if "not valid JSON" in error else ""
        except NotJson:
            return _advise_text(text, target) if "not valid JSON" in error else ""
        if isinstance(value, list) and len(cast("list[Any]", value)) > 1:
            return "send one call for each of them, with one object as its arguments"
        if not isinstance(value, dict):
            return _advise_text("", target)
        arguments = cast("JsonObject", value)
        if "not valid JSON" in error:  # it was read as an object, but not repaired: a lone surrogate, an odd number
            return "write the characters themselves instead of \\u escapes, and plain numbers"
    return _advise_fields(cast("Object", thaw(arguments)), target)


def _advise_text(text: str, target: Target) -> str:
    names = ", ".join(f'"{name}"' for name in target.fields)
    if not text.strip() or "{" not in text:
        return f"send a JSON object with the fields {names}" if names else "send {}"
    if not text.lstrip().startswith("{"):
        return "send the JSON object alone, without other text"
    return 'send one JSON object; inside a string, write a quote as \\" and a line break as \\n'


def _advise_fields(given: Object, target: Target) -> str:
    """Say what to do about the first list or object in place of a string."""
    for key, value in given.items():
        kinds = kinds_of(target.fields.get(key, {}), target.schema)
        if "string" not in kinds or fits(value, kinds):
            continue
        if isinstance(value, list) and key in target.lines:
            return f"write {key} as one string, a shell line with its quotes"
        if isinstance(value, list) and len(cast("Sequence[Any]", value)) > 1:
            return f"{key} takes one string: join the parts, or send one call for each"
        if value in ({}, []):
            return f"write {key} as one string"
        if isinstance(value, (dict, list)):
            return f"write {key} as one string, with the JSON inside it as text"
    return ""
