"""Notices that a settings file was changed while a conversation is led by what it said before."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from callwright.app.places import Places

_State: TypeAlias = tuple[int, int, int] | None


class SettingsWatch:
    """Compares the settings files with what they were; changes count from the next start on."""

    def __init__(self, places: Places) -> None:
        self._sources: Mapping[Path, str] = {
            places.user_settings: "user_settings",
            places.project_settings: "project_settings",
            places.project_servers: "project_settings",
            places.local_settings: "local_settings",
            places.managed: "policy_settings",
        }
        self._known = {file: _state(file) for file in self._sources}

    def changed(self) -> list[tuple[str, str]]:
        """Return the source and name of every file that is another than when this was last asked."""
        found = [file for file in self._sources if _state(file) != self._known[file]]
        self._known.update({file: _state(file) for file in found})
        return [(self._sources[file], str(file)) for file in found]


def _state(file: Path) -> _State:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
