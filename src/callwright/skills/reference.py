"""Files that instructions name as `@path`, to be handed over with them."""

import re
from collections.abc import Iterable
from pathlib import Path

from callwright.skills.expand import Expansion

MOST_FILES = 10
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"(?<![^\s(\[\"'])@([^\s@`'\"<>()\[\]]+)")
_AFTER = ".,;:!?"


def references(expansion: Expansion, folder: Path) -> tuple[Path, ...]:
    """Return the files that are there, relative names taken from `folder`; neither code nor output names any."""
    text = "\n".join(part for part in expansion.parts if isinstance(part, str))
    named = (word.rstrip(_AFTER) for word in _REFERENCE.findall(_CODE.sub(" ", text)))
    return tuple(dict.fromkeys(_files(named, folder)))[:MOST_FILES]


def _files(names: Iterable[str], folder: Path) -> Iterable[Path]:
    for name in names:
        path = Path(folder, name)
        try:
            if name and path.is_file():  # @somebody and @decorator are not
                yield path
        except (OSError, ValueError):  # too long, or with a NUL in it
            continue


def attachment(path: Path, text: str) -> str:
    """One file as it stands below the instructions."""
    return f'\n\n<file path="{path}">\n{text}\n</file>'
