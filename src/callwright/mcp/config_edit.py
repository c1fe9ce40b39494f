"""Editing server entries in `.mcp.json` and settings files without changing any other character.

Files that users write keep their order, their line breaks and all members that callwright does not use.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from callwright.core.errors import UsageError, describe_exception
from callwright.core.json_positions import Member, members_at, skip_space
from callwright.mcp.config import server_names, servers_of
from callwright.system.atomic_write import ABSENT, Changed, replace_file
from callwright.system.files import digest

_UNIT = "  "


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """Set the member at a path of keys, creating missing objects; `text` must hold a JSON object."""
    return _set_member(text, skip_space(text, 0), path, value)


def without_member(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path, including duplicates; a path that does not exist changes nothing."""
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
        text = _cut_member(text, at, found)


def _set_member(text: str, at: int, path: Sequence[str], value: object) -> str:
    if text[at] != "{":
        raise UsageError(f"cannot add {path[0]!r}: its parent is not an object; correct the file by hand first")
    found = _last(text, at, path[0])
    if found is None:
        for key in reversed(path[1:]):
            value = {key: value}
        return _append_member(text, at, path[0], value)
    if len(path) > 1:
        return _set_member(text, found.value, path[1:], value)
    indent = _indent(text, found.begin) if "\n" in text else None
    return text[: found.value] + _dump(value, indent) + text[found.end :]


def _append_member(text: str, at: int, name: str, value: object) -> str:
    """Append after the last member in its layout; in an empty object, in the layout of the whole text."""
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
    return f"{text[:end]}{comma}{space}{_quote(name)}: {_dump(value, indent)}{close}{rest}"


def _cut_member(text: str, at: int, member: Member) -> str:
    members = members_at(text, at)
    place = members.index(member)
    if len(members) == 1:
        return text[: at + 1] + text[skip_space(text, member.end) :]
    if place == 0:
        return text[: member.begin] + text[members[1].begin :]
    return text[: members[place - 1].end] + text[member.end :]


def _dump(value: object, indent: str | None) -> str:
    """Format a value as users write it: objects on several lines where the text has lines, lists on one."""
    if indent is None or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + _UNIT
    lines = [f"{deeper}{_quote(str(key))}: {_dump(item, deeper)}" for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _indent(text: str, at: int) -> str:
    """Return the indentation of the line at a position."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin : min(skip_space(text, begin), at)]


def _last(text: str, at: int, name: str) -> Member | None:
    """Return the member of this name; the last of duplicates, as JSON parsers do."""
    return next((member for member in reversed(members_at(text, at)) if member.name == name), None)


_KEY = "mcpServers"
_LONGEST_NAME = 64


def check_name(name: str) -> None:
    """Raise `UsageError` for a name that would have to be changed in the names of its tools."""
    if len(name) > _LONGEST_NAME or server_names([name])[name] != name:
        raise UsageError(
            f"invalid server name {name!r}: use letters, digits, '-' and single '_' inside,"
            f" at most {_LONGEST_NAME} characters; its tools are called mcp__NAME__…"
        )


def put_entry(file: Path, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> tuple[str, ...]:
    """Write one entry into a file, creating it if necessary; returns the problems of the entry."""
    check_name(name)
    checked = servers_of({_KEY: {name: entry}}, written_in=name)
    if not checked.servers:
        raise UsageError("; ".join(checked.problems))
    data, text = _read(file)
    if not replace and name in _entries(text, file):
        raise UsageError(f"{file} already has a server {name!r}; use --force to replace it")
    _write(file, data, with_member(text if text.strip() else "{}\n", (_KEY, name), entry))
    return checked.problems


def remove_entry(file: Path, name: str) -> bool:
    """Remove one entry from a file; False if it has none of this name."""
    data, text = _read(file)
    if name not in _entries(text, file):
        return False
    _write(file, data, without_member(text, (_KEY, name)))
    return True


def _read(file: Path) -> tuple[bytes | None, str]:
    """Return the content of a file, None if it does not exist, and its text without a byte order mark."""
    try:
        data = file.read_bytes()
        return data, data.decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None


def _entries(text: str, file: Path) -> Mapping[str, Any]:
    """Return the entries of a file; raises `UsageError` for anything but plain JSON, whose content could get lost."""
    if not text.strip():
        return {}
    try:
        content: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{file}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno};"
            " nothing was changed: correct it by hand first (comments and trailing commas are not JSON)"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nested too deeply
        raise UsageError(f"{file} cannot be read: {error}; nothing was changed: correct it by hand first") from None
    entries = cast("Mapping[str, object]", content).get(_KEY, {}) if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise UsageError(f"{file}: expected an object with {_KEY} in it; nothing was changed: correct it by hand first")
    return cast("Mapping[str, Any]", entries)


def _write(file: Path, before: bytes | None, after: str) -> None:
    # written only if the file is still the one that was read
    expected = ABSENT if before is None else digest(before)
    mark = BOM_UTF8 if before is not None and before.startswith(BOM_UTF8) else b""
    try:
        replace_file(file.resolve(), mark + after.encode(), expected=expected)
    except Changed:
        raise UsageError(f"{file} was changed by another program meanwhile; nothing was written: try again") from None
    except UnicodeEncodeError:
        raise UsageError("the entry: a text has half of a surrogate pair; nothing was written: correct it") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {describe_exception(error)}") from None
