"""Finds what the JSON form of validated arguments would not show: users, policies and hooks judge a call by it.

A field that is left out, and an iterator, which is empty once it was shown, are refused where a tool is defined. A
value that is shown as something else, such as a secret, is allowed: an approval is then for the arguments as they were
written, and an edit of the shown arguments keeps what it leaves as it was shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeVar, cast

from callwright.core.errors import Denied, UsageError
from callwright.core.json import JsonObject, canonical, hash_text, list_scalars
from callwright.tool.arguments import as_text
from callwright.tool.validators import from_json

Copied = TypeVar("Copied")
_NOT_READ = frozenset(
    "computed_fields default expected members metadata python_schema serialization strict_schema".split()
)
"""Parts of a core schema that hold values, or that JSON is not validated by."""
_SHOWN_WHOLE = ("pydantic._internal.", "pydantic.networks")
"""Modules whose serializers write all of a value: of paths, addresses and sequences. Secrets are in another one."""


ANY_FIELD: Final = ""
"""Stands for fields that are not known by name."""


def find_concealed(core: Any, *, about: str, required: bool = True) -> frozenset[str]:
    """Return the outermost fields whose JSON form may show something else than their values.

    `ANY_FIELD` is among them for what has no field, or is shared by several.

    Args:
        core: The schema that arguments are validated by.
        about: Names the place in messages.
        required: Whether a value must be given.

    Raises:
        UsageError: The JSON form would leave out part of the values, or use them up, or none is read from JSON.
    """
    found: set[str] = set()
    for fields, part in _walk(core, ()):
        where = f"{about}: the field {fields[-1]!r}" if fields and fields[-1] else about
        if part["type"] == "generator":
            raise UsageError(f"{where} is an Iterable, which can be read only once; write list[…]")
        if part.get("serialization_exclude") or "serialization_exclude_if" in part:
            advice = "remove exclude, or use SecretStr for a value that must not be shown"
            raise UsageError(f"{where} is excluded, so that a call could not be judged by it; {advice}")
        if part.get("init_only"):
            raise UsageError(f"{where} is an InitVar, so that a call could not be judged by it; make it a field")
        needed: Mapping[str, Any] = _find_needed(part) if part is not core else core if required else {}
        _require_readable(needed, where)
        if _is_changed(part.get("serialization")) or _is_shown_only(part, fields[-1] if fields else ANY_FIELD):
            found.add(fields[0] if fields else ANY_FIELD)
    return frozenset(found)


_SAME_EACH_TIME = (None, list, dict, set, frozenset, tuple, str, int, float, bool)


def is_fresh(factory: object) -> bool:
    """Whether what makes a default may make another one each time."""
    return factory not in _SAME_EACH_TIME


def find_fresh(core: Any, name: str = ANY_FIELD) -> dict[str, frozenset[str]]:
    """Return the fields with a default that may be another one each time, such as an identifier.

    Args:
        core: The schema that arguments are validated by.
        name: The name of the whole value.

    Returns:
        All names that each of them may be given by, by its own.
    """
    if not any(is_fresh(part.get("default_factory")) for _, part in _walk(core, ())):
        return {}  # most schemas have none, and need no table of names
    known: dict[tuple[str, ...], set[str]] = {}
    found: dict[str, frozenset[str]] = {}
    for fields, part in _walk(core, ()):
        names = known.setdefault(fields, {fields[-1] if fields else name})
        names.update(text for text in list_scalars(part.get("validation_alias")) if isinstance(text, str))
        if is_fresh(part.get("default_factory")):
            own = fields[-1] if fields else name
            found[own] = found.get(own, frozenset()) | names
    return found


def recall_defaults(
    written: JsonObject | str | bytes,
    shown: JsonObject,
    fresh: Mapping[str, frozenset[str]],
    concealed: frozenset[str],
    aliases: Mapping[str, str],
) -> JsonObject:
    """Return arguments as they were written, with the defaults of each call as they were shown before.

    Args:
        written: The arguments.
        shown: The arguments of the same call as they were shown before, defaults included.
        fresh: The fields with such defaults, with all of their names.
        concealed: The outermost fields that may be shown as something else; nothing is taken from them.
        aliases: Other names of the outermost fields.
    """
    own = {aliases.get(name, name): value for name, value in _read_members(written).items()}
    seen = {} if ANY_FIELD in concealed else {name: shown[name] for name in shown if name not in concealed}
    return _fill(own, seen, fresh)


def _fill(written: Any, shown: Any, fresh: Mapping[str, frozenset[str]]) -> Any:
    if isinstance(written, dict) and isinstance(shown, Mapping):
        given, known = cast("dict[str, Any]", written), cast("JsonObject", shown)
        filled = {name: _fill(value, known.get(name), fresh) for name, value in given.items()}
        missing = (name for name, names in fresh.items() if name in known and not names & given.keys())
        return {**filled, **{name: known[name] for name in missing}}
    if isinstance(written, list) and isinstance(shown, (list, tuple)):
        items, others = cast("list[Any]", written), cast("Sequence[Any]", shown)
        if len(items) == len(others):
            return [_fill(item, other, fresh) for item, other in zip(items, others, strict=True)]
    return cast("Any", written)


def require_readable_output(core: Any) -> None:
    """Refuse the type of an output of which a needed value is never read from JSON.

    Raises:
        UsageError: There is such a value.
    """
    for fields, part in _walk(core, ()):
        where = f"output: the field {fields[-1]!r}" if fields and fields[-1] else "output"
        _require_readable(core if part is core else _find_needed(part), where)


def _find_needed(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the value that a field needs; a field with a default has another kind of schema."""
    return part["schema"] if part["type"].endswith("-field") and part.get("required", True) else {}


