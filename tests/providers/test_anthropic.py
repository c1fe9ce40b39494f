"""Claude through Anthropic's own SDK, against a server on this machine."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel, Field

from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Output, Text
from callwright.core.json import freeze
from callwright.core.messages import AssistantMessage, History, Thinking, ToolMessage, UserMessage
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.base import MessageDone, ProviderError, ThinkingDelta
from callwright.testing.loopback import Loopback, LoopbackReply
from callwright.testing.requests import anthropic_faults

from .vendors import Event, Recorded, Requests, asked, said_by, sse

_START: Event = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}
_STOP: Event = {"type": "message_stop"}


@pytest.fixture
async def claude(server: Loopback) -> AsyncIterator[AnthropicMessages]:
    provider = AnthropicMessages("claude-test", api_key="secret", base_url=server.url)
    yield provider
    await provider.aclose()


def _block(index: int, block: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _call(index: int, call_id: str, text: str) -> list[Event]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return _block(index, {"type": "tool_use", "id": call_id, "name": "look", "input": {}}, delta)


def _end(reason: str) -> Event:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 42}}


async def test_thinking_and_calls_round_trip(
    server: Loopback, claude: AnthropicMessages, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("anthropic")]))
    message = said_by("anthropic", server.url)
    await asked(claude, request_for(UserMessage("hi"), message, UserMessage("go on")))
    assert server.received[0].json["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm…", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ"},
        {"type": "text", "text": "Grüße 🌍"},
        {"type": "tool_use", "id": "toolu_1", "name": "fs_read", "input": {"path": "ä.txt"}},
        {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
    ]


async def test_server_tool_blocks_round_trip(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    search: Event = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: Event = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": {"a": 1}}]}
    delta = {"type": "input_json_delta", "partial_json": '{"query": "x"}'}
    server.reply(LoopbackReply([sse(_START, *_block(0, search, delta), *_block(1, found), _end("pause_turn"), _STOP)]))
    message = await asked(claude, request_for(UserMessage("hi")))
    assert message.stop == "paused"
    await asked(claude, request_for(UserMessage("hi"), message))
    assert server.received[1].json["messages"][1]["content"] == [{**search, "input": {"query": "x"}}, found]


async def test_truncated_call_is_kept_as_text(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    calls = [*_call(0, "toolu_1", '{"page": 1}'), *_call(1, "toolu_2", '{"page": ')]
    server.reply(LoopbackReply([sse(_START, *calls, _end("max_tokens"), _STOP)]))
    message = await asked(claude, request_for(UserMessage("hi")))
    assert message.stop == "length"
    assert message.calls == (ToolCall("toolu_1", "look", '{"page": 1}'), ToolCall("toolu_2", "look", '{"page": '))


async def test_mid_stream_error_is_transient(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    error: Event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.reply(LoopbackReply([sse(_START, *_block(0, {"type": "text", "text": "Hal"}), error)]))
    with pytest.raises(ProviderError, match="Overloaded") as caught:
        await asked(claude, request_for(UserMessage("hi")))
    assert caught.value.fault == "transient"


@pytest.mark.parametrize("streamed", [True, False])
async def test_error_of_a_gateway_is_told(
    server: Loopback, claude: AnthropicMessages, request_for: Requests, *, streamed: bool
) -> None:
    error = {"error": {"message": "no such model", "code": 404}}
    kind = "text/event-stream" if streamed else "application/json"
    body = b"event: message\ndata: %s\n\n" % json.dumps(error).encode() if streamed else json.dumps(error).encode()
    server.reply(LoopbackReply([body], headers={"content-type": kind}))
    with pytest.raises(ProviderError, match="no such model") as caught:
        await asked(claude, request_for(UserMessage("hi")))
    assert caught.value.fault == "invalid"


async def test_cache_off_marks_nothing(server: Loopback, request_for: Requests, recorded: Recorded) -> None:
    server.reply(LoopbackReply([recorded("anthropic")]))
    provider = AnthropicMessages("claude-test", api_key="k", base_url=server.url, cache=False)
    await asked(provider, request_for(UserMessage("hi")))
    assert b"cache_control" not in server.received[0].body
    await provider.aclose()


async def test_cut_thinking_does_not_break_the_session(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    thinking = _block(
        0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "h"}
    )
    server.reply(LoopbackReply([sse(_START, *thinking, _end("max_tokens"), _STOP)]))
    cut = await asked(claude, request_for(UserMessage("hi")))
    assert cut.stop == "length"
    await asked(claude, request_for(UserMessage("hi"), cut, UserMessage("go on")))
    assert anthropic_faults(server.received[1]) == []


async def test_full_context_asks_for_compaction(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    text = _block(0, {"type": "text", "text": "I"})
    server.reply(LoopbackReply([sse(_START, *text, _end("model_context_window_exceeded"), _STOP)]))
    with pytest.raises(ProviderError) as caught:
        await asked(claude, request_for(UserMessage("hi")))
    assert caught.value.fault == "too_large"


async def test_call_beside_refusal_is_left_out(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    server.reply(LoopbackReply([sse(_START, *_call(0, "a", "{}"), _end("refusal"), _STOP)]))
    message = await asked(claude, request_for(UserMessage("hi")))
    assert (message.calls, message.stop) == ((), "refusal")


class _Part(BaseModel):
    name: str = Field(pattern="^a", max_length=9)
    size: float = Field(ge=0, multiple_of=0.5)


class _Order(BaseModel):
    """An ordinary model."""

    count: int = Field(ge=1, le=9)
    parts: list[_Part] = Field(min_length=2, max_length=3)
    note: str | None = None
    kind: Literal["a", "b"] = "a"


@pytest.mark.parametrize("model", [_Part, _Order])
async def test_answer_schema_is_the_sdk_form(
    server: Loopback, claude: AnthropicMessages, request_for: Requests, recorded: Recorded, model: type[BaseModel]
) -> None:
    server.reply(LoopbackReply([recorded("anthropic")]))
    options = {"output_config": {"effort": "low"}}
    request = request_for(UserMessage("hi"), output_schema=freeze(model.model_json_schema()), options=options)
    await asked(claude, request)
    sent = server.received[0].json["output_config"]
    from anthropic import transform_schema

    assert sent["format"]["schema"] == transform_schema(model.model_json_schema())
    assert sent["effort"] == "low"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},  # its only enforced value would be {}
        {"type": "object", "properties": {"any": {}}},
        {"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
    ],
)
async def test_answer_schema_is_asked_for_where_it_cannot_be_enforced(
    server: Loopback, claude: AnthropicMessages, request_for: Requests, recorded: Recorded, schema: dict[str, Any]
) -> None:
    server.reply(LoopbackReply([recorded("anthropic")]))
    await asked(claude, request_for(UserMessage("hi"), output_schema=schema))
    sent = server.received[0].json
    assert "output_config" not in sent
    assert "matches this schema" in sent["system"][0]["text"]


async def test_list_of_types_becomes_alternatives(
    server: Loopback, claude: AnthropicMessages, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("anthropic")]))
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    await asked(claude, request_for(UserMessage("hi"), output_schema=schema))
    sent = server.received[0].json["output_config"]["format"]["schema"]
    assert sent["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


async def test_unstreamed_answer_is_read(server: Loopback, claude: AnthropicMessages, request_for: Requests) -> None:
    call = {"type": "tool_use", "id": "a", "name": "look", "input": {"page": 7}}
    body = {"type": "message", "model": "m", "content": [{"type": "text", "text": "I look."}, call]}
    body |= {"stop_reason": "tool_use", "usage": {"input_tokens": 5, "output_tokens": 2}}
    server.reply(LoopbackReply([json.dumps(body).encode()], headers={"content-type": "application/json"}))
    message = await asked(claude, request_for(UserMessage("hi")))
    assert (message.text, message.stop, message.calls) == ("I look.", "calls", (ToolCall("a", "look", '{"page": 7}'),))


def _thought(text: str, signature: str, **tags: str) -> Thinking:
    return Thinking(text, {"provider": "anthropic", "value": {"type": "thinking", "signature": signature}, **tags})


async def test_thinking_returns_only_to_its_server(server: Loopback, request_for: Requests, recorded: Recorded) -> None:
    server.reply(LoopbackReply([recorded("anthropic")]))
    host = urlsplit(server.url).netloc
    thoughts = (
        _thought("compatible, unsigned", "", origin=host),
        _thought("compatible", "91cfbb94", origin=host),
        _thought("another", "91cfbb94", origin="other.example"),
        _thought("unsigned", ""),
        _thought("anthropic", "c2ln"),
    )
    history = (UserMessage("hi"), AssistantMessage((*thoughts, Text("so"))), UserMessage("go on"))
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0)
    for claude in (AnthropicMessages("m", api_key="k", base_url=server.url), AnthropicMessages("m", client=client)):
        await asked(claude, request_for(*history))
        await claude.aclose()
    compatible, own = [
        [block.get("thinking") for block in each.json["messages"][1]["content"]] for each in server.received
    ]
    assert compatible == ["compatible, unsigned", "compatible", None]
    assert own == ["anthropic", None]


@pytest.mark.parametrize("kind", [History, list])
async def test_ids_that_another_server_repeated_are_unique(
    server: Loopback, claude: AnthropicMessages, request_for: Requests, recorded: Recorded, kind: Any
) -> None:
    server.reply(*[LoopbackReply([recorded("anthropic")])] * 3)
    messages = kind([UserMessage("hi")])
    for turn in range(3):
        call = ToolCall("functions.look:0" if turn % 2 else "call_0", "look", "{}")
        again = ToolCall("call_0", "look", '{"at":2}')
        calls = (call,) if turn == 0 else (call, again) if turn == 1 else (again,)
        messages.append(AssistantMessage(calls, "calls"))
        messages.append(ToolMessage(tuple(Completed(each, Output(f"{turn}")) for each in calls)))
        await asked(claude, replace(request_for(), messages=messages))
    first, _, last = [each.json["messages"] for each in server.received]
    blocks = [block for message in last for block in message["content"]]
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == made
    assert made[0] == "call_0" and len(set(made)) == len(made) == 4
    assert last[1] == first[1]  # what was sent before stays the same
    assert anthropic_faults(server.received[2]) == []


async def test_block_without_a_type_is_an_error(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    block: Event = {"id": "toolu_1", "name": "look", "input": {}}
    server.reply(LoopbackReply([sse(_START, *_block(0, block), _end("tool_use"), _STOP)]))
    with pytest.raises(ProviderError, match="a block has no type"):
        await asked(claude, request_for())


async def test_thinking_with_null_fields_is_sent_back_as_text(
    server: Loopback, claude: AnthropicMessages, request_for: Requests
) -> None:
    """Null for a signature would be refused with every later request."""
    thought: Event = {"type": "thinking", "thinking": "hm", "signature": None}
    empty: Event = {"type": "thinking", "thinking": None, "signature": None}
    said: Event = {"type": "text", "text": "hi"}
    body = sse(_START, *_block(0, thought), *_block(1, empty), *_block(2, said), _end("end_turn"), _STOP)
    server.reply(LoopbackReply([body]))
    events = [event async for event in claude.stream(request_for(UserMessage("hi")))]
    assert ThinkingDelta("hm") in events
    assert isinstance(events[-1], MessageDone)
    await asked(claude, request_for(UserMessage("hi"), events[-1].message))
    blocks = server.received[1].json["messages"][1]["content"]
    assert blocks == [{**thought, "signature": ""}, {**empty, "thinking": "", "signature": ""}, said]
