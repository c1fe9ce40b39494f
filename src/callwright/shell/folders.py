"""Where a command may run and which absolute paths its words may therefore mean."""

import os.path
from typing import TypeAlias

Folders: TypeAlias = frozenset[str] | None
"""Every folder a command may run in; None when that cannot be known."""

_MAX_FOLDERS = 4  # a line that leaves more of them open is treated as going anywhere


def either(one: Folders, other: Folders) -> Folders:
    """Join what is possible on two ways through a line."""
    if one == other:
        return one
    if one is None or other is None:
        return None
    both = one | other
    return both if len(both) <= _MAX_FOLDERS else None


def only(folders: Folders) -> str | None:
    """Return the folder when there is just one."""
    if folders is None or len(folders) != 1:
        return None
    return next(iter(folders))


def entered(folders: Folders, target: str) -> Folders:
    """Follow a cd whose target is literal."""
    if target.startswith("/"):
        return frozenset((normal(target),))
    if folders is None:
        return None
    return frozenset(normal(f"{folder}/{target}") for folder in folders)


def places(target: str, folders: Folders) -> tuple[str, ...]:
    """Return the absolute paths a word may mean; the word itself when nobody can tell."""
    if target.startswith("/"):
        return (normal(target),)
    if folders is None:
        return (target or ".",)
    if len(folders) == 1:
        (folder,) = folders
        return (normal(f"{folder}/{target}"),)
    return tuple([normal(f"{folder}/{target}") for folder in sorted(folders)])


def normal(path: str) -> str:
    """Tidy a path without looking at the disk."""
    if "/." not in path and "//" not in path and path[-1:] != "/":
        return path
    tidy = os.path.normpath(path)
    return tidy[1:] if tidy.startswith("//") else tidy
