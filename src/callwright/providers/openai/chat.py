"""Models behind the Chat Completions API: OpenAI's, and those of llama.cpp, vLLM, Ollama and many a gateway.

Messages as the Chat Completions API takes them: OpenAI's own, and everybody's who speaks it too.

The stream of a chat completion as a message that grows.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import compact
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage, Usage
from callwright.core.spec import ToolSpec
from callwright.providers.base import CallDelta, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from callwright.providers.encoding import (
    Kept,
    Pieces,
    data_url,
    file_text,
    grown,
    kept,
    kept_by,
    nested,
    pieced,
    to_bytes,
    wire_id,
)
from callwright.providers.errors import broken
from callwright.providers.openai.client import answer_format, openai_clients, openai_usage, opened
from callwright.providers.streaming import answer
from callwright.providers.tool_encoding import (
    Bodies,
    EncodedTools,
    Fields,
    Shape,
    ToolEncoder,
    stop_for,
    to_openai_chat,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Wire = dict[str, Any]

PROVIDER = "openai_chat"


def encode(message: Message, edge: EncodedTools) -> bytes:
    """Encode one message, which may become several on the wire."""
    if isinstance(message, ToolMessage):
        return b",".join([to_bytes(each) for each in _outcomes(message)])
    if isinstance(message, AssistantMessage):
        return to_bytes(_assistant(message, edge))
    return to_bytes({"role": "user", "content": user_content(message.content)})


def user_content(content: str | tuple[Part, ...]) -> str | list[Wire]:
    """Give what a user said: text as it is, parts as a list."""
    return content if isinstance(content, str) else [_part(part) for part in content]


def outcome_text(outcome: Completed | Failed) -> str:
    """Give what a tool said to an API that has no flag for failures."""
    if isinstance(outcome, Failed):
        return f"error: {outcome.text}"
    return "\n".join([said for part in outcome.output.parts if (said := _textual(part)) is not None])


def _textual(part: Part) -> str | None:
    if isinstance(part, Text):
        return part.text
    return file_text(part) if isinstance(part, File) and part.media_type != "application/pdf" else None


def _part(part: Part) -> Wire:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    if isinstance(part, File) and part.media_type == "application/pdf":
        return {"type": "file", "file": {"filename": part.name or "file.pdf", "file_data": data_url(part)}}
    return {"type": "text", "text": part.text if isinstance(part, Text) else file_text(part)}


def _outcomes(message: ToolMessage) -> list[Wire]:
    answers: list[Wire] = []
    shown: list[Wire] = []
    for outcome in message.outcomes:
        answers.append({"role": "tool", "tool_call_id": wire_id(outcome.call.id), "content": outcome_text(outcome)})
        parts = outcome.output.parts if isinstance(outcome, Completed) else ()
        pictures = [_part(part) for part in parts if _textual(part) is None]
        if pictures:  # a tool message holds text only, so a person's message shows what the tool did
            shown += [{"type": "text", "text": f"from {wire_id(outcome.call.id)}:"}, *pictures]
    return [*answers, {"role": "user", "content": shown}] if shown else answers


def _assistant(message: AssistantMessage, edge: EncodedTools) -> Wire:
    calls = [_call(call, edge) for call in message.calls]
    wire: Wire = {"role": "assistant", "content": message.text or (None if calls else "")}
    if calls:
        wire["tool_calls"] = calls
        wire |= _reasoning(message)
    return wire


def _reasoning(message: AssistantMessage) -> Wire:
    """Give back the thoughts that led to calls, under the name the server gave them; other thoughts are not wanted."""
    thoughts: Wire = {}
    for part in message.parts:
        field = kept_by(PROVIDER, part) if isinstance(part, Thinking) else None
        if isinstance(part, Thinking) and isinstance(field, str):
            thoughts[field] = thoughts.get(field, "") + part.text
    return thoughts


def _call(call: ToolCall, edge: EncodedTools) -> Wire:
    # servers that fill a template parse this text, so it is always JSON
    function = {"name": edge.outward_name(call), "arguments": compact(edge.outward(call))}
    return {"id": wire_id(call.id), "type": "function", "function": function}


Chunk = dict[str, Any]

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
_REASONING = ("reasoning_content", "reasoning")
"""What servers call thoughts; the standard has no word for them."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    text: str = ""


