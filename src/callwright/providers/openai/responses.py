"""OpenAI's Responses API: encoding of messages as items, and the provider.

Responses are read in `responses_stream.py`.
"""

import re
from collections.abc import AsyncIterator
from os import environ
from typing import TYPE_CHECKING, Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Image, Part, Text
from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, compact, thaw
from callwright.core.messages import AssistantMessage, Message, ToolMessage
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.providers.encoding import (
    ask_for_schema,
    data_url,
    encode_history,
    fit_media,
    join_list,
    list_pieces,
    to_bytes,
    unwrap_opaque,
    wire_id,
)
from callwright.providers.openai.client import AnswerFormats, find_openai_origin, open_stream, openai_clients
from callwright.providers.openai.responses_stream import PROVIDER, ResponsesDraft
from callwright.providers.options import ModelOptions, set_fields
from callwright.providers.streaming import read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    LateToolMode,
    RequestBodies,
    ToolEncoder,
    late_tools,
    to_openai_responses,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Item = dict[str, Any]


def encode(message: Message, tools: EncodedTools, origin: str = "") -> bytes:
    """Encode one message, which may become several items.

    Reasoning of another server than `origin`, which is empty for OpenAI, is left out: only that one can decrypt it.
    """
    if isinstance(message, ToolMessage):
        items = [_outcome(outcome) for outcome in message.outcomes]
        return b",".join([*(to_bytes(item) for item in items), *_encode_late_tools(message, tools)])
    if isinstance(message, AssistantMessage):
        items = _assistant(message, tools, origin)
    else:
        items = [{"role": "user", "content": _content(message.content)}]
    return b",".join([to_bytes(item) for item in items])


def _content(content: str | tuple[Part, ...]) -> str | list[Item]:
    return content if isinstance(content, str) else [_part(part) for part in content] or ""  # not an empty list


def _part(part: Part) -> Item:
    part = fit_media(part)
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
    return {"type": "input_file", "filename": part.name or "file.pdf", "file_data": data_url(part)}


def _outcome(outcome: Completed | Failed) -> Item:
    # the API has no flag for failures
    output = f"error: {outcome.text}" if isinstance(outcome, Failed) else _content(outcome.output.content)
    return {"type": "function_call_output", "call_id": wire_id(outcome.call.id), "output": output}


def _encode_late_tools(message: ToolMessage, tools: EncodedTools) -> list[bytes]:
    """Encode the tools that a search found, after the outcomes: calls and outcomes must stay adjacent."""
    found = [tools.late[name] for name in late_tools(message) if name in tools.late]
    return [b'{"type":"additional_tools","role":"developer","tools":' + join_list(found) + b"}"] if found else []


def _assistant(message: AssistantMessage, tools: EncodedTools, origin: str) -> list[Item]:
    items: list[Item] = []
    phase: Item = {}
    for part in message.parts:
        if isinstance(part, Text):
            items.append({"role": "assistant", "content": part.text, **phase})
        elif isinstance(part, ToolCall):
            items.append(_call(part, tools))
        else:
            value = unwrap_opaque(PROVIDER, part, origin)
            phase = {"phase": value["phase"]} if value is not None and "phase" in value else {}
            if value is not None and not phase:
                items.append(thaw(value))
    while items and items[-1].get("type") == "reasoning":  # the API rejects reasoning without the item it led to
        items.pop()
    return items or [{"role": "assistant", "content": "(nothing)"}]


def _call(call: ToolCall, tools: EncodedTools) -> Item:
    named = {"call_id": wire_id(call.id), "name": tools.wire_name_of(call)}
    if call.name in tools.late:  # the API puts such tools in a namespace of their own
        named["namespace"] = named["name"]
    return {"type": "function_call", **named, "arguments": compact(tools.wire_arguments(call))}


_THOUGHTLESS = re.compile(r"(?:chat)?gpt-[34]")
"""Models without reasoning, which reject a request for it."""


class OpenAIResponses:
    """An OpenAI model. Nothing is stored at OpenAI: reasoning comes encrypted and is sent back unchanged.

    Args:
        model: The model's name at OpenAI.
        api_key: Used instead of `OPENAI_API_KEY`.
        base_url: Another address of the same API.
        client: An SDK client to use; turn off its own retries.
        strict: Whether the server enforces tool schemas, where strict mode loses nothing of them.
        late_tools: Whether tools found by a search are added where they were found, which keeps the cached prefix
            valid. By default at OpenAI's own address.

    Raises:
        UsageError: The package `openai` is not installed.
    """

    vendor = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
        strict: bool = True,
        late_tools: bool | None = None,
    ) -> None:
        self.model = model
        if late_tools is None:
            late_tools = client is None and not (base_url or environ.get("OPENAI_BASE_URL"))
        self.late_tools = late_tools
        self._origin = find_openai_origin(client, base_url)
        late: LateToolMode = "by definition" if late_tools else "never"
        self._encoder = ToolEncoder(f"{PROVIDER} {self._origin}", to_openai_responses, strict=strict, late=late)
        self._bodies = RequestBodies(self._fields, "input", merged=("text", "reasoning"))
        self._clients = openai_clients(client, api_key, base_url)
        self._formats = AnswerFormats(self._origin)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        sent = open_stream(self._clients, "/responses", lambda: self._body(request, tools))
        return read_stream(ResponsesDraft(tools, self._origin), sent, key="OPENAI_API_KEY")

    def wire_options(self, options: ModelOptions) -> JsonObject:
        """Return the fields of a request for these options; raises `UsageError` for one that the API does not have."""
        if options.stop:
            raise UsageError(f"{self.model}: the Responses API has no stop texts; use openai-chat:{self.model}")
        found = set_fields(temperature=options.temperature)
        return {**found, **({"reasoning": {"effort": options.effort}} if options.effort else {})}

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _body(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        joined, _ = encode_history(request.messages, tools.key, lambda message: encode(message, tools, self._origin))
        return self._bodies.build(request, tools, list_pieces(joined))

    def _fields(self, request: ModelRequest, tools: EncodedTools) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            "max_output_tokens": to_bytes(request.max_tokens),
            "stream": b"true",
            "store": b"false",
        }
        if not _THOUGHTLESS.match(self.model):
            fields["include"] = b'["reasoning.encrypted_content"]'
        system, schema = request.system, request.output_schema
        form = None if schema is None else self._formats.find(schema)
        if form is not None:
            fields["text"] = to_bytes({"format": {"type": "json_schema", **form}})
        elif schema is not None:
            system = ask_for_schema(system, schema)
        if system:
            fields["instructions"] = to_bytes(system)
        if tools.payload:
            fields["tools"] = tools.payload
        return fields
