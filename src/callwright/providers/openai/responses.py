"""OpenAI's Responses API: encoding of messages as items, reading of the event stream, the provider."""

import re
from collections.abc import AsyncIterator, Iterable
from os import environ
from typing import TYPE_CHECKING, Any, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Image, Part, Text
from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, canonical, compact, thaw
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.encoding import (
    data_url,
    encode_history,
    fit_media,
    get_object,
    join_list,
    list_pieces,
    parse_object,
    to_bytes,
    unwrap_opaque,
    wire_id,
    wrap_opaque,
)
from callwright.providers.errors import broken_stream, status_failure
from callwright.providers.openai.client import (
    STREAM_ENDED,
    answer_format,
    open_stream,
    openai_clients,
    openai_usage,
)
from callwright.providers.options import ModelOptions, set_fields
from callwright.providers.streaming import read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    ToolPayload,
    finish_message,
    late_tools,
    to_openai_responses,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Item = dict[str, Any]

PROVIDER = "openai"


def encode(message: Message, tools: EncodedTools) -> bytes:
    """Encode one message, which may become several items."""
    if isinstance(message, ToolMessage):
        items = [_outcome(outcome) for outcome in message.outcomes]
        return b",".join([*(to_bytes(item) for item in items), *_encode_late_tools(message, tools)])
    if isinstance(message, AssistantMessage):
        items = _assistant(message, tools)
    else:
        items = [{"role": "user", "content": _content(message.content)}]
    return b",".join([to_bytes(item) for item in items])


def _content(content: str | tuple[Part, ...]) -> str | list[Item]:
    return content if isinstance(content, str) else [_part(part) for part in content]


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


def _assistant(message: AssistantMessage, tools: EncodedTools) -> list[Item]:
    items: list[Item] = []
    phase: Item = {}
    for part in message.parts:
        if isinstance(part, Text):
            items.append({"role": "assistant", "content": part.text, **phase})
        elif isinstance(part, ToolCall):
            items.append(_call(part, tools))
        else:
            value = unwrap_opaque(PROVIDER, part)
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


Event = dict[str, Any]
_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_LAST = ("response.completed", "response.incomplete")


class ResponsesDraft:
    """A message under construction from the Responses API's events."""

    def __init__(self, tools: EncodedTools) -> None:
        self._tools = tools
        self._items: dict[int, Event] = {}
        self._done: set[int] = set()
        self._written: dict[int, str] = {}  # the arguments of calls as they were streamed
        self._said: list[Event] = []  # the text as it was streamed, in pieces of content
        self._response: Event | None = None

    def take(self, event: Any) -> list[ModelEvent]:
        """Add one event, or a whole unstreamed response, and return the model events it causes."""
        if event is STREAM_ENDED:
            return []
        if event.get("object") == "response":
            return self._take_whole(event)
        kind = event.get("type", "")
        if kind == "response.output_item.added":
            return self._start_item(event["output_index"], event["item"])
        if kind == "response.output_item.done":
            self._end_item(event["output_index"], event["item"])
        elif kind == "response.function_call_arguments.delta":
            item = self._items.setdefault(event["output_index"], {})
            if not item.get("name"):
                raise broken_stream("the arguments of a call came before its name")
            item["arguments"] = (item.get("arguments") or "") + event["delta"]
            self._written[event["output_index"]] = self._written.get(event["output_index"], "") + event["delta"]
            return [CallDelta(item["call_id"], self._tools.tool_name_of(item["name"]), event["delta"])]
        elif kind == "response.function_call_arguments.done":
            self._written.setdefault(event["output_index"], _arguments_of(event))
        elif kind in _TEXT and event["delta"]:
            self._said.append({"type": kind.split(".")[1], "text": event["delta"]})
            return [TextDelta(event["delta"])]
        elif kind in _THOUGHT and event["delta"]:
            return [ThinkingDelta(event["delta"])]
        elif kind in _LAST:
            self._response = event["response"]
        elif kind in ("response.failed", "error"):
            raise status_failure(200, get_object(event, "response") or event, {})
        return []

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        response = self._response
        if response is None:
            raise broken_stream("it ended before the message was complete")
        # some gateways leave the list in the last event empty
        items: list[Event] = response.get("output") or [self._check_done(index) for index in sorted(self._items)]
        items = [item for item in items if isinstance(item, dict)]  # pyright: ignore[reportUnnecessaryIsInstance] - JSON
        items = self._add_text(self._check_calls(items, response.get("status")))
        stop = self._stop(response, items)
        parts: list[AssistantPart] = []
        for item in items:
            parts += self._parts(item, cut=stop == "length" and item is items[-1])
        usage = openai_usage(get_object(response, "usage"), "input", "output")
        return finish_message(parts, stop, usage, response.get("model"))

    def _check_done(self, index: int) -> Event:
        item = self._items[index]
        if item.get("type") == "function_call" and index not in self._done and not item.get("arguments"):
            raise broken_stream("the arguments of a call never came")
        return item

    def _check_calls(self, items: list[Event], status: str | None) -> list[Event]:
        """Return the last event's items, calls without arguments with those that were streamed.

        Raises `ProviderError` if a call is missing, or differs from what was streamed.
        """
        checked = list(items)
        fewer = _count_calls(items) < _count_calls(self._items.values())  # else a gateway may have changed the ids
        for index, streamed in sorted(self._items.items()):
            if streamed.get("type") != "function_call" or any(item is streamed for item in checked):
                continue
            place = next((at for at, item in enumerate(checked) if _is_same_call(item, streamed)), None)
            if place is not None:
                checked[place] = self._merge_call(index, streamed, checked[place])
            elif fewer and (index in self._done or status in (None, "completed")):
                raise broken_stream("a call that was streamed is missing at the end")
        return checked

    def _merge_call(self, index: int, begun: Event, ended: Event) -> Event:
        """Return a call as it ended, with the arguments that were streamed if it has none."""
        text, streamed = _arguments_of(ended), self._written.get(index) or _arguments_of(begun)
        cut = ended.get("status") == "incomplete"
        same = cut or not text.strip() or not streamed.strip() or _agree(text, streamed)
        if not same or ended.get("name") != begun.get("name"):
            raise broken_stream("a call differs from what was streamed of it")
        return ended if text.strip() else {**ended, "arguments": streamed}

    def _add_text(self, items: list[Event]) -> list[Event]:
        """Return the items with the text that was streamed, if they have none."""
        told = any(item.get("type") == "message" and _join_content(item.get("content")) for item in items)
        if told or not self._said:
            return items
        first = next((at for at, item in enumerate(items) if item.get("type") == "function_call"), len(items))
        return [*items[:first], {"type": "message", "content": self._said}, *items[first:]]

    def _take_whole(self, response: Event) -> list[ModelEvent]:
        if response.get("status") == "failed":
            raise status_failure(200, response, {})
        self._response = response
        said = "".join(part.text for part in self.message().parts if isinstance(part, Text))
        return [TextDelta(said)] if said else []

    def _start_item(self, index: int, item: Event) -> list[ModelEvent]:
        self._items[index] = dict(item)  # it grows
        self._written.pop(index, None)
        if item.get("type") == "function_call":
            return [CallDelta(item["call_id"], self._tools.tool_name_of(item["name"]), "")]
        return []

    def _end_item(self, index: int, item: Event) -> None:
        begun = self._items.get(index)
        if begun is not None and begun.get("type") == item.get("type") == "function_call":
            item = self._merge_call(index, begun, item)
        self._items[index] = item
        self._done.add(index)

    def _stop(self, response: Event, items: list[Event]) -> Stop:
        why = get_object(response, "incomplete_details").get("reason")
        if response.get("status") == "incomplete":
            return "length" if why == "max_output_tokens" else "refusal" if why == "content_filter" else "other"
        if response.get("status") not in (None, "completed"):
            return "other"
        contents = [item.get("content") for item in items]
        parts = [part for content in contents if isinstance(content, list) for part in cast("list[Any]", content)]
        refused = any(isinstance(part, dict) and "refusal" in (part.get("type") or "") for part in parts)  # pyright: ignore[reportUnknownMemberType] - JSON
        return "refusal" if refused else "end"

    def _read_call(self, item: Event, *, cut: bool) -> ToolCall:
        name = item.get("name")
        if not name:
            raise broken_stream("a call has no name")
        return self._tools.read_call(item.get("call_id") or item.get("id") or "", name, _arguments_of(item), cut=cut)

    def _parts(self, item: Event, *, cut: bool) -> list[AssistantPart]:
        match item.get("type"):
            case "function_call":
                return [self._read_call(item, cut=cut or item.get("status") == "incomplete")]
            case "message":
                text = _join_content(item.get("content"))
                phase = item.get("phase")
                label = [Thinking("", wrap_opaque(PROVIDER, {"phase": phase}))] if phase else []
                return [*label, Text(text)] if text else []
            case "reasoning":
                return [_read_reasoning(item)]
            case _:  # tools the API runs itself: sent back unchanged
                return [Thinking("", wrap_opaque(PROVIDER, item))]


