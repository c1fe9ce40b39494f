"""Translation between MCP and callwright: errors, definitions and results."""

import base64
import binascii
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from mcp.client.auth import OAuthFlowError
from pydantic import ValidationError

from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import CallwrightError, ToolError, ToolFailed, Transient, UsageError
from callwright.core.escaping import remove_hidden
from callwright.core.json import Json, compact, read_object
from callwright.core.spec import REPOSITORY, SHADOWS, Annotations, Effect, Limits, ToolSpec
from callwright.mcp.config import ServerConfig
from callwright.mcp.fast_path import ConnectionLost, ServerError
from callwright.tool.arguments import describe_first_problem

_REASON_CHARS = 500
SESSION_ENDED = "Session terminated"
"""The message of an error when the server does not know the session."""
_SDK_CLOSED = "Connection closed"
"""The message of the SDK's own error when its stream ends."""


OWN_MARK = secrets.token_hex(8)
"""In the data of errors of our own: a server must not have a call repeated by the same words."""


def ends_session(error: MCPError) -> bool:
    """Whether the error means that the session is over and a new one is needed."""
    # the same words of a server are about another session, such as that of a server behind it
    return read_object(error.data).get("ended") == OWN_MARK or _is_connection_lost(error)


def is_unreached(error: MCPError) -> bool:
    """Whether the error is one of our own, for a server that cannot be reached over HTTP."""
    return error.code == types.CONNECTION_CLOSED and read_object(error.data).get("busy") == OWN_MARK


def _is_connection_lost(error: MCPError) -> bool:
    """Whether the connection broke; healthy servers answer with the same code, so the code alone says nothing."""
    if isinstance(error, (ConnectionLost, ServerError)):
        return isinstance(error, ConnectionLost)
    return error.code == types.CONNECTION_CLOSED and error.message == _SDK_CLOSED and error.data is None


def fault_of(error: MCPError, server: str) -> ToolError:
    """Translate an error response of a server, or of the connection to it, to a tool error."""
    if _is_connection_lost(error):
        broken = Transient(f"the connection to the MCP server {server} broke: {error.message}")
        broken.inferred = True
        return broken
    if ends_session(error):
        return Transient(f"the MCP server {server} ended the session; reconnecting")
    details = read_object(error.data)
    if details.get("busy") == OWN_MARK:
        after = str(details.get("retryAfter") or "")
        busy = Transient(f"{server}: {error.message}", retry_after=float(after) if after.isdecimal() else None)
        busy.inferred = details.get("sent") is True
        return busy
    return ToolFailed(f"{server}: {error.message or f'error {error.code} without a message'}")


def invalid_reply(error: Exception, server: str) -> ToolFailed:
    """Build the error for a response that violates the protocol."""
    if isinstance(error, ValidationError):
        reason = describe_first_problem(error)
    else:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ToolFailed(f"{server} sent an invalid response: {reason[:_REASON_CHARS]}")


def reason_of(error: BaseException) -> str:
    """Describe the innermost cause, for the operator."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    match error:
        case TimeoutError():
            return "it did not respond in time"
        case OAuthFlowError():
            return f"the sign-in failed: {error}"
        case MCPError(message=message) if message:
            return message
        case FileNotFoundError(filename=str() as name):
            return f"{name} was not found; install it, or give its full path"
        case ValidationError():
            return f"it sent an invalid response: {describe_first_problem(error)}"
        case ToolError():
            return error.message
        case CallwrightError():
            return str(error)
        case OSError(filename=str() as name, strerror=str() as why):
            return f"{name} cannot be started: {why.lower()}"
        case _:
            pass
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_DESCRIPTION_CHARS = 8_000


def definition_of(tool: types.Tool) -> dict[str, Any]:
    """Return a tool's definition as plain JSON, for its digest."""
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"icons", "meta"})


def spec_of(tool: types.Tool, name: str, config: ServerConfig, digest: str = "") -> ToolSpec:
    """Build the spec of a server's tool.

    Args:
        tool: Its definition.
        name: Its name in the registry.
        config: The server.
        digest: The digest of the definition: approvals are for this one only.
    """
    title = tool.title or (tool.annotations.title if tool.annotations else None)
    metadata = {**server_metadata(config), "tool": tool.name, "definition": digest}
    if title:
        metadata["title"] = remove_hidden(title)
    return ToolSpec(
        name,
        clean_description(tool.description, f"{tool.name}, a tool of the MCP server {config.name}"),
        {**_clean_schema(tool.input_schema), "type": "object"},  # some servers leave the type out
        output_schema=tool.output_schema,
        annotations=claims_of(tool.annotations, trusted=config.trusted),
        limits=Limits(config.seconds),
        group=f"mcp:{config.name}",
        origin=f"mcp:{config.name}",
        metadata=metadata,
    )


