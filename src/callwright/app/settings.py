"""Settings from five sources (user, project, local, command line, managed) merged into one value.

Rules of all sources add up; for any other setting the last source wins. Settings and skills of a repository count only
after the user trusts the folder; its deny and ask rules always count.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from callwright.app.agents import AgentDefinition, describe_agents, project_agents
from callwright.app.claude_settings import project_layers, user_layer
from callwright.app.locations import Locations
from callwright.app.settings_file import Scope, SettingsLayer, parse_layer, read_layer, read_named
from callwright.app.skills.grants import describe_requests, requesting_skills
from callwright.core.escaping import latin_form
from callwright.core.json import FrozenDict, Json, JsonObject, compact, read_object, thaw
from callwright.skills import Skill
from callwright.system.paths import expand_home

_REQUESTING_KEYS = (
    "model fallbackModel modelOptions baseUrl toolMode codeMode tools webSearch repairs "
    "instructions sandbox autoAllow undo limits prices log telemetry disableAllHooks terminal"
).split()
REMOVABLE_SOURCES = ("user", "project", "local")
"""Sources that `--setting-sources` can leave out; the command line and the administrator always count."""
_DIGITS_LIKE_LETTERS = str.maketrans("01", "ol")
_State: TypeAlias = tuple[int, int, int] | None


class SettingsWatch:
    """Detects changes of settings files during a conversation; they take effect at the next start."""

    def __init__(self, locations: Locations) -> None:
        self._sources: Mapping[Path, str] = {
            locations.user_settings: "user_settings",
            locations.project_settings: "project_settings",
            locations.project_servers: "project_settings",
            locations.local_settings: "local_settings",
            locations.project / ".claude" / "settings.json": "project_settings",
            locations.project / ".claude" / "settings.local.json": "local_settings",
            locations.cwd / ".claude" / "settings.json": "project_settings",
            locations.cwd / ".claude" / "settings.local.json": "local_settings",
            locations.claude / "settings.json": "user_settings",
            locations.managed: "policy_settings",
        }
        self._known = {file: _state(file) for file in self._sources}

    def changes(self) -> list[tuple[str, str]]:
        """Return the source and name of every file that changed since the last call."""
        found = [file for file in self._sources if _state(file) != self._known[file]]
        self._known.update({file: _state(file) for file in found})
        return [(self._sources[file], str(file)) for file in found]


def _state(file: Path) -> _State:
    try:
        stat = file.stat()
    except OSError:
        return None
    # the inode tells a save by rename, which can leave the time and size equal
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings of one run."""

    layers: tuple[SettingsLayer, ...] = ()
    """In order of precedence, lowest first; layers of an untrusted repository are already restricted."""
    withheld: tuple[str, ...] = ()
    """What an untrusted repository requests and does not get."""
    skills: tuple[Skill, ...] = ()
    """Skills of the repository whose requests are granted."""
    agents: tuple[AgentDefinition, ...] = ()
    """Sub-agents of the repository, if it is trusted."""
    agent_problems: tuple[str, ...] = ()
    """Files of sub-agents that cannot be used, with the line."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Messages for the user: unknown keys, folders that do not exist, and what was withheld."""
        withheld = ", ".join(self.withheld)
        why = "this folder is not trusted, so these settings are ignored (see callwright trust)"
        untrusted = (f"{why}: {withheld}",) if withheld else ()
        found = (problem for layer in self.layers for problem in (*layer.problems, *_missing_directories(layer)))
        return (*found, *untrusted, *self.agent_problems)

    def last(self, *path: str) -> Any:
        """Return the value of a setting from the last layer that has it; None if no layer does."""
        for layer in reversed(self.layers):
            # a null counts as absent, so a later layer cannot unset a value
            found: Any = layer.content
            for key in path:
                found = read_object(found).get(key)
            if found is not None:
                return found
        return None

    def place(self, section: str, key: str = "") -> str:
        """Return the file and line of the value that `last` returns; empty if no layer has it."""
        for layer in reversed(self.layers):
            if (layer.section(section).get(key) if key else layer.content.get(section)) is not None:
                return layer.at(section, key) if key else layer.at(section)
        return ""

    def merged(self, name: str) -> Mapping[str, Any]:
        """Return an object setting with the keys of every layer; for each key the last layer wins."""
        return FrozenDict({key: value for layer in self.layers for key, value in layer.section(name).items()})

    def directories(self) -> tuple[Path, ...]:
        """Return the additional folders of the workspace; relative paths start at the folder of their settings."""
        return tuple(dict.fromkeys(folder for layer in self.layers for folder in _directories(layer)))


def _directories(layer: SettingsLayer) -> list[Path]:
    given = layer.section("permissions").get("additionalDirectories", ())
    return [Path(_base(layer), expand_home(folder)) for folder in given]


def _missing_directories(layer: SettingsLayer) -> Iterator[str]:
    for place, folder in enumerate(_directories(layer)):
        if not folder.is_dir():
            where = layer.at("permissions", "additionalDirectories", place)
            yield f"{where}: additionalDirectories: there is no folder {folder}"


