"""Paths of the file tools: resolving arguments, files hidden by rules, and errors that name similar files."""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from heapq import nlargest
from pathlib import Path
from typing import TypeAlias

from pydantic import AliasChoices, Field, PrivateAttr

from callwright.core.errors import ToolFailed, Unsafe, describe_exception
from callwright.system.files import folder_names
from callwright.system.line_diff import count_common
from callwright.system.paths import Workspace
from callwright.tool.schema import Arguments


def resolve_entry(workspace: Workspace, path: str) -> Path:
    """Resolve a path to a directory entry: the folder is resolved, a link at the end is not followed."""
    resolved = workspace.resolve(path)
    above, _, name = path.rstrip("/").rpartition("/")
    if name in {"", ".", "..", "~"}:  # not an entry of the folder before it, but another name of a folder
        return resolved
    return workspace.resolve(above or ("/" if path.startswith("/") else ".")) / name


def check_entry(workspace: Workspace, path: str, verb: str) -> Path:
    """Resolve an entry that is about to be removed or created.

    Raises:
        Unsafe: It lies outside of the workspace, or is its root or a folder above.
    """
    entry = resolve_entry(workspace, path)
    for root in workspace.roots:
        if root.is_relative_to(entry):
            raise Unsafe(
                f"cannot {verb} {path!r}: it contains the workspace {str(root)!r}; give a path inside the workspace"
            )
    workspace.check_write(str(entry.parent))
    return entry


Hidden: TypeAlias = Callable[[Path], bool]
"""Tells whether a file is invisible because a rule denies reading it."""


@dataclass(frozen=True, slots=True)
class VisibleFiles:
    """A workspace without the files that are hidden by rules."""

    workspace: Workspace
    hidden: Hidden | None = None

    def find(self, path: str) -> Path:
        """Resolve a path that is about to be searched.

        Raises:
            ToolFailed: It does not exist or is hidden; the message is the same, so that hidden files are not revealed.
        """
        found = self.workspace.check_read(path)
        try:
            missing = self.hides(found) or not found.exists()
            if not missing:
                _check_readable(found)
        except OSError as error:  # a name that is too long, or a folder that may not be read
            raise ToolFailed(f"{path[:200]!r} cannot be searched: {error.strerror}") from None
        if missing:
            raise ToolFailed(f"{path!r} does not exist{self._nearest(found)}")
        return found

    def hides(self, path: Path) -> bool:
        """Tell whether a file is hidden."""
        return self.hidden is not None and self.hidden(path)

    def visible(self, folder: Path, names: Iterable[str]) -> list[str]:
        """Filter out hidden files; names are relative to the folder."""
        if self.hidden is None:
            return list(names)
        return [name for name in names if not self.hidden(folder / name)]

    def top(self, folder: Path) -> Path:
        """Return the workspace root that contains a folder; outside of the workspace, the folder itself."""
        return next((root for root in self.workspace.roots if folder.is_relative_to(root)), folder)

    def prefix(self, folder: Path) -> str:
        """Return the prefix that makes names in a folder usable by the other tools."""
        if folder == self.workspace.root:
            return ""
        root = self.workspace.root
        return f"{folder.relative_to(root) if folder.is_relative_to(root) else folder}/".replace("//", "/")

    def _nearest(self, missing: Path) -> str:
        try:
            names = self.visible(missing.parent, os.listdir(missing.parent))  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return "; list the folder above it to see what is there"
        near = _find_similar(missing.name, names)
        return (
            f"; did you mean {' or '.join(map(one_line, near))}?"
            if near
            else f"; list {str(missing.parent)!r} to see what is there"
        )


