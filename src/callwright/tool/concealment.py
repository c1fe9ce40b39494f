"""Finds what the JSON form of validated arguments would not show: users, policies and hooks judge a call by it.

A field that is left out, and an iterator, which is empty once it was shown, are refused where a tool is defined. A
value that is shown as something else, such as a secret, is allowed: an approval is then for the arguments as they were
written.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, canonical, hash_text
from callwright.tool.arguments import as_text
from callwright.tool.validators import from_json

_NOT_READ = frozenset(
    "computed_fields default expected members metadata python_schema serialization strict_schema".split()
)
"""Parts of a core schema that hold values, or that JSON is not validated by."""
_SHOWN_WHOLE = ("pydantic._internal.", "pydantic.networks")
"""Modules whose serializers write all of a value: of paths, addresses and sequences. Secrets are in another one."""


def conceals(core: Any, *, about: str) -> bool:
    """Whether the JSON form of values of a core schema may show something else than the values.

    Args:
        core: The schema that arguments are validated by.
        about: Names the place in messages.

    Raises:
        UsageError: The JSON form would leave out part of the values, or use them up.
    """
    found = False
    for field, part in _walk(core, ""):
        where = f"{about}: the field {field!r}" if field else about
        if part["type"] == "generator":
            raise UsageError(f"{where} is an Iterable, which can be read only once; write list[…]")
        if part.get("serialization_exclude") or "serialization_exclude_if" in part:
            advice = "remove exclude, or use SecretStr for a value that must not be shown"
            raise UsageError(f"{where} is excluded, so that a call could not be judged by it; {advice}")
        if part.get("init_only"):
            raise UsageError(f"{where} is an InitVar, so that a call could not be judged by it; make it a field")
        found = found or _is_changed(part.get("serialization"))
    return found


def digest_written(arguments: JsonObject | str | bytes) -> str:
    """Return a digest of arguments as they were written."""
    return hash_text(canonical(from_json(arguments if isinstance(arguments, (str, bytes)) else as_text(arguments))))


def _walk(node: Any, field: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts of a core schema that validate JSON, each with the name of the field it belongs to."""
    if isinstance(node, dict):
        parts = cast("dict[str, Any]", node)
        if not isinstance(parts.get("type"), str):  # fields or choices by name
            for name, part in parts.items():
                yield from _walk(part, name)
            return
        field = parts.get("name", field) if parts["type"] == "dataclass-field" else field
        yield field, parts
        for key, part in parts.items():
            if key not in _NOT_READ:
                yield from _walk(part, field)
    elif isinstance(node, (list, tuple)):
        for part in cast("Sequence[Any]", node):
            yield from _walk(part, field)


def _is_changed(serialization: Any) -> bool:
    """Whether a value may be written as something that does not tell it from others."""
    if not isinstance(serialization, dict):
        return False
    function: object = cast("dict[str, Any]", serialization).get("function")
    return not str(getattr(function, "__module__", "")).startswith(_SHOWN_WHOLE)
