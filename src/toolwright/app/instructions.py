"""What people wrote down for agents: AGENTS.md files, from the repository's root to the working folder."""

import re
from collections.abc import Iterator
from pathlib import Path

from toolwright.app.places import Places

_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
_MAX_BYTES = 32 * 1024
_DEEPEST = 4
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s@`]+\.(?:md|markdown|txt))\b")


def instructions_for(places: Places) -> str:
    """Return the user's own and the project's instructions, general ones first, cut where they grow too long."""
    texts: list[str] = []
    room = _MAX_BYTES
    for file, _, _ in instruction_files(places):
        text = _text(file)[:room].decode("utf-8", errors="ignore").strip()
        if text:
            texts.append(f"Instructions from {file}:\n\n{text}")
            room -= len(text.encode())
    return "\n\n".join(texts)


def instruction_files(places: Places) -> list[tuple[Path, str, str]]:
    """Return the files in order, with whose they are (User, Project) and why they are read, as hooks are told."""
    found: dict[Path, tuple[Path, str, str]] = {}
    for file in _files(places):
        kind = "User" if file.parent == places.home else "Project"
        found.setdefault(file.resolve(), (file, kind, "session_start"))
        for imported in _imports(file, places.home if kind == "User" else places.project, _DEEPEST):
            found.setdefault(imported, (imported, kind, "include"))
    return list(found.values())


def _files(places: Places) -> Iterator[Path]:
    if (own := places.home / "AGENTS.md").is_file():
        yield own
    inner = places.cwd.relative_to(places.project) if places.cwd.is_relative_to(places.project) else Path()
    deeper = (places.project.joinpath(*inner.parts[:depth]) for depth in range(1, len(inner.parts) + 1))
    for folder in (places.project, *deeper):
        found = next((folder / name for name in _NAMES if (folder / name).is_file()), None)
        if found is not None and found.resolve().is_relative_to(places.project):
            yield found  # a link out of the repository could name any file of the user's


def _imports(file: Path, root: Path, depth: int) -> Iterator[Path]:
    """Texts a file names with @, and those they name: never from outside its root, which could be anybody's."""
    if depth == 0:
        return
    text = _CODE.sub("", _text(file)[:_MAX_BYTES].decode("utf-8", errors="ignore"))
    for name in dict.fromkeys(_IMPORT.findall(text)):
        target = Path(file.parent, name).resolve()
        if target.is_file() and target.is_relative_to(root.resolve()):
            yield target
            yield from _imports(target, root, depth - 1)


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