def _base(layer: SettingsLayer) -> Path:
    if layer.scope == "command line" or not Path(layer.source).is_absolute():
        # the command line has no folder of its own
        return Path.cwd()
    # `.callwright/settings.json` applies to the folder that contains `.callwright`
    folder = Path(layer.source).parent
    return folder.parent if folder.name.startswith(".") else folder


def repository_layers(locations: Locations) -> tuple[SettingsLayer, ...]:
    """Read the settings files of the project, whether or not it is trusted.

    In the home folder, the user's own file lies where a project has its settings; it is not a project's.
    """
    found = [
        *project_layers(locations),
        _read_unless_own("project", locations.project_settings, locations),
        _servers(locations.project_servers),
        _read_unless_own("local", locations.local_settings, locations),
    ]
    return tuple(layer for layer in found if layer is not None)


def _read_unless_own(scope: Scope, file: Path, locations: Locations) -> SettingsLayer | None:
    own = os.path.realpath(locations.user_settings)
    return None if os.path.realpath(file) == own else read_layer(scope, file)


@dataclass(frozen=True, slots=True)
class Repository:
    """The settings and skills of a project, whether or not it is trusted, read once."""

    layers: tuple[SettingsLayer, ...]
    skills: tuple[Skill, ...]
    """The skills that request rules or a model."""
    user_servers: tuple[str, ...] = ()
    """The names of the user's and the administrator's MCP servers, which the project's may replace or resemble."""
    agents: tuple[AgentDefinition, ...] = ()
    agent_problems: tuple[str, ...] = ()
    """Files of sub-agents that cannot be used, with the line."""
    own: SettingsLayer | None = None
    """The user's settings of Claude Code, which are trusted once for all projects."""

    @classmethod
    def at(cls, locations: Locations) -> "Repository":
        """Read the files as they are now."""
        agents, problems = project_agents(locations)
        skills = requesting_skills(locations)
        own = user_layer(locations)
        return cls(repository_layers(locations), skills, own_servers(locations), agents, problems, own)

    @property
    def own_requests(self) -> tuple[str, ...]:
        """What the user's settings of Claude Code would allow or run."""
        return () if self.own is None else tuple(f"{text} ({self.own.source})" for text in requested_by(self.own))

    @property
    def requests(self) -> tuple[str, ...]:
        """What the project requests beyond denying permissions, as text; empty if there is nothing to trust."""
        requested = (request for layer in self.layers for request in requested_by(layer, self.user_servers))
        return tuple(dict.fromkeys((*requested, *describe_requests(self.skills), *describe_agents(self.agents))))


def own_servers(locations: Locations) -> tuple[str, ...]:
    """Return the names of the MCP servers that the user, or the administrator, has configured outside the project."""
    layers = (read_layer("user", locations.user_settings), read_layer("managed", locations.managed))
    return tuple(name for layer in layers if layer is not None for name in layer.section("mcpServers"))


def load_settings(
    locations: Locations,
    *,
    trusted: bool,
    given: Sequence[str] = (),
    repository: Repository | None = None,
    sources: Collection[str] | None = None,
    own_trusted: bool = False,
) -> Settings:
    """Read and merge the settings of every source.

    Args:
        locations: Where the settings files are.
        trusted: Whether the user trusts the project.
        given: Values of `--settings`, each a file name or JSON.
        repository: The project's files as they were read when `trusted` was decided; read now by default.
        own_trusted: Whether the user trusts their own settings of Claude Code.
        sources: Which of user, project and local are read; None for all. The others can still take permissions away.

    Raises:
        UsageError: A file cannot be read, or does not match the schema.
    """
    repository = Repository.at(locations) if repository is None else repository
    # deny and ask rules of untrusted files stay: they can only take permissions away
    theirs = [layer if trusted else layer.keep_restrictions() for layer in repository.layers]
    own = repository.own if repository.own is None or own_trusted else repository.own.keep_restrictions()
    layers = (
        own,
        *(layer for layer in theirs if layer.foreign),
        read_layer("user", locations.user_settings),
        *(layer for layer in theirs if not layer.foreign),
        *(_command_line_layer(text) for text in given),
        # last, so that it overrides even the command line
        read_layer("managed", locations.managed),
    )
    found = tuple(layer for layer in layers if layer is not None)
    if sources is not None:
        left_out = set(REMOVABLE_SOURCES) - set(sources)
        found = tuple(layer.keep_restrictions() if layer.scope in left_out else layer for layer in found)
    problems = repository.agent_problems
    ignored = () if own_trusted else repository.own_requests
    if not trusted:
        return Settings(found, (*repository.requests, *ignored), agent_problems=problems)
    if sources is not None and "project" not in sources:
        return Settings(found, ignored)
    return Settings(found, ignored, skills=repository.skills, agents=repository.agents, agent_problems=problems)


