"""Between MCP's words and ours: definitions become specs, results become outputs.

What went wrong with a server, in our words.

`mcp__server__tool`: names under which no server can pass its tool off as another's.
"""

import base64
import binascii
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from mcp.client.auth import OAuthFlowError

from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import ToolError, ToolFailed, Transient
from callwright.core.json import Json, compact
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.mcp.config import ServerConfig

_REASON_CHARS = 500


def ends_session(error: MCPError) -> bool:
    """Whether the session is over, so that another has to be begun."""
    ended = error.code == types.INVALID_REQUEST and error.message == "Session terminated"
    return ended or error.code == types.CONNECTION_CLOSED


def fault_of(error: MCPError, server: str) -> ToolError:
    """The failure of one call behind an error a server, or the way to it, answered with."""
    if error.code == types.CONNECTION_CLOSED:
        broken = Transient(f"the connection to the MCP server {server} broke: {error.message}")
        broken.inferred = True
        return broken
    if ends_session(error):
        return Transient(f"the MCP server {server} ended the session; another one is begun")
    data: Any = error.data
    told = cast("Mapping[str, Any]", data if isinstance(data, dict) else {})
    if told.get("busy"):
        after = str(told.get("retryAfter") or "")
        return Transient(f"{server}: {error.message}", retry_after=float(after) if after.isdecimal() else None)
    return ToolFailed(f"{server}: {error.message}")


def nonsense(error: Exception, server: str) -> ToolFailed:
    """The failure of a call that was answered with something the protocol does not know."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ToolFailed(f"{server} answered with something that is no answer: {reason[:_REASON_CHARS]}")


def reason_of(error: BaseException) -> str:
    """The innermost reason: what an operator can act on."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    match error:
        case TimeoutError():
            return "it did not answer in time"
        case OAuthFlowError():
            return f"the sign-in failed: {error}"
        case MCPError(message=message) if message:
            return message
        case FileNotFoundError(filename=str() as name):
            return f"there is no {name}; install it, or give its full path"
        case OSError(filename=str() as name, strerror=str() as why):
            return f"{name} cannot be started: {why.lower()}"
        case _:
            pass
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_SERVER_FORBIDDEN = re.compile(r"[^a-zA-Z0-9-]+")
_TOOL_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")
_LONGEST = 128
_HASH_CHARS = 7


def server_names(names: Iterable[str]) -> dict[str, str]:
    """Give every server a name without a double underscore or one at an edge: where it ends can then be told.

    Otherwise the tool `c` of a server `a__b` and the tool `b__c` of a server `a` would be one.
    """
    return _told_apart({name: _SERVER_FORBIDDEN.sub("_", name).strip("_") for name in sorted(set(names))}, "")


def tool_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Give every tool of one server its full name; two that differ only in case do not share a rule.

    `server` is a name `server_names` gave.
    """
    return _told_apart({name: _TOOL_FORBIDDEN.sub("_", name) for name in sorted(set(names))}, f"mcp__{server}__")


def _told_apart(wishes: dict[str, str], prefix: str) -> dict[str, str]:
    """A name that had to be changed or cut, or that differs from another in case only, carries a hash of itself."""
    room = _LONGEST - len(prefix)
    plain = Counter(name.casefold() for name, wish in wishes.items() if wish == name and 0 < len(wish) <= room)
    given = {name: prefix + name for name in wishes if plain[name.casefold()] == 1 and wishes[name] == name}
    used = {full.casefold() for full in given.values()}
    for name, wish in wishes.items():
        if name not in given:
            given[name] = next(full for full in _hashed(prefix, wish, name) if full.casefold() not in used)
            used.add(given[name].casefold())
    return given


def _hashed(prefix: str, wish: str, name: str) -> Iterator[str]:
    """Ever longer hashes of the name, for the case that a shorter one is somebody's name."""
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    for chars in range(_HASH_CHARS, len(digest)):
        room = _LONGEST - len(prefix) - chars - 1
        yield f"{prefix}{wish[:room]}-{digest[:chars]}" if wish else prefix + digest[:chars]


_DESCRIPTION_CHARS = 8_000
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_SEEN_CONTROLS = frozenset("\n\t")


