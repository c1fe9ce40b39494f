"""What a content search is asked: where, for what, and in which files."""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.system.globs import compile_glob
from callwright.system.ignore import IGNORE_FILES, repository_of

Mode: TypeAlias = Literal["files", "content", "count"]
MAX_COLUMNS = 500
"""Longer lines are cut."""
MAX_OUTPUT_BYTES = 16 << 20
"""What one search may hold in memory: past it the search stops, and says so."""

_BETWEEN_GLOBS = re.compile(r"[,\s]+(?![^{]*\})")


@dataclass(frozen=True)
class Globs:
    """Which files to search, as ripgrep's --glob reads it, but never bringing ignored files back."""

    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Globs":
        """Read one or several globs, parted by commas or spaces; `!` excludes. Raises `BadGlob`."""
        parts = [part for part in _BETWEEN_GLOBS.split(text.strip()) if part]
        for part in parts:
            compile_glob(part.removeprefix("!"))
        return cls(
            tuple(part.removeprefix("./") for part in parts if not part.startswith("!")),
            tuple(part[1:] for part in parts if part.startswith("!")),
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Globs for bare names that every wanted file fits; () where there is no such thing."""
        if any("/" in part for glob in self.wanted for part in re.findall(r"\{[^}]*\}", glob)):
            return ()
        lasts = tuple(glob.rpartition("/")[2] for glob in self.wanted)
        return () if any(last in {"", "**", "*"} for last in lasts) else lasts

    @property
    def exact(self) -> bool:
        """Whether `names` says it all."""
        return len(self.names) == len(self.wanted) and not any("/" in glob for glob in self.wanted)

    def accepts(self, *spellings: str) -> bool:
        """Whether a path fits, in any of its spellings: relative to the searched folder or to the workspace."""
        if any(_fits(glob, spellings) for glob in self.excluded):
            return False
        return not self.wanted or any(_fits(glob, spellings) for glob in self.wanted)


def _fits(glob: str, spellings: tuple[str, ...]) -> bool:
    if "/" not in glob:
        return compile_glob(glob).fullmatch(spellings[0].rpartition("/")[2]) is not None
    return any(compile_glob(glob.removeprefix("/")).fullmatch(each) for each in spellings)


@dataclass(frozen=True)
class Query:
    """One content search."""

    pattern: str
    folder: Path
    top: Path
    """Where ignore rules begin to count outside of a git repository."""
    name: str = ""
    """The one file in the folder to search; empty for everything below it."""
    mode: Mode = "files"
    globs: Globs = Globs()
    type: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    ignored: bool = False

    @cached_property
    def rules_above(self) -> bool:
        """Whether ignore files above the searched folder hold."""
        return self.folder != self.top or repository_of(self.folder) is not None

    @property
    def foreign_rules(self) -> bool:
        """Outside a repository ripgrep would also obey ignore files above the top: then it cannot be used."""
        if self.ignored or self.folder == self.top or repository_of(self.folder) is not None:
            return False
        return any(os.path.lexists(above / name) for above in self.top.parents for name in IGNORE_FILES)
