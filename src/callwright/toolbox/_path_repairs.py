"""Paths with marks around them, or with a folder too many or too few, where exactly one file fits."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from os import F_OK, access
from pathlib import PurePosixPath
from typing import Literal, TypeAlias
from unicodedata import normalize
from urllib.parse import unquote

from callwright.core.calls import Repair
from callwright.core.json import Json, JsonObject
from callwright.system.paths import Workspace
from callwright.tool.base import Invocation

PathUse: TypeAlias = Literal["existing", "named", "new"]
"""`existing`: a file or folder to read or edit; `named`: one to delete or move; `new`: one that may not exist yet."""

PathChanges: TypeAlias = tuple[JsonObject, tuple[Repair, ...]] | None
"""The arguments to change and the repairs; None for paths that are right or unclear."""

_MOST_ENTRIES = 5000
_MOST_CHARS = 1024
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"})
_LINE = re.compile(r"(?:#L\d+(?:-L?\d+)?|:\d+(?:[:-]\d+)*:?|:| \(?lines? \d+(?:-\d+)?\)?)\Z")
_QUOTES = "`'\"“”‘’<>"
_BLANKS = " \t\r\n\u00a0\u200b\ufeff"
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_TAG = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^()]*)\)")


def _strip_tag(path: str) -> str:
    found = _TAG.fullmatch(path.strip())
    return found[2] if found else path


def _take_link_text(path: str) -> str:
    found = _LINK.fullmatch(path.strip())
    return found[1] if found else path


def _take_link_target(path: str) -> str:
    found = _LINK.fullmatch(path.strip())
    return found[2] if found else path


def _take_same_link(path: str) -> str:
    found = _LINK.fullmatch(path.strip())
    return found[1] if found and found[1] == found[2] else path


def _strip_quotes(path: str) -> str:
    return path.strip(_BLANKS).strip(_QUOTES).strip(_BLANKS)


def _decode(path: str) -> str:
    return unquote(path) if "%" in path else path


def _strip_drive(path: str) -> str:
    """Turn `C:\\project\\a.py` into `/project/a.py`: another machine's folder."""
    return path[2:] if _DRIVE.match(path) else path


def _strip_scheme(path: str) -> str:
    for scheme in ("file://localhost", "file://", "file:"):
        if path[: len(scheme)].lower() == scheme:
            return unquote(path[len(scheme) :])
    return path


def _strip_mention(path: str) -> str:
    return path.removeprefix("@")


def _strip_line(path: str) -> str:
    return _LINE.sub("", path)


def _turn_slashes(path: str) -> str:
    return re.sub(r"\\+", "/", path)


def _strip_diff_side(path: str) -> str:
    return path[2:] if path[:2] in ("a/", "b/") else path


def _strip_root(path: str) -> str:
    return path.lstrip("/")


def _compose(path: str) -> str:
    return path if path.isascii() else normalize("NFC", path)


def _decompose(path: str) -> str:
    """Write `é` as `e` and an accent, as names from a Mac often have it: no model can copy the difference."""
    return path if path.isascii() else normalize("NFD", path)


def _narrow_space(path: str) -> str:
    """Write the blank before AM and PM as in the names of a Mac's screenshots."""
    return re.sub(r" (?=[AP]M\b)", "\u202f", path)


_MARKS: tuple[Callable[[str], str], ...] = (
    _strip_tag,
    _take_link_text,
    _take_link_target,
    _strip_quotes,
    _strip_scheme,
    _strip_mention,
    _strip_quotes,
    _strip_line,
    _strip_quotes,
    _decode,
    _strip_drive,
    _turn_slashes,
    _strip_diff_side,
    _strip_root,
    _compose,
    _decompose,
    _narrow_space,
)
_CERTAIN: tuple[Callable[[str], str], ...] = (_strip_tag, _take_same_link, _strip_quotes, _strip_scheme, _turn_slashes)
"""Marks that are no part of a name, whether or not a file exists."""


def repair_path(path: str, workspace: Workspace, use: PathUse) -> str | None:
    """Return the path that a path means; None if it is right, or has no reading, or more than one."""
    if not path or len(path) > _MOST_CHARS or "\0" in path or _ADDRESS.match(path) or _exists(path, workspace):
        return None
    spellings = {path: None}
    for clean in _MARKS:  # every choice of marks, in their order
        spellings.update(dict.fromkeys([clean(spelling) for spelling in spellings]))
    cleaned = [spelling for spelling in spellings if spelling not in ("", path)]
    found = _find_one(cleaned, workspace)
    if found is not None or use == "named":
        return found
    plain = reduce(lambda text, clean: clean(text), _CERTAIN, path)
    if use == "new":  # a placeholder or a path of another machine stays as it is: the tool explains it
        return plain if plain not in ("", path) and not plain.endswith("/") and not explain_new(path) else None
    plain = _strip_line(_strip_mention(_strip_drive(path) if _strip_drive(path) != path else plain))
    plain = _turn_slashes(plain)
    return _find_one([*_with_folder_less(plain), *_with_folder_more(plain, workspace)], workspace)


