"""Requests against the vendors' own types and rules, through every documented door."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import pytest

from callwright.core.messages import UserMessage
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.base import ModelRequest, Provider
from callwright.providers.google import GoogleGemini
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses
from callwright.providers.resolve import provider_for
from callwright.testing.loopback import Loopback, LoopbackReply, Received
from callwright.testing.requests import (
    FindFaults,
    anthropic_faults,
    check_requests,
    google_faults,
    openai_chat_faults,
    openai_responses_faults,
)

from .vendors import Closable, Recorded, asked

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI


def _bedrock(url: str) -> Provider:
    from anthropic.lib.bedrock import AsyncAnthropicBedrock  # takes 2 s, which only some workers need to spend

    client = AsyncAnthropicBedrock(
        aws_access_key="a", aws_secret_key="b", aws_region="eu-west-1", base_url=url, max_retries=0
    )
    return AnthropicMessages("eu.anthropic.claude-test-v1:0", client=client)


def _vertex(url: str) -> Provider:
    from anthropic.lib.vertex import AsyncAnthropicVertex

    client = AsyncAnthropicVertex(region="global", project_id="p", access_token="t", base_url=url, max_retries=0)
    return AnthropicMessages("claude-test@20260101", client=client)


def _azure_client(url: str) -> "AsyncAzureOpenAI":
    from openai import AsyncAzureOpenAI

    return AsyncAzureOpenAI(azure_endpoint=url, api_key="k", api_version="2026-01-01", max_retries=0)


def _gemini_on_vertex(url: str) -> Provider:
    from google.oauth2.credentials import Credentials

    options = {"vertexai": True, "project": "p", "location": "global", "credentials": Credentials("t")}
    return GoogleGemini("gemini-3-pro", base_url=url, client_options=options)


DOORS: dict[str, tuple[Callable[[str], Provider], FindFaults, str, str]] = {
    "anthropic": (
        lambda url: AnthropicMessages("claude-test", api_key="k", base_url=url),
        anthropic_faults,
        "anthropic",
        "/v1/messages",
    ),
    "bedrock": (
        _bedrock,
        anthropic_faults,
        "bedrock",
        "/model/eu.anthropic.claude-test-v1:0/invoke-with-response-stream",
    ),
    "vertex": (
        _vertex,
        anthropic_faults,
        "anthropic",
        "/projects/p/locations/global/publishers/anthropic/models/claude-test@20260101:streamRawPredict",
    ),
    "openai chat": (
        lambda url: OpenAIChat("gpt-test", api_key="k", base_url=url),
        openai_chat_faults,
        "openai_chat",
        "/chat/completions",
    ),
    "an address": (
        lambda url: provider_for(f"{url}/v1#my-model", api_key="k", tool_mode="native"),
        openai_chat_faults,
        "openai_chat",
        "/v1/chat/completions",
    ),
    "azure chat": (
        lambda url: OpenAIChat("my-deployment", client=_azure_client(url)),
        openai_chat_faults,
        "openai_chat",
        "/openai/deployments/my-deployment/chat/completions?api-version=2026-01-01",
    ),
    "mistral": (
        lambda url: OpenAIChat("mistral-large", api_key="k", base_url=url),
        openai_chat_faults,
        "openai_chat",
        "/chat/completions",
    ),
    "openai responses": (
        lambda url: OpenAIResponses("gpt-test", api_key="k", base_url=url),
        openai_responses_faults,
        "openai_responses",
        "/responses",
    ),
    "azure responses": (
        lambda url: OpenAIResponses("my-deployment", client=_azure_client(url)),
        openai_responses_faults,
        "openai_responses",
        "/openai/responses?api-version=2026-01-01",
    ),
    "gemini 3": (
        lambda url: GoogleGemini("gemini-3-pro", api_key="k", base_url=url),
        google_faults,
        "google",
        "/v1/models/gemini-3-pro:streamGenerateContent?alt=sse",
    ),
    "gemini 2.5": (
        lambda url: GoogleGemini("gemini-2.5-pro", api_key="k", base_url=url),
        google_faults,
        "google",
        "/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    ),
    "gemini on vertex": (
        _gemini_on_vertex,
        google_faults,
        "google",
        "/v1beta1/projects/p/locations/global/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
    ),
}


def _answer(name: str, recorded: Recorded) -> bytes:
    return _aws_events(recorded("anthropic")) if name == "bedrock" else recorded(name)


def _aws_events(sse: bytes) -> bytes:
    """Frame the recorded events as AWS event stream messages."""
    from base64 import b64encode
    from binascii import crc32
    from struct import pack

    found: list[bytes] = []
    for line in sse.decode().splitlines():
        if not line.startswith("data:"):
            continue
        payload = json.dumps({"bytes": b64encode(line.removeprefix("data:").strip().encode()).decode()}).encode()
        headers = b""
        for name, value in {
            ":message-type": "event",
            ":event-type": "chunk",
            ":content-type": "application/json",
        }.items():
            headers += pack("!B", len(name)) + name.encode() + pack("!BH", 7, len(value)) + value.encode()
        prelude = pack("!II", 16 + len(headers) + len(payload), len(headers))
        message = prelude + pack("!I", crc32(prelude)) + headers + payload
        found.append(message + pack("!I", crc32(message)))
    return b"".join(found)


_SAME_FORMAT = ("vertex", "an address", "azure chat", "mistral", "azure responses", "gemini on vertex")
"""Doors whose requests differ from those of another door only in the address."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "door", [pytest.param(door, marks=[pytest.mark.slow] if door in _SAME_FORMAT else []) for door in DOORS]
)
async def test_door_sends_what_its_vendor_accepts(door: str, recorded: Recorded) -> None:
    make, find_faults, name, path = DOORS[door]
    received = await check_requests(make, find_faults, _answer(name, recorded))
    assert {each.path for each in received} == {path}


