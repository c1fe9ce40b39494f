"""Settings of Claude Code: what `.claude/settings.json` and `~/.claude/settings.json` say that has a meaning here.

A file that cannot be read or has the wrong form stops the start, as its deny rules would be lost. Everything else it
may hold, and this program does not use, is named.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from callwright.app.locations import Locations
from callwright.app.settings_file import (
    Scope,
    SettingsLayer,
    find_misspelt,
    parse_layer,
    place_of,
    read_json,
    read_text,
)
from callwright.core.errors import UsageError
from callwright.core.json import freeze, read_object
from callwright.policy.modes import mode_named

_SECTIONS = ("permissions", "hooks", "env", "disableAllHooks", "disabledMcpjsonServers", "enabledPlugins")
_PERMISSIONS = ("allow", "ask", "deny", "defaultMode", "additionalDirectories", "disableBypassPermissionsMode")
_SILENT = ("$schema",)
_PASSED_ON = ("hooks", "disabledMcpjsonServers", "enabledPlugins")
"""Sections that are not checked by the schema of our own settings."""


def project_layers(locations: Locations) -> tuple[SettingsLayer, ...]:
    """Read the project's files, whether or not it is trusted: those of its root, and of the working folder."""
    folders = dict.fromkeys((locations.project / ".claude", locations.cwd / ".claude"))
    names: tuple[tuple[Scope, str], ...] = (("project", "settings.json"), ("local", "settings.local.json"))
    own = os.path.realpath(locations.claude / "settings.json")
    found = [
        _read(scope, folder / name)
        for scope, name in names
        for folder in folders
        if os.path.realpath(folder / name) != own
    ]
    return tuple(layer for layer in found if layer is not None)


def user_layer(locations: Locations) -> SettingsLayer | None:
    """Read the user's own file, which was written for another program and counts in full once it is trusted here."""
    return _read("user", locations.claude / "settings.json")


def _read(scope: Scope, file: Path) -> SettingsLayer | None:
    text = read_text(file)
    return None if text is None else parse_claude_layer(scope, str(file), text)


def parse_claude_layer(scope: Scope, source: str, text: str) -> SettingsLayer:
    """Parse the settings of Claude Code.

    Raises:
        UsageError: The text is not valid JSON, or a part that is used has the wrong form; with line and column.
    """
    try:
        return _parse(scope, source, text, read_json(source, text))
    except RecursionError:
        raise UsageError(f"{source}: the JSON is nested too deeply") from None


def _parse(scope: Scope, source: str, text: str, content: object) -> SettingsLayer:
    if not isinstance(content, Mapping):
        raise UsageError(f"{place_of(source, text, ())}: the settings: expected an object, got {content!r:.80}")
    given = cast("Mapping[str, Any]", content)
    used = {key: value for key, value in given.items() if key in _SECTIONS and value is not None}
    unused = [key for key in given if key not in (*_SECTIONS, *_SILENT)]
    for key in unused:
        if (meant := find_misspelt((key,))) is not None:
            raise UsageError(f"{place_of(source, text, (key,))}: {key!r} is not a section; did you mean {meant!r}?")
    problems = [f"{source}: not used here: {', '.join(unused)}"] if unused else []
    for fault_path, message in _faults(used):
        raise UsageError(f"{place_of(source, text, fault_path)}: {'.'.join(map(str, fault_path))}: {message}")
    for key in cast("Mapping[str, Any]", used.get("permissions", {})):
        if key not in _PERMISSIONS and (meant := find_misspelt(("permissions", key))) is not None:
            where = place_of(source, text, ("permissions", key))
            raise UsageError(f"{where}: {key!r} is not a list of rules, so it would protect nothing; write {meant!r}")
    permissions, named = _permissions(used)
    problems += [f"{place_of(source, text, path)}: {message}" for path, message in named]
    checked = {key: value for key, value in used.items() if key not in _PASSED_ON and key != "permissions"}
    checked |= {"permissions": permissions} if permissions else {}
    if "env" in checked:
        checked["env"] = {name: _text(value) for name, value in checked["env"].items()}
    # checked by our own schema, with the positions of the original text
    layer = parse_layer(scope, source, json.dumps(checked), shown=text)
    passed_on = {key: used[key] for key in _PASSED_ON if key in used}
    return replace(
        layer, content=freeze({**layer.content, **passed_on}), problems=(*problems, *layer.problems), foreign=True
    )


def _text(value: Any) -> Any:
    """Return a value of `env` as text: numbers and booleans are accepted by the program the file is for."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def _permissions(used: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[Sequence[str | int], str]]]:
    given = cast("Mapping[str, Any]", used.get("permissions", {}))
    found = {key: given[key] for key in _PERMISSIONS if given.get(key) is not None}
    named: list[tuple[Sequence[str | int], str]] = [
        (("permissions", key), f"permissions.{key} is not used here") for key in given if key not in _PERMISSIONS
    ]
    try:
        mode_named(str(found.get("defaultMode", "default")))
    except UsageError as error:  # a mode of a newer version: the default asks more than any other
        named.append((("permissions", "defaultMode"), f"permissions.defaultMode is not used: {error}"))
        del found["defaultMode"]
    return found, named


def _faults(used: Mapping[str, Any]) -> Iterator[tuple[Sequence[str | int], str]]:
    for key in ("permissions", "hooks", "env", "enabledPlugins"):
        if not isinstance(used.get(key, {}), Mapping):
            yield (key,), f"expected an object, got {used[key]!r:.80}"
    disabled = used.get("disabledMcpjsonServers", [])
    if not isinstance(disabled, list) or not all(isinstance(each, str) for each in cast("list[Any]", disabled)):
        yield ("disabledMcpjsonServers",), f"expected a list of names, got {disabled!r:.80}"


def plugin_folders(layers: Sequence[SettingsLayer], locations: Locations) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Return the folders of enabled plugins by name, and a text for each that cannot be used.

    Args:
        layers: The layers that count in full.
        locations: Where plugins are installed.
    """
    chosen = {name: on for layer in layers for name, on in layer.section("enabledPlugins").items()}
    enabled = [name for name, on in chosen.items() if on is True]
    if not enabled:
        return {}, ()
    registry = locations.claude / "plugins" / "installed_plugins.json"
    text = read_text(registry)
    installed = read_object(read_object({} if text is None else read_json(str(registry), text)).get("plugins"))
    found: dict[str, Path] = {}
    problems: list[str] = []
    for name in enabled:
        entry: object = installed.get(name)
        entries = cast("list[object]", entry) if isinstance(entry, list) else [entry]
        path = read_object(entries[0] if entries else None).get("installPath")
        if isinstance(path, str) and Path(path).is_dir():
            found[name.partition("@")[0]] = Path(path)
            problems += unused_parts(name.partition("@")[0], Path(path))
        else:
            problems.append(f"the plugin {name} is enabled and not installed, so nothing of it is used")
    return found, tuple(problems)


def unused_parts(name: str, folder: Path) -> Iterator[str]:
    """Yield a text for each part of a plugin that is not used: only its skills and commands are."""
    parts = {"hooks": "hooks/hooks.json", "agents": "agents", "MCP servers": ".mcp.json", "LSP servers": ".lsp.json"}
    present = [part for part, path in parts.items() if (folder / path).exists()]
    if present:
        yield f"the plugin {name}: only its skills and commands are used, not its {', '.join(present)}"
