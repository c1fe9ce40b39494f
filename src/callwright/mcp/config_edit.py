"""The entries of a file that names servers: one put in or taken out, all of it or nothing, the rest as it was.

One member of a JSON text put in, replaced or taken out; every other character stays as it is.

Files that people write keep their order, their line breaks and whatever else nobody here knows about.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from callwright.core.errors import UsageError
from callwright.core.json import Member, members_at, skip_space
from callwright.mcp.config import servers_of
from callwright.mcp.translate import server_names
from callwright.system.atomic_write import ABSENT, Changed, replace_file
from callwright.system.files import digest

_UNIT = "  "


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """Set the member at a path of keys, making the objects that lead there; `text` must hold a JSON object."""
    return _put(text, skip_space(text, 0), path, value)


def without_member(text: str, path: Sequence[str]) -> str:
    """Take the member at a path out, each time it is written there; a path that leads nowhere changes nothing."""
    while True:
        at = skip_space(text, 0)
        for key in path[:-1]:
            found = _last(text, at, key)
            if found is None or text[found.value] != "{":
                return text
            at = found.value
        found = _last(text, at, path[-1])
        if found is None:
            return text
        text = _cut(text, at, found)


def _put(text: str, at: int, path: Sequence[str], value: object) -> str:
    if text[at] != "{":
        raise UsageError(f"there is no object to put {path[0]!r} into; correct it by hand first")
    found = _last(text, at, path[0])
    if found is None:
        for key in reversed(path[1:]):
            value = {key: value}
        return _append(text, at, path[0], value)
    if len(path) > 1:
        return _put(text, found.value, path[1:], value)
    indent = _indent(text, found.begin) if "\n" in text else None
    return text[: found.value] + _dumped(value, indent) + text[found.end :]


def _append(text: str, at: int, name: str, value: object) -> str:
    """Behind the last member, laid out as it is; the first one of an empty object is laid out as the text is."""
    members = members_at(text, at)
    if members:
        end, line = members[-1].end, "\n" in text[at : members[0].begin]
        indent = _indent(text, members[0].begin) if line else None
    else:
        end, line = at + 1, "\n" in text.strip() or len(text.strip()) <= len("{}")
        indent = _indent(text, at) + _UNIT if line else None
    space = ("\n" + (indent or "")) if line else (" " if members else "")
    close = "\n" + _indent(text, at) if line and not members else ""
    rest = text[end:] if members else text[skip_space(text, end) :]
    comma = "," if members else ""
    return f"{text[:end]}{comma}{space}{_quoted(name)}: {_dumped(value, indent)}{close}{rest}"


def _cut(text: str, at: int, member: Member) -> str:
    members = members_at(text, at)
    place = members.index(member)
    if len(members) == 1:
        return text[: at + 1] + text[skip_space(text, member.end) :]
    if place == 0:
        return text[: member.begin] + text[members[1].begin :]
    return text[: members[place - 1].end] + text[member.end :]


def _dumped(value: object, indent: str | None) -> str:
    """The value as people write it: broken into lines where the text is, lists of words on one."""
    if indent is None or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + _UNIT
    lines = [f"{deeper}{_quoted(str(key))}: {_dumped(item, deeper)}" for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line a position stands on."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin : min(skip_space(text, begin), at)]


def _last(text: str, at: int, name: str) -> Member | None:
    """The member of this name; of several the last, which is the one that counts."""
    return next((member for member in reversed(members_at(text, at)) if member.name == name), None)


_KEY = "mcpServers"
_LONGEST_NAME = 64


def check_name(name: str) -> None:
    """Refuse a name that could not stand in the names of its tools as it is."""
    if len(name) > _LONGEST_NAME or server_names([name])[name] != name:
        raise UsageError(
            f"{name!r} is no name for a server: use letters, digits, '-' and single '_' inside,"
            f" at most {_LONGEST_NAME}; its tools are called mcp__NAME__…"
        )


def put_entry(file: Path, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> tuple[str, ...]:
    """Write one entry into a file, made if it is not there; returns what is doubtful about the entry."""
    check_name(name)
    checked = servers_of({_KEY: {name: entry}}, written_in=name)
    if not checked.servers:
        raise UsageError("; ".join(checked.problems))
    text = _read(file)
    if not replace and name in _entries(text, file):
        raise UsageError(f"there is a server {name!r} in {file} already; --force replaces it")
    _write(file, text, with_member(text if text.strip() else "{}\n", (_KEY, name), entry))
    return checked.problems


def take_entry(file: Path, name: str) -> bool:
    """Take one entry out of a file; False: it is not in there."""
    text = _read(file)
    if name not in _entries(text, file):
        return False
    _write(file, text, without_member(text, (_KEY, name)))
    return True


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None


def _entries(text: str, file: Path) -> Mapping[str, Any]:
    """What the file names now; refused where it is not plain JSON, because what we cannot read we could lose."""
    if not text.strip():
        return {}
    try:
        content: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{file}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno};"
            " nothing was changed: correct it by hand first (comments and trailing commas are not JSON)"
        ) from None
    entries = cast("Mapping[str, object]", content).get(_KEY, {}) if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise UsageError(f"{file}: expected an object with {_KEY} in it; nothing was changed: correct it by hand first")
    return cast("Mapping[str, Any]", entries)


def _write(file: Path, before: str, after: str) -> None:
    expected = digest(before.encode()) if file.exists() else ABSENT
    try:
        replace_file(file.resolve(), after.encode(), expected=expected)
    except Changed:
        raise UsageError(f"{file} was changed by somebody else meanwhile; nothing was written: try again") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error}") from None
