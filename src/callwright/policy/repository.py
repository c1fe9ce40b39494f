"""Programs a repository's own settings name, which git would run while it is only looked at.

Pagers, hooks and file monitors are switched off when a line runs (`shell.pins`). What cannot be switched off that way
are programs that show differences or filter content; a repository that names one is not looked at without asking. A
person's own settings in their home folder are their own.
"""

import re
from pathlib import Path

_NAMES_A_PROGRAM = re.compile(
    r"^\s*(external|textconv|command|clean|smudge|process)\s*=\s*\S.*", re.IGNORECASE | re.MULTILINE
)
_INCLUDES = re.compile(r"^\s*\[\s*include(?:if\b[^\]]*)?\s*\]", re.IGNORECASE | re.MULTILINE)
_LARGEST = 1 << 20


def program_in_settings(folder: str) -> str:
    """The setting through which git, looking from this folder, would run a program; empty where there is none."""
    for start in (Path(folder), *Path(folder).parents):
        marker = start / ".git"
        if marker.exists():
            return next((found for file in _settings_files(marker) if (found := _named_in(file))), "")
        if (start / "HEAD").is_file() and (start / "config").is_file():  # a repository without a work tree
            return _named_in(start / "config")
    return ""


def _settings_files(marker: Path) -> list[Path]:
    """The files git reads for a repository; a linked work tree or submodule points to them."""
    folder = marker
    if marker.is_file():
        text = _read(marker).strip()
        if not text.startswith("gitdir:"):
            return [marker]
        folder = (marker.parent / text.removeprefix("gitdir:").strip()).resolve()
    common = folder / "commondir"
    shared = (folder / _read(common).strip()).resolve() if common.is_file() else folder
    return [shared / "config", folder / "config", folder / "config.worktree"]


def _named_in(file: Path) -> str:
    if not file.is_file():
        return ""
    text = _read(file)
    if len(text) >= _LARGEST:
        return f"more settings in {file} than anybody would write"
    named = _NAMES_A_PROGRAM.search(text)
    if named is not None:
        return f"{named.group(0).strip()[:80]} in {file}"
    return f"another file included by {file}" if _INCLUDES.search(text) else ""


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_LARGEST)
    except OSError:
        return "[include]"  # what cannot be read cannot be trusted either
