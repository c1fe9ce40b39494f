"""Which servers there are: `.mcp.json` files and what their entries mean."""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, canonical

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_REMOTE = frozenset({"http", "streamable-http", "streamableHttp"})
_NOTHING: Mapping[str, str] = FrozenDict()


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How one server is reached: a command we start and talk to over its pipes, or an address."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = _NOTHING
    """Added to the few variables a server inherits; secrets of ours are not among those."""
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = _NOTHING
    client_metadata_url: str = ""
    """Where this program is described to servers that want somebody to sign in; without one it registers itself."""
    seconds: float = 60.0
    """How long one call may take."""
    connect_seconds: float = 30.0
    """How long the server has to start, introduce itself and list its tools."""
    message_bytes: int = 16 * 1024 * 1024
    """A server that says more than this in one breath is cut off."""
    trusted: bool = False
    """What the server says of its tools (that one only reads, say) is believed, and so are changes to them."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UsageError("an MCP server needs a name")
        if bool(self.command) == bool(self.url):
            raise UsageError(f"MCP server {self.name!r} needs either a command or a url")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise UsageError(f"MCP server {self.name!r}: {self.url!r} is not an http or https address")
        if not (self.seconds > 0 and self.connect_seconds > 0 and self.message_bytes > 0):
            raise UsageError(f"MCP server {self.name!r}: time and size limits must be above 0")

    @property
    def digest(self) -> str:
        """Names exactly what would be started or reached: a person's approval of the entry holds for this only."""
        said = [self.name, self.command, list(self.args), dict(self.env), self.cwd, self.url, dict(self.headers)]
        return sha256(canonical(said).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class LoadedServers:
    """The servers of some files, and what is wrong with the entries that were left out or doubtful."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = field(default=())


def load_servers(*paths: Path | str, trusted: Collection[str] = ()) -> LoadedServers:
    """Read `.mcp.json` files, later ones first: an entry replaces one of the same name from an earlier file as a whole.

    Trust is the caller's to give: a file that comes with a repository cannot claim it.
    """
    servers: dict[str, ServerConfig] = {}
    problems: list[str] = []
    for path in map(Path, paths):
        try:
            data = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {error}")
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
) -> LoadedServers:
    """Read what stands in a `.mcp.json`: `{"mcpServers": {"name": {"command": …} or {"url": …}}}`."""
    entries = cast("Mapping[str, object]", data).get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        return LoadedServers((), (f"{written_in}: expected an object with mcpServers in it",))
    servers: list[ServerConfig] = []
    problems: list[str] = []
    for name, entry in cast("dict[str, object]", entries).items():
        reader = _Entry(f"{written_in}: {name}", entry, os.environ if environment is None else environment)
        try:
            servers.append(reader.server(name, trusted=name in trusted))
        except UsageError as error:
            problems.append(f"{written_in}: {error}")
        problems += reader.problems
    return LoadedServers(tuple(servers), tuple(problems))


class _Entry:
    """One server's entry, read with its variables filled in."""

    def __init__(self, place: str, entry: object, environment: Mapping[str, str]) -> None:
        self._place = place
        self._entry = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        self._environment = environment
        self.problems: list[str] = []

    def server(self, name: str, *, trusted: bool) -> ServerConfig:
        kind = self._entry.get("type", "http" if "url" in self._entry else "stdio")
        if kind != "stdio" and kind not in _REMOTE:
            raise UsageError(f"{name}: type {kind!r} is not supported; there are stdio and http")
        remote = kind != "stdio"
        return ServerConfig(
            name,
            command="" if remote else self._text("command"),
            args=() if remote else tuple(self._words("args")),
            env=_NOTHING if remote else self._table("env"),
            cwd="" if remote else self._text("cwd"),
            url=self._text("url") if remote else "",
            headers=self._table("headers") if remote else _NOTHING,
            trusted=trusted,
            **self._times(),
        )

    def _times(self) -> dict[str, Any]:
        """`timeout` is in milliseconds, as other programs write it."""
        given = self._entry.get("timeout")
        if given is None:
            return {}
        if not isinstance(given, (int, float)) or isinstance(given, bool) or given <= 0:
            self.problems.append(f"{self._place}: timeout must be a number of milliseconds above 0, not {given!r}")
            return {}
        return {"seconds": given / 1000}

    def _text(self, key: str) -> str:
        value = self._entry.get(key, "")
        if not isinstance(value, str):
            raise UsageError(f"{self._place}: {key} must be text, not {value!r}")
        return self._filled(value)

    def _words(self, key: str) -> Iterator[str]:
        value = self._entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(word, str) for word in cast("list[object]", value)):
            raise UsageError(f"{self._place}: {key} must be a list of texts")
        return (self._filled(word) for word in cast("list[str]", value))

    def _table(self, key: str) -> Mapping[str, str]:
        value = self._entry.get(key, {})
        if not isinstance(value, dict) or not all(
            isinstance(item, str) for item in cast("dict[str, object]", value).values()
        ):
            raise UsageError(f"{self._place}: {key} must be an object of texts")
        return FrozenDict({name: self._filled(text) for name, text in cast("dict[str, str]", value).items()})

    def _filled(self, text: str) -> str:
        return expand(text, self._environment, lambda name: self.problems.append(f"{self._place}: ${name} is not set"))


def expand(text: str, environment: Mapping[str, str], unset: Callable[[str], None]) -> str:
    """Fill in `${NAME}` and `${NAME:-default}`; what has no value is told to `unset` and left as it stands."""

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
