"""The entries of a file that names servers: one put in or taken out, all of it or nothing, the rest as it was."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from callwright.core.errors import UsageError
from callwright.mcp.config import servers_of
from callwright.mcp.names import server_names
from callwright.mcp.splice import with_member, without_member
from callwright.system.files import digest
from callwright.system.replace import ABSENT, Changed, replace_file

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