def definition_of(tool: types.Tool) -> dict[str, Any]:
    """Everything a server says about a tool, as plain JSON: what its digest is taken of."""
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"icons", "meta"})


def spec_of(tool: types.Tool, name: str, config: ServerConfig) -> ToolSpec:
    """Make our spec of a server's definition."""
    title = tool.title or (tool.annotations.title if tool.annotations else None)
    metadata: dict[str, Json] = {"server": config.name, "tool": tool.name}
    if title:
        metadata["title"] = visible(title)
    return ToolSpec(
        name,
        described(tool.description, f"{tool.name}, a tool of the MCP server {config.name}"),
        {**tool.input_schema, "type": "object"},
        output_schema=tool.output_schema,
        annotations=claims_of(tool.annotations, trusted=config.trusted),
        limits=Limits(config.seconds),
        group=f"mcp:{config.name}",
        origin=f"mcp:{config.name}",
        metadata=metadata,
    )


def claims_of(said: types.ToolAnnotations | None, *, trusted: bool) -> Annotations:
    """What a tool may be taken to do. Nothing a server says makes its tools look milder unless it is trusted."""
    if said is None or not trusted:
        return Annotations(Effect.DESTROY, open_world=True)
    reads = said.read_only_hint is True
    effect = Effect.WRITE if said.destructive_hint is False else Effect.DESTROY
    return Annotations(
        Effect.READ if reads else effect,
        idempotent=reads or said.idempotent_hint is True,
        open_world=said.open_world_hint is not False,
    )


def described(text: str | None, otherwise: str) -> str:
    """A description as the model may read it: nothing hidden in it, and no longer than it must be."""
    seen = visible(text or "").strip()
    if len(seen) <= _DESCRIPTION_CHARS:
        return seen or visible(otherwise)
    return f"{seen[:_DESCRIPTION_CHARS]}… [{len(seen)} characters in all]"


def visible(text: str) -> str:
    """Without the characters nobody sees and a model reads all the same."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in _SEEN_CONTROLS or unicodedata.category(char) not in _UNSEEN)


def output_of(result: types.CallToolResult) -> Output:
    """Make our output of a call's result; a failure is raised in the server's own words."""
    parts = parts_of(result.content)
    if result.is_error:
        raise ToolFailed(_joined(parts) or "the tool failed and did not say why")
    structured: Json = result.structured_content
    if not parts and structured is not None:
        return Output(compact(structured), structured)
    return Output(_plain(parts), structured)


def parts_of(blocks: Iterable[types.ContentBlock]) -> tuple[Part, ...]:
    """Make our parts of MCP's content blocks."""
    return tuple(_part(block) for block in blocks)


def contents_of(contents: Iterable[types.TextResourceContents | types.BlobResourceContents]) -> Output:
    """Make our output of a resource that was read."""
    return Output(_plain(tuple(_resource(content) for content in contents)))


def messages_of(result: types.GetPromptResult) -> Output:
    """Make our output of a prompt: who says what, in order."""
    parts: list[Part] = []
    for message in result.messages:
        part = _part(message.content)
        parts.append(Text(f"{message.role}: {part.text}") if isinstance(part, Text) else part)
    return Output(_plain(tuple(parts)))


def _plain(parts: tuple[Part, ...]) -> str | tuple[Part, ...]:
    return _joined(parts) if all(isinstance(part, Text) for part in parts) else parts


def _joined(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _part(block: types.ContentBlock) -> Part:
    match block:
        case types.TextContent(text=text):
            return Text(text)
        case types.ImageContent(data=data, mime_type=kind):
            return Image(_bytes(data), kind)
        case types.AudioContent(data=data, mime_type=kind):
            return File(_bytes(data), kind)
        case types.ResourceLink(name=name, uri=uri):
            return Text(f"resource {name}: {uri}")
        case types.EmbeddedResource(resource=resource):
            return _resource(resource)


def _resource(content: types.TextResourceContents | types.BlobResourceContents) -> Part:
    if isinstance(content, types.TextResourceContents):
        return Text(content.text)
    data, kind = _bytes(content.blob), content.mime_type or "application/octet-stream"
    return Image(data, kind) if kind.startswith("image/") else File(data, kind, str(content.uri))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(f"the server sent data that is not base64: {error}") from error
