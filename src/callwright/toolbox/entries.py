"""Naming a directory entry itself: the way to it is resolved, a link at its end is not followed."""

from pathlib import Path

from callwright.core.errors import Unsafe
from callwright.system.paths import Workspace


def entry_path(workspace: Workspace, path: str) -> Path:
    """Resolve the folder a path names an entry of."""
    resolved = workspace.resolve(path)
    above, _, name = path.rstrip("/").rpartition("/")
    if name in {"", ".", "..", "~"}:  # no entry of the folder before it, but a folder by another name
        return resolved
    return workspace.resolve(above or ("/" if path.startswith("/") else ".")) / name


def check_entry(workspace: Workspace, path: str, verb: str) -> Path:
    """Resolve an entry that is about to be taken away or made; neither outside of the workspace nor its root."""
    entry = entry_path(workspace, path)
    for root in workspace.roots:
        if root.is_relative_to(entry):
            raise Unsafe(
                f"refused to {verb} {path!r}: the workspace {str(root)!r} lies there; name something inside it"
            )
    workspace.check_write(str(entry.parent))
    return entry
