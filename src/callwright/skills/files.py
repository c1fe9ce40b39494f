"""Reading what belongs to a skill, and nothing outside of its folder."""

import os
from pathlib import Path

from callwright.core.errors import ToolFailed
from callwright.system.files import open_regular, read_all
from callwright.system.paths import Workspace

MOST_BYTES = 1 << 20
_MOST_LISTED = 50
_MOST_VISITED = 2_000


def inside(folder: Path, path: str) -> Path:
    """Say where a path of a skill leads; out of its folder is `Unsafe`."""
    return Workspace(folder).check_read(path)


def check_inside(folder: Path, path: str) -> None:
    """Raise what keeps a file of a skill from being opened, if anything does; what it holds does not matter."""
    os.close(_opened(inside(folder, path), path))


def read_inside(folder: Path, path: str) -> str:
    """Read a text file of a skill; a path or link that leads out of the folder is `Unsafe`."""
    resolved = inside(folder, path)
    descriptor = _opened(resolved, path)
    try:
        data = read_all(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise ToolFailed(f"{path} is larger than {MOST_BYTES} bytes; look into it with another tool: {resolved}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is not UTF-8 text (byte {error.start}); use another tool on {resolved}") from None
    return text.replace("\r\n", "\n")


def _opened(resolved: Path, path: str) -> int:
    try:
        return open_regular(resolved)
    except IsADirectoryError:
        raise ToolFailed(f"{path} is a folder of the skill; name one of its files") from None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be read: {error.strerror}") from None


def files_of(folder: Path, *, but: str = "SKILL.md") -> tuple[list[str], bool]:
    """Name the files of a skill, in order, and say whether there are more; links and hidden ones are left out."""
    found: list[str] = []
    visited = 0
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            visited += 1
            path = Path(here, name)
            if name.startswith(".") or path.is_symlink() or (name == but and Path(here) == folder):
                continue
            found.append(path.relative_to(folder).as_posix())
        if len(found) > _MOST_LISTED or visited > _MOST_VISITED:
            return found[:_MOST_LISTED], True
    return found, False
