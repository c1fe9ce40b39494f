"""Server configuration: `ServerConfig`, reading it from `.mcp.json` files, and the names of servers and their tools.

Tools are named `mcp__server__tool`, in a way that no server can use the name of another server's tool. This file needs
no extra: `callwright doctor` and `callwright mcp list` work without one.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import FrozenDict, canonical, hash_text, read_object

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_UNEXPANDED = re.compile(r"\$\{[^}]*\}")
_KEYS = frozenset({"type", "command", "args", "env", "cwd", "url", "headers", "timeout", "headersHelper", "disabled"})
_LABELS = frozenset({"description", "name", "title", "comment", "_comment"})
"""Keys of an entry that only readers of the file look at."""
_REMOTE = frozenset({"http", "streamable-http", "streamableHttp"})
_LONGEST_TIMEOUT = 1e15
"""In milliseconds: a whole number may be too large for any calculation with seconds."""
_EMPTY: Mapping[str, str] = FrozenDict()
Relay: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Delivers a JSON-RPC message to a server and returns its answer; raises `CallwrightError` if there is none."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How one server is reached: a command to start, or a URL.

    Raises:
        UsageError: The entry has no name, not exactly one of command and url, or a limit of 0.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = _EMPTY
    """Added to the few variables a server inherits; no secrets are among those."""
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = _EMPTY
    headers_helper: str = ""
    """A bash line that prints more headers as a JSON object, run for every connection."""
    client_metadata_url: str = ""
    """URL of this program's OAuth metadata; without one it registers itself at servers that require a sign-in."""
    seconds: float = 60.0
    """Time limit of one call."""
    connect_seconds: float = 30.0
    """Time limit for starting, the handshake and listing the tools."""
    message_bytes: int = 16 * 1024 * 1024
    """A larger answer fails its call; a server that sends a larger message of another kind is disconnected."""
    trusted: bool = False
    """Whether the server's tool annotations (such as read-only) count, and changed tools are accepted."""
    repository: str = ""
    """The project whose files configure it; empty for a server of the user's, whose allow rules do not cover it."""
    shadows: str = ""
    """The user's own server whose name it takes or resembles."""
    relay: Relay | None = field(default=None, compare=False, repr=False)
    """Reaches a server inside the program that drives this one, which has neither command nor url."""

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable():
            raise UsageError(f"an MCP server needs a name of printable characters, got {self.name!r}")
        if [bool(self.command), bool(self.url), self.relay is not None].count(True) != 1:
            raise UsageError(f"MCP server {self.name!r} needs either a command or a url")
        if self.url and not re.match(r"https?://[^\s/?#]", self.url):
            raise UsageError(f"MCP server {self.name!r}: expected an http or https url, got {self.url!r}")
        if not (self.seconds > 0 and self.connect_seconds > 0 and self.message_bytes > 0):
            raise UsageError(f"MCP server {self.name!r}: time and size limits must be above 0")

    @property
    def pin_name(self) -> str:
        """The name its accepted definitions are kept under: a project's server never counts as the user's own."""
        return pin_name(self.name, self.repository)

    @property
    def digest(self) -> str:
        """Hash of what would be started or reached; a user's approval of the entry is valid for this hash only."""
        parts = [self.name, self.command, list(self.args), dict(self.env), self.cwd, self.url, dict(self.headers)]
        # without a helper the digest is the one of earlier versions, so that approvals stay valid
        helper = [self.headers_helper] if self.headers_helper else []
        return hash_text(canonical([*parts, *helper]))


def pin_name(name: str, repository: str = "") -> str:
    """Return the name that the accepted definitions of a server are kept under."""
    return f"{name}\n{repository}" if repository else name  # no server has a line break in its name


def token_path(folder: Path, url: str) -> Path:
    """Return the file of a server's sign-in, by URL: another server of the same name has another one."""
    return folder / f"{hash_text(url)[:32]}.json"