def _check_readable(path: Path) -> None:
    needed = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
    if not os.access(path, needed, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def format_count(number: int, noun: str) -> str:
    """Return a count with its noun: `1 file`, `1,234 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_NEAREST = 3
_MOST_COMPARED_NAMES = 500


def _find_similar(name: str, names: Sequence[str]) -> list[str]:
    """Return the most similar names; of very many, only those are compared that begin and end most alike."""
    if len(names) > _MOST_COMPARED_NAMES:  # comparing 100,000 long names would take seconds
        names = nlargest(_MOST_COMPARED_NAMES, names, key=partial(_count_alike, name))
    return get_close_matches(name, names, _NEAREST)


def _count_alike(name: str, other: str) -> int:
    return count_common(name, other) + count_common(name[::-1], other[::-1])


class PathArguments(Arguments):
    """Arguments with paths, which must lead to the same place when policies judge the call and when it runs."""

    _judged: tuple[Path, ...] = PrivateAttr(default=())

    def hold(self, *resolved: Path) -> None:
        """Remember where the paths lead; the second time, check that they still do.

        Raises:
            Unsafe: A link was changed after the policies had judged the call.
        """
        for then, now in zip(self._judged, resolved, strict=False):
            if then != now:
                raise Unsafe(f"the path resolved to {then} when it was checked, but to {now} now; send the call again")
        self._judged = resolved


class TargetArguments(PathArguments):
    """The argument shared by the file tools."""

    path: str = Field(
        min_length=1,
        validation_alias=AliasChoices("path", "file_path", "filePath", "file", "filename", "target_file"),
    )
    """Path of the file, relative or absolute."""

    def resolve(self, check: Callable[[str], Path]) -> Path:
        """Resolve the path with `check`, the same when accesses are declared and when the tool runs.

        Raises:
            Unsafe: The path resolved differently before: a link was changed after the policies had judged it.
        """
        resolved = check(self.path)
        self.hold(resolved)
        return resolved


def explain_missing(given: str, resolved: Path) -> ToolFailed:
    """Return the error for a missing file, with the most similar names."""
    folder = resolved.parent
    while not folder.is_dir():  # name the first missing folder, not the file below it
        resolved, folder = folder, folder.parent
    lost = resolved.name
    try:
        names = [name.rstrip("/") for name in folder_names(folder)]
    except OSError:
        names = []
    folded = {name.lower(): name for name in names}
    near = [folded[name] for name in _find_similar(lost.lower(), list(folded))]
    hint = (
        f"did you mean {' or '.join(one_line(str(folder / name)) for name in near)}?"
        if near
        else f"read the folder {one_line(str(folder))} to see what is there"
    )
    return ToolFailed(
        f"{given} does not exist: there is no {lost} in {one_line(str(folder))}; {_explain_spelling(given) or hint}"
    )


def explain_no_entry(given: str) -> ToolFailed:
    """Return the error for a missing entry that was to be moved or deleted; no other file is offered."""
    return ToolFailed(
        f"{given!r} does not exist; {_explain_spelling(given) or 'list the folder above it to see what is there'}"
    )


def _explain_spelling(given: str) -> str:
    """Say what to do about a text that is no path of one file."""
    if "://" in given:
        return "an address is fetched, not read as a file"
    if any(char in given for char in "*?"):
        return "patterns are for glob; give the path of one file"
    if any(mark in given for mark in (",", "\n", ";", " and ", " | ")):
        return "give one path; send one call for each file"
    return ""


def explain_error(error: OSError, given: str, verb: str) -> ToolFailed:
    """Return a model-readable error for an `OSError` about a path."""
    if error.errno == errno.ENOTDIR:
        return ToolFailed(f"cannot {verb} {given}: a part of it is a file, not a folder")
    if error.errno == errno.ENAMETOOLONG:
        return ToolFailed(f"cannot {verb} {given[:80]}…: the name is too long")
    return ToolFailed(f"cannot {verb} {given}: {describe_exception(error)}")


def one_line(name: str) -> str:
    """Escape the line breaks and control characters of a file name, which could forge lines of an output."""
    if name.isprintable():
        return name
    return "".join(
        char if char.isprintable() or char == " " else char.encode("unicode_escape").decode("ascii") for char in name
    )
