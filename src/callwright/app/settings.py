"""Settings from five places: user, project, local, command line, managed. Rules add up; else the last word counts.

What a repository says, its skills included, counts only once its folder is trusted; its deny and ask rules always do.

Notices that a settings file was changed while a conversation is led by what it said before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from callwright.app.locations import Locations
from callwright.app.settings_file import Layer, parse_layer, read_layer
from callwright.app.skills.grants import asking_skills, wants_of
from callwright.core.errors import UsageError, plainly
from callwright.core.json import FrozenDict
from callwright.skills import Skill

_State: TypeAlias = tuple[int, int, int] | None


class SettingsWatch:
    """Compares the settings files with what they were; changes count from the next start on."""

    def __init__(self, places: Locations) -> None:
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


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for one run."""

    layers: tuple[Layer, ...] = ()
    """In the order they are heard, each already cut down to what it may say."""
    withheld: tuple[str, ...] = ()
    """What a repository asks for and does not get before it is trusted."""
    skills: tuple[Skill, ...] = ()
    """Those of the repository that get what they ask for."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What a person should know: keys nobody reads, and what was withheld."""
        waiting = ", ".join(self.withheld)
        untrusted = (f"this folder is not trusted yet, so these do not count: {waiting}",) if waiting else ()
        return (*(problem for layer in self.layers for problem in layer.problems), *untrusted)

    def last(self, *path: str) -> Any:
        """The last word on one setting; None where nobody speaks."""
        for layer in reversed(self.layers):
            found: Any = layer.content
            for key in path:
                found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
            if found is not None:
                return found
        return None

    def place(self, section: str, key: str = "") -> str:
        """Where the last word on a setting is written: the file and the line; empty where nobody speaks."""
        for layer in reversed(self.layers):
            if (layer.section(section).get(key) if key else layer.content.get(section)) is not None:
                return layer.at(section, key) if key else layer.at(section)
        return ""

    def merged(self, name: str) -> Mapping[str, Any]:
        """An object whose keys come from every place; the last word on a key counts whole."""
        return FrozenDict({key: value for layer in self.layers for key, value in layer.section(name).items()})

    def directories(self) -> tuple[Path, ...]:
        """Folders beside the working one that may be worked in, relative ones taken from where they were written."""
        found = [
            Path(_base(layer), Path(folder).expanduser())
            for layer in self.layers
            for folder in layer.section("permissions").get("additionalDirectories", ())
        ]
        return tuple(dict.fromkeys(found))


def _base(layer: Layer) -> Path:
    if layer.scope == "command line" or not Path(layer.source).is_absolute():
        return Path.cwd()
    folder = Path(layer.source).parent
    return folder.parent if folder.name.startswith(".") else folder


def repository_layers(places: Locations) -> tuple[Layer, ...]:
    """What the project's own files say, whether or not it may."""
    found = [
        read_layer("project", places.project_settings),
        _servers(places.project_servers),
        read_layer("local", places.local_settings),
    ]
    return tuple(layer for layer in found if layer is not None)


@dataclass(frozen=True, slots=True)
class Repository:
    """What a project's own files say, whether or not they may, read once."""

    layers: tuple[Layer, ...]
    skills: tuple[Skill, ...]
    """Those that ask for something."""

    @classmethod
    def at(cls, places: Locations) -> "Repository":
        """Read them as they are now."""
        return cls(repository_layers(places), asking_skills(places))

    @property
    def wanted(self) -> tuple[str, ...]:
        """What they ask for beyond taking permissions away, in words; empty: there is nothing to trust."""
        words = (word for layer in self.layers for word in grants(layer))
        return tuple(dict.fromkeys((*words, *wants_of(self.skills))))


def load_settings(places: Locations, *, trusted: bool, given: Sequence[str] = ()) -> Settings:
    """Read every place; `given` are settings from the command line, as a file's name or as JSON."""
    repository = Repository.at(places)
    layers = (
        read_layer("user", places.user_settings),
        *(layer if trusted else layer.restricting() for layer in repository.layers),
        *(_given(text) for text in given),
        read_layer("managed", places.managed),
    )
    heard = tuple(layer for layer in layers if layer is not None)
    return Settings(heard, skills=repository.skills) if trusted else Settings(heard, repository.wanted)


def _servers(file: Path) -> Layer | None:
    layer = read_layer("project", file)
    if layer is None:
        return None
    servers = layer.content.get("mcpServers")
    return Layer("project", str(file), FrozenDict({"mcpServers": servers}) if servers else FrozenDict())


def _given(text: str) -> Layer:
    if text.lstrip().startswith("{"):
        return parse_layer("command line", "--settings", text)
    try:
        return parse_layer("command line", text, Path(text).expanduser().read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--settings {text}: {plainly(error)}; give a file, or the settings themselves") from None


def grants(layer: Layer) -> Iterable[str]:
    """Name what a layer asks for beyond taking permissions away, in words to be shown."""
    permissions = layer.section("permissions")
    for rule in permissions.get("allow", ()):
        yield f"allow {rule if isinstance(rule, str) else rule['rule']}"
    if mode := permissions.get("defaultMode"):
        yield f"mode {mode}"
    yield from (f"folder {folder}" for folder in permissions.get("additionalDirectories", ()))
    yield from _hook_commands(layer)
    yield from (f"MCP server {name}: {_server(entry)}" for name, entry in layer.section("mcpServers").items())
    yield from (f"environment variable {name}={value}" for name, value in layer.section("env").items())
    for key in "model baseUrl instructions sandbox limits prices log telemetry disableAllHooks".split():
        if key in layer.content:
            yield f"{key} {layer.content[key]}"


def _server(entry: Mapping[str, Any]) -> str:
    """Everything an entry would start, reach or send, whichever of it counts: nobody agrees to what is not shown."""
    variables = (f"{name}={value}" for name, value in entry.get("env", {}).items())
    words = (*variables, entry.get("command", ""), *entry.get("args", ()), entry.get("url", ""))
    sent = (f"sending {name}: {value}" for name, value in entry.get("headers", {}).items())
    where = (f"in {entry['cwd']}",) if entry.get("cwd") else ()
    return ", ".join((" ".join(filter(None, words)), *where, *sent))


def _hook_commands(layer: Layer) -> Iterable[str]:
    for event, groups in layer.section("hooks").items():
        for group in groups:
            yield from (f"hook on {event}: {hook['command']}" for hook in group["hooks"] if "command" in hook)
