"""What people wrote down for agents: AGENTS.md files, from the repository's root to the working folder.

What the model is told before anything is said.
"""

import platform
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from callwright.agent import default_system_prompt
from callwright.app.locations import Locations
from callwright.app.settings import Settings
from callwright.skills import Skills, listing

_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
_MAX_BYTES = 32 * 1024
_DEEPEST = 4
_MOST_IMPORTED = 60
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s@`]+\.(?:md|markdown|txt))\b")


def instructions_for(places: Locations) -> str:
    """Return the user's own and the project's instructions, general ones first, cut where they grow too long."""
    texts: list[str] = []
    room = _MAX_BYTES
    for file, _, _ in instruction_files(places):
        text = _text(file)[:room].decode("utf-8", errors="ignore").strip()
        if text:
            texts.append(f"Instructions from {file}:\n\n{text}")
            room -= len(text.encode())
    return "\n\n".join(texts)


def instruction_files(places: Locations) -> list[tuple[Path, str, str]]:
    """Return the files in order, with whose they are (User, Project) and why they are read, as hooks are told."""
    found: dict[Path, tuple[Path, str, str]] = {}
    for file in _files(places):
        kind = "User" if file.parent == places.home else "Project"
        found.setdefault(file.resolve(), (file, kind, "session_start"))
        root = (places.home if kind == "User" else places.project).resolve()
        for imported in _imports(file, root):
            found.setdefault(imported, (imported, kind, "include"))
    return list(found.values())


def _files(places: Locations) -> Iterator[Path]:
    if (own := places.home / "AGENTS.md").is_file():
        yield own
    inner = places.cwd.relative_to(places.project) if places.cwd.is_relative_to(places.project) else Path()
    deeper = (places.project.joinpath(*inner.parts[:depth]) for depth in range(1, len(inner.parts) + 1))
    for folder in (places.project, *deeper):
        found = next((folder / name for name in _NAMES if (folder / name).is_file()), None)
        if found is not None and found.resolve().is_relative_to(places.project):
            yield found  # a link out of the repository could name any file of the user's


def _imports(file: Path, root: Path) -> list[Path]:
    """Texts a file names with @, and those they name: never from outside its root, which could be anybody's."""
    found: dict[Path, None] = {}
    level = [file]
    for _ in range(_DEEPEST):  # level by level, each once: files that all name each other would else take for ever
        level = [target for each in level for target in _named(each, root) if target not in found]
        found |= dict.fromkeys(level[: _MOST_IMPORTED - len(found)])
        level = [target for target in dict.fromkeys(level) if target in found]
    return list(found)


def _named(file: Path, root: Path) -> Iterator[Path]:
    text = _CODE.sub("", _text(file).decode("utf-8", errors="ignore"))
    for name in list(dict.fromkeys(_IMPORT.findall(text)))[:_MOST_IMPORTED]:
        target = Path(file.parent, name).resolve()
        if target.is_file() and target.is_relative_to(root):
            yield target


def _text(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(_MAX_BYTES)
    except OSError:
        return b""


_ROLE = """\
You are callwright, a coding agent in a terminal. You work on the files of the person you talk to, in their working \
folder, with the tools you are given. Read before you change, change as little as the task needs, follow the style you \
find, and run what proves that it works. Everything you do may have to be approved: say in a word what a command is \
for. Answer in short Markdown."""


def system_prompt(places: Locations, settings: Settings, skills: Skills, *, more: str = "") -> str:
    """Return the role, the surroundings, the project's instructions and the skills, in this order."""
    around = "\n".join(
        [
            f"Working folder: {places.cwd}",
            f"Repository: {places.project if (places.project / '.git').exists() else 'none'}",
            f"System: {platform.system()} {platform.machine()}",
            f"Date: {date.today().isoformat()}",
        ]
    )
    offered = listing(skills)
    parts = [
        default_system_prompt(_ROLE),
        around,
        instructions_for(places),
        settings.last("instructions") or "",
        f"Skills, to be loaded with the tool skill when they fit:\n{offered}" if offered else "",
        more,
    ]
    return "\n\n".join(part for part in parts if part)
