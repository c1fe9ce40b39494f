"""What the editor sends: the blocks of a prompt, folders, and MCP servers, checked and in our own terms."""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from acp.exceptions import RequestError
from acp.schema import (
    AcpMcpServer,
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    HttpMcpServer,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    SseMcpServer,
    TextContentBlock,
    TextResourceContents,
)
from pydantic import BaseModel, ValidationError

from callwright.app.attachments import Mention
from callwright.core.content import WEB_IMAGES, File, Image, Part, Text
from callwright.core.json import read_object
from callwright.system.paths import shorten_path

Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
Server: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
_LINES = re.compile(r"^L([0-9]{1,9})(?:[:-]L?([0-9]{1,9}))?$")
_MOST_ERRORS = 5
_MOST_LINKS = 50
_MOST_FOLDERS = 20
_MOST_SERVERS = 50
_MOST_MEDIA_BYTES = 20 * 1024 * 1024


def refuse(reason: str) -> RequestError:
    """Return the error for a request whose parameters cannot be used; the reason is the message itself."""
    return RequestError(-32602, f"Invalid params: {reason}")


def parse_params(model: type[BaseModel], params: object) -> BaseModel:
    """Return the parameters of a request.

    Raises:
        RequestError: They do not fit the schema; the message names the fields.
    """
    try:
        request = model.model_validate({} if params is None else params)
    except ValidationError as error:
        raise refuse(_explain(error)) from None
    _check_lists(params, request)
    return request


def _check_lists(params: object, request: BaseModel) -> None:
    """Refuse a request with an entry that the SDK would leave out in silence, such as an MCP server of a new kind.

    Raises:
        RequestError: An entry of a list is not valid.
    """
    given = read_object(params)
    for name, attribute in (("mcpServers", "mcp_servers"), ("additionalDirectories", "additional_directories")):
        sent = given.get(name)
        if sent is None:
            continue
        taken: Sequence[object] = getattr(request, attribute, None) or ()
        if not isinstance(sent, list) or len(cast("list[object]", sent)) != len(taken):
            raise refuse(f"{name}: expected a list of valid entries; one of them is not of the protocol")


def _explain(error: ValidationError) -> str:
    """Return what is wrong with parameters, without repeating values, which may be megabytes."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    texts = [f"{'.'.join(map(str, each['loc'])) or 'params'}: {each['msg']}"[:300] for each in found[:_MOST_ERRORS]]
    more = f"; and {len(found) - _MOST_ERRORS} more" if len(found) > _MOST_ERRORS else ""
    return "; ".join(texts) + more


@dataclass(slots=True)
class EditorPrompt:
    """A prompt of the editor: its text, content that came along, and files to read."""

    text: str = ""
    parts: list[Part] = field(default_factory=list[Part])
    links: list[Mention] = field(default_factory=list[Mention])
    embedded: list[str] = field(default_factory=list[str])
    """The names of the files whose content came along."""


def read_prompt(blocks: Sequence[Block], cwd: Path) -> EditorPrompt:
    """Return the prompt that content blocks make up.

    A link to a file is named in the text, where it stood, and the file is read later, by the `read` tool and under its
    rules. Embedded content came from the user's editor and is passed on as it is.

    Raises:
        RequestError: The prompt is empty, or a block cannot be used.
    """
    prompt = EditorPrompt()
    texts: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                texts.append(text)
            case ImageContentBlock(data=data, mime_type=media_type):
                prompt.parts.append(_image(data, media_type))
            case ResourceContentBlock(uri=uri, name=name):
                texts.append(_add_link(prompt, uri, name, cwd))
            case EmbeddedResourceContentBlock(resource=resource):
                name = _name_of(resource.uri, cwd)
                texts.append(f"`{name}`")  # not as @name, which would attach the file on disk as well
                prompt.embedded.append(name)
                if isinstance(resource, TextResourceContents):
                    body = f'<file path="{escape(name)}">\n{resource.text}\n</file>'
                    prompt.parts.append(Text(body))
                else:
                    prompt.parts.append(_media(resource.blob, resource.mime_type or "", name))
            case AudioContentBlock():
                raise refuse("audio is not supported; the capabilities of this agent say so")
    prompt.text = _join(texts)
    if not prompt.text.strip() and not prompt.parts:
        raise refuse("the prompt is empty")
    if len(prompt.links) > _MOST_LINKS:
        raise refuse(f"the prompt links {len(prompt.links)} files; at most {_MOST_LINKS} are read")
    return prompt


def _join(texts: Sequence[str]) -> str:
    """Join the pieces of a text; editors send a mention inside a sentence as a block of its own."""
    joined = ""
    for text in texts:
        apart = joined and text and not joined[-1].isspace() and not text[0].isspace()
        joined += f" {text}" if apart else text
    return joined


def _add_link(prompt: EditorPrompt, uri: str, name: str, cwd: Path) -> str:
    path = _path_of(uri)
    if path is None:
        return f"[{name}]({uri})"
    found = _LINES.match(urlsplit(uri).fragment)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    prompt.links.append(Mention(path, first, last))
    return f"`{_name_of(uri, cwd)}`"


def _path_of(uri: str) -> str | None:
    """Return the path of a `file` address on this machine; None for every other address."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return path if path.startswith("/") and "\0" not in path else None


