"""`callwright mcp list` and `test`: connects to servers and prints their status."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from callwright.app.locations import Locations
from callwright.app.mcp_servers import mark_repository, prepare_servers
from callwright.app.settings import own_servers
from callwright.app.trust import Trust
from callwright.cli.commands.mcp_config import ServerEntry, describe_unknown_server, find_entries
from callwright.cli.main import DENIED, DONE, ERROR, PAUSED
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import print_json, print_notice, print_text, visible
from callwright.cli.startup import settings_for
from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import thaw
from callwright.core.spec import ToolSpec
from callwright.registry import Registry

if TYPE_CHECKING:
    from callwright.mcp import McpServers, ServerStatus

_NOT_TRUSTED = "not trusted"
_NEXT_TRUST = "callwright trust shows what this folder requests; callwright trust give grants it"
_LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One server and its status; the status is None if the folder is not trusted and no connection was tried."""

    entry: ServerEntry
    status: "ServerStatus | None"

    @property
    def condition(self) -> str:
        return _NOT_TRUSTED if self.status is None else self.status.condition

    @property
    def code(self) -> int:
        """The exit code for this server."""
        return {_NOT_TRUSTED: DENIED, "ready": DONE, "signing in": PAUSED}.get(self.condition, ERROR)


def list_servers(options: argparse.Namespace) -> int:
    """Connect to every server in parallel and print its status."""
    entries = _entries(options)
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
    return max((each.code for each in seen), key=lambda code: (code == ERROR, code))


async def _check_servers(options: argparse.Namespace, entries: Sequence[ServerEntry]) -> list[FoundServer]:
    async with _connect(options, entries, Registry()) as (servers, trusted):
        return [
            FoundServer(each, _status(servers, each.name) if _may_start(each, trusted) else None) for each in entries
        ]


def _status(servers: "McpServers", name: str) -> "ServerStatus":
    from callwright.mcp import ServerStatus

    unusable = ServerStatus(name, "closed", (), "its entry is not valid; see the warning above")
    return next((status for status in servers.status() if status.name == name), unusable)


def try_server(options: argparse.Namespace) -> int:
    """Connect to one server; print its tools, or the reason why it fails."""
    entries = [entry for entry in _entries(options) if entry.name == options.name]
    if not entries:
        raise UsageError(describe_unknown_server(options.name, _entries(options)))
    return asyncio.run(_test_server(options, entries[-1]))


async def _test_server(options: argparse.Namespace, entry: ServerEntry) -> int:
    registry = Registry()
    async with _connect(options, [entry], registry) as (servers, trusted):
        if not _may_start(entry, trusted):
            return _report(options, FoundServer(entry, None), registry)
        await _sign_in(servers, entry.name)
        if options.accept:
            for tool in _status(servers, entry.name).held:
                servers.accept(tool)
        return _report(options, FoundServer(entry, _status(servers, entry.name)), registry)


async def _sign_in(servers: "McpServers", name: str) -> None:
    """In a terminal, wait until the user has signed in; the tokens are stored for later runs."""
    status = _status(servers, name)
    if status.condition != "signing in" or not sys.stderr.isatty():
        return
    print_notice(f"{status.name} needs a sign-in; open {status.sign_in_url}")
    while _status(servers, name).condition == "signing in":  # noqa: ASYNC110 - the browser comes back to another task
        await asyncio.sleep(0.1)


def _entries(options: argparse.Namespace) -> list[ServerEntry]:
    """Return the entries in force, or those of the files given with `--config`."""
    if not options.config:
        found = find_entries(Locations.of())
        return list({entry.name: entry for entry in found}.values())
    entries: list[ServerEntry] = []
    for file in options.config:
        try:
            content = json.loads(file.read_text("utf-8"))
            servers: dict[str, Any] = content["mcpServers"]
            entries += [ServerEntry(name, "given", file, entry) for name, entry in servers.items()]
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(f"--config {file}: {describe_exception(error) or 'no mcpServers in it'}") from None
    return entries


def _may_start(entry: ServerEntry, trusted: bool) -> bool:
    """Nothing a repository names is started before its folder is trusted; a file named by hand is the user's word."""
    return trusted or entry.scope in ("user", "given")


@asynccontextmanager
async def _connect(
    options: argparse.Namespace, entries: Sequence[ServerEntry], registry: Registry
) -> "AsyncGenerator[tuple[McpServers, bool], None]":
    from callwright.mcp import servers_of

    locations = Locations.of()
    trusted = bool(options.trust) or Trust(locations).given
    settings_for(options, locations)  # sets the environment variables that ${NAME} refers to
    permitted = {entry.name: entry for entry in entries if _may_start(entry, trusted)}
    loaded = servers_of({"mcpServers": {name: thaw(entry.entry) for name, entry in permitted.items()}})
    for problem in loaded.problems:
        print_notice(f"warning: {problem}")
    theirs = [server for server in loaded.servers if permitted[server.name].in_repository]
    marked = {server.name: server for server in mark_repository(theirs, own_servers(locations), locations)}
    # the user is waiting, so the limit is the option's and not that of the entry
    configs = [replace(marked.get(server.name, server), connect_seconds=options.seconds) for server in loaded.servers]
    async with prepare_servers(registry, configs, locations) as servers:
        yield servers, trusted


