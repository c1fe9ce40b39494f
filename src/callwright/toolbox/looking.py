"""What the tools that look around share: where they look, and how they name what they found."""

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from callwright.core.errors import ToolFailed
from callwright.system.paths import Workspace

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