def _name_of(uri: str, cwd: Path) -> str:
    path = _path_of(uri)
    return uri if path is None else shorten_path(path, cwd)


def _image(data: str, media_type: str) -> Image:
    if media_type not in WEB_IMAGES:
        raise refuse(f"images of type {media_type!r} are not supported; use {', '.join(sorted(WEB_IMAGES))}")
    return Image(_decode(data), media_type)


def _media(data: str, media_type: str, name: str) -> Part:
    if media_type in WEB_IMAGES:
        return _image(data, media_type)
    return File(_decode(data), media_type or "application/octet-stream", name)


def _decode(data: str) -> bytes:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise refuse("an image or a resource is not base64") from None
    if len(decoded) > _MOST_MEDIA_BYTES:
        raise refuse(f"an image or a resource has {len(decoded)} bytes; at most {_MOST_MEDIA_BYTES} are taken")
    return decoded


def check_folder(path: str, within: Path | None = None) -> Path:
    """Return the folder a session works in.

    Args:
        path: What the editor sent.
        within: If given, the folder that the others must be in.

    Raises:
        RequestError: It is not an absolute path of an existing folder, or not inside `within`.
    """
    if "\0" in path or not Path(path).is_absolute():
        raise refuse(f"expected an absolute path of a folder, got {path[:200]!r}")
    try:
        folder = Path(path).resolve(strict=True)
        usable = folder.is_dir()
    except (OSError, RuntimeError):
        raise refuse(f"{path[:200]}: no such folder") from None
    if not usable:
        raise refuse(f"{path[:200]} is not a folder")
    if within is not None and not folder.is_relative_to(within):
        raise refuse(f"{path[:200]} is outside of {within}, which this agent was started for (--workspace)")
    return folder


def check_folders(paths: Sequence[str], within: Path | None = None) -> tuple[str, ...]:
    """Return additional folders of a session.

    Raises:
        RequestError: One of them cannot be used, or there are too many.
    """
    if len(paths) > _MOST_FOLDERS:
        raise refuse(f"{len(paths)} additional directories; at most {_MOST_FOLDERS} are taken")
    return tuple(str(check_folder(path, within)) for path in paths)


def read_servers(servers: Sequence[Server], cwd: Path) -> str:
    """Return the MCP servers as the JSON of an `.mcp.json`; empty without any.

    Raises:
        RequestError: A server is of a kind that this agent does not support, or two have the same name.
    """
    if len(servers) > _MOST_SERVERS:
        raise refuse(f"{len(servers)} MCP servers; at most {_MOST_SERVERS} are started")
    entries: dict[str, dict[str, Any]] = {}
    for server in servers:
        if server.name in entries:
            raise refuse(f"two MCP servers are called {server.name!r}")
        entries[server.name] = _server_entry(server, cwd)
    return json.dumps({"mcpServers": entries}) if entries else ""


def _server_entry(server: Server, cwd: Path) -> dict[str, Any]:
    match server:
        case McpServerStdio(command=command, args=args, env=env):
            variables = {each.name: _literal(each.value) for each in env}
            literal = [_literal(each) for each in args]
            return {"command": _literal(command), "args": literal, "env": variables, "cwd": _literal(str(cwd))}
        case HttpMcpServer(url=url, headers=headers):
            sent = {each.name: _literal(each.value) for each in headers}
            return {"type": "http", "url": _literal(str(url)), "headers": sent}
        case _:
            raise refuse(f"MCP server {server.name!r}: type {server.type} is not supported; use stdio or http")


def _literal(text: str) -> str:
    """Return a text that the configuration reader turns back into this one: what to expand is the editor's choice."""
    return text.replace("${", "${CALLWRIGHT_LITERAL:-$}{")
