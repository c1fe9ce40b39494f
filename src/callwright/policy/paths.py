"""Where the path of an access leads: as it was written, with links followed, and everything a glob stands for."""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from callwright.system.paths import Workspace

_GLOB = frozenset("*?[")
_UNRESOLVED = frozenset("$`")
_MATCHES = 1000
_GLOB_COMPONENTS = 3


@dataclass(frozen=True, slots=True)
class PathContext:
    """The folders paths and path patterns are read against."""

    cwd: str
    home: str
    roots: tuple[str, ...] = ()
    """The workspace, links followed; empty where there is no fence."""

    @classmethod
    def of(cls, cwd: str | os.PathLike[str], *roots: str | os.PathLike[str]) -> "PathContext":
        """Take the home folder from the environment, as a shell does."""
        home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
        return cls(os.path.abspath(cwd), home, tuple(os.path.realpath(root) for root in roots))  # noqa: PTH100 - text

    @classmethod
    def within(cls, workspace: Workspace, cwd: str | os.PathLike[str] | None = None) -> "PathContext":
        """Take the roots of a workspace, which has followed their links already."""
        home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
        return cls(os.path.abspath(cwd or workspace.root), home, tuple(map(str, workspace.roots)))  # noqa: PTH100 - text

    def inside(self, real: str) -> bool:
        """Whether a resolved path is a root of the workspace or below one; always, where there is no fence."""
        return not self.roots or any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots)


@dataclass(frozen=True, slots=True)
class PossiblePaths:
    """Every path an access may mean."""

    written: tuple[str, ...]
    real: tuple[str, ...]
    known: bool = True
    """False: there may be others, because a variable or an endless glob is in the way."""

    @property
    def all(self) -> tuple[str, ...]:
        """Both ends of every link."""
        return tuple(dict.fromkeys((*self.written, *self.real)))


def possible_paths(path: str, here: PathContext, *, shell: bool) -> PossiblePaths:
    """Follow a path. From a shell line, an unresolved path stays unknown and a glob means what it matches now."""
    if "\0" in path:
        return PossiblePaths((path,), (path,), known=False)
    if path == "~" or path.startswith("~/"):
        path = here.home + path[1:]
    if shell and (not path.startswith("/") or not _UNRESOLVED.isdisjoint(path)):
        return PossiblePaths((path,), (), known=False)
    written = os.path.normpath(os.path.join(here.cwd, path))  # noqa: PTH118 - pathlib would not remove ".."
    written = written.replace("//", "/", 1) if written.startswith("//") else written
    found, known = (written,), True
    if shell and not _GLOB.isdisjoint(path):
        expanded = tuple(_expand_glob(written))
        known = len(expanded) < _MATCHES and _count_globs(written) <= _GLOB_COMPONENTS
        found = (written, *expanded)
    return PossiblePaths(found, tuple(os.path.realpath(each) for each in _unnormalized(path, here, found)), known)


def _unnormalized(path: str, here: PathContext, found: tuple[str, ...]) -> tuple[str, ...]:
    """Keep `link/..` unnormalised for the resolver: it leads elsewhere than the text suggests."""
    return (os.path.join(here.cwd, path), *found[1:])  # noqa: PTH118 - realpath wants the raw text


def _count_globs(pattern: str) -> int:
    return sum(not _GLOB.isdisjoint(component) for component in pattern.split("/"))


def _expand_glob(pattern: str) -> Iterator[str]:
    if _count_globs(pattern) > _GLOB_COMPONENTS:
        return iter(())
    try:
        return islice(glob.iglob(pattern), _MATCHES)  # noqa: PTH207 - lazily, and with bash's idea of hidden files
    except (OSError, ValueError):
        return iter(())
