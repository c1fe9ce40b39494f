"""The Chat Completions API, as served by OpenAI, llama.cpp, vLLM, Ollama and many gateways.

Encoding of messages, and the provider. Responses are read in `chat_stream.py`.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.json import JsonObject, compact, thaw
from callwright.core.messages import AssistantMessage, Message, Thinking, ToolMessage, UserMessage
from callwright.providers.base import ModelEvent, ModelRequest, ProviderError
from callwright.providers.clients import fetch_json
from callwright.providers.encoding import (
    IdentityCache,
    Pieces,
    ask_for_schema,
    data_url,
    encode_history,
    fit_media,
    list_pieces,
    to_bytes,
    unwrap_opaque,
    wire_id,
)
from callwright.providers.openai.chat_stream import PROVIDER, ChatDraft
from callwright.providers.openai.client import (
    KEY_NOT_SENT,
    AnswerFormats,
    find_openai_origin,
    open_stream,
    openai_clients,
)
from callwright.providers.options import ModelOptions, set_fields
from callwright.providers.streaming import read_stream
from callwright.providers.tool_encoding import (
    EncodedTools,
    Fields,
    RequestBodies,
    ToolEncoder,
    to_openai_chat,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Wire = dict[str, Any]

_MISTRAL = re.compile(r"(?:.*/)?(?:mistral|ministral|codestral|devstral|magistral|pixtral|mixtral)", re.IGNORECASE)
_SIGNED_GEMINI = re.compile(r"(?:.*/)?gemini-(?:[3-9]|\d\d)")
_NEW_LIMIT = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d))")
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_KIMI = re.compile(r"kimi|moonshot", re.IGNORECASE)
_KIMI_ID = re.compile(r"[a-zA-Z0-9_.-]{1,128}:[0-9]{1,6}")
"""Such as `functions.read:0`: the model is shown the ids of old calls in place of the names of their tools."""
_UNSIGNED: Wire = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google requires instead of a signature on calls that no Gemini model made."""
_BETWEEN: Wire = {"role": "assistant", "content": "OK."}
"""Mistral accepts no user message right after tool messages."""


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """What a server or model requires beyond the standard."""

    tag: str = ""
    """Identifies the server and model whose opaque parts are sent back."""
    mistral: bool = False
    """Ids of nine letters or digits, and no user message after tool messages."""
    signed: bool = False
    """The first call of each message has a thought signature."""
    kimi: bool = False
    """The model's own ids are sent back unchanged; other models' servers do not accept them."""

    def call_id(self, call: ToolCall) -> str:
        """Return a call id that the server accepts."""
        if self.kimi and _KIMI_ID.fullmatch(call.id):
            return call.id
        if not self.mistral or _MISTRAL_ID.fullmatch(call.id):
            return wire_id(call.id)
        return sha256(call.id.encode("utf-8", "replace")).hexdigest()[:9]


def encode(message: Message, tools: EncodedTools, dialect: ChatDialect) -> bytes:
    """Encode one message, which may become several on the wire."""
    if isinstance(message, ToolMessage):
        return b",".join([to_bytes(each) for each in _outcomes(message, dialect)])
    if isinstance(message, AssistantMessage):
        return to_bytes(_assistant(message, tools, dialect))
    return to_bytes({"role": "user", "content": user_content(message.content)})


def user_content(content: str | tuple[Part, ...]) -> str | list[Wire]:
    """Return the content of a user message: text unchanged, parts as a list, which the API does not accept empty."""
    return content if isinstance(content, str) else [_part(part) for part in content] or ""


def outcome_text(outcome: Completed | Failed) -> str:
    """Return a tool's output as text; the API has no flag for failures, so they start with `error:`."""
    if isinstance(outcome, Failed):
        return f"error: {outcome.text}"
    fitted = [fit_media(part) for part in outcome.output.parts]
    return "\n".join([part.text for part in fitted if isinstance(part, Text)])


def _part(part: Part) -> Wire:
    part = fit_media(part)
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return {"type": "file", "file": {"filename": part.name or "file.pdf", "file_data": data_url(part)}}


