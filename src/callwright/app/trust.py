"""Which folders a person trusts, and for which of the things their files ask for."""

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import cast

from callwright.app.locations import Locations
from callwright.app.settings import Repository
from callwright.app.skills.grants import marks_of
from callwright.core.errors import UsageError
from callwright.core.json import canonical
from callwright.system.atomic_write import replace_file


class Trust:
    """A person's word on one project. It holds for what the files asked for when it was given, and for nothing new."""

    def __init__(self, places: Locations) -> None:
        self._file = places.trust
        self._places = places

    @property
    def wanted(self) -> tuple[str, ...]:
        """What the project's files ask for, in words; empty: there is nothing to trust."""
        return Repository.at(self._places).wanted

    @property
    def given(self) -> bool:
        """Whether the project may have all it asks for: it asks for nothing, or for exactly what was agreed to."""
        repository = Repository.at(self._places)
        return not repository.wanted or self._known() == _digest(repository)

    def give(self) -> None:
        """Trust the project's files as they are now."""
        self._write({**self._all(), str(self._places.project): _digest(Repository.at(self._places))})

    def take(self) -> None:
        """Trust the project no longer."""
        self._write({folder: mark for folder, mark in self._all().items() if folder != str(self._places.project)})

    def _known(self) -> str | None:
        return self._all().get(str(self._places.project))

    def _all(self) -> Mapping[str, str]:
        with suppress(FileNotFoundError):
            try:
                content: object = json.loads(self._file.read_text("utf-8"))
            except ValueError as error:
                raise UsageError(f"{self._file} is not valid JSON ({error}); correct or remove it") from None
            if isinstance(content, dict):
                found = cast("dict[str, object]", content).get("folders", {})
                return cast("dict[str, str]", found) if isinstance(found, dict) else {}
        return {}

    def _write(self, folders: Mapping[str, str]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"folders": folders}, indent=2, ensure_ascii=False) + "\n"
        replace_file(Path(self._file).resolve(), text.encode())


def _digest(repository: Repository) -> str:
    """Names exactly what was agreed to: anything a pull or a tool adds later is asked about again."""
    layers = [[layer.source, layer.content] for layer in repository.layers]
    return sha256(canonical([layers, marks_of(repository.skills)]).encode()).hexdigest()
