"""`toolwright mcp`: look at the servers of a `.mcp.json`, and call their tools from the command line."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolwright.core.call import Answers, Completed, Interrupted
from toolwright.core.errors import UsageError
from toolwright.executor.executor import Executor
from toolwright.registry import Registry

OK, NOT_READY, FAILED = 0, 1, 2


def run(arguments: Sequence[str]) -> int:
    """Carry out the subcommand. Exit code: 0 all well, 1 a server is not ready or a call failed, 2 a mistake."""
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_list(options) if options.action == "list" else _call(options))
    except UsageError as error:
        print(f"toolwright mcp: {error}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolwright mcp", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="connect to every server and say how it is doing")
    listing.add_argument("--json", action="store_true", help="print it as JSON")
    call = actions.add_parser("call", help="call one tool; you are the person who approves it")
    call.add_argument("tool", help="its full name, such as mcp__time__get_current_time")
    call.add_argument("arguments", nargs="?", default="{}", help="as JSON")
    for each in (listing, call):
        each.add_argument("--config", action="append", type=Path, metavar="FILE", help="by default .mcp.json")
    return parser


async def _list(options: argparse.Namespace) -> int:
    async with _servers(options, Registry()) as servers:
        statuses = servers.status()
    if options.json:
        print(json.dumps([_entry(status) for status in statuses], indent=2, ensure_ascii=False))
    else:
        for status in statuses:
            why = status.sign_in_url or status.reason
            print(f"{status.name}: {status.condition}{f' ({why})' if why else ''}")
            print("".join(f"  {name}\n" for name in status.tools), end="")
            print("".join(f"  problem: {problem}\n" for problem in status.problems), end="")
    return OK if all(status.condition == "ready" for status in statuses) else NOT_READY


def _entry(status: Any) -> dict[str, Any]:
    return {name: getattr(status, name) for name in status.__slots__}


async def _call(options: argparse.Namespace) -> int:
    registry = Registry()
    async with _servers(options, registry):
        executor = Executor(registry)
        outcome = await executor.run(options.tool, options.arguments)
        if isinstance(outcome, Interrupted):
            # whoever typed the call has approved it; a second run needs the same call, which only `execute` can repeat
            answers = Answers.approving(outcome.questions)
            [outcome] = await executor.execute((outcome.call,), answers=answers)
    if isinstance(outcome, Completed):
        print(outcome.text)
        return OK
    print(outcome.text if not isinstance(outcome, Interrupted) else "somebody has to sign in first", file=sys.stderr)
    return NOT_READY


def _servers(options: argparse.Namespace, registry: Registry) -> Any:
    from toolwright.mcp import McpServers, load_servers

    paths = options.config or [Path(".mcp.json")]
    loaded = load_servers(*paths)
    for problem in loaded.problems:
        print(f"warning: {problem}", file=sys.stderr)
    if not loaded.servers:
        raise UsageError(f"there are no servers in {', '.join(map(str, paths))}")
    return McpServers(loaded.servers, registry)
