"""Finds the secrets and protected paths of a folder, again and again at the cost of one `stat` per folder."""

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from callwright.core.access import is_below
from callwright.core.errors import ToolError
from callwright.system.files import read_start
from callwright.system.paths import give_owner_access
from callwright.system.sensitive_paths import comparable, is_protected, is_secret

Hidden: TypeAlias = Callable[[str], bool]

# made by tools, large, and never the place where a person keeps a secret
_SKIPPED = frozenset(
    "node_modules __pycache__ .venv venv site-packages .tox .nox .mypy_cache .ruff_cache .pytest_cache target .gradle"
    " .next .nuxt bower_components .terraform".split()
)
MAX_FOLDERS = 20_000
"""How many folders are searched for secrets; each costs some 4 µs per command when nothing has changed."""
_SETTLED_NS = 50_000_000
_SEARCHABLE = 0o500
_MOST_SETTINGS_BYTES = 1 << 20
_PLAIN_SETTING = re.compile(
    r"\s*(?:[#;].*|\[(?:core|user|init|branch \"[^\"]*\"|remote \"[^\"]*\")\]"
    r"|(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|name|email"
    r"|defaultbranch|url|fetch|remote|merge|rebase)\s*=\s*[^!\s][^!\n]*)?\s*",
    re.IGNORECASE,
)
_IN_REPOSITORY = ("hooks", "config", "config.worktree", "commondir", "info/attributes")


class Sensitive(NamedTuple):
    """What a scan found."""

    secrets: frozenset[str] = frozenset()
    protected: frozenset[str] = frozenset()
    complete: bool = True
    """False if the folder is too large to be scanned as a whole."""
    closed: frozenset[str] = frozenset()
    """Folders of this user that nobody can search until their mode is changed, as a command can do; also secrets."""


@dataclass(slots=True)
class _Folder:
    changed: tuple[int, ...]
    """When it was changed; empty if it may change again at the same time."""
    below: tuple[str, ...]
    secrets: tuple[str, ...]
    protected: tuple[str, ...]
    repositories: tuple[str, ...]
    """Its `.git` folders, whose content is looked at every time."""


_CLOSED = _Folder((), (), (), (), ())


class FolderScan:
    """The secrets and protected paths below a folder. Thread-safe.

    Args:
        root: The folder, without links on the way to it.
        hidden: Further paths to treat as secrets, for read-deny rules.
        unwritable: Further paths to treat as protected, for edit-deny rules.
        max_folders: How many folders are visited.
    """

    def __init__(
        self,
        root: str,
        hidden: Hidden | None = None,
        unwritable: Hidden | None = None,
        *,
        max_folders: int = MAX_FOLDERS,
    ) -> None:
        self._root = root
        self._hidden = hidden
        self._unwritable = unwritable
        self._max_folders = max_folders
        self._known: dict[str, _Folder] = {}
        self._lock = threading.Lock()

    def find(self, closed_before: Collection[str] | None = None) -> Sensitive:
        """Return what lies below the folder now; only folders that changed are read again.

        Args:
            closed_before: After a command, the folders that were closed before it: it must not hide others from us,
                so that these are opened to their owner.
        """
        closed: set[str] = set()

        def may_search(path: str) -> bool:
            if _is_closed(path) and closed_before is not None and path not in closed_before:
                with suppress(OSError, ToolError):
                    give_owner_access(Path(path), _SEARCHABLE)
            if _is_closed(path):
                closed.add(path)
            return path not in closed

        with self._lock:
            seen: dict[str, _Folder] = {}
            pending = [self._root]
            while pending and len(seen) < self._max_folders:
                path = pending.pop()
                folder = self._look(path, may_search)
                if folder is _CLOSED:
                    closed.add(path)
                elif folder is not None:
                    seen[path] = folder
                    pending.extend(folder.below)
            self._known = seen
        protected = {path for folder in seen.values() for path in folder.protected}
        for repository in (path for folder in seen.values() for path in folder.repositories):
            protected.update(_repository_paths(repository, may_search))
        secrets = {path for folder in seen.values() for path in folder.secrets}
        return Sensitive(frozenset(secrets | closed), frozenset(protected), not pending, frozenset(closed))

    def _look(self, path: str, may_search: Callable[[str], bool]) -> _Folder | None:
        try:
            found = os.stat(path)
            if found.st_mode & _SEARCHABLE != _SEARCHABLE and not may_search(path):
                return None
            # a command can set the first back, but not the second
            changed = (found.st_mtime_ns, found.st_ctime_ns)
            known = self._known.get(path)
            return known if known is not None and known.changed == changed else self._read(path, changed)
        except PermissionError:  # opened and closed to and fro, as a command in the background can
            return None if _is_foreign(path) or _is_foreign(os.path.dirname(path)) else _CLOSED
        except OSError:
            return None

    def _read(self, path: str, changed: tuple[int, ...]) -> _Folder:
        below: list[str] = []
        secrets: list[str] = []
        protected: list[str] = []
        repositories: list[str] = []
        with os.scandir(path) as entries:
            for entry in entries:
                name = comparable(entry.path[len(self._root) :])
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_secret(name) or (self._hidden is not None and self._hidden(entry.path)):
                    secrets.append(entry.path)
                    if is_protected(name):
                        protected.append(entry.path)
                    continue
                if is_folder and entry.name.casefold() == ".git":
                    repositories.append(entry.path)
                    continue
                if is_protected(name) or (self._unwritable is not None and self._unwritable(entry.path)):
                    protected.append(entry.path)
                if is_folder and entry.name not in _SKIPPED:
                    below.append(entry.path)
        # an entry made within the resolution of the clock would be missed if this reading counted as final
        now = time.time_ns()
        settled = all(abs(now - at) >= _SETTLED_NS for at in changed)
        return _Folder(changed if settled else (), tuple(below), tuple(secrets), tuple(protected), tuple(repositories))


