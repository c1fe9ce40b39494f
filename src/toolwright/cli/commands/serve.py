"""`toolwright serve`: a gateway. Our tools and other servers' tools for any MCP client, behind our permissions."""

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolwright.core.errors import UsageError
from toolwright.executor.executor import Executor
from toolwright.policy import ByMode, Policies, load_rules, rules_of, standard_policies
from toolwright.registry import Registry
from toolwright.system.paths import Workspace
from toolwright.tool.base import Tool

if TYPE_CHECKING:
    from toolwright.serve import HttpOptions

FAILED = 2
_TOKEN = "TOOLWRIGHT_TOKEN"


def run(arguments: Sequence[str]) -> int:
    """Serve until the client goes or the process is told to end. Exit code 2 for a mistake in the arguments."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_serve(options))
    except UsageError as error:
        print(f"toolwright serve: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolwright serve", description=__doc__)
    parser.add_argument("--config", action="append", default=[], type=Path, metavar="FILE", help="a .mcp.json to join")
    parser.add_argument("--trust", action="append", default=[], metavar="SERVER", help="believe what it says of itself")
    parser.add_argument("--http", metavar="[HOST:]PORT", help="serve over HTTP instead of standard input and output")
    parser.add_argument(
        "--no-token", action="store_true", help=f"let every program of this machine in without ${_TOKEN}"
    )
    parser.add_argument("--origin", action="append", default=[], metavar="URL", help="a web page that may call")
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="offer the coding tools, for this folder")
    parser.add_argument("--mode", default="default", help="plan, default, auto, dontAsk or bypass")
    for kind in ("allow", "ask", "deny"):
        parser.add_argument(f"--{kind}", action="append", default=[], metavar="RULE")
    parser.add_argument(
        "--rules", action="append", default=[], type=Path, metavar="FILE", help="settings files to read"
    )
    parser.add_argument("--budget", type=int, default=20_000, metavar="TOKENS", help="shown before tools are hidden")
    parser.add_argument("--pin", action="append", default=[], metavar="TOOL", help="always in the list")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    from toolwright.mcp import McpServers, load_servers
    from toolwright.serve import Shown, serve

    loaded = load_servers(*options.config, trusted=options.trust)
    for problem in loaded.problems:
        print(f"warning: {problem}", file=sys.stderr)
    registry = Registry(*_coding_tools(options))
    executor = Executor(registry, _policies(options))
    _end_on_signal()
    async with McpServers(loaded.servers, registry) as servers:
        for status in servers.status():
            if status.condition != "ready":
                print(f"warning: {status.name} is not ready: {status.reason or status.sign_in_url}", file=sys.stderr)
        with suppress(asyncio.CancelledError):
            await serve(registry, executor, http=_http(options), shown=Shown(options.budget, tuple(options.pin)))


def _coding_tools(options: argparse.Namespace) -> list[Tool]:
    if options.workspace is None:
        return []
    from toolwright.toolbox import coding_tools

    return list(coding_tools(Workspace(options.workspace)))


def _policies(options: argparse.Namespace) -> Policies:
    rules = load_rules(*options.rules)
    for problem in rules.problems:
        print(f"warning: {problem}", file=sys.stderr)
    given = rules_of(allow=options.allow, ask=options.ask, deny=options.deny, written_in="the command line")
    folder = (options.workspace or Path.cwd()).absolute()
    workspace = Workspace(folder, outside="ask")
    return standard_policies(workspace, by_mode=ByMode(options.mode), rules=(*rules.rules, *given), cwd=folder)


def _http(options: argparse.Namespace) -> "HttpOptions | None":
    if options.http is None:
        return None
    from toolwright.serve import HttpOptions

    host, _, port = options.http.rpartition(":")
    if not port.isdecimal():
        raise UsageError(f"--http takes a port, or a host and a port, not {options.http!r}")
    token = "" if options.no_token else os.environ.get(_TOKEN) or secrets.token_urlsafe(32)
    http = HttpOptions(host.strip("[]") or "127.0.0.1", int(port), token, tuple(options.origin))
    print(f"serving on http://{host or '127.0.0.1'}:{port}{http.path}", file=sys.stderr)
    if not options.no_token and not os.environ.get(_TOKEN):
        print(f"token for clients (set ${_TOKEN} to choose it): {http.token}", file=sys.stderr)
    return http


def _end_on_signal() -> None:
    """End in order when told to: servers that we started are ended with us."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
