"""`callwright mcp add` and `remove`: which file names a server, and what that means."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from callwright.app.locations import Locations
from callwright.app.settings import repository_layers
from callwright.app.settings_file import read_layer
from callwright.app.trust import Trust
from callwright.cli.main import DONE
from callwright.cli.render.calls import one_line, tell
from callwright.core.errors import UsageError
from callwright.mcp.config_edit import put_entry, remove_entry
from callwright.mcp.pinned_tools import PinnedToolsFile

_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Declared:
    """One entry, and where it is written."""

    name: str
    scope: str
    file: Path
    entry: Mapping[str, Any]

    @property
    def target(self) -> str:
        """What is started or reached, in one line."""
        remote = self.entry.get("type", "http" if "url" in self.entry else "stdio") != "stdio"
        words = (self.entry.get("url", ""),) if remote else (self.entry.get("command", ""), *self.entry.get("args", ()))
        return one_line(" ".join(map(str, words)), _LONGEST_SHOWN)

    @property
    def place(self) -> str:
        return f"{self.file} ({self.scope})"


def declared(locations: Locations) -> list[Declared]:
    """Every entry there is, in the order they are heard: the last one of a name counts."""
    layers = [read_layer("user", locations.user_settings), *repository_layers(locations)]
    return [
        Declared(name, layer.scope, Path(layer.source), entry)
        for layer in layers
        if layer is not None
        for name, entry in layer.section("mcpServers").items()
    ]


def add(options: argparse.Namespace) -> int:
    """Write a server into the file of its scope and say what comes next."""
    locations = Locations.of()
    name, entry = options.name, _entry(options)
    file = _file(locations, options.scope)
    trust = Trust(locations)
    trusted = trust.given  # before we write: what is added now is asked for by whoever typed it
    locations.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for problem in put_entry(file, name, entry, replace=options.force):
        tell(f"warning: {problem}")
    if trusted and options.scope != "user":
        trust.give()
    made = Declared(name, options.scope, file, entry)
    print(f"added {name} to {made.place}: {made.target}")
    _warn(made, declared(locations))
    if trusted or options.scope == "user":
        print(f"next: callwright mcp test {name}")
    else:
        print("this folder is not trusted yet, so its servers are not started")
        print("next: callwright trust, to see all it asks for, then callwright trust give")
    return DONE


def _entry(options: argparse.Namespace) -> dict[str, Any]:
    """What the file is to say: a command with its arguments, or an address."""
    words: Sequence[str] = options.target
    remote = options.transport == "http" or (options.transport is None and words[0].startswith(("http://", "https://")))
    if remote and len(words) > 1:
        raise UsageError(f"an address takes no arguments, but {' '.join(words[1:])!r} came after it")
    if remote and options.env:
        raise UsageError("-e sets variables of a command that is started; an address has none: use --header")
    if not remote and options.header:
        raise UsageError("--header goes with an address; a command is given variables with -e KEY=VALUE")
    if remote:
        headers = dict(_pair(text, ":", "--header 'Name: value'") for text in options.header)
        return {"type": "http", "url": words[0], **({"headers": headers} if headers else {})}
    env = dict(_pair(text, "=", "-e KEY=VALUE") for text in options.env)
    return {"command": words[0], "args": list(words[1:]), **({"env": env} if env else {})}


def _pair(text: str, sign: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"{text!r} is not of the form {form}")
    return name.strip(), value.strip() if sign == ":" else value


def _file(locations: Locations, scope: str) -> Path:
    files = {"user": locations.user_settings, "project": locations.project_servers, "local": locations.local_settings}
    return _checked(locations, scope, files[scope])


def _checked(locations: Locations, scope: str, file: Path) -> Path:
    """A repository must not be able to have another file written by naming it with a link."""
    real = Path(os.path.realpath(file))
    if scope != "user" and not real.is_relative_to(locations.project):
        raise UsageError(f"{file} leads out of the project, to {real}; nothing was written")
    return file


def _warn(made: Declared, all_of_them: Sequence[Declared]) -> None:
    named = [other for other in all_of_them if other.name == made.name]
    if named[-1].file != made.file:
        tell(f"warning: the entry in {named[-1].place} counts before this one")
    elif len(named) > 1:
        tell(f"warning: it now counts before the entry in {named[-2].place}")
    secrets = [*made.entry.get("env", {}).items(), *made.entry.get("headers", {}).items()]
    plain = [key for key, value in secrets if "${" not in value]
    if plain and made.scope == "project":
        tell(f"warning: {made.file} is shared with others; for a secret write {plain[0]}='${{NAME}}' and set NAME")


def remove(options: argparse.Namespace) -> int:
    """Take a server out of the file that names it."""
    locations = Locations.of()
    entries = declared(locations)
    found = [entry for entry in entries if entry.name == options.name and options.scope in (None, entry.scope)]
    if not found:
        raise UsageError(unknown(options.name, entries, options.scope))
    if len({entry.scope for entry in found}) > 1:
        places_named = " and ".join(entry.place for entry in found)
        raise UsageError(f"{options.name} stands in {places_named}; choose with --scope")
    chosen, trust = found[-1], Trust(locations)
    trusted = trust.given
    remove_entry(_checked(locations, chosen.scope, chosen.file), options.name)
    if trusted and chosen.scope != "user":
        trust.give()
    print(f"removed {options.name} from {chosen.place}")
    left = [entry for entry in declared(locations) if entry.name == options.name]
    if left:
        print(f"the entry in {left[-1].place} counts now")
    else:
        PinnedToolsFile(locations.seen_tools).forget(options.name)
    return DONE


def unknown(name: str, entries: Sequence[Declared], scope: str | None = None) -> str:
    """What to say of a name nobody declared."""
    names = list(dict.fromkeys(entry.name for entry in entries))
    near = get_close_matches(name, names, n=1)
    known = f"there are {', '.join(names)}" if names else "callwright mcp add adds one"
    hint = f"did you mean {near[0]}?" if near else known
    return f"there is no MCP server {name!r}{f' of scope {scope}' if scope else ''}; {hint}"
