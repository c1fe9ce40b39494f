"""The folders the user trusts, and exactly which requests of their files."""

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import cast

from callwright.app.locations import Locations
from callwright.app.settings import Repository
from callwright.app.skills.grants import fingerprints
from callwright.core.errors import UsageError
from callwright.core.json import canonical
from callwright.system.atomic_write import replace_file


class Trust:
    """The user's trust in one project.

    It covers what the files requested when it was given; a new request needs a new decision.
    """

    def __init__(self, locations: Locations) -> None:
        self._file = locations.trust
        self._locations = locations

    @property
    def requests(self) -> tuple[str, ...]:
        """What the project's files request, as text; empty if there is nothing to trust."""
        return Repository.at(self._locations).requests

    @property
    def given(self) -> bool:
        """Whether the project requests nothing, or exactly what the user agreed to."""
        repository = Repository.at(self._locations)
        # compared by content, not by time: a checkout that restores the files restores the trust
        return not repository.requests or self._stored_digest() == _digest(repository)

    def give(self) -> None:
        """Trust the project's files as they are now."""
        self._write({**self._folders(), str(self._locations.project): _digest(Repository.at(self._locations))})

    def take(self) -> None:
        """Stop trusting the project."""
        self._write(
            {folder: digest for folder, digest in self._folders().items() if folder != str(self._locations.project)}
        )

    def _stored_digest(self) -> str | None:
        return self._folders().get(str(self._locations.project))

    def _folders(self) -> Mapping[str, str]:
        with suppress(FileNotFoundError):
            try:
                content: object = json.loads(self._file.read_text("utf-8"))
            except ValueError as error:
                raise UsageError(f"{self._file}: not valid JSON ({error}); correct or remove the file") from None
            if isinstance(content, dict):
                found = cast("dict[str, object]", content).get("folders", {})
                return cast("dict[str, str]", found) if isinstance(found, dict) else {}
        return {}

    def _write(self, folders: Mapping[str, str]) -> None:
        # private: the file lists the projects of the user
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"folders": folders}, indent=2, ensure_ascii=False) + "\n"
        # resolved, so that a linked file stays a link
        replace_file(Path(self._file).resolve(), text.encode())


def _digest(repository: Repository) -> str:
    """Identify exactly what was agreed to, so that anything added later asks again."""
    layers = [[layer.source, layer.content] for layer in repository.layers]
    return sha256(canonical([layers, fingerprints(repository.skills)]).encode()).hexdigest()
