"""`callwright serve`: an MCP server that offers the tools of the agent, with the same permissions."""

import argparse
import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.app.app import App
from callwright.app.mcp_servers import describe_replacement, load_servers, prepare_servers
from callwright.cli.commands.call import app_without_model
from callwright.cli.parsing import Parser
from callwright.cli.render.text import print_notice
from callwright.cli.startup import end_on_signal
from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry import Catalog, filtered

if TYPE_CHECKING:
    from callwright.mcp import McpServers
    from callwright.serve import Gateway, HttpOptions

_TOKEN = "CALLWRIGHT_TOKEN"
_NOT_SERVED = frozenset({"plan", "agent"})
"""Groups of tools: a client must not change the mode for the others, and sub-agents need a model, which is not here."""
_DESCRIPTION = """\
Serves the tools of this folder to MCP clients: the coding tools, the tools of every configured MCP server, and the
skills, as prompts and as the tool `skill`. Settings, rules, hooks and trust apply as they do to the agent: requests of
a folder are granted only after you trust it. Calls that need approval are shown to the user of the client by
elicitation; a client without elicitation gets a denial with the reason."""
_EPILOG = """\
exit codes: 0 the client disconnected, 2 usage error

examples:
  callwright serve                                          over standard input and output
  callwright serve --config servers.json --only 'mcp__*'    tools of other servers only
  callwright serve --http 8808 --mode dontAsk --allow 'mcp__time' --deny Bash

in a client's .mcp.json:
  {"mcpServers": {"tools": {"command": "callwright", "args": ["serve", "--workspace", "/home/me/project"]}}}
"""


def run(arguments: Sequence[str]) -> int:
    """Serve until the client disconnects or the process is terminated."""
    options = _parser().parse_args(arguments)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser("callwright serve", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("--http", metavar="[HOST:]PORT", help="serve over HTTP instead of standard input and output")
    add("--no-token", action="store_true", help=f"accept every program of this machine, without ${_TOKEN}")
    add("--origin", action="append", default=[], metavar="URL", help="a web origin that may call; repeatable")
    add("--workspace", type=Path, metavar="DIR", help="the folder to serve; default: the working folder")
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="offer only these tools or groups, such as mcp__time__*",
    )
    add(
        "--config",
        "--mcp-config",
        dest="mcp_config",
        action="append",
        default=[],
        metavar="FILE|JSON",
        help="more servers",
    )
    add(
        "--believe",
        action="append",
        default=[],
        metavar="SERVER",
        help="trust the effects this server claims for its tools",
    )
    add("--mode", "--permission-mode", dest="permission_mode", default="", help="plan, default, auto, dontAsk, bypass")
    add("--allow", "--allowedTools", dest="allow", action="append", default=[], metavar="RULE")
    add("--ask", action="append", default=[], metavar="RULE")
    add("--deny", "--disallowedTools", dest="deny", action="append", default=[], metavar="RULE")
    add("--settings", action="append", default=[], metavar="FILE|JSON", help="more settings")
    add("--add-dir", action="append", default=[], metavar="DIR", help="an additional folder of the workspace")
    add("--trust", action="store_true", help="trust the files of this folder for this run")
    add(
        "--budget",
        type=int,
        default=20_000,
        metavar="TOKENS",
        help="limit for tool definitions; clients find the other tools by search",
    )
    add("--pin", action="append", default=[], metavar="TOOL", help="always list this tool")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    from callwright.serve import Gateway, ListingOptions, serve_stdio

    http = _http(options)
    app = _app(options)
    end_on_signal()
    async with app:
        served = _ServedTools(app, options.only)
        for problem in [*app.problems, *served.find_unknown(options.pin)]:
            print_notice(f"warning: {problem}")
        skills = app.skills if served.keeps_name("skill") else None
        listing = ListingOptions(options.budget, tuple(options.pin))
        # raised by SIGTERM, which is an ordinary end
        with suppress(asyncio.CancelledError):
            gateway = Gateway(served, app.executor, listing=listing, skills=skills)
            await (serve_stdio(gateway) if http is None else _serve_http(gateway, http, options))


def _app(options: argparse.Namespace) -> App:
    if options.workspace is not None and not options.workspace.is_dir():
        raise UsageError(f"--workspace {options.workspace}: not a folder")
    app = app_without_model(options, options.workspace)
    app.connect = lambda app: _servers(app, options)
    return app


def _servers(app: App, options: argparse.Namespace) -> "McpServers":
    configs = load_servers(app.settings, options.mcp_config, app.problems, app.locations)
    unknown = set(options.believe) - {config.name for config in configs}
    if unknown:
        raise UsageError(f"--believe {sorted(unknown)[0]}: no such server; callwright mcp list shows them")
    for config in configs:
        if config.name in options.believe and config.shadows:
            raise UsageError(f"--believe {config.name}: {describe_replacement(config)}")
    configs = [replace(config, trusted=config.name in options.believe) for config in configs]
    return prepare_servers(app.registry, configs, app.locations)


class _ServedTools:
    """The tools offered to clients: a live view of the registry of an app."""

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
        """Call `observe` when the tools change."""
        return self._registry.subscribe(observe)

    def keeps_name(self, name: str, group: str = "") -> bool:
        """Return whether `--only` selects a tool of this name and group."""
        return not self._only or any(fnmatchcase(name, pattern) or group == pattern for pattern in self._only)

    def find_unknown(self, pinned: Sequence[str]) -> Iterator[str]:
        """Yield what to say about each name of `--only` and `--pin` that no tool or group has."""
        catalog = self._registry.snapshot()
        known = {"skill", *catalog.tools, *(each.spec.group for each in catalog)}
        for option, names in (("--only", self._only), ("--pin", pinned)):
            for name in names:
                # tools of servers come later, and a pattern may be about those
                if name in known or name.startswith("mcp") or any(sign in name for sign in "*?["):
                    continue
                near = catalog.nearest(name, 1)
                advice = f"did you mean {near[0]}?" if near else "callwright tools lists the tools"
                yield f"{option} {name}: there is no such tool or group; {advice}"

    def _keeps(self, spec: ToolSpec) -> bool:
        if spec.group in _NOT_SERVED or spec.name not in self._permitted.snapshot():
            return False  # a rule that denies a whole tool removes it from the list
        return self.keeps_name(spec.name, spec.group)


def _http(options: argparse.Namespace) -> "HttpOptions | None":
    if options.http is None:
        return None
    from callwright.serve import HttpOptions

    host, _, port = options.http.rpartition(":")
    if not port.isdecimal():
        raise UsageError(f"--http: expected PORT or HOST:PORT, such as 8808 or 127.0.0.1:8808, got {options.http!r}")
    # a random token by default: any web page can reach a port of this machine
    token = "" if options.no_token else os.environ.get(_TOKEN) or secrets.token_urlsafe(32)
    return HttpOptions(host.strip("[]") or "127.0.0.1", int(port), token, tuple(options.origin))


async def _serve_http(gateway: "Gateway", http: "HttpOptions", options: argparse.Namespace) -> None:
    from callwright.serve.http import listen, wait_until_served

    async with listen(gateway, http) as (url, serving):
        print_notice(f"serving on {url}")  # only now: port 0 stands for a free one
        if not options.no_token and not os.environ.get(_TOKEN):
            print_notice(f"token for clients (set ${_TOKEN} to choose it): {http.token}")
        await wait_until_served(serving)
