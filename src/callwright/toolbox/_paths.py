"""Naming a directory entry itself: the way to it is resolved, a link at its end is not followed.

What the tools that look around share: where they look, and how they name what they found.

The path a file tool was given: resolved when accesses are declared, and held to that when it runs.
"""

import difflib
import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from pydantic import AliasChoices, Field, PrivateAttr

from callwright.core.errors import ToolFailed, Unsafe, plainly
from callwright.system.files import folder_names
from callwright.system.paths import Workspace
from callwright.tool.schema import Arguments


def entry_path(workspace: Workspace, path: str) -> Path:
    """Resolve the folder a path names an entry of."""
    resolved = workspace.resolve(path)
    above, _, name = path.rstrip("/").rpartition("/")
    if name in {"", ".", "..", "~"}:  # no entry of the folder before it, but a folder by another name
        return resolved
    return workspace.resolve(above or ("/" if path.startswith("/") else ".")) / name


def check_entry(workspace: Workspace, path: str, verb: str) -> Path:
    """Resolve an entry that is about to be taken away or made; neither outside of the workspace nor its root."""
    entry = entry_path(workspace, path)
    for root in workspace.roots:
        if root.is_relative_to(entry):
            raise Unsafe(
                f"refused to {verb} {path!r}: the workspace {str(root)!r} lies there; name something inside it"
            )
    workspace.check_write(str(entry.parent))
    return entry


Hidden: TypeAlias = Callable[[Path], bool]
"""Says which files must not be seen at all: those a rule forbids to read."""


@dataclass(frozen=True, slots=True)
class Lookout:
    """A workspace and what is invisible in it."""

    workspace: Workspace
    hidden: Hidden | None = None

    def find(self, path: str) -> Path:
        """Resolve a path that is about to be searched; raises where it may not be or is not there."""
        found = self.workspace.check_read(path)
        if self.hides(found) or not found.exists():
            raise ToolFailed(f"{path!r} does not exist{self._nearest(found)}")
        return found

    def hides(self, path: Path) -> bool:
        """Whether a file is invisible."""
        return self.hidden is not None and self.hidden(path)

    def visible(self, folder: Path, names: Iterable[str]) -> list[str]:
        """Leave out the invisible ones of some files, named relative to a folder."""
        if self.hidden is None:
            return list(names)
        return [name for name in names if not self.hidden(folder / name)]

    def top(self, folder: Path) -> Path:
        """The root of the workspace a folder lies in; outside, the folder itself."""
        return next((root for root in self.workspace.roots if folder.is_relative_to(root)), folder)

    def prefix(self, folder: Path) -> str:
        """What stands before names found in a folder so that the other tools understand them."""
        if folder == self.workspace.root:
            return ""
        root = self.workspace.root
        return f"{folder.relative_to(root) if folder.is_relative_to(root) else folder}/".replace("//", "/")

    def _nearest(self, missing: Path) -> str:
        try:
            names = self.visible(missing.parent, os.listdir(missing.parent))  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return "; list the folder above it to see what is there"
        near = difflib.get_close_matches(missing.name, names, 3)
        return (
            f"; did you mean {' or '.join(near)}?" if near else f"; list {str(missing.parent)!r} to see what is there"
        )


def counted(number: int, noun: str) -> str:
    """`1 file`, `1,234 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_NEAREST = 3


class TargetArguments(Arguments):
    """What every file tool takes."""

    path: str = Field(
        min_length=1,
        validation_alias=AliasChoices("path", "file_path", "filePath", "file", "filename", "target_file"),
    )
    """File to work on, relative to the workspace or absolute."""
    _resolved: Path | None = PrivateAttr(default=None)

    def settle(self, check: Callable[[str], Path]) -> Path:
        """Resolve the path with `check`; whatever it led to first, it must lead to ever after."""
        resolved = check(self.path)
        if self._resolved not in (None, resolved):
            raise Unsafe(f"{self.path!r} led to {self._resolved} when it was judged and leads to {resolved} now")
        self._resolved = resolved
        return resolved


def explain_missing(given: str, resolved: Path) -> ToolFailed:
    """Say that there is no such file, and which names come nearest."""
    folder = resolved.parent
    while not folder.is_dir():
        resolved, folder = folder, folder.parent
    lost = resolved.name
    try:
        names = [name.rstrip("/") for name in folder_names(folder)]
    except OSError:
        names = []
    folded = {name.lower(): name for name in names}
    near = [folded[name] for name in get_close_matches(lost.lower(), folded, _NEAREST)]
    hint = f"; did you mean {' or '.join(str(folder / name) for name in near)}?" if near else f"; {folder} exists"
    return ToolFailed(f"{given} does not exist: there is no {lost} in {folder}{hint}")


def explain(error: OSError, given: str, verb: str) -> ToolFailed:
    """Put what the system said about a path into words for the model."""
    if error.errno == errno.ENOTDIR:
        return ToolFailed(f"cannot {verb} {given}: a part of it is a file, not a folder")
    if error.errno == errno.ENAMETOOLONG:
        return ToolFailed(f"cannot {verb} {given[:80]}…: the name is too long")
    return ToolFailed(f"cannot {verb} {given}: {plainly(error)}")