def _print_line(each: FoundServer, width: int) -> None:
    entry, name = each.entry, visible(each.entry.name)
    print_text(f"{name:<{width}}  {each.condition:<11}  {entry.scope:<7}  {entry.target}")
    status = each.status
    if entry.conflict:
        print_text(f"{'':<{width}}  {visible(entry.conflict)}")
    if status is None:
        print_text(f"{'':<{width}}  {_NEXT_TRUST}")
        return
    if status.condition == "ready":
        print_text(f"{'':<{width}}  {_count_tools(len(status.tools))} in {status.seconds:.2f} s, MCP {status.protocol}")
    for problem in (
        _describe_problem(status),
        *status.problems,
        *(f"changed since accepted: {name}" for name in status.held),
    ):
        if problem:
            print_text(f"{'':<{width}}  {visible(problem)}")


def _describe_problem(status: "ServerStatus") -> str:
    """Return why a server is not ready, with the next step; empty if it is ready."""
    if status.condition == "ready":
        return ""
    if status.condition == "signing in":
        return f"sign-in needed: run callwright mcp test {status.name} in a terminal"
    return status.reason or "no reason given"


def _report(options: argparse.Namespace, seen: FoundServer, registry: Registry) -> int:
    status = seen.status
    tools = [registry[name] for name in status.tools] if status is not None else []
    if options.json:
        listed = [{**_tool_fields(tool.spec), "says": _claimed_effect(tool)} for tool in tools]
        print_json({**_fields(seen), "tools": listed}, indent=2)
    elif status is None or seen.code != DONE:
        why = _NEXT_TRUST if status is None else _describe_problem(status)
        print_notice(f"{seen.entry.name} is {_readiness(seen)}: {why}")
        print_text(f"  {seen.entry.place}: {seen.entry.target}", file=sys.stderr)
        _print_log(status)
    else:
        _print_ready(seen.entry, status, tools)
    return seen.code


def _readiness(seen: FoundServer) -> str:
    return seen.condition if seen.code == DENIED else "not ready"


def _print_log(status: "ServerStatus | None") -> None:
    lines = visible(status.log).splitlines()[-_LOG_LINES:] if status is not None else []
    if len(lines) > 1:  # a single line is already part of the reason
        print_text("  end of its log:", file=sys.stderr)
        print_text("".join(f"    {line}\n" for line in lines), end="", file=sys.stderr)


def _count_tools(tools: int) -> str:
    return f"{tools} tool{'' if tools == 1 else 's'}"


def _print_ready(entry: ServerEntry, status: "ServerStatus", tools: Sequence[Any]) -> None:
    print_text(f"{entry.name}: ready in {status.seconds:.2f} s, {_count_tools(len(tools))}")
    print_text(f"  {visible(status.server) or 'unnamed server'}, MCP {status.protocol}")
    print_text(f"  {entry.place}: {entry.target}")
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
    held = {tool.spec.name: tool for tool in tools}
    for name in status.held:
        for line in getattr(held.get(name), "review", ()):
            print_text(f"  {name} is now: {one_line(line, 200)}")
        print_text(
            f"  {name} changed since it was accepted and is denied; review it, then run callwright mcp test --accept"
        )


def _claimed_effect(tool: Any) -> str:
    """Return the effect that the server claims for a tool."""
    claimed = getattr(tool, "claimed", None)
    return claimed.effect.name.lower() if claimed is not None else ""


def _tool_fields(spec: ToolSpec) -> dict[str, str]:
    return {"name": spec.name, "effect": spec.annotations.effect.name.lower(), "description": spec.description}


def _fields(each: FoundServer) -> dict[str, Any]:
    entry, status = each.entry, each.status
    found: dict[str, Any] = {"name": entry.name, "scope": entry.scope, "file": str(entry.file), "target": entry.target}
    found |= {"conflict": entry.conflict} if entry.conflict else {}
    if status is None:
        return {**found, "condition": each.condition, "reason": _NEXT_TRUST}
    fields = ("condition", "sign_in_url", "tools", "held", "problems", "protocol", "server", "log")
    more = {name: getattr(status, name) for name in fields}
    return {**found, **more, "reason": _describe_problem(status), "seconds": round(status.seconds, 3)}
