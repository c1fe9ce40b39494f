"""Looks for files below a folder that a command would read or write without naming them."""

import os
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

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


_BREAKS = re.compile(r"[\s'\"\\]+")


def _splits_elsewhere(path: str) -> bool:
    """Whether a path below a folder, split at white space, names a file somewhere else: `x /etc/shadow`, `x .env`."""
    if not _BREAKS.search(path):
        return False
    parts = _BREAKS.split(path)[1:]
    return any(part[:1] == "/" or ".." in part or is_secret(comparable(part)) for part in parts)


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
    if not tree.folder.startswith("/") or any(mark in tree.folder for mark in "$`*?["):
        return None
    if not os.path.isdir(tree.folder):  # noqa: PTH112 - a path as text
        return tree.folder if wanted(tree.folder) else ""
    root = os.path.realpath(tree.folder)
    pending, seen, most = [(tree.folder, root, True)], 0, _MAX_NAMED_ENTRIES if tree.follows else _MAX_ENTRIES
    entered = {root}
    while pending:
        folder, place, counts = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > most:
                        return None
                    if tree.visible and entry.name[0] == ".":
                        continue
                    if tree.split and _splits_elsewhere(entry.path[len(tree.folder) :]):
                        return entry.path
                    link = tree.follows and entry.is_symlink()
                    real = os.path.realpath(entry.path) if link else f"{place}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False) or (tree.enters and link and entry.is_dir()):
                        if folders and counts and (wanted(entry.path) or wanted(real)):
                            return entry.path
                        kept = counts and (every or entry.name not in _SKIPPED)
                        if (kept or tree.follows) and not (link and real in entered):
                            entered |= {real} if link else set()
                            pending.append((entry.path, real, kept))
                    elif not (counts or link) or not fnmatchcase(entry.name, tree.pattern):
                        continue
                    elif wanted(entry.path) or wanted(real):
                        return entry.path
        except OSError:
            continue  # what cannot be listed cannot be read through it either
    return ""
