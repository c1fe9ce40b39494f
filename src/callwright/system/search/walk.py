"""Lists the files below a folder, with or without ignore rules, without following symlinks.

Python walks as fast as ripgrep lists on two cores, and only our own walk can report what the rules hide.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from callwright.system.search.gitignore import REPOSITORY_FOLDERS, RULE_NAMES, IgnoreScope

_NOTHING: list[str] = []
# Windows has no descriptors of folders, and none of these
_FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))


@dataclass(frozen=True, slots=True)
class Walk:
    """Where to search and which files to list."""

    root: Path
    top: Path
    """The folder from which ignore rules begin to count, where the root lies in no git repository."""
    ignored: bool = False
    """Whether files that ignore rules hide are included."""
    suffix: str = ""
    """The ending of the wanted names; others are skipped before ignore rules are checked."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set from another thread, it ends the walk at the next folder."""
    descriptor: int | None = None
    """An open folder that the root is read from: a link that is put in the place of the root is not followed."""
    prefix: str = ""
    """The path from there to the root, with a slash at its end."""

    def below(self, folder: str) -> "Walk":
        """Return the walk of a folder below the root that includes what rules hide."""
        return replace(self, root=self.root / folder, prefix=f"{self.prefix}{folder}/", ignored=True)


class Folder(NamedTuple):
    """The contents of one folder; names are relative to it, `path` is relative to the root and ends in a slash."""

    path: str
    files: list[str]
    hidden_files: list[str]
    hidden_folders: list[str]


def walk_folders(walk: Walk) -> Iterator[Folder]:
    """Yield the folders at and below the root that no rule hides."""
    start = str(walk.root).rstrip("/") + "/"
    ending = walk.suffix + "/"
    top_scope = IgnoreScope() if walk.ignored else IgnoreScope.of(walk.root, walk.top)
    pending: list[tuple[str, IgnoreScope]] = [("", top_scope)]
    while pending and not walk.stop.is_set():
        path, scope = pending.pop()
        files, folders = _read_folder(walk, path)
        # one string, so that one search covers all names: in most folders nothing is hidden
        joined = f"/{'/'.join(files)}/{'/'.join(folders)}/"
        if "/." in joined:
            if path and not walk.ignored:
                telling = RULE_NAMES.intersection(files) | RULE_NAMES.intersection(folders)  # .git may be either
                scope = scope.enter((start + path)[:-1], telling) if telling else scope
            files, folders = _drop_history(files, folders)
        if walk.suffix:
            files = [name for name in files if name.endswith(walk.suffix)] if ending in joined else []
        hidden_files = hidden_folders = _NOTHING
        if scope.may_hide(joined):
            files, hidden_files = scope.part(start + path, files, folders=False)
            folders, hidden_folders = scope.part(start + path, folders, folders=True)
        yield Folder(path, files, hidden_files, hidden_folders)
        if folders:
            pending += [(f"{path}{name}/", scope) for name in folders]


def walk_files(walk: Walk) -> Iterator[str]:
    """Yield regular files as paths relative to the root."""
    for folder in walk_folders(walk):
        path = folder.path
        yield from [path + name for name in folder.files]


def _drop_history(files: list[str], folders: list[str]) -> tuple[list[str], list[str]]:
    return (
        [name for name in files if name != ".git"],  # a file in a linked worktree or a submodule
        [name for name in folders if name not in REPOSITORY_FOLDERS],
    )


def _read_folder(walk: Walk, path: str) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        if walk.descriptor is None:
            _sort_entries(f"{str(walk.root).rstrip('/')}/{path}", files, folders)
        else:
            # without the last slash, with which a link in its place would be followed
            name = (walk.prefix + path)[:-1] or "."
            folder = os.open(name, _FOLDER, dir_fd=walk.descriptor)
            try:
                _sort_entries(folder, files, folders)
            finally:
                os.close(folder)
    except OSError:  # gone or not readable: a listing shows what can be listed
        return [], []
    return files, folders


def _sort_entries(folder: str | int, files: list[str], folders: list[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