def _outcomes(message: ToolMessage, dialect: ChatDialect) -> list[Wire]:
    answers: list[Wire] = []
    shown: list[Wire] = []
    for outcome in message.outcomes:
        call_id = dialect.call_id(outcome.call)
        answers.append({"role": "tool", "tool_call_id": call_id, "content": outcome_text(outcome)})
        parts = outcome.output.parts if isinstance(outcome, Completed) else ()
        pictures = [_part(part) for part in parts if isinstance(fit_media(part), (Image, File))]
        if pictures:  # a tool message holds text only, so images follow in a user message
            shown += [{"type": "text", "text": f"from {call_id}:"}, *pictures]
    if not shown:
        return answers
    return [*answers, *([_BETWEEN] if dialect.mistral else []), {"role": "user", "content": shown}]


def _assistant(message: AssistantMessage, tools: EncodedTools, dialect: ChatDialect) -> Wire:
    calls: list[Wire] = []
    extra: Wire | None = None
    thoughts: Wire = {}
    for part in message.parts:
        if isinstance(part, ToolCall):
            if extra is None and dialect.signed and not calls:
                extra = _UNSIGNED
            calls.append(_call(part, tools, dialect, extra))
            extra = None
        elif isinstance(part, Thinking):
            value: Any = unwrap_opaque(PROVIDER, part)
            if not isinstance(value, Mapping):
                continue
            value = cast("Mapping[str, Any]", value)
            if "field" in value and _find_host(value.get("for")) == _find_host(dialect.tag):
                thoughts[value["field"]] = thoughts.get(value["field"], "") + part.text
            elif value.get("for") == dialect.tag:
                extra = thaw(value["extra_content"]) if "extra_content" in value else extra
                if "reasoning_details" in value:
                    thoughts["reasoning_details"] = thaw(value["reasoning_details"])
    wire: Wire = {"role": "assistant", "content": message.text or (None if calls else "")}
    if calls:
        # only the reasoning that led to calls, under the server's own field name; servers reject other reasoning
        wire |= {"tool_calls": calls, **thoughts}
    elif "reasoning_details" in thoughts:
        wire["reasoning_details"] = thoughts["reasoning_details"]
    return wire


def _find_host(tag: object) -> str:
    """Return the server of a tag: reasoning that is text is sent back to each of its models, and to no other server."""
    return str(tag).partition("#")[0]


def _call(call: ToolCall, tools: EncodedTools, dialect: ChatDialect, extra: Wire | None) -> Wire:
    # servers that fill a chat template parse this text, so it must be JSON
    function = {"name": tools.wire_name_of(call), "arguments": compact(tools.wire_arguments(call))}
    wire: Wire = {"id": dialect.call_id(call), "type": "function", "function": function}
    return wire if extra is None else {**wire, "extra_content": extra}


_REFUSED = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)|not permitted|not allowed|"
    r"invalid (?:parameter|argument|field|type)|does not exist|unavailable|instead",
    re.IGNORECASE,
)
_LIMITS = ("max_tokens", "max_completion_tokens")
_OPTIONAL = ("stream_options", "response_format")


