"""Looks for files below a folder that a command would read or write without naming them."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import has_magic, iglob
from itertools import islice
from typing import NamedTuple

from callwright.core.access import is_below
from callwright.policy.git_index import find_tracked
from callwright.policy.tool_names import words
from callwright.shell.plan import Tree
from callwright.system.sensitive_paths import comparable, is_secret

_MAX_ENTRIES = 20_000  # some 30 ms; a larger folder counts as unknown
_MAX_NAMED_ENTRIES = 60_000  # where each name is handed over, those in the folders of tools count too
_SKIPPED = words(".git node_modules site-packages __pycache__ .venv")
# no secret has such a name, so a folder need not be searched for one
_SOURCE_ENDINGS = tuple(
    ".py .pyi .js .ts .tsx .jsx .mjs .cjs .go .rs .c .h .cc .cpp .hpp .java .kt .rb .php .css .scss .html .md .rst .txt"
    " .sh .sql .vue .svelte .swift .cs .scala .ex .exs .lua .proto .ipynb .csv .log .lock".split()
)


# what xargs splits or joins at, and what a shell expands
_STRANGE = re.compile(r"[\s'\"\\*?\[]")
_DASHED_PART = re.compile(r"\s-")
_UNCLEAR = re.compile(r"['\"\\]|\[[\[^]")
_MAX_EXPANDED = 100


def _names_others(folder: str, path: str, wanted: Callable[[str], bool]) -> bool:
    """Whether a path below a folder names other files once it is split: `x /etc/shadow`, `x .env`.

    A quote or backslash always counts, because xargs makes `.env` out of `.e'n'v`, and so do brackets that bash matches
    otherwise than Python.
    """
    if _UNCLEAR.search(path):
        return True
    for place, part in enumerate(path.split()):
        if place and (part[0] == "/" or ".." in part or is_secret(comparable(part))):
            return True
        named = os.path.join(folder, part.lstrip("/"))  # noqa: PTH118 - a path as text
        expanded = list(islice(iglob(named), _MAX_EXPANDED)) if has_magic(part) else []  # noqa: PTH207 - as above
        if len(expanded) == _MAX_EXPANDED:
            return True
        if any(wanted(each) or wanted(os.path.realpath(each)) for each in (named, *expanded)):
            return True
    return False


_MAX_FOLDERS = 20
# every shell takes these alike: .* may be .. too, ? may be half a letter, sets depend on the language, ** on the shell
_PLAIN_PATTERN = re.compile(r"(?!.*\*\*)(?:\.?\w[\w.@+-]*)?\*[\w.@+*-]*", re.ASCII)


def _find_in_matches(tree: Tree, wanted: Callable[[str], bool], *, folders: bool, every: bool) -> str | None:
    """Look in every folder that a pattern such as `src/*` stands for, as `find_in_tree` does."""
    patterns = (part for part in tree.folder.split("/") if has_magic(part))
    if tree.split or _UNCLEAR.search(tree.folder) or not all(map(_PLAIN_PATTERN.fullmatch, patterns)):
        return None
    matches = list(islice(iglob(tree.folder), _MAX_FOLDERS + 1))  # noqa: PTH207 - paths as text
    if len(matches) > _MAX_FOLDERS or any("/-" in match for match in matches):  # a file -R may count as an option
        return None
    literal = (match for match in matches if not has_magic(match))
    found = [find_in_tree(tree._replace(folder=match), wanted, folders=folders, every=every) for match in literal]
    unknown = len(found) < len(matches) or None in found
    return next(filter(None, found), None if unknown else "")


def find_in_tree(
    tree: Tree, wanted: Callable[[str], bool], *, folders: bool = False, every: bool = False
) -> str | None:
    """Return the first file below a folder that is wanted; empty if there is none, None if that is not known.

    Args:
        tree: The folder, and the pattern that the names match.
        wanted: Compares an absolute path.
        folders: Whether folders are compared too.
        every: Whether source files and the folders of tools count, which hold no secrets of the user.
    """
    if tree.pattern.endswith(_SOURCE_ENDINGS) and not (every or tree.split or tree.follows):
        return ""
    if not tree.folder.startswith("/") or any(mark in tree.folder for mark in "$`"):
        return None
    if has_magic(tree.folder):
        return _find_in_matches(tree, wanted, folders=folders, every=every)
    if any(map(os.path.lexists, tree.unless)):
        return ""
    if tree.tracked:
        try:
            return find_tracked(tree.folder, wanted, whole=tree.whole)
        except LookupError:
            pass  # outside a repository git searches the folder itself, or nothing
    if not os.path.isdir(tree.folder):  # noqa: PTH112 - a path as text
        return tree.folder if wanted(tree.folder) or wanted(os.path.realpath(tree.folder)) else ""
    return _TreeSearch(tree, wanted, folders=folders, every=every).run()


class _Folder(NamedTuple):
    """A folder to search."""

    path: str
    real: str
    counts: bool
    """Whether its files count that are no links; those in the folders of tools do not."""
    pattern: str


class _TreeSearch:
    """One search of `find_in_tree` in a folder."""

    def __init__(self, tree: Tree, wanted: Callable[[str], bool], *, folders: bool, every: bool) -> None:
        self._tree = tree
        self._wanted = wanted
        self._folders = folders
        self._every = every
        root = os.path.realpath(tree.folder)
        self._entered = {root}
        self._pending = [_Folder(tree.folder, root, True, tree.pattern)]

    def run(self) -> str | None:
        left = _MAX_NAMED_ENTRIES if self._tree.follows else _MAX_ENTRIES
        while self._pending:
            folder = self._pending.pop()
            # what cannot be listed cannot be read through it either
            with suppress(OSError), os.scandir(folder.path) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return None
                    if not (self._tree.visible and entry.name[0] == ".") and self._look(entry, folder):
                        return entry.path
        return ""

    def _look(self, entry: os.DirEntry[str], folder: _Folder) -> bool:
        """Return whether an entry is wanted; a folder is searched later."""
        tree = self._tree
        if (tree.split and self._names_others(entry)) or (tree.bare and self._is_option(entry)):
            return True
        link = tree.follows and entry.is_symlink()
        real = os.path.realpath(entry.path) if link else f"{folder.real}/{entry.name}"
        if entry.is_dir(follow_symlinks=False) or (tree.enters and link and entry.is_dir()):
            if self._folders and folder.counts and (self._wanted(entry.path) or self._wanted(real)):
                return True
            self._enter(entry, real, folder, link=link)
            return False
        if not (folder.counts or link) or not fnmatchcase(entry.name, folder.pattern):
            return False
        return self._wanted(entry.path) or self._wanted(real)

    def _is_option(self, entry: os.DirEntry[str]) -> bool:
        """Whether a program would take a name, or a part of it, for an option."""
        tree = self._tree
        dashed = entry.name[0] == "-" or (tree.split and _DASHED_PART.search(entry.name) is not None)
        return dashed and (entry.is_dir() or fnmatchcase(entry.name, tree.pattern))

    def _names_others(self, entry: os.DirEntry[str]) -> bool:
        path = entry.path[len(self._tree.folder) :]
        strange = _STRANGE.search(path) and fnmatchcase(entry.name, self._tree.pattern)
        return bool(strange) and _names_others(self._tree.folder, path, self._wanted)

    def _enter(self, entry: os.DirEntry[str], real: str, folder: _Folder, *, link: bool) -> None:
        counts = folder.counts and (self._every or entry.name not in _SKIPPED)
        if not (counts or self._tree.follows) or (link and real in self._entered):
            return
        if link:
            self._entered.add(real)
        # `find -name x -exec mv {} y` takes all that is in a folder x
        taken = self._every and fnmatchcase(entry.name, folder.pattern)
        self._pending.append(_Folder(entry.path, real, counts, "*" if taken else folder.pattern))


_SYSTEM = ("/usr", "/bin", "/lib", "/opt", "/nix")


def find_link(tree: Tree) -> str:
    """Return a link that is copied with a folder and leads out of it, but for those to programs; empty if none does."""
    if os.path.islink(tree.folder):  # noqa: PTH114 - a path as text
        return tree.folder
    inside = (os.path.realpath(tree.folder), *_SYSTEM)
    found = find_in_tree(tree, lambda path: _leads_out(path, inside), every=True)
    return tree.folder if found is None else found


def _leads_out(path: str, inside: Sequence[str]) -> bool:
    return os.path.islink(path) and not is_below(os.path.realpath(path), inside)  # noqa: PTH114 - as above


def find_option_file(arguments: Sequence[str], folder: str) -> str:
    """Return a file such as `-R` that becomes an option where a word begins with a wildcard; empty if there is none."""
    wild = any(has_magic(word[:1]) or (word[:1] == "-" and has_magic(word)) for word in arguments)
    if not wild:
        return ""
    try:
        with os.scandir(folder) as entries:
            return next((entry.name for entry in entries if entry.name[0] == "-"), "")
    except OSError:  # in a folder that cannot be listed, a wildcard matches nothing
        return ""
