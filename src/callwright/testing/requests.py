"""Checks that the requests of a provider are valid, by the vendors' own types and the rules of their servers."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.json import JsonObject
from callwright.core.messages import AssistantMessage, History, Message, Thinking, ToolMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import ModelRequest, Provider, close_provider
from callwright.testing.loopback import Loopback, LoopbackReply, Received

FindFaults: TypeAlias = Callable[[Received], list[str]]
"""Returns what the vendor would refuse about a request; nothing for a valid one."""
_WIRE_ID = re.compile(r"[a-zA-Z0-9_-]+")
_GEMINI_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_SIGNED_GEMINI = re.compile(r"gemini-(?:[3-9]|\d\d)")


def anthropic_faults(received: Received) -> list[str]:
    """Check a request to Anthropic's Messages API, or to Bedrock or Vertex, which move the model to the address."""
    from anthropic import transform_schema
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    body = received.json
    here = {key: value for key, value in body.items() if key not in ("anthropic_version", "anthropic_beta")}
    if "model" not in here:
        here = {"model": "in the address", "stream": True, **here}
    faults = _type_faults(MessageCreateParamsStreaming, here)
    faults += [fault for place, message in enumerate(body["messages"]) for fault in _anthropic_message(place, message)]
    faults += _pairing(body["messages"])
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    if schema is not None and transform_schema(json.loads(json.dumps(schema))) != schema:
        faults.append("output_config.format.schema: not the form that the SDK's own transform gives")
    return faults


def _anthropic_message(place: int, message: Mapping[str, Any]) -> Iterator[str]:
    where, blocks = f"messages.{place}", message["content"]
    if isinstance(blocks, str):
        return
    if not blocks:
        yield f"{where}: content must not be empty"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield f"{where}: text content blocks must contain non-whitespace text"
        if block["type"] == "tool_use" and not _WIRE_ID.fullmatch(block["id"]):
            yield f"{where}: tool_use.id {block['id']!r} does not match {_WIRE_ID.pattern}"
    if message["role"] == "assistant" and blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        yield f"{where}: the final block in an assistant message cannot be `thinking`"


def _pairing(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    faults: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(messages):
        blocks = [cast("dict[str, Any]", block) for block in message["content"] if isinstance(block, dict)]
        given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if given != waiting:
            faults.append(f"messages.{place}: results for {given}, the calls were {waiting}")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for each in waiting:
            if each in seen:
                faults.append(f"messages.{place}: the id {each!r} is not unique")
            seen.add(each)
    return [*faults, f"the last calls have no results: {waiting}"] if waiting else faults


def openai_chat_faults(received: Received) -> list[str]:
    """Check a request to OpenAI's Chat Completions API. Reasoning fields of other servers are accepted on messages."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    body = received.json
    faults = _type_faults(
        CompletionCreateParamsStreaming, {**body, "messages": [_standard(m) for m in body["messages"]]}
    )
    waiting: list[str] = []
    for place, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                faults.append(f"messages.{place}: no call {message['tool_call_id']!r} to answer")
            waiting = [each for each in waiting if each != message["tool_call_id"]]
            continue
        if waiting:
            faults.append(f"messages.{place}: an assistant message with tool_calls must be followed by {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return [*faults, f"the last calls have no results: {waiting}"] if waiting else faults


_COMPATIBLE = ("reasoning_content", "reasoning", "reasoning_details", "extra_content")


def _standard(message: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in message.items() if key not in _COMPATIBLE}
    if plain.get("tool_calls"):
        plain["tool_calls"] = [
            {key: value for key, value in call.items() if key not in _COMPATIBLE} for call in plain["tool_calls"]
        ]
    return plain


def openai_responses_faults(received: Received) -> list[str]:
    """Check a request to OpenAI's Responses API."""
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    body = received.json
    faults = _type_faults(ResponseCreateParamsStreaming, body)
    items = body["input"]
    waiting: list[str] = []
    for place, item in enumerate(items):
        kind = item.get("type")
        following: dict[str, Any] = items[place + 1] if place + 1 < len(items) else {}
        if kind == "reasoning" and (following.get("role") == "user" or not following):
            faults.append(f"input.{place}: reasoning was provided without its required following item")
        if kind == "function_call":
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                faults.append(f"input.{place}: no call {item['call_id']!r} to answer")
            waiting = [each for each in waiting if each != item["call_id"]]
    return [*faults, f"no tool output found for {waiting}"] if waiting else faults


def google_faults(received: Received) -> list[str]:
    """Check a request to Gemini's `generateContent`."""
    from google.genai import types

    body = received.json
    known = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "safetySettings": list[types.SafetySetting],
        "generationConfig": types.GenerationConfig,
        "cachedContent": str,
        "labels": dict[str, str],
    }
    faults = [f"{key}: unknown field" for key in body if key not in known]
    faults += [f"{key}: {fault}" for key in known if key in body for fault in _model_faults(known[key], body[key])]
    found = re.search(r"models/([^:]+):", received.path)
    model = found[1] if found else ""
    shape = body.get("generationConfig", {})
    if body.get("tools") and "responseMimeType" in shape and not _SIGNED_GEMINI.match(model):
        faults.append("function calling with a response mime type 'application/json' is unsupported")
    for place, content in enumerate(body["contents"]):
        faults += [
            f"contents.{place}: {fault}" for fault in _gemini_content(content, signed=bool(_SIGNED_GEMINI.match(model)))
        ]
    return faults


