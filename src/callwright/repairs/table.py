"""The table of argument repairs: each changes only what breaks the schema, and only where one reading is possible.

A repair is a proposal. The caller validates the repaired arguments, and judges, records and reports the call that it
makes of them. Every row has an example and a reverse: arguments that must not be repaired.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from callwright.core.json import JsonObject
from callwright.core.repairs import Repair, RepairKind
from callwright.repairs.arguments import read_arguments, read_text
from callwright.repairs.commands import quote_words, unwrap_line
from callwright.repairs.schemas import Schema, Target, fields_of, fits, items_of, kind_of, kinds_of, required_of

Object: TypeAlias = dict[str, Any]
Change: TypeAlias = tuple[Object, str] | None
"""The changed arguments and the note; None if the repair does not apply."""


def repair_arguments(arguments: JsonObject | str | bytes, target: Target) -> tuple[Object, list[Repair]] | None:
    """Return repaired arguments, not validated, and what was changed; None if nothing applies."""
    found = read_arguments(arguments, target)
    if found is None:
        return None
    given, repairs = found
    for row in TABLE:
        given = _name_fields(given, target)
        changed = row.apply(given, target)
        if changed is not None:
            given, note = changed
            repairs.append(Repair(row.kind, note))
    return (given, repairs) if repairs else None


def _name_fields(given: Object, target: Target) -> Object:
    """Write fields under their own names, so that the repairs find their schemas."""
    if not any(key in target.field_aliases for key in given):
        return given
    named = {target.field_aliases.get(key, key): value for key, value in given.items()}
    return named if len(named) == len(given) else given


_HOLDERS = (
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "kwargs",
    "tool_input",
    "function_args",
    "action_input",
    "properties",
)
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
_LINES = ("command", "cmd", "command_line", "commandline", "shell_command")
_EXTRAS = ("type", "id", "call_id", "tool_call_id", "required", "additionalProperties")


def unwrap(given: Object, target: Target) -> Change:
    """Take the arguments out of a call written around them; a call of another tool stays as it is."""
    fields = target.fields
    inner = given
    for _ in range(3):
        step = _unwrap_once(inner, target, fields)
        if step is None:
            break
        inner = step
    return None if inner is given else (inner, "the arguments were taken out of a call written around them")


def _unwrap_once(given: Object, target: Target, fields: Mapping[str, Schema]) -> Object | None:
    foreign = [key for key in given if key not in fields]
    if len(given) == 1 and foreign and target.names(foreign[0]) and isinstance(given[foreign[0]], dict):
        return cast("Object", given[foreign[0]])  # {"read": {"path": …}}
    function = given.get("function")
    if "function" in foreign and isinstance(function, dict) and set(given) <= {"function", *_EXTRAS}:
        return cast("Object", function)  # {"type": "function", "function": {…}}
    labels = [key for key in foreign if key in _NAMES and isinstance(given[key], str)]
    if any(not target.names(given[key]) for key in labels):
        return None
    rest = {key: value for key, value in given.items() if key not in labels}
    held = [key for key in rest if key in _HOLDERS and key not in fields]
    if len(held) == 1 and all(key in held or key in _EXTRAS for key in rest):
        inner = rest[held[0]]
        inner = read_text(inner) if isinstance(inner, str) else inner
        return cast("Object", inner) if isinstance(inner, dict) else {} if inner is None else None
    return rest if labels else None  # {"name": "read", "path": …}


def spell_keys(given: Object, target: Target) -> Change:
    """Rename keys that differ from a field only in letter case, `_`, `-`, quotes or white space."""
    fields = target.fields
    folded: dict[str, list[str]] = {}
    for name in fields:
        folded.setdefault(_fold(name), []).append(name)
    renamed: dict[str, str] = {}
    for key in given:
        meant = folded.get(_fold(key), []) if key not in fields else []
        if len(meant) == 1 and meant[0] not in given and meant[0] not in renamed.values():
            renamed[key] = meant[0]
    if not renamed:
        return None
    note = ", ".join(f"{key!r} read as {field}" for key, field in renamed.items())
    return {renamed.get(key, key): value for key, value in given.items()}, note


def _fold(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).casefold()


def nest(given: Object, target: Target) -> Change:
    """Put flattened fields back: `filter.tags`, or the fields of the only object that has them all."""
    fields = target.fields
    objects = {name: fields_of(field, target.schema) for name, field in fields.items() if name not in given}
    foreign = [key for key in given if key not in fields]
    if not foreign:
        return None
    dotted = [key.partition(".") for key in foreign]
    if all(head in objects and rest in objects[head] for head, _, rest in dotted):
        moved: Object = {key: value for key, value in given.items() if key in fields}
        for head, _, rest in dotted:
            moved.setdefault(head, {})[rest] = given[f"{head}.{rest}"]
        return moved, f"{', '.join(foreign)} nested"
    holders = [name for name, inner in objects.items() if inner and all(key in inner for key in foreign)]
    if len(holders) != 1:
        return None
    kept = {key: value for key, value in given.items() if key in fields}
    return {**kept, holders[0]: {key: given[key] for key in foreign}}, f"{', '.join(foreign)} put into {holders[0]}"


def drop_nulls(given: Object, target: Target) -> Change:
    """Leave out null for an optional field without null, also in lists of objects and in objects."""
    dropped: list[str] = []
    kept = _drop_nulls(given, target.schema, target.schema, "", dropped)
    return (kept, f"{', '.join(dropped)}: null left out") if dropped else None


def _drop_nulls(given: Object, schema: Schema, root: Schema, where: str, dropped: list[str]) -> Object:
    fields, required = fields_of(schema, root), required_of(schema, root)
    kept: Object = {}
    for key, value in given.items():
        field = fields.get(key)
        if field is None:
            # null for a field that does not exist says nothing; {"": {}} is how some models write "no arguments"
            if value is None or (not key and value in ({}, [], "")):
                dropped.append(f"{where}{key or repr(key)}")
            else:
                kept[key] = value
        elif _is_absent(value, kinds_of(field, root)) and key not in required:
            dropped.append(where + key)
        elif isinstance(value, dict):
            kept[key] = _drop_nulls(cast("Object", value), field, root, f"{where}{key}.", dropped)
        elif isinstance(value, list):
            items = items_of(field, root)
            kept[key] = [
                _drop_nulls(cast("Object", item), items, root, f"{where}{key}.", dropped)
                if isinstance(item, dict)
                else item
                for item in cast("list[Any]", value)
            ]
        else:
            kept[key] = value
    return kept


def _is_absent(value: Any, kinds: frozenset[str]) -> bool:
    if "null" in kinds:
        return False
    return value is None or (value in ("null", "None", "undefined", "") and not kinds & {"string"})


def quote_command(given: Object, target: Target) -> Change:
    """Write a list of words as one command line, unless a word may have been meant as an operator."""
    for key, value in given.items():
        field = target.fields.get(key)
        if field is None or key not in _LINES or not isinstance(value, list):
            continue
        words = cast("list[Any]", value)
        if "array" in kinds_of(field, target.schema) or len(words) < 2:
            continue
        line = quote_words(words)
        return None if line is None else ({**given, key: line}, f"the list for {key} quoted as one line")
    return None


def unwrap_lines(given: Object, target: Target) -> Change:
    """Take shell lines out of a code fence, a prompt or JSON."""
    lines = {key: unwrap_line(value) for key, value in given.items() if key in target.lines and isinstance(value, str)}
    found = {key: line for key, line in lines.items() if line is not None}
    return ({**given, **found}, f"{', '.join(found)}: the line alone") if found else None


def fit_lists(given: Object, target: Target) -> Change:
    """Take the one item out of a list for a single value, and put a single value into a list."""
    changed, notes = dict(given), list[str]()
    for key, value in given.items():
        field = target.fields.get(key)
        kinds = frozenset[str]() if field is None else kinds_of(field, target.schema)
        if field is None or fits(value, kinds):
            continue
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1 and "array" not in kinds:
            if fits(value[0], kinds):
                changed[key] = value[0]
                notes.append(f"{key}: a list with one item read as the item")
        elif "array" in kinds and _is_one_item(value, kinds_of(items_of(field, target.schema), target.schema)):
            changed[key] = [value]
            notes.append(f"{key}: a single value read as a list")
    return (changed, "; ".join(notes)) if notes else None


def _is_one_item(value: Any, kinds: frozenset[str]) -> bool:
    several = isinstance(value, str) and re.search(r"[,;\n\[{]", value)  # perhaps a list in one text
    return not several and fits(value, kinds)


_DESCRIBED = {"type", "value", "description", "title"}


def read_literals(given: Object, target: Target) -> Change:
    """Read `"True"`, `"5.0"`, `"['a']"`: values written as text that are not quite JSON."""
    changed, notes = dict(given), list[str]()
    for key, value in given.items():
        field = target.fields.get(key)
        kinds = frozenset[str]() if field is None else kinds_of(field, target.schema)
        if field is None or value is None or fits(value, kinds):
            continue
        read = _read_literal(value, kinds)
        if read is not None and fits(read, kinds):
            changed[key] = read
            notes.append(f"{key}: {kind_of(value)} read as {kind_of(read)}")
    return (changed, "; ".join(notes)) if notes else None


def _read_literal(value: Any, kinds: frozenset[str]) -> Any:
    if isinstance(value, str):
        read = read_text(value.strip()) if value.strip() else None
        return int(read) if isinstance(read, float) and read.is_integer() and "number" not in kinds else read
    if isinstance(value, dict) and "value" in value and set(cast("Object", value)) <= _DESCRIBED:
        return cast("Object", value)["value"]  # the field's schema, filled in
    return None


def spell_choices(given: Object, target: Target) -> Change:
    """Correct letter case, quotes and white space of a value from a fixed list."""
    changed, notes = dict(given), list[str]()
    for key, value in given.items():
        choices = target.fields.get(key, {}).get("enum")
        if not isinstance(value, str) or not isinstance(choices, (list, tuple)) or value in choices:
            continue
        near = [
            choice for choice in cast("list[Any]", choices) if isinstance(choice, str) and _fold(choice) == _fold(value)
        ]
        if len(near) == 1:
            changed[key] = near[0]
            notes.append(f"{key}: {value!r} read as {near[0]!r}")
    return (changed, "; ".join(notes)) if notes else None


@dataclass(frozen=True, slots=True)
class Row:
    """One repair: what it does, an example, and a reverse."""

    kind: RepairKind
    apply: Callable[[Object, Target], Change]
    example: tuple[JsonObject, JsonObject]
    """Arguments and what becomes of them, for the fields of `EXAMPLE_SCHEMA`."""
    reverse: JsonObject
    """Arguments that stay as they are: they have no reading, or two."""


EXAMPLE_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "command": {"type": "string"},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "mode": {"enum": ["lines", "count"]},
        "filter": {"type": "object", "properties": {"since": {"type": "string"}, "author": {"type": "string"}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}

TABLE: tuple[Row, ...] = (
    Row(
        "wrapped",
        unwrap,
        ({"name": "find", "arguments": {"path": "a"}}, {"path": "a"}),
        {"name": "delete", "arguments": {"path": "a"}},
    ),
    Row("key", spell_keys, ({"Path": "a"}, {"path": "a"}), {"paht": "a"}),
    Row(
        "nested",
        nest,
        ({"path": "a", "filter.since": "1d"}, {"path": "a", "filter": {"since": "1d"}}),
        {"path": "a", "other": "1d"},
    ),
    Row("null", drop_nulls, ({"path": "a", "limit": None}, {"path": "a"}), {"path": None}),
    Row(
        "command",
        quote_command,
        ({"path": "a", "command": ["echo", "a b"]}, {"path": "a", "command": "echo 'a b'"}),
        {"path": "a", "command": ["ls", "|", "wc"]},
    ),
    Row(
        "command",
        unwrap_lines,
        ({"path": "a", "command": "$ ls"}, {"path": "a", "command": "ls"}),
        {"path": "a", "command": "`ls`"},
    ),
    Row("list", fit_lists, ({"path": ["a"], "tags": "b"}, {"path": "a", "tags": ["b"]}), {"path": ["a", "b"]}),
    Row(
        "literal",
        read_literals,
        ({"path": "a", "limit": "5.0"}, {"path": "a", "limit": 5}),
        {"path": "a", "limit": "5k"},
    ),
    Row(
        "choice",
        spell_choices,
        ({"path": "a", "mode": "Lines"}, {"path": "a", "mode": "lines"}),
        {"path": "a", "mode": "l"},
    ),
)
"""In order: each row sees what the rows before it made."""
