"""Between MCP's words and ours: definitions become specs, results become outputs."""

import base64
import binascii
import unicodedata
from collections.abc import Iterable
from typing import Any

import mcp_types as types

from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import ToolFailed
from callwright.core.json import Json, compact
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.mcp.config import ServerConfig

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