def _servers(file: Path) -> SettingsLayer | None:
    layer = read_layer("project", file)
    if layer is None:
        return None
    servers = layer.content.get("mcpServers")
    unused = [key for key in layer.content if key not in ("mcpServers", "$schema")]
    problems = (f"{file}: only mcpServers is read, not {', '.join(unused)}",) if unused else ()
    content: JsonObject = FrozenDict({"mcpServers": servers}) if servers else FrozenDict()
    return SettingsLayer("project", str(file), content, problems)


def _command_line_layer(text: str) -> SettingsLayer:
    if text.lstrip().startswith("{"):
        return parse_layer("command line", "--settings", text)
    return parse_layer(
        "command line", text, read_named("--settings", text, "; give a file name or the settings themselves")
    )


def requested_by(layer: SettingsLayer, user_servers: Sequence[str] = ()) -> Iterable[str]:
    """Yield what a layer requests beyond denying permissions, as text for the user.

    Args:
        layer: The settings of one file.
        user_servers: The names of the user's own MCP servers.
    """
    permissions = layer.section("permissions")
    for rule in permissions.get("allow", ()):
        yield f"allow {rule if isinstance(rule, str) else rule['rule']}"
    if mode := permissions.get("defaultMode"):
        yield f"mode {mode}"
    yield from (f"folder {folder}" for folder in permissions.get("additionalDirectories", ()))
    yield from _hook_commands(layer)
    for name, entry in layer.section("mcpServers").items():
        yield f"MCP server {name}{_describe_conflict(name, user_servers)}: {_describe_server(entry)}"
    yield from (f"environment variable {name}={value}" for name, value in layer.section("env").items())
    plugins = [name for name, on in layer.section("enabledPlugins").items() if on is True]
    yield from (f"skills and commands of the plugin {name}" for name in plugins)
    for key in _REQUESTING_KEYS:
        if key in layer.content:
            yield f"{key} {layer.content[key]}"


def _describe_server(entry: Mapping[str, Any]) -> str:
    """Describe all that a server entry would start, reach or send: the user must see what trust covers."""
    variables = (f"{name}={value}" for name, value in entry.get("env", {}).items())
    command = (*variables, entry.get("command", ""), *entry.get("args", ()), entry.get("url", ""))
    headers = (f"sending {name}: {value}" for name, value in entry.get("headers", {}).items())
    where = (f"in {entry['cwd']}",) if entry.get("cwd") else ()
    helper = (f"running {entry['headersHelper']} for headers",) if entry.get("headersHelper") else ()
    return ", ".join((" ".join(filter(None, command)), *where, *headers, *helper))


def shadowed_server(name: str, user_servers: Iterable[str]) -> str:
    """Return the server of the user's whose name a project's server takes, or resembles; empty if there is none.

    Args:
        name: The name of the project's server.
        user_servers: The names of the user's own servers.
    """
    own = tuple(user_servers)
    return name if name in own else next((each for each in own if _fold_name(each) == _fold_name(name)), "")


def describe_shadow(name: str, shadowed: str) -> str:
    """Say that a server takes the name of one of the user's, or a name that looks like it; empty if it does not."""
    if not shadowed:
        return ""
    what = "REPLACES your own server of this name" if name == shadowed else f"looks like your own server {shadowed}"
    return f"{what}; your allow rules do not apply to it"


def _describe_conflict(name: str, user_servers: Sequence[str]) -> str:
    conflict = describe_shadow(name, shadowed_server(name, user_servers))
    return f" ({conflict})" if conflict else ""


def _fold_name(name: str) -> str:
    """Return what is left of a name for a hasty reader: g1thub, Git-Hub and a Cyrillic one are all github."""
    return "".join(filter(str.isalnum, latin_form(name).casefold())).translate(_DIGITS_LIKE_LETTERS)


def _hook_commands(layer: SettingsLayer) -> Iterable[str]:
    for event, groups in layer.section("hooks").items():
        for group in cast("Sequence[Any]", groups) if isinstance(groups, (list, tuple)) else (groups,):
            given = read_object(group)
            entries: object = given.get("hooks")
            if not isinstance(entries, (list, tuple)):
                yield f"hook on {event}: {compact(thaw(cast('Json', group)))}"  # not valid: what it guards is denied
                continue
            matcher = f" {given['matcher']}" if given.get("matcher") else ""
            yield from (f"hook on {event}{matcher}: {_describe_hook(hook)}" for hook in cast("Sequence[Any]", entries))


def _describe_hook(hook: Any) -> str:
    entry = read_object(hook)
    arguments: object = entry.get("args", ())
    plain = entry.get("type", "command") == "command" and not entry.keys() & {"url", "prompt", "shell"}
    if not plain or not isinstance(entry.get("command"), str) or not isinstance(arguments, (list, tuple)):
        return compact(thaw(cast("Json", hook)))
    return " ".join(map(str, (entry["command"], *cast("Sequence[Any]", arguments))))
