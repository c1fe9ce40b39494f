"""What a server's tools looked like when they were first used: a tool that changes afterwards is noticed."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from callwright.core.errors import UsageError
from callwright.core.json import canonical
from callwright.system.atomic_write import replace_file


def digest_of(definition: Mapping[str, Any]) -> str:
    """Name a tool's definition exactly: words, schemas and claims."""
    return sha256(canonical(definition).encode()).hexdigest()


class PinnedTools:
    """Digests of the definitions that are accepted, by server and tool; kept for as long as the program runs."""

    def __init__(self, known: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._known = {server: dict(tools) for server, tools in (known or {}).items()}

    def accepts(self, server: str, tool: str, digest: str) -> bool:
        """Whether this definition is the accepted one; the first that is seen of a tool is."""
        known = self._known.get(server, {}).get(tool)
        if known is None:
            self.accept(server, tool, digest)
            return True
        return known == digest

    def accept(self, server: str, tool: str, digest: str) -> None:
        """Take this definition as the one that a person has looked at."""
        self._known.setdefault(server, {})[tool] = digest

    def forget(self, server: str) -> None:
        """Take everything this server offers next as seen for the first time."""
        self._known.pop(server, None)


class PinnedToolsFile(PinnedTools):
    """The same, kept in a file, so that a tool that changed between two days is noticed too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(_read(path))

    def accept(self, server: str, tool: str, digest: str) -> None:
        super().accept(server, tool, digest)
        self._save()

    def forget(self, server: str) -> None:
        super().forget(server)
        self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, json.dumps(self._known, indent=1, sort_keys=True).encode())


def _read(path: Path) -> dict[str, dict[str, str]]:
    """What the file holds; a file that cannot be read must not pass for one in which nothing was seen."""
    if not path.exists():
        return {}
    try:
        known = json.loads(path.read_text("utf-8"))
        return {server: {tool: str(digest) for tool, digest in tools.items()} for server, tools in known.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path} does not hold what was seen of MCP tools ({error}); remove it to start over"
        ) from error
