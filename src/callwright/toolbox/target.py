"""The path a file tool was given: resolved when accesses are declared, and held to that when it runs."""

import errno
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from pydantic import AliasChoices, Field, PrivateAttr

from callwright.core.errors import ToolFailed, Unsafe, plainly
from callwright.system.files import folder_names
from callwright.tool.schema import Arguments

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
