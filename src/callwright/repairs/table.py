"""The table of argument repairs: each changes only what breaks the schema, and only where one reading is possible.

A repair is a proposal. The caller validates the repaired arguments, and judges, records and reports the call that it
makes of them. Every row has an example and a reverse: arguments that must not be repaired.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from callwright.core.calls import Repair, RepairKind
from callwright.core.json import JsonObject, canonical
from callwright.repairs.arguments import read_arguments
from callwright.repairs.commands import quote_command, unwrap_lines
from callwright.repairs.lenient_json import try_read
from callwright.repairs.names import ARGUMENT_KEYS, NAME_KEYS
from callwright.repairs.schemas import (
    Change,
    Object,
    Schema,
    Target,
    choices_of,
    fields_of,
    fits,
    fold_choice,
    is_closed,
    items_of,
    kind_of,
    kinds_of,
    required_of,
)
from callwright.tool.compile import FLOAT_RANGE


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


_HOLDERS = (*ARGUMENT_KEYS, "function_args", "properties")
_CALLS = ("function", "function_call", "tool_call")
_EXTRAS = ("type", "id", "call_id", "tool_call_id", "required", "additionalProperties", "thought", "reasoning")
_MISSING: tuple[Any, ...] = (None, {}, [], "")


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
    calls = [key for key in foreign if key in _CALLS and isinstance(given[key], dict)]
    extras = {key for key in _EXTRAS if key not in fields}
    if len(calls) == 1 and given.keys() <= {calls[0], *extras}:
        return cast("Object", given[calls[0]])  # {"type": "function", "function": {…}}
    labels = [key for key in foreign if key in NAME_KEYS and isinstance(given[key], str)]
    if any(not target.names(given[key]) for key in labels):
        return None
    rest = {key: value for key, value in given.items() if key not in labels}
    held = [key for key in rest if key in _HOLDERS and key not in fields]
    if held:
        return _take_held(rest, held, extras)
    return rest if labels else None  # {"name": "read", "path": …}


def _take_held(rest: Object, held: list[str], extras: set[str]) -> Object | None:
    """Return the arguments of a call written around them: in one holder, or beside empty ones."""
    beside = {key: value for key, value in rest.items() if key not in held and key not in extras}
    filled = [rest[key] for key in held if rest[key] not in _MISSING]
    if not filled:
        return beside
    inner = try_read(filled[0]) if isinstance(filled[0], str) else filled[0]
    if isinstance(inner, list) and len(cast("list[Any]", inner)) == 1:
        inner = cast("Any", inner[0])
    # an inner text that cannot be read may be cut off: nothing is not what the model sent
    return cast("Object", inner) if len(filled) == 1 and not beside and isinstance(inner, dict) else None


def spell_keys(given: Object, target: Target) -> Change:
    """Rename keys that differ from a field only in letter case, `_`, `-`, quotes or white space."""
    fields = target.fields
    folded: dict[str, set[str]] = {}
    for spelling, name in {**target.field_aliases, **{name: name for name in fields}}.items():
        folded.setdefault(_fold(spelling), set()).add(name)
    meant = {key: folded.get(_fold(key), set()) for key in given if key not in fields}
    names = {key: next(iter(found)) for key, found in meant.items() if len(found) == 1}
    renamed: dict[str, str] = {}
    for key, name in names.items():
        twice = name in given and canonical(given[name]) == canonical(given[key])  # the same value under two spellings
        if twice or (name not in given and list(names.values()).count(name) == 1):
            renamed[key] = name
    if not renamed:
        return None
    note = ", ".join(f"{key!r} read as {field}" for key, field in renamed.items())
    return {renamed.get(key, key): value for key, value in given.items()}, note


def _fold(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).casefold()


def nest(given: Object, target: Target) -> Change:
    """Put flattened fields back: `filter.tags`, or the fields of the only object that has them all."""
    fields = target.fields
    objects = {name: fields_of(field, target.root) for name, field in fields.items() if name not in given}
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
    kept = _drop_nulls(given, target.schema, target, "", dropped)
    return (kept, f"{', '.join(dropped)}: null left out") if dropped else None


def _drop_nulls(given: Object, schema: Schema, target: Target, where: str, dropped: list[str]) -> Object:
    root = target.root
    fields, required = fields_of(schema, root), required_of(schema, root)
    closed = is_closed(schema, root, unsaid=target.closed)
    kept: Object = {}
    for key, value in given.items():
        field = fields.get(key)
        if field is None:
            # null for a field that does not exist says nothing; {"": {}} is how some models write "no arguments".
            # Where other fields may exist, in a map, a union or an open object, it is data.
            if closed and (value is None or (not key and value in ({}, [], ""))):
                dropped.append(f"{where}{key or repr(key)}")
            else:
                kept[key] = value
        elif key not in required and _is_absent(value, field, root):
            dropped.append(where + key)
        elif isinstance(value, dict):
            kept[key] = _drop_nulls(cast("Object", value), field, target, f"{where}{key}.", dropped)
        elif isinstance(value, list):
            items = items_of(field, root)
            kept[key] = [
                _drop_nulls(cast("Object", item), items, target, f"{where}{key}.", dropped)
                if isinstance(item, dict)
                else item
                for item in cast("list[Any]", value)
            ]
        else:
            kept[key] = value
    return kept


_NO_VALUE = ("null", "None", "undefined", "")
"""How models write as text that a field has no value."""


def _is_absent(value: Any, field: Schema, root: Schema) -> bool:
    kinds = kinds_of(field, root)
    if not isinstance(value, str) or value not in _NO_VALUE:
        return value is None and "null" not in kinds
    choices = choices_of(field, root)
    if choices is None:
        return not kinds & {"string", "null"}
    words = {_fold(choice) for choice in choices if isinstance(choice, str)}
    if value in choices or words & {"null", "none", "undefined"}:
        return False  # that choice may be meant
    return "null" not in kinds or field.get("default") is None  # else null and nothing differ


def fit_lists(given: Object, target: Target) -> Change:
    """Take the one item out of a list for a single value, and put a single value into a list."""
    changed, notes = dict(given), list[str]()
    for key, value in given.items():
        field = target.fields.get(key)
        kinds = frozenset[str]() if field is None else kinds_of(field, target.root)
        if field is None or fits(value, kinds):
            continue
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1 and "array" not in kinds:
            only = cast("Any", value[0])
            item = only if fits(only, kinds) else _read_literal(only, kinds)
            if item is not None and fits(item, kinds):
                changed[key] = item
                notes.append(f"{key}: a list with one item read as the item")
        elif "array" in kinds and _is_one_item(value, kinds_of(items_of(field, target.root), target.root)):
            changed[key] = [value]
            notes.append(f"{key}: a single value read as a list")
    return (changed, "; ".join(notes)) if notes else None


def _is_one_item(value: Any, kinds: frozenset[str]) -> bool:
    if value in _MISSING or (isinstance(value, str) and value.strip() in _NO_VALUE):
        return False  # perhaps an empty list
    several = isinstance(value, str) and re.search(r"[,;\n\[{]", value)  # perhaps a list in one text
    return not several and fits(value, kinds)


_DESCRIBED = {"type", "value", "description", "title"}


def read_literals(given: Object, target: Target) -> Change:
    """Read `"True"`, `"5.0"`, `"['a']"`: values written as text that are not quite JSON."""
    changed, notes = dict(given), list[str]()
    for key, value in given.items():
        field = target.fields.get(key)
        kinds = frozenset[str]() if field is None else kinds_of(field, target.root)
        if field is None or value is None or fits(value, kinds):
            continue
        read = _take_own(value, key, target) or _read_literal(value, kinds)
        if isinstance(read, dict) and "array" in kinds and "object" not in kinds:
            read = cast("Any", [read])  # the only item of a list, as text
        if read is not None and fits(read, kinds):
            changed[key] = read
            notes.append(f"{key}: {kind_of(value)} read as {kind_of(read)}")
    return (changed, "; ".join(notes)) if notes else None


def _take_own(value: Any, key: str, target: Target) -> Any:
    """Return what `{"path": {"path": "a.py"}}` holds."""
    if not isinstance(value, dict) or len(cast("Object", value)) != 1:
        return None
    ((inner, held),) = cast("Object", value).items()
    return held if target.field_aliases.get(inner, inner) == key else None


def _read_literal(value: Any, kinds: frozenset[str]) -> Any:
    if isinstance(value, str):
        read = try_read(value.strip()) if value.strip() else None
        if isinstance(read, float) and read.is_integer() and abs(read) < FLOAT_RANGE and "number" not in kinds:
            return int(read)
        return read
    if isinstance(value, dict) and "value" in value and set(cast("Object", value)) <= _DESCRIBED:
        return cast("Object", value)["value"]  # the field's schema, filled in
    return None


def spell_choices(given: Object, target: Target) -> Change:
    """Correct letter case, quotes and the separators of words in a value from a fixed list."""
    changed, notes = dict(given), list[str]()
    for key, value in given.items():
        field = target.fields.get(key, {})
        if isinstance(value, list):
            choices, spelt = choices_of(items_of(field, target.root), target.root), cast("list[Any]", value)
            better = [_spell_choice(item, choices) for item in spelt]
        else:
            better = _spell_choice(value, choices_of(field, target.root))
        if better != value:
            changed[key] = better
            notes.append(f"{key}: {value!r} read as {better!r}")
    return (changed, "; ".join(notes)) if notes else None


def _spell_choice(value: Any, choices: tuple[Any, ...] | None) -> Any:
    if not isinstance(value, str) or choices is None or value in choices:
        return value
    folded = fold_choice(value)
    near = [choice for choice in choices if isinstance(choice, str) and folded and fold_choice(choice) == folded]
    return near[0] if len(near) == 1 else value


def _at_every_level(apply: Callable[[Object, Target], Change]) -> Callable[[Object, Target], Change]:
    """Return a repair for the arguments and for the objects in them, also in lists; notes name the path."""

    def apply_within(given: Object, target: Target) -> Change:
        found = apply(given, target)
        changed, notes = (found[0], [found[1]]) if found else (given, list[str]())
        for key, value in changed.items():
            field = target.fields.get(key)
            if field is None or not isinstance(value, (dict, list)):
                continue
            inner = target.inside(field if isinstance(value, dict) else items_of(field, target.root))
            items = cast("list[Any]", [value] if isinstance(value, dict) else value)
            steps = [apply_within(cast("Object", item), inner) if isinstance(item, dict) else None for item in items]
            if any(steps):
                better = [step[0] if step else item for item, step in zip(items, steps, strict=True)]
                changed = {**changed, key: better[0] if isinstance(value, dict) else better}
                notes += dict.fromkeys(f"in {key}, {step[1]}" for step in steps if step)
        return (changed, "; ".join(notes)) if notes else None

    return apply_within


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
    Row("key", _at_every_level(spell_keys), ({"Path": "a"}, {"path": "a"}), {"paht": "a"}),
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
    Row(
        "list",
        _at_every_level(fit_lists),
        ({"path": ["a"], "tags": "b"}, {"path": "a", "tags": ["b"]}),
        {"path": ["a", "b"]},
    ),
    Row(
        "literal",
        _at_every_level(read_literals),
        ({"path": "a", "limit": "5.0"}, {"path": "a", "limit": 5}),
        {"path": "a", "limit": "5k"},
    ),
    Row(
        "choice",
        _at_every_level(spell_choices),
        ({"path": "a", "mode": "Lines"}, {"path": "a", "mode": "lines"}),
        {"path": "a", "mode": "l"},
    ),
)
"""In order: each row sees what the rows before it made."""