class OpenAIChat:
    """A model behind the Chat Completions API.

    A server that refuses an optional field (`stream_options`, `response_format`, the name of the token limit) is asked
    again without it, once; later requests leave it out.

    Args:
        model: The model's name at the server.
        api_key: Used instead of `OPENAI_API_KEY`.
        base_url: The address of the server; OpenAI's by default.
        client: An SDK client to use, such as Azure's; turn off its own retries.
        strict: Whether the server enforces tool schemas, where strict mode loses nothing of them.

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
        strict: bool = False,
    ) -> None:
        self.model = model
        origin = find_openai_origin(client, base_url)
        host = origin or "openai"
        mistral = "mistral.ai" in host or (base_url is not None and _MISTRAL.match(model) is not None)
        signed, kimi = _SIGNED_GEMINI.match(model) is not None, _KIMI.search(model) is not None
        self._dialect = ChatDialect(f"{host}#{model}", mistral, signed, kimi)
        self._encoder = ToolEncoder(f"{PROVIDER} {self._dialect}", to_openai_chat, strict=strict)
        own = base_url is None or _NEW_LIMIT.match(model) is not None
        self._limit = _LIMITS[own]  # the old name works everywhere else
        self._left_out: frozenset[str] = frozenset()
        self._bodies = RequestBodies(self._fields, "messages", merged=("stream_options",))
        self._systems: IdentityCache[bytes] = IdentityCache()
        self._clients = openai_clients(client, api_key, base_url)
        self._formats = AnswerFormats(origin)
        keyless = client is None and api_key is None and base_url is not None
        self._key = KEY_NOT_SENT if keyless else "OPENAI_API_KEY"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and yield the model's events. Closing the iterator ends the request.

        Raises:
            ProviderError: The request failed; `fault` says whether it may be retried.
        """
        tools = self._encoder.encode(request)
        started = False
        while True:
            before = (self._limit, self._left_out)
            try:
                async with aclosing(self._send(request, tools)) as events:
                    async for event in events:
                        started = True
                        yield event
            except ProviderError as error:
                if started or error.fault != "invalid":
                    raise
                # another request may have learned it meanwhile
                if before == (self._limit, self._left_out) and not self._give_up(error):
                    raise
            else:
                return

    def wire_options(self, options: ModelOptions) -> JsonObject:
        """Return the fields of a request for these options; raises `UsageError` for one that the API does not have."""
        return set_fields(temperature=options.temperature, reasoning_effort=options.effort, stop=options.stop)

    async def calls_tools(self) -> bool | None:
        """Ask a llama.cpp server whether its model was trained to call tools; None for other servers."""
        client = await self._clients.get()
        found = await fetch_json(str(client.base_url.join("/props")))
        template = found.get("chat_template") if found is not None else None
        return "tools" in template if isinstance(template, str) else None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _send(self, request: ModelRequest, tools: EncodedTools) -> AsyncGenerator[ModelEvent]:
        sent = open_stream(self._clients, "/chat/completions", lambda: self._body(request, tools))
        events = read_stream(ChatDraft(tools, self._dialect.tag), sent, key=self._key)
        return cast("AsyncGenerator[ModelEvent]", events)

    def _give_up(self, error: ProviderError) -> bool:
        """Leave out or rename the optional field that the server refused; return whether there is one."""
        text = str(error)
        if not _REFUSED.search(text):
            return False
        if self._limit in text and "renamed" not in self._left_out:
            self._limit = _LIMITS[self._limit == _LIMITS[0]]
            self._left_out |= {"renamed"}
        else:
            named = [name for name in _OPTIONAL if name in text and name not in self._left_out]
            if not named:
                return False
            self._left_out |= {named[0]}
        self._bodies.forget()
        return True

    def _body(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        return self._bodies.build(request, tools, self._messages(request, tools))

    def _fields(self, request: ModelRequest, tools: EncodedTools) -> Fields:
        fields = {
            "model": to_bytes(self.model),
            self._limit: to_bytes(request.max_tokens),
            "stream": b"true",
            "stream_options": b'{"include_usage":true}',
        }
        if tools.payload:
            fields["tools"] = tools.payload
        form = None if request.output_schema is None else self._formats.find(request.output_schema)
        if form is not None:
            fields["response_format"] = to_bytes({"type": "json_schema", "json_schema": form})
        return {name: value for name, value in fields.items() if name not in self._left_out}

    def _messages(self, request: ModelRequest, tools: EncodedTools) -> Pieces:
        text = request.system
        schema = request.output_schema
        if schema is not None and ("response_format" in self._left_out or self._formats.find(schema) is None):
            text = ask_for_schema(text, schema)
        system = self._systems.get(text, make=lambda: _encode_system(text))
        if self._dialect.mistral:
            return list_pieces(system, *self._encode_in_order(request.messages, tools))
        joined, _ = encode_history(request.messages, tools.key, lambda message: encode(message, tools, self._dialect))
        return list_pieces(system, joined)

    def _encode_in_order(self, messages: Sequence[Message], tools: EncodedTools) -> list[bytes]:
        """Encode messages for a server that restricts which roles may follow each other."""
        found: list[bytes] = []
        for place, message in enumerate(messages):
            if isinstance(message, UserMessage) and place and isinstance(messages[place - 1], ToolMessage):
                found.append(to_bytes(_BETWEEN))
            found.append(encode(message, tools, self._dialect))
        return found


def _encode_system(system: str) -> bytes:
    return to_bytes({"role": "system", "content": system}) if system else b""
