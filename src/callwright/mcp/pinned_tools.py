"""Pinned definitions: a tool, prompt or resource text that its server changes after its first use is detected."""

import json
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import canonical, hash_text
from callwright.system.atomic_write import ABSENT, Changed, replace_file
from callwright.system.files import digest

_Result = TypeVar("_Result")
_MOST_ATTEMPTS = 20
_MOST_OF_SERVER = 20_000
"""How many names of one server are kept: one that lists other names every time would fill the disk."""


def digest_of(definition: Mapping[str, Any]) -> str:
    """Hash a tool's definition: descriptions, schemas and annotations."""
    return hash_text(canonical(definition))


class PinnedTools:
    """Hashes of accepted definitions, by server and tool, in memory."""

    def __init__(self, known: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._known = {server: dict(tools) for server, tools in (known or {}).items()}

    def accepts(self, server: str, tool: str, digest: str) -> bool:
        """Whether this definition is the accepted one; the first definition of a tool is accepted.

        Args:
            server: The name of the server.
            tool: The name of the tool on it.
            digest: The digest of its definition.
        """
        return not self.check_all(server, {tool: digest})

    def accept(self, server: str, tool: str, digest: str) -> None:
        """Accept this definition, after the user has reviewed it.

        Args:
            server: The name of the server.
            tool: The name of the tool on it.
            digest: The digest of its definition.
        """
        self.accept_all(server, {tool: digest})

    def accept_all(self, server: str, digests: Mapping[str, str]) -> None:
        """Accept these definitions, after the user has reviewed them.

        Args:
            server: The name of the server.
            digests: The digests of the definitions, by the names of the tools.
        """
        self._known.setdefault(server, {}).update(digests)
        self._save()

    def check_all(self, server: str, digests: Mapping[str, str], *, trusted: bool = False) -> set[str]:
        """Return the tools of a listing that are not the accepted ones; new ones are accepted, all of a trusted server.

        Beyond 20,000 names of a server that is not trusted, new ones are not accepted by themselves.

        Args:
            server: The server.
            digests: The definitions it lists now, by tool.
            trusted: Whether changes are accepted too.
        """
        known = self._known.setdefault(server, {})
        changed = {tool: digest for tool, digest in digests.items() if known.get(tool) != digest}
        room = max(_MOST_OF_SERVER - len(known), 0)
        new = dict(islice(((tool, digest) for tool, digest in changed.items() if tool not in known), room))
        if trusted:
            new |= {tool: digest for tool, digest in changed.items() if tool in known}
        if new:
            known |= new
            self._save()
        return set() if trusted else changed.keys() - new.keys()

    def _save(self) -> None:
        """Write what is known; in memory there is nothing to write."""

    def forget(self, server: str) -> None:
        """Accept everything this server lists next."""
        for key in [server, *(key for key in self._known if key.startswith(f"{server}\n#"))]:
            self._known.pop(key, None)


class PinnedToolsFile(PinnedTools):
    """Pinned tools in a file, so that changes between runs are detected too.

    Several processes may use the file: each reads what the others have accepted before it decides or writes.

    Args:
        path: The file; it is created when the first definition is accepted.

    Raises:
        UsageError: The file exists and cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_digest = ABSENT
        super().__init__()
        self._load()

    def accept_all(self, server: str, digests: Mapping[str, str]) -> None:
        accept = super().accept_all
        self._update(lambda: accept(server, digests))

    def check_all(self, server: str, digests: Mapping[str, str], *, trusted: bool = False) -> set[str]:
        check = super().check_all
        return self._update(lambda: check(server, digests, trusted=trusted))

    def forget(self, server: str) -> None:
        forget = super().forget

        def change() -> None:
            forget(server)
            self._save()

        self._update(change)

    def _update(self, change: Callable[[], _Result]) -> _Result:
        """Apply a change to what the file holds now; again, if another process writes it meanwhile."""
        for _ in range(_MOST_ATTEMPTS):
            self._load()
            try:
                return change()
            except Changed:
                continue
        raise UsageError(f"other programs keep changing {self._path}; try again")

    def _load(self) -> None:
        """Read the file; an unreadable file must not count as empty, which would accept every change."""
        try:
            data = self._path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            self._read_digest = ABSENT  # what is known stays: a removed file makes a running process forget nothing
            return
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            known = json.loads(data.decode("utf-8"))
            self._known = {
                server: {tool: str(digest) for tool, digest in tools.items()} for server, tools in known.items()
            }
        except (ValueError, AttributeError) as error:
            raise self._unreadable(error) from error
        self._read_digest = digest(data)

    def _unreadable(self, error: Exception) -> UsageError:
        return UsageError(f"cannot read the pinned MCP tools in {self._path} ({error}); remove the file to start over")

    def _save(self) -> None:
        data = json.dumps(self._known, indent=1, sort_keys=True).encode()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, data, expected=self._read_digest)
            self._path.chmod(0o600)
        except OSError as error:
            why = describe_exception(error)
            raise UsageError(f"its tools cannot be pinned in {self._path}: {why}; they are not used") from error