def has_more_folders(root: str, most: int) -> bool:
    """Whether a folder has more folders below it than are searched; much cheaper than the search."""
    pending, seen = [root], 0
    while pending:
        seen += 1
        if seen > most:
            return True
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED and entry.name != ".git":
                    pending.append(entry.path)
    return False


def _is_closed(path: str) -> bool:
    """Whether a folder cannot be searched by its owner, who is this user."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if found.st_mode & _SEARCHABLE == _SEARCHABLE or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    return not os.access(path, os.R_OK | os.X_OK)  # root may search any folder


def _is_foreign(path: str) -> bool:
    """Whether a folder belongs to another user, who does not let this one search it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_uid != os.getuid() and not os.access(path, os.R_OK | os.X_OK)


def is_there(path: str, writable: Sequence[str], closed: frozenset[str]) -> bool:
    """Whether a path without links exists, as far as this user can see.

    Args:
        path: The path.
        writable: Folders whose modes a command in the background may be changing.
        closed: Folders that are masked as a whole, because they cannot be searched.

    Raises:
        PermissionError: A folder on the way is closed, but may be open when the command runs.
    """
    try:
        os.stat(path)
    except PermissionError:
        above = list(map(str, Path(path).parents))
        if not is_below(path, writable) or any(map(_is_foreign, above)) or not closed.isdisjoint(above):
            return False
        raise
    except OSError:
        return False
    return True


def _repository_paths(folder: str, may_search: Callable[[str], bool]) -> Iterator[str]:
    """Yield what makes git run programs: hooks, settings, and the same of submodules."""
    repositories = [folder]
    for name in ("modules", "worktrees") if may_search(folder) else ():
        if os.path.islink(f"{folder}/{name}"):  # behind it may be the whole disk
            yield f"{folder}/{name}"
        elif not may_search(f"{folder}/{name}"):
            continue
        elif name == "worktrees":
            with suppress(OSError):
                repositories.extend(entry.path for entry in os.scandir(f"{folder}/{name}"))
        else:
            for place, folders, _ in os.walk(f"{folder}/{name}"):
                if "hooks" in folders or "objects" in folders:
                    repositories.append(place)
                    folders.clear()
                folders[:] = [each for each in folders if may_search(f"{place}/{each}")]
    for repository in filter(may_search, repositories):
        may_search(f"{repository}/info")  # hidden as a whole if it is closed
        for name in _IN_REPOSITORY:
            if os.path.lexists(f"{repository}/{name}"):
                yield f"{repository}/{name}"


def is_plain_part_of_repository(path: str) -> bool:
    """Whether a new path is what `git init` makes: sample hooks, and settings that name no program."""
    folder, _, name = path.rpartition("/")
    if os.path.islink(path):  # what it leads to can change later
        return False
    try:
        if name == "hooks" and os.path.basename(folder) == ".git":
            return all(entry.endswith(".sample") for entry in os.listdir(path))
        if name == "config" and os.path.basename(folder) == ".git":
            data = read_start(path, _MOST_SETTINGS_BYTES + 1)
            if data is None or len(data) > _MOST_SETTINGS_BYTES:
                return False
            return all(_PLAIN_SETTING.fullmatch(line) for line in data.decode("utf-8", "replace").splitlines())
    except OSError:
        return False
    return False
