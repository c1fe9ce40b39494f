"""OpenAI's models, through its Responses API.

Messages as items of OpenAI's Responses API.

The events of OpenAI's Responses API as a message that grows.
"""

import re
from collections.abc import AsyncIterator
from os import environ
from typing import TYPE_CHECKING, Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import compact, thaw
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.encoding import (
    data_url,
    file_text,
    grown,
    kept,
    kept_by,
    listed,
    nested,
    pieced,
    to_bytes,
    wire_id,
)
from callwright.providers.errors import broken, status_failure
from callwright.providers.openai.client import answer_format, openai_clients, openai_usage, opened
from callwright.providers.streaming import answer
from callwright.providers.tool_encoding import (
    Bodies,
    EncodedTools,
    Fields,
    Shape,
    ToolEncoder,
    joined,
    stop_for,
    to_openai_responses,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Item = dict[str, Any]

PROVIDER = "openai"


def encode(message: Message, edge: EncodedTools) -> bytes:
    """Encode one message, which may become several items."""
    if isinstance(message, ToolMessage):
        items = [_outcome(outcome) for outcome in message.outcomes]
        return b",".join([*(to_bytes(item) for item in items), *_joining(message, edge)])
    if isinstance(message, AssistantMessage):
        items = _assistant(message, edge)
    else:
        items = [{"role": "user", "content": _content(message.content)}]
    return b",".join([to_bytes(item) for item in items])


def _content(content: str | tuple[Part, ...]) -> str | list[Item]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> Item:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": data_url(part)}
    if isinstance(part, File) and part.media_type == "application/pdf":
        return {"type": "input_file", "filename": part.name or "file.pdf", "file_data": data_url(part)}
    return {"type": "input_text", "text": part.text if isinstance(part, Text) else file_text(part)}


def _outcome(outcome: Completed | Failed) -> Item:
    # the API has no flag for failures
    output = f"error: {outcome.text}" if isinstance(outcome, Failed) else _content(outcome.output.content)
    return {"type": "function_call_output", "call_id": wire_id(outcome.call.id), "output": output}


def _joining(message: ToolMessage, edge: EncodedTools) -> list[bytes]:
    """Bring along the tools that were found, after the outcomes: calls and outcomes stay next to each other."""
    found = [edge.late[name] for name in joined(message) if name in edge.late]
    return [b'{"type":"additional_tools","role":"developer","tools":' + listed(found) + b"}"] if found else []


def _assistant(message: AssistantMessage, edge: EncodedTools) -> list[Item]:
    items: list[Item] = []
    phase: Item = {}
    for part in message.parts:
        if isinstance(part, Text):
            items.append({"role": "assistant", "content": part.text, **phase})
        elif isinstance(part, ToolCall):
            items.append(_call(part, edge))
        else:
            value = kept_by(PROVIDER, part)
            phase = {"phase": value["phase"]} if value is not None and "phase" in value else {}
            if value is not None and not phase:
                items.append(thaw(value))
    while items and items[-1].get("type") == "reasoning":  # the API wants no thought without what it led to
        items.pop()
    return items or [{"role": "assistant", "content": "(nothing)"}]


def _call(call: ToolCall, edge: EncodedTools) -> Item:
    named = {"call_id": wire_id(call.id), "name": edge.outward_name(call)}
    if call.name in edge.late:  # the API has such tools in a namespace of their own
        named["namespace"] = named["name"]
    return {"type": "function_call", **named, "arguments": compact(edge.outward(call))}


Event = dict[str, Any]

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_LAST = ("response.completed", "response.incomplete")


class ResponsesDraft:
    """The message so far."""

    def __init__(self, edge: EncodedTools) -> None:
        self._edge = edge
        self._items: dict[int, Event] = {}
        self._response: Event | None = None

    def take(self, event: Event) -> list[ModelEvent]:
        """Take in one event; say what of it is news."""
        kind = event.get("type", "")
        if kind == "response.output_item.added":
            return self._added(event["output_index"], event["item"])
        if kind == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif kind == "response.function_call_arguments.delta":
            item = self._items[event["output_index"]]
            item["arguments"] = item.get("arguments", "") + event["delta"]
            return [CallDelta(item["call_id"], self._edge.inward_name(item["name"]), event["delta"])]
        elif kind in _TEXT and event["delta"]:
            return [TextDelta(event["delta"])]
        elif kind in _THOUGHT and event["delta"]:
            return [ThinkingDelta(event["delta"])]
        elif kind in _LAST:
            self._response = event["response"]
        elif kind in ("response.failed", "error"):
            raise status_failure(200, nested(event, "response") or event, {})
        return []

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        response = self._response
        if response is None:
            raise broken("it ended before the message did")
        # some gateways leave the list in the last event empty
        items: list[Event] = response.get("output") or [item for _, item in sorted(self._items.items())]
        stop = self._stop(response, items)
        parts: list[AssistantPart] = []
        for item in items:
            parts += self._parts(item, cut=stop == "length" and item is items[-1])
        usage = openai_usage(nested(response, "usage"), "input", "output")
        return AssistantMessage(tuple(parts), stop_for(stop, tuple(parts)), usage, response.get("model", ""))

    def _added(self, index: int, item: Event) -> list[ModelEvent]:
        self._items[index] = item
        if item.get("type") == "function_call":
            return [CallDelta(item["call_id"], self._edge.inward_name(item["name"]), "")]
        return []

    def _stop(self, response: Event, items: list[Event]) -> Stop:
        why = nested(response, "incomplete_details").get("reason")
        if response.get("status") == "incomplete":
            return "length" if why == "max_output_tokens" else "refusal" if why == "content_filter" else "other"
        refused = any(part.get("type") == "refusal" for item in items for part in item.get("content") or ())
        return "refusal" if refused else "end"

    def _parts(self, item: Event, *, cut: bool) -> list[AssistantPart]:
        match item.get("type"):
            case "function_call":
                return [self._edge.inward(item["call_id"], item["name"], item.get("arguments", ""), cut=cut)]
            case "message":
                text = "".join(part.get("text") or part.get("refusal") or "" for part in item.get("content") or ())
                phase = item.get("phase")
                label = [Thinking("", kept(PROVIDER, {"phase": phase}))] if phase else []
                return [*label, Text(text)] if text else []
            case "reasoning":
                return [_thought(item)]
            case _:  # tools the API runs itself: handed back as they are
                return [Thinking("", kept(PROVIDER, item))]


def _thought(item: Event) -> Thinking:
    told: list[Event] = [*(item.get("summary") or ()), *(item.get("content") or ())]
    said = "\n\n".join([part["text"] for part in told])
    if not item.get("encrypted_content"):
        return Thinking(said)  # the API keeps nothing for us, so it would not know this item again
    wanted = ("type", "id", "summary", "content", "encrypted_content")
    return Thinking(said, kept(PROVIDER, {name: item[name] for name in wanted if item.get(name) is not None}))


_THOUGHTLESS = re.compile(r"(?:chat)?gpt-[34]")
"""Models that do not think, and that refuse a request which asks for their thoughts."""


class OpenAIResponses:
    """An OpenAI model. Nothing is stored with OpenAI: thoughts come encrypted and go back as they came."""

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
        """`strict` has tools enforced by the server, where their schemas lose nothing by it.

        `late_tools` has tools that were searched for join where they were found, so that what is cached stays valid;
        by default at OpenAI's own address.
        """
        self.model = model
        if late_tools is None:
            late_tools = client is None and not (base_url or environ.get("OPENAI_BASE_URL"))
        self.late_tools = late_tools
        self._edges = ToolEncoder(PROVIDER, _shape, strict=strict, late="by definition" if late_tools else "never")
        self._bodies = Bodies(self._fields, "input")
        self._clients = openai_clients(client, api_key, base_url)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        sent = opened(self._clients, "/responses", lambda: self._body(request, edge))
        return answer(ResponsesDraft(edge), sent, key="OPENAI_API_KEY")

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _body(self, request: ModelRequest, edge: EncodedTools) -> bytes:
        settled, _ = grown(request.messages, edge.key, lambda message: encode(message, edge))
        return self._bodies.of(request, edge, pieced(settled))

    def _fields(self, request: ModelRequest, edge: EncodedTools) -> Fields:
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
        if edge.tools:
            fields["tools"] = edge.tools
        if request.output_schema is not None:
            fields["text"] = to_bytes({"format": {"type": "json_schema", **answer_format(request.output_schema)}})
        return fields


def _shape(spec: ToolSpec, name: str, strict: bool) -> Shape:
    return to_openai_responses(spec, name, strict=strict)
