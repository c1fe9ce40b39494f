"""`callwright mcp list` and `test`: connects to servers and prints their status."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from callwright.app.locations import Locations
from callwright.app.mcp_servers import (
    NOT_TRUSTED,
    CheckedServers,
    FoundServer,
    ServerEntry,
    find_entries,
    find_unused_servers,
)
from callwright.app.trust import Trust
from callwright.cli.commands.mcp_config import describe_unknown_server, show_target
from callwright.cli.main import DENIED, DONE, ERROR, PAUSED
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import print_json, print_notice, print_text, visible, visible_line
from callwright.cli.startup import settings_for
from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import canonical, hash_text
from callwright.registry import Registry
from callwright.tool.base import Tool

if TYPE_CHECKING:
    from callwright.mcp import ServerStatus

_LOG_LINES = 12
_LONGEST_NAMES = 300


def _code(seen: FoundServer) -> int:
    """Return the exit code for a server."""
    return {NOT_TRUSTED: DENIED, "ready": DONE, "signing in": PAUSED}.get(seen.condition, ERROR)


def list_servers(options: argparse.Namespace) -> int:
    """Connect to every server in parallel and print its status."""
    entries = _entries(options)
    if not options.config:
        _print_unused(entries)
    if not entries:
        print_text(
            "[]" if options.json else "No MCP servers configured. Add one with: callwright mcp add NAME -- COMMAND"
        )
        return DONE
    seen = asyncio.run(_check_servers(options, entries))
    if options.json:
        print_json([_fields(each) for each in seen], indent=2)
    else:
        width = max(len(visible(each.entry.name)) for each in seen)
        for each in seen:
            _print_line(each, width)
    # an error outweighs a missing sign-in or trust, whatever the numbers are
    return max((_code(each) for each in seen), key=lambda code: (code == ERROR, code))


def _print_unused(entries: Sequence[ServerEntry]) -> None:
    found = find_unused_servers(Locations.of(), [entry.name for entry in entries])
    if found is not None:
        file, names = found
        shown = one_line(", ".join(map(visible, names)), _LONGEST_NAMES)
        print_notice(f"servers of Claude Code in {file} are not used here: {shown}; callwright mcp add-json adds one")


async def _check_servers(options: argparse.Namespace, entries: Sequence[ServerEntry]) -> list[FoundServer]:
    async with _prepare(options, entries) as servers:
        return servers.list()


def try_server(options: argparse.Namespace) -> int:
    """Connect to one server; print its tools, or the reason why it fails."""
    entries = [entry for entry in _entries(options) if entry.name == options.name]
    if not entries:
        raise UsageError(describe_unknown_server(options.name, _entries(options)))
    return asyncio.run(_test_server(options, entries[-1]))


async def _test_server(options: argparse.Namespace, entry: ServerEntry) -> int:
    async with _prepare(options, [entry]) as servers:
        await _sign_in(servers, entry)
        status = servers.find(entry).status
        refused = options.accept is not None and status is not None and not _accept(options, servers, status)
        code = _report(options, servers.find(entry), servers.registry)
        return ERROR if refused and code == DONE else code


def _accept(options: argparse.Namespace, servers: CheckedServers, status: "ServerStatus") -> bool:
    """Accept the held tools if they are what the user was shown; return whether none is left."""
    if not status.held:
        print_notice(f"{status.name} has no changed tools to accept")
        return True
    if options.accept != _accept_digest(status):
        changed = "they have changed again since they were shown" if options.accept else "--accept needs their digest"
        print_notice(f"nothing is accepted: {changed}; review the tools of {status.name} below")
        return False
    for tool in status.held:
        if tool in _held_now(servers, status.name):  # list_resources and read_resource are accepted together
            servers.servers.accept(tool, status.digests[tool])
        if not options.json:
            print_text(f"  {tool} is accepted as it was shown")
    return True


def _held_now(servers: CheckedServers, name: str) -> tuple[str, ...]:
    return next((status.held for status in servers.servers.status() if status.name == name), ())


def _accept_digest(status: "ServerStatus") -> str:
    """Return what stands for everything that is shown of the held tools; empty if there are none."""
    return hash_text(canonical(dict(status.digests))) if status.held else ""


async def _sign_in(servers: CheckedServers, entry: ServerEntry) -> None:
    """In a terminal, wait until the user has signed in; the tokens are stored for later runs."""
    status = servers.find(entry).status
    if status is None or status.condition != "signing in" or not sys.stderr.isatty():
        return
    print_notice(f"{status.name} needs a sign-in; open {status.sign_in_url}")
    while servers.find(entry).condition == "signing in":  # noqa: ASYNC110 - the browser comes back to another task
        await asyncio.sleep(0.1)


def _entries(options: argparse.Namespace) -> list[ServerEntry]:
    """Return the entries in force, or those of the files given with `--config`."""
    if not options.config:
        found = find_entries(Locations.of())
        return list({entry.name: entry for entry in found}.values())
    entries: list[ServerEntry] = []
    for file in options.config:
        try:
            content = json.loads(file.read_text("utf-8-sig"))
            servers: dict[str, Any] = content["mcpServers"]
            entries += [ServerEntry(name, "given", file, entry) for name, entry in servers.items()]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"--config {file}: {describe_exception(error) or 'no mcpServers in it'}") from None
    return entries


def _prepare(options: argparse.Namespace, entries: Sequence[ServerEntry]) -> CheckedServers:
    locations = Locations.of()
    trusted = bool(options.trust) or Trust(locations).given
    settings_for(options, locations)  # sets the environment variables that ${NAME} refers to
    servers = CheckedServers(entries, locations, trusted=trusted, seconds=options.seconds)
    for problem in servers.problems:
        print_notice(f"warning: {problem}")
    return servers


def _print_line(each: FoundServer, width: int) -> None:
    entry, name = each.entry, visible(each.entry.name)
    print_text(f"{name:<{width}}  {each.condition:<11}  {entry.scope:<7}  {show_target(entry)}")
    status = each.status
    if entry.conflict:
        print_text(f"{'':<{width}}  {visible(entry.conflict)}")
    if status is None:
        print_text(f"{'':<{width}}  {each.problem}")
        return
    if status.condition == "ready":
        print_text(f"{'':<{width}}  {_count_tools(len(status.tools))} in {status.seconds:.2f} s, MCP {status.protocol}")
    for problem in (
        each.problem,
        *status.problems,
        *(f"changed since accepted: {name}" for name in status.held),
    ):
        if problem:
            print_text(f"{'':<{width}}  {visible(problem)}")


def _report(options: argparse.Namespace, seen: FoundServer, registry: Registry) -> int:
    status = seen.status
    tools = [registry[name] for name in status.tools] if status is not None else []
    if options.json:
        print_json({**_fields(seen), "tools": [_tool_fields(tool) for tool in tools]}, indent=2)
    elif status is None or _code(seen) != DONE:
        print_notice(f"{seen.entry.name} is {_readiness(seen)}: {seen.problem}")
        print_text(f"  {seen.entry.place}: {show_target(seen.entry)}", file=sys.stderr)
        _print_log(status)
    else:
        _print_ready(seen.entry, status, tools)
    return _code(seen)


def _readiness(seen: FoundServer) -> str:
    return seen.condition if _code(seen) == DENIED else "not ready"


def _print_log(status: "ServerStatus | None") -> None:
    lines = visible(status.log).splitlines()[-_LOG_LINES:] if status is not None else []
    if len(lines) > 1:  # a single line is already part of the reason
        print_text("  end of its log:", file=sys.stderr)
        print_text("".join(f"    {line}\n" for line in lines), end="", file=sys.stderr)


def _count_tools(tools: int) -> str:
    return f"{tools} tool{'' if tools == 1 else 's'}"


def _print_ready(entry: ServerEntry, status: "ServerStatus", tools: Sequence[Tool]) -> None:
    print_text(f"{entry.name}: ready in {status.seconds:.2f} s, {_count_tools(len(tools))}")
    print_text(f"  {visible(status.server) or 'unnamed server'}, MCP {status.protocol}")
    print_text(f"  {entry.place}: {show_target(entry)}")
    if entry.conflict:
        print_text(f"  {visible(entry.conflict)}")
    width = max((len(tool.spec.name) for tool in tools), default=0)
    for tool in tools:
        effect = tool.spec.annotations.effect.name.lower()
        claimed = _claimed_effect(tool)
        shown = effect if claimed in ("", effect) else f"{effect} (claims {claimed})"
        print_text(f"  {tool.spec.name:<{width}}  {shown:<22}  {one_line(tool.spec.description, 60)}".rstrip())
    for problem in status.problems:
        print_text(f"  problem: {visible(problem)}")
    for name in status.held:
        _print_review(status, name)
        print_text(f"  {name} changed since it was accepted and is denied")
    if status.held:
        print_text(
            f"  to accept them as they are shown here, repeat this command with --accept {_accept_digest(status)}"
        )


def _print_review(status: "ServerStatus", name: str) -> None:
    """Print all of a definition that has changed: what is cut off would be accepted unseen."""
    for line in status.review.get(name, ()):
        print_text(f"  {name} is now: {visible_line(line)}")


def _claimed_effect(tool: Tool) -> str:
    """Return the effect that the server claims for a tool."""
    claimed = getattr(tool, "claimed", None)
    return claimed.effect.name.lower() if claimed is not None else ""


def _tool_fields(tool: Tool) -> dict[str, str]:
    spec = tool.spec
    effect = spec.annotations.effect.name.lower()
    return {"name": spec.name, "effect": effect, "description": spec.description, "says": _claimed_effect(tool)}


def _fields(each: FoundServer) -> dict[str, Any]:
    entry, status = each.entry, each.status
    found: dict[str, Any] = {
        "name": entry.name,
        "scope": entry.scope,
        "file": str(entry.file),
        "target": show_target(entry),
    }
    found |= {"conflict": entry.conflict} if entry.conflict else {}
    if status is None:
        return {**found, "condition": each.condition, "reason": each.problem}
    fields = ("condition", "sign_in_url", "tools", "held", "review", "problems", "protocol", "server", "log")
    more = {name: getattr(status, name) for name in fields}
    more |= {"accept": _accept_digest(status)}
    return {**found, **more, "reason": each.problem, "seconds": round(status.seconds, 3)}