@pytest.mark.parametrize("door", DOORS)
async def test_door_reads_its_answer(door: str, server: Loopback, recorded: Recorded) -> None:
    make, _, name, path = DOORS[door]
    server.reply(LoopbackReply([_answer(name, recorded)]))
    provider = cast("Closable", make(server.url))
    message = await asked(provider, ModelRequest([UserMessage("hi")]))
    await provider.aclose()
    assert message.text == "Grüße 🌍"
    assert message.stop == "calls"
    assert [each.path for each in server.received] == [path]


def _received(body: dict[str, object], path: str = "/") -> Received:
    return Received("POST", path, {}, json.dumps(body).encode())


_ASKED: dict[str, object] = {"role": "user", "content": [{"type": "text", "text": "hi"}]}


_THOUGHT: dict[str, object] = {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]}
_BMP = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AA"}}
_TWICE: dict[str, object] = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}] * 2,
}
_MINIMUM = {"format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}}
_CALL = {"role": "model", "parts": [{"functionCall": {"name": "a"}}]}
_JSON: dict[str, object] = {"generationConfig": {"responseMimeType": "application/json"}}


_FAULTY: list[tuple[FindFaults, dict[str, object], str, str]] = [
    (anthropic_faults, {"temprature": 1}, "/", "temprature: unknown field"),
    (anthropic_faults, {"messages": [_ASKED, _THOUGHT]}, "/", "cannot be `thinking`"),
    (anthropic_faults, {"messages": [{"role": "user", "content": [_BMP]}]}, "/", "media_type"),
    (anthropic_faults, {"messages": [_ASKED, _TWICE]}, "/", "messages.1: the id 'a' is not unique"),
    (anthropic_faults, {"output_config": _MINIMUM}, "/", "transform"),
    (openai_chat_faults, {"messages": [{"role": "tool", "tool_call_id": "a", "content": ""}]}, "/", "no call 'a'"),
    (openai_responses_faults, {"input": [{"type": "reasoning", "id": "r", "summary": []}]}, "/", "following item"),
    (google_faults, {"contents": [{"role": "user", "parts": [{"text": ""}]}]}, "/", "data"),
    (google_faults, {"contents": [_CALL]}, "/v1/models/gemini-3-pro:x", "thought_signature"),
    (google_faults, {"tools": [{}], **_JSON}, "/models/gemini-2.5-pro:x", "mime type"),
]


@pytest.mark.parametrize(("find_faults", "body", "path", "fault"), _FAULTY)
def test_faulty_request_is_described(find_faults: FindFaults, body: dict[str, object], path: str, fault: str) -> None:
    base: dict[str, object] = {"stream": True, "model": "m", "max_tokens": 1, "messages": [_ASKED]}
    if find_faults is openai_chat_faults:
        base = {"stream": True, "model": "m", "messages": []}
    elif find_faults is openai_responses_faults:
        base = {"stream": True, "model": "m", "input": []}
    elif find_faults is google_faults:
        base = {"contents": []}
    assert fault in "; ".join(find_faults(_received({**base, **body}, path)))
