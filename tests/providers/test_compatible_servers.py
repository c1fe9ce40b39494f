"""Chat Completions as compatible servers send them: split calls, missing fields, reasoning, refused options."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Image, Output, Text
from callwright.core.messages import AssistantMessage, Thinking, ToolMessage, Usage, UserMessage
from callwright.providers.base import ProviderError, TextDelta, ThinkingDelta
from callwright.providers.openai.chat import OpenAIChat
from callwright.testing.loopback import Loopback, LoopbackReply

from .vendors import Requests, asked

Delta = dict[str, Any]
_END = b"data: [DONE]\n\n"
_JSON = {"content-type": "application/json"}


@pytest.fixture
async def chat(server: Loopback) -> AsyncIterator[OpenAIChat]:
    provider = OpenAIChat("some-model", base_url=server.url)
    yield provider
    await provider.aclose()


def _sse(*deltas: Delta, reason: str | None = "stop", end: bytes = _END, **fields: Any) -> bytes:
    chunks: list[Delta] = [{"choices": [{"index": 0, "delta": delta}], **fields} for delta in deltas]
    if reason is not None:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + end


def _piece(
    index: int | None = None, call_id: str | None = None, name: str | None = None, text: str | None = None
) -> Delta:
    function = {key: value for key, value in (("name", name), ("arguments", text)) if value is not None}
    piece = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return {**piece, "function": function}


def _calls(*pieces: Delta | None) -> list[Delta]:
    return [{"tool_calls": [piece]} for piece in pieces]


@pytest.mark.parametrize(
    "deltas",
    [
        _calls(_piece(0, None, "look", ""), _piece(0, "a", None, '{"page": 7}')),
        _calls(_piece(0, "a", "look", ""), _piece(0, "b", None, '{"page"'), _piece(0, "c", None, ": 7}")),
        _calls(_piece(0, "a", "look", ""), _piece(0, "b", "look", '{"page"'), _piece(0, "c", "look", ": 7}")),
        _calls(_piece(0, "a"), _piece(0, None, "look"), _piece(0, None, None, '{"page": 7}')),
        _calls(_piece(0, "a", "lo"), _piece(0, None, "ok"), _piece(0, None, None, '{"page": 7}')),
        _calls(_piece(0, "a", "look", '{"pa'), _piece(None, None, None, 'ge": 7}')),
        _calls(_piece(None, "a", "look", '{"pa'), _piece(0, "a", None, 'ge": 7}')),
        _calls(_piece(None, "a", "look", ""), _piece(None, "b", None, '{"page": 7}')),
        _calls(_piece(0, "a", "look", '{"page": 7}'), _piece(0, "a", "look", "")),
        _calls(_piece(0, "a", "look", '{"page": 7}'), _piece(0, "", "", "")),
        _calls(None, _piece(0, "a", "look", None), None, _piece(0, "a", "look", '{"page": 7}')),
    ],
)
async def test_split_call_is_joined(
    server: Loopback, chat: OpenAIChat, request_for: Requests, deltas: list[Delta]
) -> None:
    server.reply(LoopbackReply([_sse(*deltas, reason="tool_calls")]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert [(call.name, call.arguments) for call in message.calls] == [("look", '{"page": 7}')]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"tool_calls": [_piece(None, "a", "look", ""), _piece(None, "b", "look", '{"page": 7}')]}],
        _calls(_piece(0, "a", "look", ""), _piece(1, "b", "look", ""), _piece(1, None, None, '{"page": 7}')),
        _calls(_piece(0, "a", "fs_read", '{"path": "a"}'), _piece(0, "b", "look", '{"page": 7}')),
        _calls(_piece(0, "", "fs_read", "{}"), _piece(0, "", "look", '{"page": 7}')),
        _calls(_piece(0, "a", "fs_read", ""), _piece(0, "b", "look", '{"page": 7}')),
    ],
)
async def test_separate_calls_stay_separate(
    server: Loopback, chat: OpenAIChat, request_for: Requests, deltas: list[Delta]
) -> None:
    server.reply(LoopbackReply([_sse(*deltas, reason="tool_calls")]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert len(message.calls) == 2
    assert message.calls[1] == ToolCall(message.calls[1].id, "look", '{"page": 7}')


async def test_character_cut_in_halves_is_joined(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    deltas: list[Delta] = [{"reasoning": "so \ud83d"}, {"reasoning": "\ude00"}]
    deltas += [{"content": "smile \ud83d"}, {"content": "\ude00"}, {"content": " and half \ud83d"}]
    deltas += _calls(_piece(0, "a", "look", '{"page": "\ud83d'), _piece(0, None, None, '\ude00"}'))
    server.reply(LoopbackReply([_sse(*deltas, reason="tool_calls")]))
    events = [event async for event in chat.stream(request_for(UserMessage("hi")))]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "smile 😀 and half "
    server.reply(LoopbackReply([_sse(*deltas, reason="tool_calls")]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert message.text == "smile 😀 and half " and message.calls[0].arguments == '{"page": "😀"}'
    assert [part.text for part in message.parts if isinstance(part, Thinking)] == ["so 😀"]


@pytest.mark.parametrize(
    "answer",
    [
        _sse(*_calls(_piece(0, "a", None, '{"page": 7}')), reason="tool_calls"),  # no name
        _sse(*_calls(_piece(0, "a", "look", '{"pa')), reason=None),  # visibly cut off
        _sse(*_calls(_piece(0, "a", "look", "")), reason=None),
        _sse({"content": "half"}, reason=None, end=b""),
        _sse({"content": "half"}, reason="error"),
    ],
)
async def test_incomplete_message_is_an_error(
    server: Loopback, chat: OpenAIChat, request_for: Requests, answer: bytes
) -> None:
    server.reply(LoopbackReply([answer]))
    with pytest.raises(ProviderError) as caught:
        await asked(chat, request_for(UserMessage("hi")))
    assert caught.value.fault == "transient"


async def test_end_marker_replaces_finish_reason(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(LoopbackReply([_sse({"content": "done"}, reason=None)]))
    assert (await asked(chat, request_for(UserMessage("hi")))).text == "done"


@pytest.mark.parametrize("reason", ["content_filter", "something_new"])
async def test_call_beside_bad_stop_is_left_out(
    server: Loopback, chat: OpenAIChat, request_for: Requests, reason: str
) -> None:
    deltas = _calls(_piece(0, "a", "look", '{"page": 7}'))
    server.reply(LoopbackReply([_sse({"content": "I"}, *deltas, reason=reason)]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert (message.calls, message.text) == ((), "I")
    assert message.stop == ("refusal" if reason == "content_filter" else "other")


async def test_full_context_asks_for_compaction(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(LoopbackReply([_sse({"content": "I"}, reason="model_length")]))
    with pytest.raises(ProviderError) as caught:
        await asked(chat, request_for(UserMessage("hi")))
    assert caught.value.fault == "too_large"


async def test_unstreamed_answer_is_read(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"page": 7}'}}
    choice = {
        "message": {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
    usage = {"prompt_tokens": "5", "completion_tokens": "2", "prompt_tokens_details": None}
    body = {"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    server.reply(LoopbackReply([json.dumps(body).encode()], headers=_JSON))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert (message.text, message.stop, message.usage) == ("I look.", "calls", Usage(5, 2))
    assert message.calls == (ToolCall("a", "look", '{"page": 7}'),)


async def test_list_content_is_read(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    server.reply(LoopbackReply([_sse({"content": [thinking, {"type": "text", "text": "so"}], "tool_calls": None})]))
    message = await asked(chat, request_for(UserMessage("hi")))
    assert message.parts == (Thinking("hm"), Text("so"))


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_think_tags_become_thinking(server: Loopback, chat: OpenAIChat, request_for: Requests, size: int) -> None:
    text = "\n<think>\na < b</think>\n\nyes <think> no"
    pieces = [{"content": text[start : start + size]} for start in range(0, len(text), size)]
    server.reply(LoopbackReply([_sse(*pieces)]))
    *events, _ = [event async for event in chat.stream(request_for(UserMessage("hi")))]
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "a < b"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "yes <think> no"


@pytest.mark.parametrize("text", ["<", "<thinner>", "  <th"])
async def test_text_like_a_tag_is_kept(server: Loopback, chat: OpenAIChat, request_for: Requests, text: str) -> None:
    server.reply(LoopbackReply([_sse({"content": text}, end=b"")]))
    assert (await asked(chat, request_for(UserMessage("hi")))).text == text


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"object": "error", "message": "the engine died", "code": 500}, "transient"),
        ({"object": "error", "message": "maximum context length is 9 tokens", "code": 400}, "too_large"),
        ({"error": {"message": "maximum context length is 9 tokens", "code": 400}}, "too_large"),
        ({"error": {"message": "no such option", "code": 400}}, "invalid"),
    ],
)
async def test_stream_error_is_reported(
    server: Loopback, chat: OpenAIChat, request_for: Requests, said: Delta, fault: str
) -> None:
    server.reply(LoopbackReply([f"data: {json.dumps(said)}\n\n".encode() + _END]))
    with pytest.raises(ProviderError) as caught:
        await asked(chat, request_for(UserMessage("hi")))
    assert caught.value.fault == fault


async def test_reasoning_details_return(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    first = {"type": "reasoning.text", "index": 0, "text": "h"}
    rest = {"type": "reasoning.text", "index": 0, "text": "m", "signature": "c2ln"}
    closed = {"type": "reasoning.encrypted", "index": 1, "data": "ZW5j", "id": "x"}
    deltas = [{"reasoning": "h", "reasoning_details": [first]}, {"reasoning": "m", "reasoning_details": [rest, closed]}]
    server.reply(LoopbackReply([_sse(*deltas, *_calls(_piece(0, "a", "look", "{}")), reason="tool_calls")]))
    message = await asked(chat, request_for(UserMessage("hi")))
    history = (UserMessage("hi"), message, ToolMessage((Completed(message.calls[0], Output("x")),)))
    await asked(chat, request_for(*history))
    sent = server.received[1].json["messages"][2]
    assert sent["reasoning_details"] == [{**rest, "text": "hm"}, closed]
    assert "reasoning" not in sent
    other = OpenAIChat("other", base_url=server.url)  # another model's signatures would be refused
    await asked(other, request_for(*history))
    assert "reasoning_details" not in server.received[2].json["messages"][2]
    await other.aclose()


async def test_call_signature_returns(server: Loopback, request_for: Requests) -> None:
    gemini = OpenAIChat("google/gemini-3-pro", base_url=server.url)
    extra = {"google": {"thought_signature": "c2ln"}}
    pieces = [{**_piece(None, "a", "look", "{}"), "extra_content": extra}, _piece(None, "b", "look", "{}")]
    server.reply(LoopbackReply([_sse({"tool_calls": pieces})]))
    message = await asked(gemini, request_for(UserMessage("hi")))
    outcomes = ToolMessage(tuple(Completed(call, Output("x")) for call in message.calls))
    foreign = AssistantMessage((ToolCall("c", "look"),), "calls", model="gpt-test")
    answered = ToolMessage((Completed(foreign.calls[0], Output("x")),))
    await asked(gemini, request_for(UserMessage("hi"), message, outcomes, foreign, answered))
    sent = server.received[1].json["messages"]
    assert [call.get("extra_content") for call in sent[2]["tool_calls"]] == [extra, None]
    assert "skip_thought_signature_validator" in json.dumps(sent[5]["tool_calls"][0]["extra_content"])
    await gemini.aclose()


async def test_mistral_order_and_ids(server: Loopback, request_for: Requests) -> None:
    mistral = OpenAIChat("mistral-large-latest", base_url=server.url)
    server.reply(LoopbackReply([_sse({"content": "ok"})]))
    call = ToolCall("call_1", "look")
    picture = Output((Text("x"), Image(b"GIF89a", "image/gif")))
    history = (UserMessage("hi"), AssistantMessage((call,), "calls"), ToolMessage((Completed(call, picture),)))
    again = (AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output("x")),)), UserMessage("more"))
    await asked(mistral, request_for(*history, *again))
    sent = server.received[0].json["messages"]
    roles = [message["role"] for message in sent]
    assert all(roles[place + 1] != "user" for place, role in enumerate(roles[:-1]) if role == "tool")
    ids = {message["tool_call_id"] for message in sent if message["role"] == "tool"}
    assert ids == {call["id"] for message in sent for call in message.get("tool_calls", ())}
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    await mistral.aclose()


@pytest.mark.parametrize(
    ("model", "call_id", "kept"),
    [
        ("moonshotai/Kimi-K2-Instruct", "functions.look:0", True),
        ("kimi-k2-thinking", "functions.mcp__some_server__look_at_one_page:12", True),
        ("kimi-k2-thinking", "no good id!", False),
        ("claude-by-a-gateway", "functions.look:0", False),
    ],
)
async def test_kimi_gets_its_own_ids_back(
    server: Loopback, request_for: Requests, model: str, call_id: str, kept: bool
) -> None:
    provider = OpenAIChat(model, base_url=server.url)
    server.reply(LoopbackReply([_sse({"content": "ok"})]))
    call = ToolCall(call_id, "look")
    history = (UserMessage("hi"), AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output("x")),)))
    await asked(provider, request_for(*history))
    sent = server.received[0].json["messages"]
    assert sent[2]["tool_calls"][0]["id"] == sent[3]["tool_call_id"]
    assert (sent[3]["tool_call_id"] == call_id) is kept
    await provider.aclose()


async def test_password_in_the_address_is_not_kept(server: Loopback, request_for: Requests) -> None:
    address = server.url.replace("http://", "http://me:hunter2@")
    provider = OpenAIChat("some-model", base_url=address)
    deltas = {"reasoning_content": "hm"}, {"content": "ok"}
    server.reply(LoopbackReply([_sse(*deltas)]))
    message = await asked(provider, request_for(UserMessage("hi")))
    assert message.text == "ok" and "hm" in str(message.parts[0])
    assert "hunter2" not in str(message)
    await provider.aclose()


_FORBIDDEN = {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}
"""What a server made with FastAPI says."""


def _refusal(text: str, status: int = 400) -> LoopbackReply:
    return LoopbackReply([json.dumps({"error": {"message": text}}).encode()], status, _JSON)


@pytest.mark.parametrize(
    ("refusal", "gone", "instead"),
    [
        (_refusal("'max_tokens' is not supported. Use the new name instead."), "max_tokens", "max_completion_tokens"),
        (_refusal("Unrecognized request argument supplied: stream_options"), "stream_options", ""),
        (_refusal("body.stream_options: Extra inputs are not permitted", 422), "stream_options", ""),
        (_refusal("response_format.type json_schema is not supported by this model"), "response_format", ""),
        (LoopbackReply([json.dumps(_FORBIDDEN).encode()], 422, _JSON), "stream_options", ""),
    ],
)
async def test_refused_field_is_left_out(
    server: Loopback, chat: OpenAIChat, request_for: Requests, refusal: LoopbackReply, gone: str, instead: str
) -> None:
    server.reply(refusal, LoopbackReply([_sse({"content": "{}"})]))
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    for _ in range(2):
        await asked(chat, request_for(UserMessage("hi"), output_schema=schema))
    first, second, third = [each.json for each in server.received]
    assert gone in first
    assert gone not in second
    assert third == second  # learned once
    assert not instead or second[instead] == first[gone]
    if gone == "response_format":
        assert "number" in second["messages"][0]["content"]


@pytest.mark.parametrize("text", ["max_tokens is too large: 9. At most 4 are possible.", "no such tool"])
async def test_other_refusals_are_not_repeated(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str
) -> None:
    server.reply(_refusal(text))
    with pytest.raises(ProviderError):
        await asked(chat, request_for(UserMessage("hi")))
    assert len(server.received) == 1


async def test_refusal_again_is_raised(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(_refusal("unsupported: max_tokens, max_completion_tokens, stream_options, response_format"))
    with pytest.raises(ProviderError):
        await asked(chat, request_for(UserMessage("hi"), output_schema={"type": "object"}))
    assert len(server.received) == 4  # each field is given up once


@pytest.mark.parametrize(("model", "name"), [("openai/gpt-6.1", "max_completion_tokens"), ("qwen3", "max_tokens")])
async def test_limit_name_follows_the_model(server: Loopback, request_for: Requests, model: str, name: str) -> None:
    provider = OpenAIChat(model, base_url=server.url)
    server.reply(LoopbackReply([_sse({"content": "ok"})]))
    await asked(provider, request_for(UserMessage("hi")))
    assert name in server.received[0].json
    await provider.aclose()


async def test_probe_sends_no_key(server: Loopback) -> None:
    provider = OpenAIChat("m", api_key="secret", base_url=f"{server.url}/v1")
    server.reply(LoopbackReply([b'{"chat_template": "{% if tools %}"}'], headers=_JSON))
    assert await provider.calls_tools() is True
    assert server.received[0].path == "/props"
    assert "secret" not in str(server.received[0].headers)
    await provider.aclose()


async def test_silent_probe_is_given_up(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.providers.clients._SECONDS", 0.1)
    provider = OpenAIChat("m", base_url=f"{server.url}/v1")
    server.reply(LoopbackReply([b"{"], headers=_JSON, ending="held"))
    assert await provider.calls_tools() is None
    await provider.aclose()
