"""What people wrote down for agents: AGENTS.md files, from the repository's root to the working folder."""

from collections.abc import Iterator
from pathlib import Path

from toolwright.app.places import Places

_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
_MAX_BYTES = 32 * 1024


def instructions_for(places: Places) -> str:
    """Return the user's own and the project's instructions, general ones first, cut where they grow too long."""
    texts: list[str] = []
    room = _MAX_BYTES
    for file in _files(places):
        try:
            text = file.read_bytes()[:room].decode("utf-8", errors="ignore").strip()
        except OSError:
            continue
        if text:
            texts.append(f"Instructions from {file}:\n\n{text}")
            room -= len(text.encode())
    return "\n\n".join(texts)


def _files(places: Places) -> Iterator[Path]:
    if (own := places.home / "AGENTS.md").is_file():
        yield own
    inner = places.cwd.relative_to(places.project) if places.cwd.is_relative_to(places.project) else Path()
    folders = [places.project, *(places.project.joinpath(*inner.parts[: n + 1]) for n in range(len(inner.parts)))]
    for folder in folders:
        found = next((folder / name for name in _NAMES if (folder / name).is_file()), None)
        if found is not None and found.resolve().is_relative_to(places.project):
            yield found  # a link out of the repository could name any file of the user's
