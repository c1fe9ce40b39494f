"""What a server offers: its tools, resources and prompts, page by page and within bounds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client, MCPError

from callwright.core.json import compact
from callwright.mcp.seen import digest_of
from callwright.mcp.translate import definition_of

Item = TypeVar("Item")
_MOST_PAGES = 200
_MOST_ITEMS = 10_000
_MOST_DEFINITION_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool as the server defines it, and the digest of that."""

    tool: types.Tool
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server offered when it was last asked."""

    tools: dict[str, Offered]
    prompts: tuple[types.Prompt, ...] = ()
    resources: bool = False
    """There is something to read: what, the server is asked each time."""
    instructions: str = ""
    protocol: str = ""
    """The version of MCP that is spoken."""
    server: str = ""
    """What the server calls itself, with its version."""
    problems: tuple[str, ...] = ()


async def list_all(client: Client) -> Listing:
    """Ask a server for everything it offers; what is out of bounds is left out and named."""
    can = client.server_capabilities
    problems: list[str] = []
    tools: dict[str, Offered] = {}
    if can.tools is not None:
        for tool in await _pages(lambda cursor: client.list_tools(cursor=cursor), "tools", problems):
            _take(tools, tool, problems)
    prompts: list[types.Prompt] = []
    if can.prompts is not None:
        prompts = await _pages(lambda cursor: client.list_prompts(cursor=cursor), "prompts", problems)
    readable = can.resources is not None and any((await resources_of(client)).values())
    return Listing(
        tools,
        tuple(prompts),
        readable,
        client.instructions or "",
        client.protocol_version,
        _introduced(client.server_info),
        tuple(problems),
    )


def _introduced(server: types.Implementation | None) -> str:
    return f"{server.name} {server.version}".strip() if server is not None else ""


async def resources_of(client: Client) -> dict[str, Any]:
    """The resources there are now, and the patterns of those that exist when asked for."""
    listed = await _pages(lambda cursor: client.list_resources(cursor=cursor), "resources", [])
    templates = await _pages(lambda cursor: client.list_resource_templates(cursor=cursor), "resource_templates", [])
    return {
        "resources": [_entry(str(item.uri), item) for item in listed],
        "templates": [_entry(item.uri_template, item) for item in templates],
    }


def _entry(uri: str, item: types.Resource | types.ResourceTemplate) -> dict[str, str]:
    entry = {"uri": uri, "name": item.title or item.name, "description": item.description or ""}
    return {key: value for key, value in (*entry.items(), ("type", item.mime_type or "")) if value}


def _take(tools: dict[str, Offered], tool: types.Tool, problems: list[str]) -> None:
    definition = definition_of(tool)
    size = len(compact(definition))
    if tool.name in tools:
        problems.append(f"{tool.name}: listed twice; the first definition counts")
    elif not tool.name or size > _MOST_DEFINITION_CHARS:
        problems.append(f"{tool.name[:80]!r}: left out, its definition has {size} characters")
    else:
        tools[tool.name] = Offered(tool, digest_of(definition))


async def _pages(fetch: Callable[[str | None], Awaitable[Any]], kind: str, problems: list[str]) -> list[Any]:
    """Follow the cursors; a paginator that never ends ends here, and a list that is promised and not there is empty."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        try:
            page = await fetch(cursor)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            problems.append(f"it promises {kind} and has no list of them")
            break
        items += getattr(page, kind)
        cursor = page.next_cursor
        if cursor is None or len(items) >= _MOST_ITEMS:
            break
    if cursor is not None:
        problems.append(f"the list of {kind} did not end; the first {min(len(items), _MOST_ITEMS)} count")
    return items[:_MOST_ITEMS]
