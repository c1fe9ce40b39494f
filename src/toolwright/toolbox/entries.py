"""Naming a directory entry itself: the way to it is resolved, a link at its end is not followed."""

import os
from pathlib import Path

from toolwright.core.errors import Unsafe
from toolwright.system.paths import Workspace


def entry_path(workspace: Workspace, path: str, *, checked: bool = False) -> Path:
    """Resolve the folder a path names an entry of; `checked` refuses what may not be written."""
    settle = workspace.check_write if checked else workspace.resolve
    above, _, name = path.rstrip("/").rpartition("/")
    if name in {"", ".", "..", "~"}:  # no entry of the folder before it, but a folder by another name
        return settle(path)
    workspace.resolve(path)  # for the refusal of control characters and other tricks
    folder = above or ("/" if path.startswith("/") else ".")
    if checked and workspace.resolve(os.path.join(folder, name)) == workspace.root:  # noqa: PTH118 - raw text
        return workspace.root
    return settle(folder) / name


def refuse_root(workspace: Workspace, path: Path, verb: str) -> None:
    """Refuse to take away a root of the workspace, or a folder one lies in."""
    real = Path(os.path.realpath(path))
    for root in workspace.roots:
        if root.is_relative_to(path) or (root == real and not path.is_symlink()):
            raise Unsafe(
                f"refused to {verb} {str(path)!r}: the workspace {str(root)!r} lies there; name something inside it"
            )
