"""Listing the files below a folder in Python, with or without ignore rules; never through a symlink."""

import os
from collections.abc import Iterator
from pathlib import Path

from toolwright.system.ignore import IGNORE_FILES, IgnoreScope

REPOSITORY_FOLDERS = frozenset({".git", ".hg", ".svn", ".jj"})
"""Never listed or searched, unless asked for by path: they hold history, not files."""
_TELLING = frozenset({*IGNORE_FILES, ".git"})


def walk_files(root: Path, top: Path, *, ignored: bool = False) -> Iterator[str]:
    """Yield regular files below `root` as paths relative to it; `top` is where ignore rules begin to count."""
    scope = None if ignored else IgnoreScope.of(root, top)
    start = str(root).rstrip("/") + "/"
    pending: list[tuple[str, IgnoreScope | None]] = [("", scope)]
    while pending:
        relative, scope = pending.pop()
        files, folders = _read_folder(start + relative)
        if scope is not None and relative:
            telling = _TELLING.intersection(files) | _TELLING.intersection(folders)  # .git may be either
            scope = scope.enter(start + relative[:-1], telling)
        for name in files:
            if scope is None or not scope.hides(start + relative + name, folder=False):
                yield relative + name
        for name in folders:
            if name in REPOSITORY_FOLDERS or (scope and scope.hides(start + relative + name, folder=True)):
                continue
            pending.append((relative + name + "/", scope))


def _read_folder(path: str) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
    except OSError:  # gone or not readable: a listing shows what can be listed
        return [], []
    return files, folders
