"""`callwright mcp list` and `test`: connect for real, and say how servers are doing."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from callwright.app.locations import Locations
from callwright.app.mcp_servers import prepare_servers
from callwright.app.trust import Trust
from callwright.cli.commands.mcp_config import Declared, declared, unknown
from callwright.cli.main import DENIED, DONE, ERROR, PAUSED
from callwright.cli.render.calls import one_line, tell, visible
from callwright.cli.startup import settings_for
from callwright.core.errors import UsageError, plainly
from callwright.core.json import thaw
from callwright.core.spec import ToolSpec
from callwright.registry import Registry

if TYPE_CHECKING:
    from callwright.mcp import McpServers, ServerStatus

_NOT_TRUSTED = "not trusted"
_NEXT_TRUST = "callwright trust shows what this folder asks for; callwright trust give lets it have that"
_LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One server as it was found, and how it is doing; None: it was not tried, because its folder is not trusted."""

    declared: Declared
    status: "ServerStatus | None"

    @property
    def condition(self) -> str:
        return _NOT_TRUSTED if self.status is None else self.status.condition

    @property
    def code(self) -> int:
        """What a script is told."""
        return {_NOT_TRUSTED: DENIED, "ready": DONE, "signing in": PAUSED}.get(self.condition, ERROR)


def list_servers(options: argparse.Namespace) -> int:
    """Connect to every server at once and say how each is doing."""
    entries = _entries(options)
    if not entries:
        print("[]" if options.json else "no MCP servers here; callwright mcp add NAME -- COMMAND adds one")
        return DONE
    seen = asyncio.run(_listed(options, entries))
    if options.json:
        print(json.dumps([_fields(each) for each in seen], indent=2, ensure_ascii=False))
    else:
        width = max(len(visible(each.declared.name)) for each in seen)
        for each in seen:
            _print_line(each, width)
    return max((each.code for each in seen), key=lambda code: (code == ERROR, code))


async def _listed(options: argparse.Namespace, entries: Sequence[Declared]) -> list[FoundServer]:
    async with _connected(options, entries, Registry()) as (servers, trusted):
        return [FoundServer(each, _status(servers, each.name) if _may(each, trusted) else None) for each in entries]


def _status(servers: "McpServers", name: str) -> "ServerStatus":
    from callwright.mcp import ServerStatus

    unusable = ServerStatus(name, "closed", (), "its entry cannot be used; the warning above says why")
    return next((status for status in servers.status() if status.name == name), unusable)


def try_server(options: argparse.Namespace) -> int:
    """Connect to one server; print what it offers, or precisely why it does not."""
    entries = [entry for entry in _entries(options) if entry.name == options.name]
    if not entries:
        raise UsageError(unknown(options.name, _entries(options)))
    return asyncio.run(_tested(options, entries[-1]))


async def _tested(options: argparse.Namespace, entry: Declared) -> int:
    registry = Registry()
    async with _connected(options, [entry], registry) as (servers, trusted):
        if not _may(entry, trusted):
            return _report(options, FoundServer(entry, None), registry)
        await _sign_in(servers, entry.name)
        if options.accept:
            for tool in _status(servers, entry.name).held:
                servers.accept(tool)
        return _report(options, FoundServer(entry, _status(servers, entry.name)), registry)


async def _sign_in(servers: "McpServers", name: str) -> None:
    """Where somebody can follow an address, wait for them; the sign-in is kept for later runs."""
    status = _status(servers, name)
    if status.condition != "signing in" or not sys.stderr.isatty():
        return
    tell(f"{status.name} wants you to sign in; open {status.sign_in_url}")
    while _status(servers, name).condition == "signing in":  # noqa: ASYNC110 - the browser comes back to another task
        await asyncio.sleep(0.1)


def _entries(options: argparse.Namespace) -> list[Declared]:
    """The entries that count, or those of the files that were named."""
    if not options.config:
        found = declared(Locations.of())
        return list({entry.name: entry for entry in found}.values())
    entries: list[Declared] = []
    for file in options.config:
        try:
            content = json.loads(file.read_text("utf-8"))
            servers: dict[str, Any] = content["mcpServers"]
            entries += [Declared(name, "given", file, entry) for name, entry in servers.items()]
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(f"--config {file}: {plainly(error) or 'no mcpServers in it'}") from None
    return entries


def _may(entry: Declared, trusted: bool) -> bool:
    """Nothing a repository names is started before its folder is trusted; a file named by hand is the user's word."""
    return trusted or entry.scope in ("user", "given")