def _require_readable(needed: Mapping[str, Any], where: str) -> None:
    match needed.get("type"):
        case "is-subclass":
            raise UsageError(f"{where} is a class, which JSON cannot carry; write a Literal of names")
        case "literal" if not any(map(_is_readable, needed["expected"])):
            choice: object = needed["expected"][0]
            better = "write texts or numbers"
            if isinstance(choice, Enum) and _is_readable(choice.value):
                better = f"write class {type(choice).__name__}({type(choice.value).__name__}, Enum)"
            raise UsageError(f"{where} is a Literal of {choice}, which is not read from JSON; {better}")
        case "enum" if "missing" not in needed and not any(_is_readable(each.value) for each in needed["members"]):
            name = needed["cls"].__name__
            raise UsageError(f"{where} is a {name}, whose values are not read from JSON; give it texts or numbers")
        case _:
            pass


def _is_readable(value: object) -> bool:
    """Whether pydantic reads a value from JSON; a Literal of a plain enum's member is not read from its value."""
    return value is None or isinstance(value, (str, int, float, Decimal, list, dict))


def digest_written(arguments: JsonObject | str | bytes) -> str:
    """Return a digest of arguments as they were written."""
    return hash_text(canonical(_read(arguments)))


def _read(arguments: JsonObject | str | bytes) -> Any:
    return from_json(arguments if isinstance(arguments, (str, bytes)) else as_text(arguments))


def _read_members(arguments: JsonObject | str | bytes) -> dict[str, Any]:
    read = _read(arguments)
    return from_json(read) if isinstance(read, str) else read  # the whole object written as text


