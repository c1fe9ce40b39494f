"""`callwright mcp add`, `add-json`, `remove` and `logout`: edits the files that configure MCP servers."""

import argparse
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from callwright.app.locations import Locations
from callwright.app.mcp_servers import ServerEntry, find_entries
from callwright.app.settings_file import parse_layer, read_json
from callwright.app.trust import Trust
from callwright.cli.main import DONE
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import print_notice, print_text
from callwright.cli.startup import settings_for
from callwright.core.errors import UsageError
from callwright.core.json import compact, thaw
from callwright.hooks.builtin import Redact
from callwright.mcp.config import pin_name, servers_of, token_path
from callwright.mcp.config_edit import put_entry, remove_entry
from callwright.mcp.pinned_tools import PinnedToolsFile
from callwright.system.private_files import make_private

_LONGEST_SHOWN = 100


def add(options: argparse.Namespace) -> int:
    """Add a server to the file of its scope and print the next step."""
    locations = Locations.of()
    name, entry = options.name, _read_entry(options.entry) if hasattr(options, "entry") else _entry(options)
    # a file with an entry that does not match the schema could be neither read nor edited afterwards
    parse_layer("user", "the entry", compact({"mcpServers": {name: entry}}))
    file = _file(locations, options.scope)
    trust = Trust(locations)
    before = trust.review()  # read before writing: the user who adds the entry agrees to it
    trusted = trust.covers(before)
    make_private(locations.home)
    for problem in put_entry(file, name, entry, replace=options.force):
        print_notice(f"warning: {problem}")
    make_private(locations.home)  # the file may be new
    # the user's own change must not cost the trust of the folder
    own = (f"MCP server {name}: ", f"MCP server {name} (")  # not the prefix of another server's name
    if trusted and options.scope != "user":
        trusted = trust.keep(before, added=lambda request: request.startswith(own))
    entry_added = ServerEntry(name, options.scope, file, entry)
    print_text(f"added {name} to {entry_added.place}: {show_target(entry_added)}")
    _warn(entry_added, find_entries(locations))
    if trusted or options.scope == "user":
        print_text(f"next: callwright mcp test {name}")
    else:
        print_text("this folder is not trusted, so its servers are not started")
        print_text("next: callwright trust, to see what it requests, then callwright trust give")
    return DONE


def _entry(options: argparse.Namespace) -> dict[str, Any]:
    """Return the entry for the file: a command with its arguments, or a URL."""
    words: Sequence[str] = options.target
    remote = options.transport == "http" or (options.transport is None and "://" in words[0])
    if remote and len(words) > 1:
        raise UsageError(f"a URL takes no arguments, got {' '.join(words[1:])!r}")
    if remote and options.env:
        raise UsageError("-e is for a command; for a URL use --header")
    if not remote and options.header:
        raise UsageError("--header is for a URL; for a command use -e KEY=VALUE")
    if remote:
        headers = dict(_pair(text, ":", "--header 'Name: value'") for text in options.header)
        return {"type": "http", "url": words[0], **({"headers": headers} if headers else {})}
    env = dict(_pair(text, "=", "-e KEY=VALUE") for text in options.env)
    return {"command": words[0], "args": list(words[1:]), **({"env": env} if env else {})}


def _read_entry(text: str) -> dict[str, Any]:
    entry = read_json("the entry", text)
    if not isinstance(entry, dict) or "mcpServers" in entry:
        raise UsageError('expected the entry of one server, such as {"command": "npx", "args": ["-y", "db-server"]}')
    return cast("dict[str, Any]", entry)


def _pair(text: str, sign: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"expected {form}, got {text!r}")
    return name.strip(), value.strip() if sign == ":" else value


def _file(locations: Locations, scope: str) -> Path:
    files = {"user": locations.user_settings, "project": locations.project_servers, "local": locations.local_settings}
    return _require_inside_project(locations, scope, files[scope])


