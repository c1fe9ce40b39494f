"""Finds the repository that git would use in a folder, by the steps that git takes itself.

Git walks upward along the real path and passes over what only looks like a repository: an empty folder `.git`, or a
file HEAD without objects. Wherever this module is less certain than git, it goes on upward, so that what git would use
is always among the repositories it returns.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from callwright.system.paths import resolve_links

_LARGEST_CHARS = 1 << 20
_HEAD = re.compile(rb"ref:[ \t\r\n]*refs/|[0-9a-fA-F]{40}")


class GitFolders(NamedTuple):
    """The folders of a repository, or of what may be one."""

    own: Path
    shared: Path
    """The folder with the objects and settings, which linked work trees have in common."""
    work_tree: Path
    certain: bool
    """Whether git takes it for a repository beyond doubt."""


def list_repositories(folder: str) -> Iterator[GitFolders]:
    """Yield the repositories that git may use in a folder; only the last one can be certain.

    Raises:
        ValueError: A file `.git` does not lead to a repository.
    """
    real = Path(os.path.realpath(folder))
    for start in (real, *real.parents):
        for found in _open_both(start):
            yield found
            if found.certain:
                return


def _open_both(start: Path) -> Iterator[GitFolders]:
    if found := open_marker(start / ".git"):
        yield found
    # a folder that is a repository itself: a bare one, or one of a linked work tree
    if (start / "HEAD").is_file() and any((start / name).is_file() for name in ("config", "commondir")):
        yield _open_folder(start, start)


def open_marker(marker: Path) -> GitFolders | None:
    """Return the repository that a path `.git` holds or leads to; None if there is no such path.

    Raises:
        ValueError: It is a file that does not lead to a repository.
    """
    if not marker.is_file():
        return _open_folder(marker, marker.parent) if marker.is_dir() else None
    text = _read_path(marker)
    if not text.startswith("gitdir: "):
        raise ValueError(f"{marker} does not lead to a repository")
    found = _open_folder(resolve_links(marker.parent / text.removeprefix("gitdir: ")), marker.parent)
    if not found.certain:
        raise ValueError(f"{marker} does not lead to a repository")
    return found


def _open_folder(own: Path, work_tree: Path) -> GitFolders:
    common = own / "commondir"
    shared = resolve_links(own / _read_path(common)) if common.is_file() else own
    certain = _has_head(own) and all(
        (shared / name).is_dir() and os.access(shared / name, os.X_OK) for name in ("objects", "refs")
    )
    return GitFolders(own, shared, work_tree, certain)


def _has_head(folder: Path) -> bool:
    file = folder / "HEAD"
    if file.is_symlink() or not file.is_file():  # git accepts some links; a doubt only adds repositories
        return False
    try:
        with file.open("rb") as stream:
            return _HEAD.match(stream.read(255)) is not None
    except OSError:
        return False


def _read_path(file: Path) -> str:
    """Read a file that holds a path; only the end of its line does not belong to it."""
    with file.open("rb") as stream:
        return os.fsdecode(stream.read(_LARGEST_CHARS).rstrip(b"\r\n"))


def read_settings(file: Path) -> str:
    """Read a settings file; one that cannot be read gives text that cannot be parsed.

    Raises:
        ValueError: It is too large: a setting could stand behind the part that is read.
    """
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as stream:
            text = stream.read(_LARGEST_CHARS)
    except OSError:
        return "["  # an unreadable file cannot be trusted, and this cannot be parsed
    if len(text) == _LARGEST_CHARS:
        raise ValueError(f"{file} is too large")
    return text
