"""Lists what a server offers: bounded, and in slices between which the event loop runs other tasks."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, TypeAlias, cast, get_args

import mcp_types as types
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp_types import methods
from pydantic import BaseModel, ValidationError

from callwright.core.json import compact, read_object
from callwright.mcp.fast_path import PipeFastPath
from callwright.mcp.pinned_tools import digest_of
from callwright.mcp.translate import cut_blocks, definition_of
from callwright.tool.arguments import describe_first_problem

_MAX_PAGES = 200
_MAX_ITEMS = 5_000
_MAX_DEFINITION_CHARS = 200_000
_MAX_LISTING_CHARS = 5_000_000
_SLICE_SECONDS = 0.01
_LISTED = ("tools", "prompts", "resources", "resourceTemplates")


class Slices:
    """Divides work on the event loop: `await slices.pause()` lets other tasks run when a slice is used up."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def pause(self) -> None:
        """Let other tasks run if this slice has taken long enough."""
        if time.monotonic() - self._began > _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = time.monotonic()


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool's definition and its digest."""

    tool: types.Tool
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server offers, as of the last listing."""

    tools: dict[str, Offered]
    prompts: tuple[types.Prompt, ...] = ()
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """What the model would read about each resource and template, by its URI."""
    instructions: str = ""
    protocol: str = ""
    """The MCP version in use."""
    server: str = ""
    """The server's own name and version."""
    problems: tuple[str, ...] = ()


async def list_all(client: Client, pipe: PipeFastPath | None, listing_filter: "ListingFilter") -> Listing:
    """List everything a server offers; items beyond the limits are left out and reported.

    Args:
        client: The session.
        pipe: The way around the SDK, which would validate thousands of tools at once.
        listing_filter: What the messages of the session pass through where there is no pipe.
    """
    can = client.server_capabilities
    problems: list[str] = []
    tools: dict[str, Offered] = {}
    if can.tools is not None:
        slices = Slices()
        listed = await _pages(_tool_pages(client, pipe, listing_filter, slices, problems), "tools", problems)
        tools = await _collect_tools(listed, problems, slices)
    prompts: list[types.Prompt] = []
    readable: dict[str, Mapping[str, str]] = {}
    with _left_out_if_invalid("prompts", problems):
        if can.prompts is not None:
            listed = await _pages(lambda cursor: client.list_prompts(cursor=cursor), "prompts", problems)
            prompts = _collect_prompts(listed, problems)
    with _left_out_if_invalid("resources", problems):
        if can.resources is not None:
            readable = texts_of(await resources_of(client, problems))
    return Listing(
        tools,
        tuple(prompts),
        readable,
        client.instructions or "",
        client.protocol_version,
        _server_label(client.server_info),
        tuple(dict.fromkeys(problems)),
    )


@contextmanager
def _left_out_if_invalid(kind: str, problems: list[str]) -> Generator[None, None, None]:
    """Report a list that the SDK refuses as a whole: one wrong entry in it must not take the server's tools away."""
    try:
        yield
    except ValidationError as error:
        problems.append(f"its {kind} are left out, the list is not valid: {describe_first_problem(error)}")


def _server_label(server: types.Implementation | None) -> str:
    return f"{server.name} {server.version}".strip() if server is not None else ""


async def resources_of(client: Client, problems: list[str]) -> dict[str, list[dict[str, str]]]:
    """List the resources and the resource templates; many servers have no templates, which is no problem."""
    listed = await _pages(lambda cursor: client.list_resources(cursor=cursor), "resources", problems)
    templates = await _pages(lambda cursor: client.list_resource_templates(cursor=cursor), "resource_templates", [])
    # accepted texts are known by the address, so of several entries with one address only the first is shown
    found = {str(item.uri): item for item in reversed(listed)}
    made = {item.uri_template: item for item in reversed(templates) if item.uri_template not in found}
    return {
        "resources": [_entry(uri, item) for uri, item in reversed(found.items()) if uri],
        "templates": [_entry(uri, item) for uri, item in reversed(made.items()) if uri],
    }