def _gemini_content(content: Mapping[str, Any], *, signed: bool) -> Iterator[str]:
    if not content["parts"]:
        yield "parts must not be empty"
    for part in content["parts"]:
        data = [value for key, value in part.items() if key not in ("thought", "thoughtSignature")]
        if not any(data) and not (data and "thoughtSignature" in part):  # a signature may be on an empty text
            yield "a part must have one initialized field: data"
        inline = part.get("inlineData", {}).get("mimeType", "image/png")
        if inline.startswith("image/") and inline not in _GEMINI_IMAGES:
            yield f"unsupported mime type: {inline}"
    calls = [part for part in content["parts"] if "functionCall" in part]
    if signed and calls and "thoughtSignature" not in calls[0]:
        yield f"function call `{calls[0]['functionCall']['name']}` is missing a thought_signature"


@cache
def _adapter(form: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def _model_faults(form: Any, value: Any) -> list[str]:
    from pydantic import ValidationError

    try:
        _adapter(form).validate_python(value)
    except ValidationError as error:
        return _describe(error)
    return []


def _type_faults(form: Any, body: Mapping[str, Any]) -> list[str]:
    """Validate with a typed dictionary, which by itself ignores unknown keys: they are what is missing afterwards."""
    from pydantic import ValidationError

    try:
        read = _plain(_adapter(form).validate_python(body))
    except ValidationError as error:
        return _describe(error)
    return list(_lost(body, read, "body"))


def _describe(error: Any) -> list[str]:
    """Describe a validation error by its deepest places: a union reports every alternative, and most do not apply."""
    found = error.errors(include_url=False)
    deepest = max(len(one["loc"]) for one in found)
    told = [one for one in found if len(one["loc"]) == deepest]
    return [f"{'.'.join(str(step) for step in one['loc'] if _is_key(step))}: {one['msg']}" for one in told[:5]]


def _is_key(step: object) -> bool:
    return isinstance(step, int) or (isinstance(step, str) and step == step.lower() and "[" not in step)


def _plain(value: Any) -> Any:
    """Read the lazy iterators that validation leaves for `Iterable` fields."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (str, bytes, int, float)) or value is None:
        return value
    return [_plain(each) for each in value] if hasattr(value, "__iter__") else value


def _lost(sent: Any, read: Any, where: str) -> Iterator[str]:
    if isinstance(sent, dict) and isinstance(read, dict):
        for key, value in cast("dict[str, Any]", sent).items():
            if key not in read:
                yield f"{where}.{key}: unknown field"
            else:
                yield from _lost(value, cast("dict[str, Any]", read)[key], f"{where}.{key}")
    elif isinstance(sent, list) and isinstance(read, list):
        for place, (one, other) in enumerate(zip(cast("list[Any]", sent), cast("list[Any]", read), strict=True)):
            yield from _lost(one, other, f"{where}.{place}")


_REASONING: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
_THOUGHTS = (
    Thinking("hm", {"provider": "anthropic", "value": {"type": "thinking", "signature": "c2ln"}}),
    Thinking("hm", {"provider": "openai", "value": _REASONING}),
    Thinking("hm", {"provider": "google", "value": {"thought": True, "signature": "c2ln"}}),
    Thinking("", {"provider": "google", "value": {"signature": "c2ln"}}),
    Thinking("hm", {"provider": "openai_chat", "value": "reasoning_content"}),
    Thinking("hm"),
)
"""Thinking of every vendor: each must get back its own and none of the others'."""
_READ = ToolCall("call_1", "fs.read", '{"path": "a.txt"}')
_LOOK = ToolCall("no good id!", "look", {"page": 3})
_CUT = ToolCall("call_2", "look", '{"page": ')
_PARTS = (
    Text("see"),
    Image(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x00IEND\xaeB`\x82", "image/jpg"),
    Image(b"\xff\xd8\xff\xe0", "image/pjpeg"),
    Image(b"GIF89a", "image/gif"),
    Image(b"\x89PNG\r\n\x1a\n\x00\x00", "image/png"),
    Image(b"<svg/>", "image/svg+xml"),
    Image(b"BM", "image/bmp"),
    File(b"%PDF", "application/pdf", "a.pdf"),
    File(b"a,b", "text/csv", "a.csv"),
    File(b"PK", "application/zip"),
)
_ASK = UserMessage("And now?")
CONVERSATIONS: Mapping[str, tuple[Message, ...]] = {
    "a question": (UserMessage("Say hello."),),
    "blank texts": (UserMessage(" "), AssistantMessage((Text(""),)), _ASK, AssistantMessage(()), _ASK),
    "calls and a failure": (
        UserMessage("Look."),
        AssistantMessage((Text("I look."), _READ, _LOOK), "calls"),
        ToolMessage((Completed(_READ, Output("")), Failed(_LOOK, ToolFailed("no page 3")))),
        _ASK,
    ),
    "a call that was cut off": (
        _ASK,
        AssistantMessage((_CUT,), "length"),
        ToolMessage((Failed(_CUT, ToolFailed("the call was cut off")),)),
        _ASK,
    ),
    "thinking cut off": (_ASK, AssistantMessage(_THOUGHTS, "length"), _ASK),
    "thinking before text": (_ASK, AssistantMessage((*_THOUGHTS, Text("so"))), _ASK),
    "thinking after text": (_ASK, AssistantMessage((Text("so"), *_THOUGHTS), "length"), _ASK),
    "thinking before a call": (
        _ASK,
        AssistantMessage((*_THOUGHTS, _READ), "calls", model="gemini-2.5-pro"),
        ToolMessage((Completed(_READ, Output("a")),)),
    ),
    "an unsigned call": (
        _ASK,
        AssistantMessage((_READ,), "calls", model="gemini-2.5-pro"),
        ToolMessage((Completed(_READ, Output("a")),)),
    ),
    "media": (
        UserMessage(_PARTS),
        AssistantMessage((_READ,), "calls"),
        ToolMessage((Completed(_READ, Output(_PARTS)),)),
        _ASK,
    ),
}
"""Conversations that a session can contain, whichever models took part in it."""
_TOOLS = (
    ToolSpec("fs.read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("look", "Look at a page.", {"type": "object", "properties": {"page": {"type": "integer", "minimum": 1}}}),
)
_WIRE = {"fs.read": "fs_read"}
_ANSWERS: tuple[JsonObject | None, ...] = (
    None,
    {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "names": {"type": "array", "items": {"type": "string", "pattern": "^a"}, "maxItems": 3},
        },
        "required": ["count"],
    },
    {"type": "object", "additionalProperties": {"type": "integer"}},
)


async def check_requests(make: Callable[[str], Provider], find_faults: FindFaults, answer: bytes) -> list[Received]:
    """Check that everything a session can contain is sent in a form that the vendor accepts; return the requests.

    Each of `CONVERSATIONS` is sent with and without tools and with several schemas of the answer.

    Args:
        make: Creates the provider for the address of a server.
        find_faults: Returns what the vendor would refuse, such as `anthropic_faults`.
        answer: A response that the provider can read.

    Raises:
        AssertionError: The vendor would refuse a request.
    """
    async with Loopback(find_faults) as server:
        server.reply(LoopbackReply([answer]))
        provider = make(server.url)
        for name, messages in CONVERSATIONS.items():
            for tools in (_TOOLS, ()):
                for schema in _ANSWERS:
                    request = ModelRequest(History(messages), "Be brief.", tools, _WIRE, output_schema=schema)
                    before = len(server.received)
                    async for _ in provider.stream(request):
                        pass
                    faults = [fault for received in server.received[before:] for fault in find_faults(received)]
                    assert not faults, f"{name}: {'; '.join(faults)}"
        await close_provider(provider)
        return server.received