def _arguments_of(call: Event) -> str:
    written = call.get("arguments")
    return written if isinstance(written, str) else "" if written is None else compact(written)


def _count_calls(items: Iterable[Event]) -> int:
    return sum(item.get("type") == "function_call" for item in items)


def _is_same_call(item: Event, streamed: Event) -> bool:
    same = any(streamed.get(name) and item.get(name) == streamed[name] for name in ("call_id", "id"))
    return same and item.get("type") == "function_call"


def _agree(text: str, streamed: str) -> bool:
    """Tell whether two texts are the same arguments, perhaps with other white space."""
    if text.strip() == streamed.strip():
        return True
    first, second = parse_object(text), parse_object(streamed)
    return first is not None and second is not None and canonical(first) == canonical(second)


def _join_content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content or ())


def _read_reasoning(item: Event) -> Thinking:
    texts: list[Event] = [*(item.get("summary") or ()), *(item.get("content") or ())]
    text = "\n\n".join([part["text"] for part in texts if part.get("text")])
    if not item.get("encrypted_content"):
        return Thinking(text)  # nothing is stored at OpenAI, so the item could not be found again
    names = ("type", "id", "summary", "content", "encrypted_content")
    return Thinking(text, wrap_opaque(PROVIDER, {name: item[name] for name in names if item.get(name) is not None}))


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
        self._encoder = ToolEncoder(
            PROVIDER, _encode_tool, strict=strict, late="by definition" if late_tools else "never"
        )
        self._bodies = RequestBodies(self._fields, "input", merged=("text", "reasoning"))
        self._clients = openai_clients(client, api_key, base_url)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        sent = open_stream(self._clients, "/responses", lambda: self._body(request, tools))
        return read_stream(ResponsesDraft(tools), sent, key="OPENAI_API_KEY")

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
        joined, _ = encode_history(request.messages, tools.key, lambda message: encode(message, tools))
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
        if request.system:
            fields["instructions"] = to_bytes(request.system)
        if tools.payload:
            fields["tools"] = tools.payload
        if request.output_schema is not None:
            fields["text"] = to_bytes({"format": {"type": "json_schema", **answer_format(request.output_schema)}})
        return fields


def _encode_tool(spec: ToolSpec, name: str, strict: bool) -> ToolPayload:
    return to_openai_responses(spec, name, strict=strict)