def texts_of(resources: Mapping[str, list[dict[str, str]]]) -> dict[str, Mapping[str, str]]:
    """Return the entries of `resources_of` by URI."""
    return {entry["uri"]: entry for entries in resources.values() for entry in entries}


def _entry(uri: str, item: types.Resource | types.ResourceTemplate) -> dict[str, str]:
    entry = {"uri": uri, "name": item.title or item.name, "description": item.description or ""}
    return {key: value for key, value in (*entry.items(), ("type", item.mime_type or "")) if value}


def prompt_digests(listing: Listing) -> dict[str, str]:
    """Return the digests of the prompts' texts, which the model reads like a tool's description."""
    return {
        prompt.name: digest_of(prompt.model_dump(mode="json", exclude={"icons", "meta"})) for prompt in listing.prompts
    }


def resource_digests(texts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the digests of what the model reads about resources, up to a number."""
    return {uri: digest_of(entry) for uri, entry in islice(texts.items(), _MAX_ITEMS)}


def cut_listing(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """Cut what a response lists to one item more than are used, and long results, before the SDK validates them."""
    answer = message.message if isinstance(message, SessionMessage) else None
    if isinstance(answer, types.JSONRPCResponse):
        for kind in _LISTED:
            found = answer.result.get(kind)
            if isinstance(found, list) and len(cast("list[object]", found)) > _MAX_ITEMS:
                answer.result[kind] = cast("list[object]", found)[: _MAX_ITEMS + 1]
        cut_blocks(answer.result)
    return message


class ListingFilter:
    """Takes tools that the SDK would refuse out of the listings that pass through it, while it is told to.

    The SDK validates a listing as a whole, so that one wrong tool would take the others with it.
    """

    def __init__(self) -> None:
        self._taken: list[object] | None = None

    def start(self) -> list[object]:
        """Take wrong tools out from now on; they are added to the returned list."""
        self._taken = []
        return self._taken

    def stop(self) -> None:
        """Let everything through again."""
        self._taken = None

    def apply(self, message: SessionMessage | Exception) -> SessionMessage | Exception:
        """Return a message without wrong tools, and cut to a size that can be validated."""
        message = cut_listing(message)
        answer = message.message if isinstance(message, SessionMessage) else None
        if self._taken is None or not isinstance(answer, types.JSONRPCResponse):
            return message
        listed = answer.result.get("tools")
        if isinstance(listed, list):
            accepted: list[object] = []
            for tool in cast("list[object]", listed):
                (accepted if _is_accepted(tool) else self._taken).append(tool)
            answer.result["tools"] = accepted
        return message


def _is_accepted(tool: object) -> bool:
    try:
        for kind in _tool_models():
            kind.model_validate(tool, by_name=False)
    except ValidationError:
        return False
    return True


@cache
def _tool_models() -> tuple[type[BaseModel], ...]:
    """Return the SDK's models of a tool: its own, and those of each version of the protocol."""
    results = [result for (method, _), result in methods.SERVER_RESULTS.items() if method == "tools/list"]
    fields = [cast("type[BaseModel]", result).model_fields["tools"] for result in results]
    return tuple(dict.fromkeys((types.Tool, *(get_args(field.annotation)[0] for field in fields))))


_Fetch: TypeAlias = Callable[[str | None], Awaitable[Any]]
"""Fetches the page at a cursor."""


def _tool_pages(
    client: Client, pipe: PipeFastPath | None, listing_filter: ListingFilter, slices: Slices, problems: list[str]
) -> _Fetch:
    async def fetch_by_sdk(cursor: str | None) -> types.ListToolsResult:
        try:
            return await client.list_tools(cursor=cursor)
        except ValidationError:  # once more, and only what is valid
            taken = listing_filter.start()
        try:
            page = await client.list_tools(cursor=cursor)
        finally:
            listing_filter.stop()
        await add_tools(page, taken)
        return page

    async def add_tools(page: types.ListToolsResult, given: list[object]) -> None:
        for item in given:
            try:
                page.tools.append(types.Tool.model_validate(item, by_name=False))
            except ValidationError as error:  # one wrong tool must not take the others with it
                problems.append(_explain_invalid(item, error))
            await slices.pause()

    if pipe is None:
        return fetch_by_sdk

    async def fetch(cursor: str | None) -> types.ListToolsResult:
        raw = await pipe.request("tools/list", {} if cursor is None else {"cursor": cursor})
        given = raw.get("tools")
        if not isinstance(given, list):
            return types.ListToolsResult.model_validate(raw, by_name=False)  # which says what is wrong with it
        page = types.ListToolsResult.model_validate({**raw, "tools": []}, by_name=False)
        # one more than are used shows that there are more; to validate all of them would take too long
        await add_tools(page, cast("list[object]", given)[: _MAX_ITEMS + 1])
        return page

    return fetch


def _explain_invalid(item: object, error: ValidationError) -> str:
    name = str(read_object(item).get("name", ""))[:80]
    return f"{name!r}: left out, its definition is not valid: {describe_first_problem(error)}"


async def _collect_tools(listed: list[types.Tool], problems: list[str], slices: Slices) -> dict[str, Offered]:
    """Return the tools by name with their digests; those beyond the limits are left out and reported."""
    tools: dict[str, Offered] = {}
    chars = 0
    for tool in listed:
        await slices.pause()
        try:
            definition = definition_of(tool)
            size = len(compact(definition))
        except (RecursionError, ValueError):
            problems.append(f"{tool.name[:80]!r}: left out, its definition is nested too deeply")
            continue
        if tool.name in tools:
            problems.append(f"{tool.name}: listed twice; the first definition is used")
        elif not tool.name:
            problems.append("a tool without a name: left out")
        elif size > _MAX_DEFINITION_CHARS:
            problems.append(f"{tool.name[:80]!r}: left out, its definition has {size} characters")
        elif chars + size > _MAX_LISTING_CHARS:
            problems.append(
                f"its tools have more than {_MAX_LISTING_CHARS:,} characters of definitions;"
                f" the first {len(tools)} of {len(listed)} are used"
            )
            break
        else:
            chars += size
            tools[tool.name] = Offered(tool, digest_of(definition))
    return tools


def _collect_prompts(listed: list[types.Prompt], problems: list[str]) -> list[types.Prompt]:
    """Return the prompts whose names fit into the definition of one tool, which lists them for the model.

    Accepted texts are known by the name, so of several prompts with one name only the first is used.
    """
    chars = 0
    prompts: dict[str, types.Prompt] = {}
    for place, prompt in enumerate(listed):
        if prompt.name in prompts:
            problems.append(f"prompt {prompt.name[:80]!r}: listed twice; the first definition is used")
            continue
        chars += len(prompt.name)
        if chars > _MAX_DEFINITION_CHARS:
            problems.append(
                f"its prompts have names of more than {_MAX_DEFINITION_CHARS:,} characters;"
                f" the first {place} of {len(listed)} are used"
            )
            break
        prompts[prompt.name] = prompt
    return [*prompts.values()]


async def _pages(fetch: _Fetch, kind: str, problems: list[str]) -> list[Any]:
    """Fetch all pages up to the limits; a list that is announced but not implemented is empty."""
    items: list[Any] = []
    cursor: str | None = None
    asked: set[str | None] = set()
    while len(asked) < _MAX_PAGES:
        asked.add(cursor)
        try:
            page = await fetch(cursor)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            problems.append(f"it announces {kind} but does not list them")
            break
        items += getattr(page, kind)
        cursor = page.next_cursor or None  # some servers end their list with an empty one
        if cursor is None or cursor in asked or len(items) >= _MAX_ITEMS:
            break
    if cursor is not None:
        problems.append(f"the list of {kind} does not end; the first {min(len(items), _MAX_ITEMS)} are used")
    elif len(items) > _MAX_ITEMS:
        problems.append(f"it lists more than {_MAX_ITEMS} {kind}; the first {_MAX_ITEMS} are used")
    return items[:_MAX_ITEMS]
