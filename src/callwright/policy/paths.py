"""Resolves the path of an access: as it was written, with links followed, and every match of a glob."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import chain, islice, product
from typing import TYPE_CHECKING

from callwright.core._fast import frozen
from callwright.core.access import is_below
from callwright.shell.plan import is_computed

if TYPE_CHECKING:
    from callwright.policy.base import Subject
    from callwright.system.paths import Workspace

_GLOB = frozenset("*?[")
# bounds the time a glob may take; beyond these limits the path counts as unknown
_MATCHES = 1000
_GLOB_COMPONENTS = 3
_PLAIN_SET = re.compile(r"\[(?:[A-Za-z0-9_.]+|0-9)\]")


@frozen
class PathContext:
    """The folders that paths and path patterns start from."""

    cwd: str
    home: str
    roots: tuple[str, ...] = ()
    """The folders of the workspace, links followed; empty if there is no fence."""

    @classmethod
    def of(cls, cwd: str | os.PathLike[str], *roots: str | os.PathLike[str]) -> "PathContext":
        """Make a context for a working folder; the home folder comes from the environment, as in a shell.

        Args:
            cwd: The folder that relative paths are in.
            roots: The folders of the workspace; without any, every path counts as inside.
        """
        home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
        return cls(os.path.abspath(cwd), home, tuple(os.path.realpath(root) for root in roots))  # noqa: PTH100 - text

    @classmethod
    def within(cls, workspace: "Workspace", cwd: str | os.PathLike[str] | None = None) -> "PathContext":
        """Make a context for a workspace, whose roots are resolved already.

        Args:
            workspace: The workspace.
            cwd: The folder that relative paths are in; by default the root of the workspace.
        """
        home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
        return cls(os.path.abspath(cwd or workspace.root), home, tuple(map(str, workspace.roots)))  # noqa: PTH100 - text

    def inside(self, real: str) -> bool:
        """Whether a resolved path is a root of the workspace or below one; always true without roots."""
        return not self.roots or is_below(real, self.roots)


@frozen
class PossiblePaths:
    """Every path an access may mean."""

    written: tuple[str, ...]
    real: tuple[str, ...]
    known: bool = True
    """False if there may be others, because of a variable or a glob with too many matches."""

    @property
    def all(self) -> tuple[str, ...]:
        """Both ends of every link."""
        return tuple(dict.fromkeys((*self.written, *self.real)))


def declared_paths(path: str, here: PathContext, subject: "Subject") -> PossiblePaths:
    """Resolve a path that a tool declares. A relative one may also mean the working folder of this process."""
    found = possible_paths(path, here, shell=False)
    if path[:1] == "/" or path[:2] in ("~", "~/") or "\0" in path:
        return found
    from callwright.policy.dry_run import DryRunCall  # most tools declare absolute paths

    if isinstance(subject, DryRunCall):  # no tool runs, so its path is in the folder that it was asked for
        return found
    try:
        folder = os.getcwd()  # noqa: PTH109 - as above
    except OSError:  # the working folder is gone
        return PossiblePaths(found.written, found.real, known=False)
    if folder == here.cwd:
        return found
    more = possible_paths(os.path.join(folder, path), here, shell=False)  # noqa: PTH118 - link/.. must stay
    return PossiblePaths((*found.written, *more.written), (*found.real, *more.real), found.known and more.known)


def possible_paths(path: str, here: PathContext, *, shell: bool) -> PossiblePaths:
    """Resolve a path. In a shell line, a variable makes it unknown and a glob stands for its matches at this moment."""
    if "\0" in path:  # realpath raises on it
        return PossiblePaths((path,), (path,), known=False)
    if path == "~" or path.startswith("~/"):
        path = here.home + path[1:]
    if shell and is_computed(path):
        return PossiblePaths((path,), (), known=False)
    written = os.path.normpath(os.path.join(here.cwd, path))  # noqa: PTH118 - pathlib would not remove ".."
    written = written.replace("//", "/", 1)  # POSIX keeps two slashes at the start
    found, known = (written,), True
    if shell and not _GLOB.isdisjoint(path):
        expanded = tuple(_expand_glob(written))
        known = len(expanded) < _MATCHES and _count_globs(written) <= _GLOB_COMPONENTS
        found = (written, *expanded)
    try:
        real = tuple(os.path.realpath(each) for each in _unnormalized(path, here, found))
    except OSError:  # a link that may not be read, such as the root of another process
        return PossiblePaths(found, found, known=False)
    return PossiblePaths(found, real, known)


def _unnormalized(path: str, here: PathContext, found: tuple[str, ...]) -> tuple[str, ...]:
    """Keep `link/..` as it is for the resolver: the parent of a link's target is not the parent of the link."""
    return (os.path.join(here.cwd, path), *found[1:])  # noqa: PTH118 - realpath wants the raw text


def _count_globs(pattern: str) -> int:
    return sum(not _GLOB.isdisjoint(component) for component in pattern.split("/"))


def _expand_glob(pattern: str) -> Iterator[str]:
    if _count_globs(pattern) > _GLOB_COMPONENTS:
        return iter(())
    import glob  # most paths have no wildcard

    try:  # lazily, and with bash's idea of hidden files
        found = chain.from_iterable(map(glob.iglob, _widen_glob(pattern)))
        if "?" in pattern:  # where LC_ALL is C, a letter such as é counts as two
            wider = chain.from_iterable(map(glob.iglob, _widen_glob(pattern.replace("?", "*"))))
            halved = (match for place, match in enumerate(wider) if place > _MATCHES or not match.isascii())
            found = chain(found, halved)
        return islice(found, _MATCHES)
    except (OSError, ValueError):
        return iter(())


def _widen_glob(pattern: str) -> Iterator[str]:
    """Return patterns for all that any shell may match.

    Sets such as `[^x]`, `[[:alpha:]]` and `[a-z]` depend on the shell and the language, a folder may be named `[x]`,
    and to some shells `.*` is `.` and `..` too.
    """
    *folders, name = pattern.split("/")
    for choice in product(*map(_widen_folder, folders), _widen_part(name)):
        yield "/".join(choice)


def _widen_part(part: str) -> tuple[str, ...]:
    if "[" in _PLAIN_SET.sub("", part):
        start, end = part.find("["), part.rfind("]")
        return (f"{part[:start]}*{part[end + 1 :]}" if end - start > 1 else part,)
    return (part, part.replace("[", "[[]")) if "[" in part else (part,)


def _widen_folder(part: str) -> tuple[str, ...]:
    widened = _widen_part(part)
    hidden = part[:1] == "." and part not in (".", "..")
    return (*widened, *(dot for dot in (".", "..") if hidden and fnmatchcase(dot, widened[0])))