def _walk(node: Any, fields: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the parts of a core schema that validate JSON, each with the names of the fields around it."""
    if isinstance(node, dict):
        parts = cast("dict[str, Any]", node)
        if not isinstance(parts.get("type"), str):  # fields or choices by name
            for name, part in parts.items():
                yield from _walk(part, (*fields, name))
            return
        fields = (*fields, parts["name"]) if parts["type"] == "dataclass-field" else fields
        yield fields, parts
        for key, part in parts.items():
            if key not in _NOT_READ:
                # names that are no fields, and parts that any field may refer to
                unknown = not fields and key in ("choices", "definitions", "arguments_schema")
                yield from _walk(part, (ANY_FIELD,) if unknown else fields)
    elif isinstance(node, (list, tuple)):
        for part in cast("Sequence[Any]", node):
            yield from _walk(part, fields)


def _is_shown_only(part: Mapping[str, Any], name: str) -> bool:
    """Whether what is shown is not accepted: a value that the program sets, or a name or form for output alone.

    Args:
        part: A part of a core schema.
        name: The innermost field around it, or its own name if it is a field; arguments may always be given by it.
    """
    shown, alias = part.get("serialization_alias"), cast("Any", part.get("validation_alias"))
    choices = cast("list[Any]", alias) if isinstance(alias, list) else [alias]  # names, and paths as lists
    renamed = shown not in (None, name, alias) and [shown] not in (choices, *choices)
    return bool(part.get("computed_fields")) or part.get("init") is False or renamed or part["type"] == "json"


def _is_changed(serialization: Any) -> bool:
    """Whether a value may be written as something that does not tell it from others."""
    if not isinstance(serialization, dict):
        return False
    function: object = cast("dict[str, Any]", serialization).get("function")
    return not str(getattr(function, "__module__", "")).startswith(_SHOWN_WHOLE)


_NOTHING: Final = object()
"""In place of a value that was not written or not shown."""
_SHOWN_CHARS = 40


def restore_concealed(
    edited: JsonObject,
    shown: JsonObject,
    written: JsonObject | str | bytes,
    concealed: frozenset[str],
    aliases: Mapping[str, str],
) -> JsonObject:
    """Return edited arguments in which concealed values that the edit left as they were shown are as they were written.

    Args:
        edited: The arguments as a user or a hook changed them.
        shown: The arguments before that, as they were shown.
        written: The arguments before that, as they were written.
        concealed: The outermost fields that may be shown as something else.
        aliases: Other names of the outermost fields.

    Raises:
        Denied: What stands for a value is in another place now, so that it cannot be told which value is meant.
    """
    before = {aliases.get(name, name): value for name, value in _read_members(written).items()}
    every = ANY_FIELD in concealed or not concealed <= shown.keys()
    plain = {name: value for name, value in edited.items() if not every and name in shown and name not in concealed}
    others = {name: value for name, value in edited.items() if name not in plain}
    masks = {str(leaf) for leaf in _find_masks(shown if every else {name: shown[name] for name in concealed}, before)}
    masks -= {str(leaf) for leaf in list_scalars(before)}
    return {**plain, **_restore_members(others, shown, before, masks)}


def _restore_members(edited: JsonObject, shown: JsonObject, written: JsonObject, masks: set[str]) -> dict[str, Any]:
    same_names = written.keys() <= shown.keys()
    restored: dict[str, Any] = {}
    for name, value in edited.items():
        if name in shown and name not in written and not same_names:  # a default, or written under another name
            raise Denied(f"{name} is not shown as it was written, so an edit cannot keep it; decline the call instead")
        found = _restore(value, shown.get(name, _NOTHING), written.get(name, _NOTHING), masks)
        if found is not _NOTHING:  # else it is left out once more, for the default
            restored[name] = found
    return restored


def _restore(edited: Any, shown: Any, written: Any, masks: set[str]) -> Any:
    if shown is not _NOTHING and canonical(edited) == canonical(shown):
        return written
    if isinstance(edited, Mapping) and isinstance(shown, Mapping) and isinstance(written, Mapping):
        return _restore_members(
            cast("JsonObject", edited), cast("JsonObject", shown), cast("JsonObject", written), masks
        )
    # items of lists have no names, and those of a set are shown in another order
    for leaf in list_scalars(edited):
        if str(leaf) in masks and (isinstance(leaf, str) or leaf is not edited):
            advice = "leave it in its place, or write the value"
            raise Denied(f'"{str(leaf)[:_SHOWN_CHARS]}" stands for a value that is not shown; {advice}')
    return cast("Any", edited)


def _find_masks(shown: Any, written: Any) -> Iterator[str | float]:
    """Yield what may stand for a value that is not shown: what was not written in the same place."""
    if isinstance(shown, Mapping) and isinstance(written, Mapping):
        before = cast("JsonObject", written)
        for name, value in cast("JsonObject", shown).items():
            yield from _find_masks(value, before.get(name, _NOTHING))
        return
    if isinstance(shown, (list, tuple)) and isinstance(written, list):
        items, others = cast("Sequence[Any]", shown), cast("list[Any]", written)
        if len(items) == len(others):
            for one, other in zip(items, others, strict=True):
                yield from _find_masks(one, other)
            return
    # of defaults only texts: a number would be found in many places
    yield from (leaf for leaf in list_scalars(shown) if written is not _NOTHING or isinstance(leaf, str))


def copy_values(values: Copied) -> Copied:
    """Return a copy of validated arguments; the same object if one of them cannot be copied."""
    try:
        return deepcopy(values)
    except Exception:  # noqa: BLE001 - whatever methods of its own a value has
        return values
