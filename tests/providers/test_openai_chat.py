"""Chat Completions through OpenAI's SDK: the standard, and deviations of servers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from callwright.core.calls import ToolCall
from callwright.core.messages import AssistantMessage, Thinking, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import ModelRequest, ProviderError
from callwright.providers.openai.chat import OpenAIChat
from callwright.testing.loopback import Loopback, LoopbackReply

from .vendors import Recorded, Requests, asked, said_by

Delta = dict[str, Any]


@pytest.fixture
async def chat(server: Loopback) -> AsyncIterator[OpenAIChat]:
    provider = OpenAIChat("gpt-test", api_key="secret", base_url=server.url)
    yield provider
    await provider.aclose()


def _sse(*deltas: Delta, reason: str = "stop") -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last: Delta = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in [*chunks, last]) + b"data: [DONE]\n\n"


def _call(text: object, **fields: object) -> Delta:
    return {"tool_calls": [{**fields, "function": {"name": "look", "arguments": text}}]}


async def test_reasoning_returns_under_its_field_name(
    server: Loopback, chat: OpenAIChat, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("openai_chat")]))
    message = said_by("openai_chat", server.url)
    spoken = AssistantMessage(message.parts[:2])
    await asked(chat, request_for(UserMessage("hi"), message, spoken))
    _, _, called, said = server.received[0].json["messages"]
    assert called["reasoning_content"] == "hm…"
    assert said == {"role": "assistant", "content": "Grüße 🌍"}


async def test_reasoning_of_another_server_is_not_sent(
    server: Loopback, chat: OpenAIChat, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("openai_chat")]))
    unnamed = Thinking("hm…", {"provider": "openai_chat", "value": "reasoning_content"})  # as it was stored before
    own = said_by("openai_chat", server.url)
    for parts in (said_by("openai_chat", "http://other.example").parts, (unnamed, *own.parts[1:])):
        await asked(chat, request_for(UserMessage("hi"), AssistantMessage(parts, "calls")))
        _, _, called = server.received[-1].json["messages"]
        assert called["tool_calls"] and "reasoning_content" not in called


@pytest.mark.parametrize(
    "deltas",
    [
        [_call('{"page": 1}', index=0, id="a"), _call('{"page": 2}', index=0, id="b")],  # all numbered alike
        [_call('{"page": 1}', id="a"), _call('{"page": 2}', id="b")],  # not numbered
        [_call('{"page": 1}', index=0), _call('{"page": 2}', index=1)],  # without ids
        [_call({"page": 1}, index=0, id="a"), _call({"page": 2}, index=1, id="b")],  # objects instead of text
    ],
)
async def test_nonstandard_servers_are_read(
    server: Loopback, chat: OpenAIChat, request_for: Requests, deltas: list[Delta]
) -> None:
    server.reply(LoopbackReply([_sse(*deltas)]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert [call.arguments for call in message.calls] == ['{"page": 1}', '{"page": 2}']
    assert len({call.id for call in message.calls}) == 2
    assert message.stop == "calls"


async def test_truncated_call_is_kept_as_text(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(LoopbackReply([_sse(_call('{"page": ', index=0, id="a"), reason="length")]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert (message.stop, message.calls) == ("length", (ToolCall("a", "look", '{"page": '),))


async def test_refusal_is_text_with_refusal_stop(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(LoopbackReply([_sse({"refusal": "I cannot "}, {"refusal": "do that"})]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert (message.stop, message.text) == ("refusal", "I cannot do that")


async def test_message_before_an_event_that_is_cut_counts(
    server: Loopback, chat: OpenAIChat, request_for: Requests
) -> None:
    usage: Delta = {"choices": [], "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}}
    answer = _sse({"content": "hello"}).removesuffix(b"data: [DONE]\n\n") + f"data: {json.dumps(usage)}"[:-1].encode()
    for cut in (answer, answer[:-1]):
        server.reply(LoopbackReply([cut[:-3], cut[-3:]]))
        assert (await asked(chat, request_for(UserMessage("hi")))).text == "hello"


async def test_mid_stream_error_is_transient(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(
        LoopbackReply([b'data: {"choices":[]}\n\ndata: {"error":{"message":"the engine died","code":500}}\n\n'])
    )
    with pytest.raises(ProviderError, match="the engine died") as caught:
        await asked(chat, request_for(UserMessage("hi")))
    assert caught.value.fault == "transient"


async def test_insufficient_quota_is_not_retried(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    server.reply(LoopbackReply([json.dumps(body).encode()], 429, {"content-type": "application/json"}))
    with pytest.raises(ProviderError) as caught:
        await asked(chat, request_for(UserMessage("hi")))
    assert caught.value.fault == "auth"


async def test_strict_arguments_convert_both_ways(server: Loopback) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    provider = OpenAIChat("m", base_url=server.url, strict=True)
    tools = (ToolSpec("look", "The weather.", schema),)
    server.reply(LoopbackReply([_sse(_call('{"city": "Rome", "unit": null}', index=0, id="a"))]))
    message = await asked(provider, ModelRequest([UserMessage("hi")], tools=tools))
    assert message.calls == (ToolCall("a", "look", '{"city":"Rome"}'),)
    await asked(provider, ModelRequest([UserMessage("hi"), message], tools=tools))
    sent = server.received[1].json
    assert sent["tools"][0]["function"]["strict"] is True
    assert json.loads(sent["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Rome", "unit": None}
    await provider.aclose()


async def test_strict_arguments_with_two_values_for_a_key_stay_as_written(server: Loopback) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    twice = '{"city": "Rome", "city": "Oslo"}'
    provider = OpenAIChat("m", base_url=server.url, strict=True)
    server.reply(LoopbackReply([_sse(_call(twice, index=0, id="a"))]))
    tools = (ToolSpec("look", "The weather.", {**schema, "additionalProperties": False}),)
    message = await asked(provider, ModelRequest([UserMessage("hi")], tools=tools))
    assert message.calls == (ToolCall("a", "look", twice),)  # the tool refuses it; read here, the last value would win
    await provider.aclose()


@pytest.mark.parametrize(("key", "advice"), [(None, "none is sent to a server"), ("k", "check OPENAI_API_KEY")])
async def test_refused_key_names_what_was_sent(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, key: str | None, advice: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "for OpenAI only")
    server.reply(LoopbackReply([b'{"error": {"message": "bad key"}}'], 401, {"content-type": "application/json"}))
    provider = OpenAIChat("m", base_url=server.url, api_key=key)
    with pytest.raises(ProviderError, match=advice) as caught:
        await asked(provider, ModelRequest([UserMessage("hi")]))
    assert caught.value.fault == "auth"
    await provider.aclose()


async def test_missing_key_is_named(request_for: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ProviderError, match="set OPENAI_API_KEY, or make the provider with api_key=…") as caught:
        await asked(OpenAIChat("gpt-test"), request_for(UserMessage("hi")))
    assert caught.value.fault == "auth"
