"""`callwright serve`: a gateway. What the agent has here, for any MCP client, behind the same permissions."""

import argparse
import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.app.app import App
from callwright.app.mcp_servers import load_servers, prepare_servers
from callwright.cli.commands.call import app_without_model
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import tell
from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry import Catalog, filtered

if TYPE_CHECKING:
    from callwright.mcp import McpServers
    from callwright.serve import HttpOptions

_TOKEN = "CALLWRIGHT_TOKEN"
_PLANNING = "plan"
"""The group of tools that switch the mode, which no client may do for all others."""
_DESCRIPTION = """\
Serves the tools of this folder to an MCP client: the coding tools, the tools of every MCP server that is configured,
and the skills, which are prompts and the tool `skill`. Settings, rules, hooks and trust count as they do for the agent:
what a folder's files ask for is not given before you trust it. What needs approval is put to the client's person; a
client that cannot ask gets a denial that says so."""
_EPILOG = """\
exit codes: 0 the client went, 2 usage

examples:
  callwright serve                                          over standard input and output
  callwright serve --config servers.json --only 'mcp__*'    other servers' tools, and none of ours
  callwright serve --http 8808 --mode dontAsk --allow 'mcp__time' --deny Bash

in a client's .mcp.json:
  {"mcpServers": {"tools": {"command": "callwright", "args": ["serve", "--workspace", "/home/me/project"]}}}
"""


def run(arguments: Sequence[str]) -> int:
    """Serve until the client goes or the process is told to end."""
    options = _parser().parse_args(arguments)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser("callwright serve", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("--http", metavar="[HOST:]PORT", help="over HTTP instead of standard input and output")
    add("--no-token", action="store_true", help=f"let every program of this machine in without ${_TOKEN}")
    add("--origin", action="append", default=[], metavar="URL", help="a web page that may call")
    add("--workspace", type=Path, metavar="DIR", help="the folder it is about; by default the working folder")
    add("--only", action="append", default=[], metavar="NAME", help="offer these alone: tools, groups or mcp__time__*")
    add("--config", "--mcp-config", dest="mcp_config", action="append", default=[], metavar="FILE|JSON", help="servers")
    add("--believe", action="append", default=[], metavar="SERVER", help="take its tools to do what it says they do")
    add("--mode", "--permission-mode", dest="permission_mode", default="", help="plan, default, auto, dontAsk, bypass")
    add("--allow", "--allowedTools", dest="allow", action="append", default=[], metavar="RULE")
    add("--ask", action="append", default=[], metavar="RULE")
    add("--deny", "--disallowedTools", dest="deny", action="append", default=[], metavar="RULE")
    add("--settings", action="append", default=[], metavar="FILE|JSON", help="more of them")
    add("--add-dir", action="append", default=[], metavar="DIR", help="a further folder that may be worked in")
    add("--trust", action="store_true", help="trust this folder's files for this run")
    add("--budget", type=int, default=20_000, metavar="TOKENS", help="of definitions; what is above is searched for")
    add("--pin", action="append", default=[], metavar="TOOL", help="always in the list")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    from callwright.serve import ListingOptions, serve

    http = _http(options)
    app = _app(options)
    _end_on_signal()
    async with app:
        for problem in app.problems:
            tell(f"warning: {problem}")
        offered = _Offered(app, options.only)
        skills = app.skills if offered.keeps_name("skill") else None
        listing = ListingOptions(options.budget, tuple(options.pin))
        with suppress(asyncio.CancelledError):
            await serve(offered, app.executor, http=http, listing=listing, skills=skills)


def _app(options: argparse.Namespace) -> App:
    if options.workspace is not None and not options.workspace.is_dir():
        raise UsageError(f"--workspace {options.workspace} is not a folder")
    app = app_without_model(options, options.workspace)
    app.connect = lambda app: _servers(app, options)
    return app


def _servers(app: App, options: argparse.Namespace) -> "McpServers":
    configs = load_servers(app.settings, options.mcp_config, app.problems)
    strangers = set(options.believe) - {config.name for config in configs}
    if strangers:
        raise UsageError(f"--believe {sorted(strangers)[0]}: there is no such server; callwright mcp list")
    told = [replace(config, trusted=config.name in options.believe) for config in configs]
    return prepare_servers(app.registry, told, app.locations)


class _Offered:
    """What of an app's tools clients are offered; as alive as its registry."""

    def __init__(self, app: App, only: Sequence[str]) -> None:
        self._registry = app.registry
        self._permitted = app.agent.registry
        self._only = only
        self._view = filtered(app.registry, self._keeps)

    @property
    def changes(self) -> int:
        return self._registry.changes

    def snapshot(self) -> Catalog:
        return self._view.snapshot()

    def subscribe(self, observe: Callable[[object], None]) -> object:
        """Hear of changes."""
        return self._registry.subscribe(observe)

    def keeps_name(self, name: str, group: str = "") -> bool:
        """Whether a tool of this name and group is wanted."""
        return not self._only or any(fnmatchcase(name, wish) or group == wish for wish in self._only)

    def _keeps(self, spec: ToolSpec) -> bool:
        if spec.group == _PLANNING or spec.name not in self._permitted.snapshot():
            return False  # a rule that forbids a tool whole takes it out of the list
        return self.keeps_name(spec.name, spec.group)


def _http(options: argparse.Namespace) -> "HttpOptions | None":
    if options.http is None:
        return None
    from callwright.serve import HttpOptions

    host, _, port = options.http.rpartition(":")
    if not port.isdecimal():
        raise UsageError(f"--http takes a port, or a host and a port, not {options.http!r}")
    token = "" if options.no_token else os.environ.get(_TOKEN) or secrets.token_urlsafe(32)
    http = HttpOptions(host.strip("[]") or "127.0.0.1", int(port), token, tuple(options.origin))
    tell(f"serving on http://{host or '127.0.0.1'}:{port}{http.path}")
    if not options.no_token and not os.environ.get(_TOKEN):
        tell(f"token for clients (set ${_TOKEN} to choose it): {http.token}")
    return http


def _end_on_signal() -> None:
    """End in order when told to: servers that we started are ended with us."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