@dataclass(frozen=True, slots=True)
class LoadedServers:
    """The servers of some files, and the problems of entries that were left out or look wrong."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = ()


def load_servers(*paths: Path | str, trusted: Collection[str] = ()) -> LoadedServers:
    """Read `.mcp.json` files. An entry replaces one of the same name from an earlier file completely.

    Args:
        paths: The files, the most important one last.
        trusted: Names of servers to trust. Files cannot claim trust themselves: they may come with a repository.
    """
    servers: dict[str, ServerConfig] = {}
    problems: list[str] = []
    for path in map(Path, paths):
        try:
            data = json.loads(path.read_text("utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(f"{path}: {describe_exception(error)}")
            continue
        loaded = servers_of(data, trusted=trusted, written_in=str(path))
        servers |= {server.name: server for server in loaded.servers}
        problems += loaded.problems
    return LoadedServers(tuple(servers.values()), tuple(problems))


def servers_of(
    data: object,
    *,
    trusted: Collection[str] = (),
    written_in: str = "mcpServers",
    environment: Mapping[str, str] | None = None,
    relay: Callable[[str], Relay] | None = None,
) -> LoadedServers:
    """Read the content of a `.mcp.json`: `{"mcpServers": {"name": {"command": …} or {"url": …}}}`.

    Args:
        data: The parsed JSON.
        trusted: Names of servers to trust.
        written_in: The file, for messages.
        environment: Where `${NAME}` is looked up; the process environment by default.
        relay: Returns the way to a server of type `sdk`, by its name; without it, such entries are refused.
    """
    entries = read_object(data).get("mcpServers")
    if not isinstance(entries, dict):
        return LoadedServers((), (f"{written_in}: expected an object with mcpServers in it",))
    servers: list[ServerConfig] = []
    problems: list[str] = []
    for name, entry in cast("dict[str, object]", entries).items():
        reader = _EntryReader(name, entry, os.environ if environment is None else environment)
        try:
            if relay is not None and read_object(entry).get("type") == "sdk":
                # the driving program serves it itself, so what it says of its tools is its own word
                servers.append(ServerConfig(name, relay=relay(name), trusted=True))
                continue
            servers.append(reader.server(name, trusted=name in trusted))
        except UsageError as error:
            reader.problems.insert(0, str(error))
        problems += [f"{written_in}: {problem}" for problem in reader.problems]
    return LoadedServers(tuple(servers), tuple(problems))


class _EntryReader:
    """Reads one server's entry and expands its variables."""

    def __init__(self, place: str, entry: object, environment: Mapping[str, str]) -> None:
        self._place = place
        self._entry: Mapping[str, object] = read_object(entry)
        self._environment = environment
        self.problems: list[str] = []

    def server(self, name: str, *, trusted: bool) -> ServerConfig:
        kind = self._entry.get("type", "http" if "url" in self._entry else "stdio")
        if not isinstance(kind, str) or (kind != "stdio" and kind not in _REMOTE):
            raise UsageError(f"{name}: type {kind!r} is not supported; use stdio or http")
        remote = kind != "stdio"
        if self._entry.get("disabled") is True:
            raise UsageError(f"{name}: left out, it is disabled")
        if self._entry.get("command") and self._entry.get("url"):
            used, other = ("url", "command") if remote else ("command", "url")
            self.problems.append(
                f"{self._place}: it has a command and a url, and the {used} is used; remove the {other}"
            )
        unused = sorted(self._entry.keys() - _KEYS - _LABELS)
        if unused:
            self.problems.append(f"{self._place}: not used: {', '.join(unused)}")
        return ServerConfig(
            name,
            command="" if remote else self._text("command"),
            args=() if remote else tuple(self._strings("args")),
            env=_EMPTY if remote else self._table("env"),
            cwd="" if remote else self._text("cwd"),
            url=self._text("url") if remote else "",
            headers=self._table("headers") if remote else _EMPTY,
            headers_helper=self._text("headersHelper") if remote else "",
            trusted=trusted,
            **self._seconds(),
        )

    def _seconds(self) -> dict[str, Any]:
        """Read `timeout`, which is in milliseconds as in other programs."""
        given = self._entry.get("timeout")
        if given is None:
            return {}
        if not isinstance(given, (int, float)) or isinstance(given, bool) or given <= 0:
            self.problems.append(f"{self._place}: timeout must be a number of milliseconds above 0, not {given!r}")
            return {}
        return {"seconds": min(given, _LONGEST_TIMEOUT) / 1000}

    def _text(self, key: str) -> str:
        value = self._entry.get(key, "")
        if not isinstance(value, str):
            raise UsageError(f"{self._place}: {key} must be a string, not {value!r}")
        return self._fill_in(value)

    def _strings(self, key: str) -> Iterator[str]:
        value = self._entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            raise UsageError(f"{self._place}: {key} must be a list of strings")
        return (self._fill_in(item) for item in cast("list[str]", value))

    def _table(self, key: str) -> Mapping[str, str]:
        value = self._entry.get(key, {})
        if not isinstance(value, dict) or not all(
            isinstance(item, str) for item in cast("dict[str, object]", value).values()
        ):
            raise UsageError(f"{self._place}: {key} must be an object of strings")
        return FrozenDict({name: self._fill_in(text) for name, text in cast("dict[str, str]", value).items()})

    def _fill_in(self, text: str) -> str:
        filled = expand(
            text, self._environment, lambda name: self.problems.append(f"{self._place}: ${name} is not set")
        )
        for found in _UNEXPANDED.findall(_VARIABLE.sub("", text)):
            if found.startswith("${input:"):  # sent as it is, it would be taken for a key
                raise UsageError(f"{self._place}: {found} is asked for by an editor, not here; use ${{NAME}}")
            self.problems.append(f"{self._place}: {found} is not replaced; only ${{NAME}} and ${{NAME:-default}} are")
        return filled