class ChatDraft:
    """The message so far."""

    def __init__(self, edge: EncodedTools) -> None:
        self._edge = edge
        self._thoughts: dict[str, str] = {}
        self._text = ""
        self._refused = False
        self._calls: dict[object, _Call] = {}
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()

    def take(self, chunk: Chunk) -> list[ModelEvent]:
        """Take in one chunk; say what of it is news."""
        self._model = chunk.get("model") or self._model
        if chunk.get("usage"):
            self._usage = openai_usage(chunk["usage"], "prompt", "completion")
        news: list[ModelEvent] = []
        for choice in (chunk.get("choices") or ())[:1]:
            news = self._grown(nested(choice, "delta"))
            self._reason = choice.get("finish_reason") or self._reason
        return news

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        if self._reason is None:
            raise broken("it ended before the message did")
        stop: Stop = "refusal" if self._refused else _STOPS.get(self._reason, "other")
        parts: list[AssistantPart] = [Thinking(text, kept(PROVIDER, name)) for name, text in self._thoughts.items()]
        if self._text:
            parts.append(Text(self._text))
        calls = list(self._calls.values())
        for call in calls:
            cut = stop == "length" and call is calls[-1]
            parts.append(self._edge.inward(call.id, call.name, call.text, cut=cut))
        return AssistantMessage(tuple(parts), stop_for(stop, tuple(parts)), self._usage, self._model)

    def _grown(self, delta: Chunk) -> list[ModelEvent]:
        news: list[ModelEvent] = []
        for name in _REASONING:
            if delta.get(name):
                self._thoughts[name] = self._thoughts.get(name, "") + delta[name]
                news.append(ThinkingDelta(delta[name]))
                break
        self._refused = self._refused or bool(delta.get("refusal"))
        text = delta.get("content") or delta.get("refusal")
        if text:
            self._text += text
            news.append(TextDelta(text))
        news += [self._called(piece) for piece in delta.get("tool_calls") or ()]
        return news

    def _called(self, piece: Chunk) -> ModelEvent:
        function = nested(piece, "function")
        call = self._open_call(piece, function)
        text = function.get("arguments") or ""
        if not isinstance(text, str):  # some servers send the object itself
            text = json.dumps(text)
        call.text += text
        return CallDelta(call.id, self._edge.inward_name(call.name), text)

    def _open_call(self, piece: Chunk, function: Chunk) -> _Call:
        """Find the call a piece belongs to. Some servers number all calls 0, some none; a new id is a new call."""
        key: object = piece.get("index")
        known = self._calls.get(key) if key is not None else None
        fresh = piece.get("id")
        if known is not None and (not fresh or fresh == known.id):
            return known
        if known is None and not fresh and not function.get("name") and self._calls:
            return list(self._calls.values())[-1]
        if known is not None or key is None:
            key = (key, fresh or token_hex(8))
            if key in self._calls:
                return self._calls[key]
        call = self._calls[key] = _Call(fresh or f"call_{token_hex(8)}", function.get("name") or "")
        return call


class OpenAIChat:
    """A model that speaks Chat Completions."""

    vendor = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
        strict: bool = False,
    ) -> None:
        """`strict` has tools enforced by the server, where their schemas lose nothing by it and the server can."""
        self.model = model
        self._edges = ToolEncoder(PROVIDER, _shape, strict=strict)
        self._limit = "max_completion_tokens" if base_url is None else "max_tokens"  # the old name is known everywhere
        self._bodies = Bodies(self._fields, "messages")
        self._systems: Kept[bytes] = Kept()
        self._clients = openai_clients(client, api_key, base_url)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model; raises `ProviderError`. Closing the iterator ends the request."""
        edge = self._edges.of(request)
        sent = opened(self._clients, "/chat/completions", lambda: self._body(request, edge))
        return answer(ChatDraft(edge), sent, key="OPENAI_API_KEY")

    async def calls_tools(self) -> bool | None:
        """Ask a llama.cpp server whether its model was taught to call tools; None where nobody can tell."""
        client = await self._clients.get()
        try:
            found = await client.get(str(client.base_url.join("/props")), cast_to=object)
        except Exception:  # noqa: BLE001 - other servers know no such page, and their answers are of any kind
            return None
        template = cast("dict[str, Any]", found).get("chat_template") if isinstance(found, dict) else None
        return "tools" in template if isinstance(template, str) else None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _body(self, request: ModelRequest, edge: EncodedTools) -> bytes:
        return self._bodies.of(request, edge, self._messages(request, edge))

    def _fields(self, request: ModelRequest, edge: EncodedTools) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            self._limit: to_bytes(request.max_tokens),
            "stream": b"true",
            "stream_options": b'{"include_usage":true}',
        }
        if edge.tools:
            fields["tools"] = edge.tools
        if request.output_schema is not None:
            shape = {"type": "json_schema", "json_schema": answer_format(request.output_schema)}
            fields["response_format"] = to_bytes(shape)
        return fields

    def _messages(self, request: ModelRequest, edge: EncodedTools) -> Pieces:
        system = self._systems.of(request.system, make=lambda: _told(request.system))
        settled, _ = grown(request.messages, edge.key, lambda message: encode(message, edge))
        return pieced(system, settled)


def _told(system: str) -> bytes:
    return to_bytes({"role": "system", "content": system}) if system else b""


def _shape(spec: ToolSpec, name: str, strict: bool) -> Shape:
    return to_openai_chat(spec, name, strict=strict)