@asynccontextmanager
async def _connected(
    options: argparse.Namespace, entries: Sequence[Declared], registry: Registry
) -> "AsyncGenerator[tuple[McpServers, bool], None]":
    from callwright.mcp import servers_of

    locations = Locations.of()
    trusted = bool(options.trust) or Trust(locations).given
    settings_for(options, locations)  # its variables fill in ${NAME}
    wanted = {entry.name: thaw(entry.entry) for entry in entries if _may(entry, trusted)}
    loaded = servers_of({"mcpServers": wanted})
    for problem in loaded.problems:
        tell(f"warning: {problem}")
    configs = [replace(server, connect_seconds=options.seconds) for server in loaded.servers]
    async with prepare_servers(registry, configs, locations) as servers:
        yield servers, trusted


def _print_line(each: FoundServer, width: int) -> None:
    entry, name = each.declared, visible(each.declared.name)
    print(f"{name:<{width}}  {each.condition:<11}  {entry.scope:<7}  {entry.target}")
    status = each.status
    if status is None:
        print(f"{'':<{width}}  {_NEXT_TRUST}")
        return
    if status.condition == "ready":
        print(f"{'':<{width}}  {_counted(len(status.tools))} in {status.seconds:.2f} s, MCP {status.protocol}")
    for problem in (_why(status), *status.problems, *(f"changed since accepted: {name}" for name in status.held)):
        if problem:
            print(f"{'':<{width}}  {visible(problem)}")


def _why(status: "ServerStatus") -> str:
    """What keeps it from being ready, with what to do about it."""
    if status.condition == "ready":
        return ""
    if status.condition == "signing in":
        return f"somebody has to sign in: run callwright mcp test {status.name} in a terminal"
    return status.reason or "it gave no reason"


def _report(options: argparse.Namespace, seen: FoundServer, registry: Registry) -> int:
    status = seen.status
    tools = [registry[name] for name in status.tools] if status is not None else []
    if options.json:
        listed = [{**_described(tool.spec), "says": _claim(tool)} for tool in tools]
        print(json.dumps({**_fields(seen), "tools": listed}, indent=2, ensure_ascii=False))
    elif status is None or seen.code != DONE:
        why = _NEXT_TRUST if status is None else _why(status)
        tell(f"{seen.declared.name} is {_or_not(seen)}: {why}")
        print(f"  {seen.declared.place}: {seen.declared.target}", file=sys.stderr)
        _print_log(status)
    else:
        _print_ready(seen.declared, status, tools)
    return seen.code


def _or_not(seen: FoundServer) -> str:
    return seen.condition if seen.code == DENIED else "not ready"


def _print_log(status: "ServerStatus | None") -> None:
    lines = visible(status.log).splitlines()[-_LOG_LINES:] if status is not None else []
    if len(lines) > 1:  # a single one stands in the reason
        print("  the end of what it wrote:", file=sys.stderr)
        print("".join(f"    {line}\n" for line in lines), end="", file=sys.stderr)


def _counted(tools: int) -> str:
    return f"{tools} tool{'' if tools == 1 else 's'}"


def _print_ready(entry: Declared, status: "ServerStatus", tools: Sequence[Any]) -> None:
    print(f"{entry.name}: ready in {status.seconds:.2f} s, {_counted(len(tools))}")
    print(f"  {visible(status.server) or 'it does not say what it is'}, MCP {status.protocol}")
    print(f"  {entry.place}: {entry.target}")
    width = max((len(tool.spec.name) for tool in tools), default=0)
    for tool in tools:
        effect = tool.spec.annotations.effect.name.lower()
        says = _claim(tool)
        shown = effect if says in ("", effect) else f"{effect} (it says {says})"
        print(f"  {tool.spec.name:<{width}}  {shown:<22}  {one_line(tool.spec.description, 60)}".rstrip())
    for problem in status.problems:
        print(f"  problem: {visible(problem)}")
    for name in status.held:
        print(f"  {name} changed since it was accepted and is denied; look at it, then callwright mcp test --accept")


def _claim(tool: Any) -> str:
    """What the server says of a tool of its own."""
    claimed = getattr(tool, "claimed", None)
    return claimed.effect.name.lower() if claimed is not None else ""


def _described(spec: ToolSpec) -> dict[str, str]:
    return {"name": spec.name, "effect": spec.annotations.effect.name.lower(), "description": spec.description}


def _fields(each: FoundServer) -> dict[str, Any]:
    entry, status = each.declared, each.status
    found: dict[str, Any] = {"name": entry.name, "scope": entry.scope, "file": str(entry.file), "target": entry.target}
    if status is None:
        return {**found, "condition": each.condition, "reason": _NEXT_TRUST}
    fields = ("condition", "sign_in_url", "tools", "held", "problems", "protocol", "server", "log")
    more = {name: getattr(status, name) for name in fields}
    return {**found, **more, "reason": _why(status), "seconds": round(status.seconds, 3)}