def expand(text: str, environment: Mapping[str, str], unset: Callable[[str], None]) -> str:
    """Expand `${NAME}` and `${NAME:-default}`; `unset` is called for a name without a value, which stays unexpanded."""

    def value(found: re.Match[str]) -> str:
        name, default = found.group(1), found.group(2)
        given = environment.get(name)
        if default is not None:
            return given or default  # as in a shell, :- also replaces a value that is empty
        if given is None:
            unset(name)
            return found.group(0)
        return given

    return _VARIABLE.sub(value, text)


_SERVER_FORBIDDEN = re.compile(r"[^a-zA-Z0-9-]+")
_TOOL_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")
_HASHED = re.compile(r"(?:__|-)[0-9a-f]{7,}", re.IGNORECASE)
_LONGEST = 128
_HASH_CHARS = 7


def server_names(names: Iterable[str]) -> dict[str, str]:
    """Give every server a name without a double underscore or one at its start or end, so that its end is unambiguous.

    Otherwise the tool `c` of a server `a__b` and the tool `b__c` of a server `a` would be one.
    """
    return _make_unique({name: _SERVER_FORBIDDEN.sub("_", name).strip("_") for name in sorted(set(names))}, "")


def tool_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Give every tool of one server its full name; two that differ only in case get different names.

    `server` is a name from `server_names`.
    """
    return _make_unique({name: _TOOL_FORBIDDEN.sub("_", name) for name in sorted(set(names))}, f"mcp__{server}__")


def may_be_hashed(full: str) -> bool:
    """Whether a full name could have a hash at its end: then it may be given to another tool in a later listing."""
    return _HASHED.fullmatch(full, max(full.rfind("-"), full.rfind("__"), 0)) is not None


def _make_unique(cleaned: dict[str, str], prefix: str) -> dict[str, str]:
    """Add a hash to names that had to be changed or cut, or that differ from another in case only."""
    room = _LONGEST - len(prefix)
    plain = Counter(name.casefold() for name, clean in cleaned.items() if clean == name and 0 < len(clean) <= room)
    given = {name: prefix + name for name in cleaned if plain[name.casefold()] == 1 and cleaned[name] == name}
    used = {full.casefold() for full in given.values()}
    for name, clean in cleaned.items():
        if name not in given:
            given[name] = next(full for full in _candidate_names(prefix, clean, name) if full.casefold() not in used)
            used.add(given[name].casefold())
    return given


def _candidate_names(prefix: str, clean: str, name: str) -> Iterator[str]:
    """Yield the name with ever longer hashes, in case a shorter one is taken."""
    digest = hash_text(name)
    for chars in range(_HASH_CHARS, len(digest)):
        room = _LONGEST - len(prefix) - chars - 1
        yield f"{prefix}{clean[:room]}-{digest[:chars]}" if clean else prefix + digest[:chars]