def _require_inside_project(locations: Locations, scope: str, file: Path) -> Path:
    """Reject a file that leads out of the project: a repository could redirect the write with a link."""
    real = Path(os.path.realpath(file))
    if scope != "user" and not real.is_relative_to(locations.project):
        raise UsageError(f"{file} leads out of the project, to {real}; the file was not changed")
    return file


def _warn(added: ServerEntry, entries: Sequence[ServerEntry]) -> None:
    named = [other for other in entries if other.name == added.name]
    if named[-1].file != added.file:
        print_notice(f"warning: the entry in {named[-1].place} overrides this one")
    elif len(named) > 1:
        print_notice(f"warning: this entry overrides the one in {named[-2].place}")
    secrets = [*added.entry.get("env", {}).items(), *added.entry.get("headers", {}).items()]
    plain = [key for key, value in secrets if "${" not in str(value)]
    if plain and added.scope == "project":
        advice = f"to keep a secret out of it, write {plain[0]}='${{NAME}}' and set NAME"
        print_notice(f"warning: {added.file} is shared with others; {advice}")


def remove(options: argparse.Namespace) -> int:
    """Remove a server from its file."""
    locations = Locations.of()
    entries = find_entries(locations)
    found = [entry for entry in entries if entry.name == options.name and options.scope in (None, entry.scope)]
    if not found:
        raise UsageError(describe_unknown_server(options.name, entries, options.scope))
    if len({entry.scope for entry in found}) > 1:
        files = " and ".join(entry.place for entry in found)
        raise UsageError(f"{options.name} is in {files}; choose one with --scope")
    chosen, trust = found[-1], Trust(locations)
    before = trust.review()
    remove_entry(_require_inside_project(locations, chosen.scope, chosen.file), options.name)
    if chosen.scope != "user":
        trust.keep(before)
    print_text(f"removed {options.name} from {chosen.place}")
    remaining = [entry for entry in find_entries(locations) if entry.name == options.name]
    if remaining:
        print_text(f"the entry in {remaining[-1].place} is used now")
    if not any(entry.in_repository is chosen.in_repository for entry in remaining):
        PinnedToolsFile(locations.pinned_tools).forget(
            pin_name(options.name, str(locations.project) if chosen.in_repository else "")
        )
    return DONE


def logout(options: argparse.Namespace) -> int:
    """Remove what is stored of the sign-in to a server."""
    locations = Locations.of()
    entries = find_entries(locations)
    found = [entry for entry in entries if entry.name == options.name]
    if not found:
        raise UsageError(describe_unknown_server(options.name, entries))
    settings_for(options, locations)
    try:
        token_path(locations.tokens, _url(found[-1])).unlink()
    except FileNotFoundError:
        print_text(f"no sign-in to {options.name} is stored")
        return DONE
    print_text(f"signed out of {options.name}; sign in again with: callwright mcp login {options.name}")
    return DONE


def _url(entry: ServerEntry) -> str:
    """Return the URL of an entry with its variables filled in; empty for a command."""
    loaded = servers_of({"mcpServers": {entry.name: thaw(entry.entry)}})
    return next((server.url for server in loaded.servers), "")


def show_target(entry: ServerEntry) -> str:
    """Return the command or URL of an entry, without passwords and cut to fit one line."""
    return one_line(Redact().clean(entry.target), _LONGEST_SHOWN)


def describe_unknown_server(name: str, entries: Sequence[ServerEntry], scope: str | None = None) -> str:
    """Return the message for an unknown server name."""
    names = list(dict.fromkeys(entry.name for entry in entries))
    near = get_close_matches(name, names, n=1)
    known = f"known servers: {', '.join(names)}" if names else "add one with callwright mcp add"
    hint = f"did you mean {near[0]}?" if near else known
    return f"no MCP server {name!r}{f' in scope {scope}' if scope else ''}; {hint}"
