"""Looks for files below a folder that a command would read or write without naming them."""

import os
from collections.abc import Callable
from fnmatch import fnmatchcase

from callwright.policy.tool_names import words
from callwright.shell.plan import Tree

_MAX_ENTRIES = 20_000  # some 30 ms; a larger folder counts as unknown
_SKIPPED = words(".git node_modules site-packages __pycache__ .venv")
# no secret has such a name, so a folder need not be searched for one
_SOURCE_ENDINGS = tuple(
    ".py .pyi .js .ts .tsx .jsx .mjs .cjs .go .rs .c .h .cc .cpp .hpp .java .kt .rb .php .css .scss .html .md .rst .txt"
    " .sh .sql .vue .svelte .swift .cs .scala .ex .exs .lua .proto .ipynb .csv .log .lock".split()
)


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
    if tree.pattern.endswith(_SOURCE_ENDINGS) and not every:
        return ""
    if not tree.folder.startswith("/") or any(mark in tree.folder for mark in "$`*?["):
        return None
    if not os.path.isdir(tree.folder):  # noqa: PTH112 - a path as text
        return tree.folder if wanted(tree.folder) else ""
    pending, seen = [tree.folder], 0
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MAX_ENTRIES:
                        return None
                    if entry.is_dir(follow_symlinks=False):
                        if folders and wanted(entry.path):
                            return entry.path
                        if every or entry.name not in _SKIPPED:
                            pending.append(entry.path)
                    elif fnmatchcase(entry.name, tree.pattern) and wanted(entry.path):
                        return entry.path
        except OSError:
            continue  # what cannot be listed cannot be read through it either
    return ""