def explain_new(path: str) -> str:
    """Say why no file of a name is created; empty for a name that a new file may have."""
    if _ADDRESS.match(path):
        return "it is an address, not a path"
    if _DRIVE.match(path):
        return "it is a path of Windows; give one relative to the workspace"
    if re.fullmatch(r"<[^<>/]+>", path.strip()):
        return "it is a placeholder; give the path itself"
    if "*" in path or "?" in path:
        return "it is a pattern; give the path of one file"
    if re.match(r"\$\{?\w+\}?/", path):
        return "variables are not replaced in paths; give the path itself"
    if re.search(r"\.\w+:\d+(?:[:-]\d+)*\Z", path):
        return "it ends with a line number; leave the number out"
    if re.fullmatch(r"\S+\.\w+(?:, ?| and |; ?)\S+\.\w+", path):
        return "it names two files; send one call for each"
    return ""


def _exists(path: str, workspace: Workspace) -> bool:
    expanded = os.path.expanduser(path) if path.startswith("~") else path  # noqa: PTH111 - the raw text is wanted
    try:
        os.lstat(expanded if expanded.startswith("/") else workspace.prefix + expanded)
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True  # a name that no file can have is explained by the tool


def _find_one(spellings: list[str], workspace: Workspace) -> str | None:
    """Return the one spelling that exists inside the workspace; several spellings of one file count as one."""
    found: dict[str, str] = {}
    for spelling in spellings:
        if len(spelling) <= _MOST_CHARS and _exists(spelling, workspace):
            real = os.path.realpath(os.path.join(workspace.root, spelling))  # noqa: PTH118 - as above
            if any(os.path.commonpath((real, root)) == str(root) for root in map(str, workspace.roots)):
                found.setdefault(real, spelling)
    return next(iter(found.values())) if len(found) == 1 else None


def _with_folder_less(path: str) -> Iterator[str]:
    """Yield the path without one of its folders; of an absolute path, also all of its ends."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") and not os.path.isdir(os.path.dirname(path)):  # noqa: PTH112, PTH120 - as above
        yield from ("/".join(parts[start:]) for start in range(1, len(parts)))
    for index in range(len(parts) - 1):
        yield os.path.join(*parts[:index], *parts[index + 1 :])  # noqa: PTH118 - keeps a leading slash


def _with_folder_more(path: str, workspace: Workspace) -> Iterator[str]:
    """Yield the entries of the workspace that are the path with folders before it, or with one folder more in it."""
    wanted = path.removeprefix("./").rstrip("/")
    if not wanted or wanted.startswith(("/", "~", "..")) or wanted == ".":
        return
    name, root = PurePosixPath(wanted).name, str(workspace.root)
    found: list[str] = []
    entries = 0
    for folder, folders, files in os.walk(root):
        entries += len(folders) + len(files)
        if entries > _MOST_ENTRIES:
            return
        folders[:] = [folder for folder in folders if folder not in _SKIPPED]
        if name in files or name in folders:
            found.append(os.path.relpath(os.path.join(folder, name), root))  # noqa: PTH118 - as above
    yield from (known for known in found if known.endswith(f"/{wanted}") or wanted in _with_folder_less(known))


def repair_fields(invocation: Invocation, workspace: Workspace, uses: Mapping[str, PathUse]) -> PathChanges:
    """Return the fields of a call with the paths that they mean, and the repairs; None if there are none.

    Every call of a file tool passes here: a path that exists as it stands costs one system call.
    """
    given: object = getattr(invocation, "given", None)
    try:
        for field in uses:
            path = getattr(given, field, None)
            if path and not access(path if path[0] == "/" else workspace.prefix + path, F_OK):
                return _repair_missing(given, workspace, uses)
    except (TypeError, ValueError):  # not a path, or one that the system refuses: the tool explains it
        return _repair_missing(given, workspace, uses)
    return None


def _repair_missing(given: object, workspace: Workspace, uses: Mapping[str, PathUse]) -> PathChanges:
    changes: dict[str, Json] = {}
    repairs: list[Repair] = []
    for field, use in uses.items():
        path = getattr(given, field, None)
        better = repair_path(path, workspace, use) if isinstance(path, str) else None
        if better is not None:
            changes[field] = better
            repairs.append(Repair("path", f"{field} {path!r} read as {better!r}"))
    return (changes, tuple(repairs)) if changes else None
