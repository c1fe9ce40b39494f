"""The four providers under test: how each is created, and what its recorded response contains."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import urlsplit

from callwright.core.calls import ToolCall
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, AssistantPart, Thinking, Usage
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest
from callwright.providers.google import GoogleGemini
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses

Requests = Callable[..., ModelRequest]
Recorded = Callable[[str], bytes]
Event = dict[str, Any]


class Closable(Protocol):
    """A provider that holds connections."""

    model: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Vendor:
    """What differs between the vendors."""

    make: Callable[[str], Closable]
    last_event: bytes
    """Without it a stream is only half a message."""
    path: str
    headers: Mapping[str, str]
    options: Mapping[str, Any]
    """Some that the API knows, sent with the golden request."""
    parts: tuple[AssistantPart, ...]
    """What the recorded answer says; an empty id is made up anew each time."""
    usage: Usage


_HOST = "HOST"
"""Stands for the server that gave the answer."""


def _kept(vendor: str, value: Any, text: str = "", **tags: str) -> Thinking:
    return Thinking(text, {"provider": vendor, "value": value, **tags})


REASONING: Event = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm…"}],
    "encrypted_content": "ZW5j",
}
_BEARER = {"authorization": "Bearer secret", "content-type": "application/json"}
_SAID = Text("Grüße 🌍")
VENDORS = {
    "anthropic": Vendor(
        lambda url: AnthropicMessages("claude-test", api_key="secret", base_url=url),
        b"event: message_stop",
        "/v1/messages",
        _BEARER,
        {"service_tier": "auto"},
        (
            _kept("anthropic", {"type": "thinking", "signature": "c2ln"}, "hm…", origin=_HOST),
            _kept("anthropic", {"type": "redacted_thinking", "data": "ZGF0YQ"}, origin=_HOST),
            _SAID,
            ToolCall("toolu_1", "fs.read", '{"path": "ä.txt"}'),
            ToolCall("toolu_2", "look"),
        ),
        Usage(5, 42, 70, 9),
    ),
    "openai_chat": Vendor(
        lambda url: OpenAIChat("gpt-test", api_key="secret", base_url=url),
        b'"finish_reason"',
        "/chat/completions",
        _BEARER,
        {"temperature": 0, "tool_choice": "required"},
        (
            _kept("openai_chat", {"field": "reasoning_content", "for": f"{_HOST}#gpt-test"}, "hm…"),
            _SAID,
            ToolCall("call_a", "fs.read", '{"path": "ä.txt"}'),
            ToolCall("call_b", "look"),
        ),
        Usage(5, 42, 70),
    ),
    "openai_responses": Vendor(
        lambda url: OpenAIResponses("gpt-test", api_key="secret", base_url=url),
        b"event: response.completed",
        "/responses",
        _BEARER,
        {"reasoning": {"effort": "low"}},
        (
            _kept("openai", REASONING, "hm…", origin=_HOST),
            _kept("openai", {"phase": "commentary"}, origin=_HOST),
            _SAID,
            ToolCall("call_a", "fs.read", '{"path": "ä.txt"}'),
            ToolCall("call_b", "look", "{}"),
        ),
        Usage(5, 42, 70, 9),
    ),
    "google": Vendor(
        lambda url: GoogleGemini("gemini-test", api_key="secret", base_url=url),
        b"finishReason",
        "/models/gemini-test:streamGenerateContent?alt=sse",
        {"x-goog-api-key": "secret"},
        {"generationConfig": {"temperature": 0}, "safetySettings": []},
        (
            _kept("google", {"thought": True}, "hm…"),
            _SAID,
            _kept("google", {"signature": "c2ln"}),
            ToolCall("call_a", "fs.read", '{"path":"ä.txt"}'),
            ToolCall("", "look", "{}"),
            _kept("google", {"signature": "ZW5k"}),
            Text(""),
        ),
        Usage(5, 42, 70),
    ),
}


async def asked(provider: Closable, request: ModelRequest) -> AssistantMessage:
    """The whole message a provider gives."""
    last = [event async for event in provider.stream(request)][-1]
    assert isinstance(last, MessageDone)
    return last.message


def said_by(vendor: str, url: str = "http://127.0.0.1:9") -> AssistantMessage:
    """The recorded answer as a message of the server at an address."""
    model = VENDORS[vendor].make(url).model + "-1"
    parts = tuple(_from_server(part, urlsplit(url).netloc) for part in VENDORS[vendor].parts)
    return AssistantMessage(parts, "calls", VENDORS[vendor].usage, model)


def _from_server(part: AssistantPart, host: str) -> AssistantPart:
    if not isinstance(part, Thinking):
        return part
    return replace(part, opaque=json.loads(json.dumps(part.opaque).replace(_HOST, host)))


def sse(*events: Event) -> bytes:
    """Events as they are sent; those that have a type are named after it."""
    named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    return b"".join(f"{name}data: {json.dumps(event)}\n\n".encode() for name, event in zip(named, events, strict=True))