def server_metadata(config: ServerConfig) -> dict[str, Json]:
    """Return what every tool of a server says about it, for policies."""
    # the digest makes a server that takes the name of another one different for approvals
    metadata: dict[str, Json] = {"server": config.name, "server_digest": config.digest}
    metadata |= {REPOSITORY: config.repository} if config.repository else {}
    return metadata | ({SHADOWS: config.shadows} if config.shadows else {})


def claims_of(hints: types.ToolAnnotations | None, *, trusted: bool) -> Annotations:
    """Translate a server's annotations; those of an untrusted server are ignored and the worst is assumed."""
    if hints is None or not trusted:
        return Annotations(Effect.DESTROY, open_world=True)
    reads = hints.read_only_hint is True
    effect = Effect.WRITE if hints.destructive_hint is False else Effect.DESTROY
    return Annotations(
        Effect.READ if reads else effect,
        idempotent=reads or hints.idempotent_hint is True,
        open_world=hints.open_world_hint is not False,
    )


def clean_description(text: str | None, otherwise: str) -> str:
    """Return a description without invisible characters, cut to a maximum length."""
    cleaned = remove_hidden(text or "").strip()
    if len(cleaned) <= _DESCRIPTION_CHARS:
        return cleaned or remove_hidden(otherwise)
    return f"{cleaned[:_DESCRIPTION_CHARS]}… [{len(cleaned)} characters in all]"


_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords of JSON Schema whose values are data, which servers compare with what they get."""
_NAMING = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose values hold schemas by name."""


def _clean_schema(schema: Any) -> Any:
    """Return a schema whose titles and descriptions have no invisible characters: models read them too."""
    if isinstance(schema, list):
        return [_clean_schema(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {key: _clean_member(key, value) for key, value in cast("dict[str, Any]", schema).items()}


def _clean_member(key: str, value: Any) -> Any:
    if key in _NAMING and isinstance(value, dict):
        return {name: _clean_schema(each) for name, each in cast("dict[str, Any]", value).items()}
    if key in ("title", "description") and isinstance(value, str):
        return remove_hidden(value)
    return value if key in _DATA else _clean_schema(value)


_MAX_BLOCKS = 5_000
_NOTES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "content": lambda text: {"type": "text", "text": text},
    "contents": lambda text: {"uri": "note:", "text": text},
    "messages": lambda text: {"role": "user", "content": {"type": "text", "text": text}},
}
"""How a note is written among the parts of a result: of a call, a resource and a prompt."""


def cut_blocks(result: dict[str, Any]) -> None:
    """Cut a result to the parts that can be validated without a pause of the event loop, and say so in a last one."""
    for kind, note in _NOTES.items():
        found: Any = result.get(kind)
        if isinstance(found, list) and len(cast("list[Any]", found)) > _MAX_BLOCKS:
            blocks = cast("list[Any]", found)
            left = f"[{len(blocks) - _MAX_BLOCKS:,} more content blocks were left out: the server sent {len(blocks):,}]"
            result[kind] = [*blocks[:_MAX_BLOCKS], note(left)]


def output_of(result: types.CallToolResult) -> Output:
    """Convert a call's result to an output; a failure is raised with the server's own message."""
    parts = parts_of(result.content)
    structured: Json = result.structured_content
    try:
        if result.is_error:
            told = _join_text(parts) or ("" if structured is None else compact(structured))
            raise ToolFailed(told or "the tool failed without a message")
        if not parts and structured is not None:
            return Output(compact(structured), structured)
        return Output(_plain(parts), structured)
    except (UsageError, ValueError) as error:
        raise ToolFailed("the server sent an invalid response: its structured content is not JSON") from error


def parts_of(blocks: Iterable[types.ContentBlock]) -> tuple[Part, ...]:
    """Convert MCP content blocks to parts."""
    return tuple(_part(block) for block in blocks)


def contents_of(contents: Iterable[types.TextResourceContents | types.BlobResourceContents]) -> Output:
    """Convert the contents of a resource to an output."""
    return Output(_plain(tuple(_resource(content) for content in contents)))


def messages_of(result: types.GetPromptResult) -> Output:
    """Convert a prompt to an output: its messages with their roles, in order."""
    parts: list[Part] = []
    for message in result.messages:
        part = _part(message.content)
        parts.append(Text(f"{message.role}: {part.text}") if isinstance(part, Text) else part)
    return Output(_plain(tuple(parts)))


def _plain(parts: tuple[Part, ...]) -> str | tuple[Part, ...]:
    return _join_text(parts) if all(isinstance(part, Text) for part in parts) else parts


def _join_text(parts: tuple[Part, ...]) -> str:
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
