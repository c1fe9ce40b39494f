"""Gemini through Google's own SDK, against a server on this machine."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from callwright.core.calls import Failed, ToolCall
from callwright.core.content import Text
from callwright.core.errors import ToolFailed
from callwright.core.messages import AssistantMessage, Thinking, ToolMessage, UserMessage
from callwright.providers.base import MessageDone, ProviderError, TextDelta
from callwright.providers.google import GoogleGemini
from callwright.testing.loopback import Loopback, LoopbackReply
from callwright.testing.requests import google_faults

from .vendors import Recorded, Requests, asked, sse

Chunk = dict[str, Any]


@pytest.fixture
async def gemini(server: Loopback) -> AsyncIterator[GoogleGemini]:
    provider = GoogleGemini("gemini-test", api_key="secret", base_url=server.url)
    yield provider
    await provider.aclose()


async def test_signatures_return_on_their_parts(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    message = await asked(gemini, request_for(UserMessage("hi")))
    await asked(gemini, request_for(UserMessage("hi"), message))
    second = message.calls[1].id
    assert server.received[1].json["contents"][1]["parts"] == [
        {"text": "hm…", "thought": True},
        {"text": "Grüße 🌍"},
        {"functionCall": {"id": "call_a", "name": "fs_read", "args": {"path": "ä.txt"}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"id": second, "name": "look", "args": {}}},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]


async def test_foreign_call_is_marked_unsigned(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    calls = (Text("I look."), ToolCall("a", "look"), ToolCall("b", "look"))
    await asked(gemini, request_for(UserMessage("hi"), AssistantMessage(calls, "calls", model="claude")))
    _, first, other = server.received[0].json["contents"][1]["parts"]
    assert first["thoughtSignature"] == "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    assert "thoughtSignature" not in other


@pytest.mark.parametrize(("reason", "stop"), [("MAX_TOKENS", "length"), ("SAFETY", "refusal"), ("OTHER", "other")])
async def test_finish_reason_sets_stop(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, reason: str, stop: str
) -> None:
    server.reply(
        LoopbackReply([sse({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": reason}]})])
    )
    assert (await asked(gemini, request_for(UserMessage("hi")))).stop == stop


async def test_blocked_prompt_is_refusal(server: Loopback, gemini: GoogleGemini, request_for: Requests) -> None:
    server.reply(LoopbackReply([sse({"promptFeedback": {"blockReason": "SAFETY"}})]))
    assert (await asked(gemini, request_for(UserMessage("hi")))).stop == "refusal"


async def test_malformed_call_is_transient(server: Loopback, gemini: GoogleGemini, request_for: Requests) -> None:
    server.reply(LoopbackReply([sse({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})]))
    with pytest.raises(ProviderError) as caught:
        await asked(gemini, request_for(UserMessage("hi")))
    assert caught.value.fault == "transient"


async def test_lone_surrogate_is_replaced(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    half = "x\ud83d"
    call = ToolCall("a", "look", {"page": half})
    failed = ToolMessage((Failed(call, ToolFailed(half)),))
    await asked(gemini, request_for(UserMessage(half), AssistantMessage((Text(half), call)), failed, system=half))
    assert server.received[0].body.count(b"x?") == 5


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("thought", [True, False])
async def test_character_in_two_halves_is_joined(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, *, signed: bool, thought: bool
) -> None:
    first = {"text": "a\ud83d", "thought": thought, **({"thoughtSignature": "c2ln"} if signed else {})}
    parts = [first, {"text": "\ude00b", "thought": thought}, {"text": " end\ud83d"}]
    ends = [None, None, "STOP"]
    chunks = [
        {"candidates": [{"content": {"parts": [part]}, "finishReason": end}]}
        for part, end in zip(parts, ends, strict=True)
    ]
    server.reply(LoopbackReply([sse(*chunks)]))
    message = await asked(gemini, request_for(UserMessage("hi")))
    texts = [part.text for part in message.parts if isinstance(part, (Text, Thinking))]
    assert "".join(texts) == "a😀b end"


async def test_non_thinking_model_gets_no_thinking_option(
    server: Loopback, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    provider = GoogleGemini("gemini-2.0-flash", api_key="k", base_url=server.url)
    await asked(provider, request_for(UserMessage("hi")))
    assert "thinkingConfig" not in server.received[0].json["generationConfig"]
    await provider.aclose()


async def test_parallel_streams_close_separately(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, recorded: Recorded
) -> None:
    answer = recorded("google")
    server.reply(LoopbackReply([answer]))
    one: Any = gemini.stream(request_for(UserMessage("first")))
    await anext(one)
    other: Any = gemini.stream(request_for(UserMessage("second")))
    await anext(other)
    await one.aclose()
    assert isinstance([event async for event in other][-1], MessageDone)
    said = [each.json["contents"][0]["parts"][0]["text"] for each in server.received]
    assert said == ["first", "second"]


async def test_retry_delay_in_body_is_read(server: Loopback, gemini: GoogleGemini, request_for: Requests) -> None:
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s"}
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [retry]}}
    server.reply(LoopbackReply([json.dumps(body).encode()], 429, {"content-type": "application/json"}))
    with pytest.raises(ProviderError) as caught:
        await asked(gemini, request_for(UserMessage("hi")))
    assert (caught.value.fault, caught.value.retry_after) == ("transient", 31.0)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ("the input token count (5) exceeds 4; data: none", "too_large"),
        ({"code": "429", "message": "slow down"}, "transient"),
        (["busy"], "transient"),
    ],
)
async def test_error_of_a_gateway_inside_a_stream_is_told(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, error: object, fault: str
) -> None:
    begun = b'data: {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}\n\n'
    server.reply(LoopbackReply([begun, b"data: " + json.dumps({"error": error}).encode() + b"\n\n"]))
    with pytest.raises(ProviderError, match=r"broke off the response: (the input token|slow down|busy)") as failed:
        await asked(gemini, request_for())
    assert failed.value.fault == fault


@pytest.mark.parametrize("ending", [b"", b"\n"])
async def test_error_with_a_code_in_place_of_an_answer_names_the_key(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, ending: bytes
) -> None:
    server.reply(LoopbackReply([b'{"error": {"code": 401, "message": "bad key"}}' + ending]))
    with pytest.raises(ProviderError, match="the model API answered 401: bad key; check GEMINI_API_KEY") as caught:
        await asked(gemini, request_for(UserMessage("hi")))
    assert caught.value.fault == "auth"


async def test_missing_key_is_named(request_for: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ProviderError, match="set GEMINI_API_KEY, or make the provider with api_key=…") as caught:
        await asked(GoogleGemini("gemini-test"), request_for(UserMessage("hi")))
    assert caught.value.fault == "auth"


def _chunk(*parts: Chunk, reason: str = "STOP") -> bytes:
    return sse({"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}]})


_IMAGE: Chunk = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "c2ln"}
_CODE: Chunk = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
_RESULT: Chunk = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}


@pytest.mark.parametrize(
    ("parts", "told"), [([_IMAGE], "image/png, 8 bytes"), ([_CODE, _RESULT, {"text": "one"}], "print(1)")]
)
async def test_parts_of_the_model_are_told_and_returned(
    server: Loopback, gemini: GoogleGemini, request_for: Requests, parts: list[Chunk], told: str
) -> None:
    server.reply(LoopbackReply([_chunk(*parts)]))
    events = [event async for event in gemini.stream(request_for(UserMessage("hi")))]
    assert isinstance(events[-1], MessageDone)
    message = events[-1].message
    assert told in message.text
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == message.text
    await asked(gemini, request_for(UserMessage("hi"), message, UserMessage("go on")))
    assert server.received[1].json["contents"][1]["parts"] == parts
    assert google_faults(server.received[1]) == []


async def test_signature_alone_returns_and_empty_text_does_not(
    server: Loopback, gemini: GoogleGemini, request_for: Requests
) -> None:
    call: Chunk = {"functionCall": {"name": "look", "args": {}, "id": "a"}}
    server.reply(LoopbackReply([_chunk({"text": ""}, call, {"thoughtSignature": "ZW5k"})]))
    message = await asked(gemini, request_for(UserMessage("hi")))
    await asked(gemini, request_for(UserMessage("hi"), message))
    sent = server.received[1].json["contents"][1]["parts"]
    assert [list(part) for part in sent] == [["functionCall", "thoughtSignature"], ["text", "thoughtSignature"]]
    assert sent[1] == {"text": "", "thoughtSignature": "ZW5k"}


@pytest.mark.parametrize(("model", "together"), [("gemini-2.5-pro", False), ("gemini-3-pro", True)])
async def test_older_model_gets_schema_in_text(
    server: Loopback, request_for: Requests, recorded: Recorded, model: str, together: bool
) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    provider = GoogleGemini(model, api_key="k", base_url=server.url)
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    await asked(provider, request_for(UserMessage("hi"), output_schema=schema))
    sent = server.received[0].json
    assert ("responseJsonSchema" in sent["generationConfig"]) == together
    assert ("number" in sent["systemInstruction"]["parts"][0]["text"]) != together
    await provider.aclose()


_NODE: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"$ref": "#/$defs/Node", "$defs": {"Node": {**_NODE, "required": ["next"]}}}, {**_NODE, "required": []}),
        ({"type": "array", "items": {"const": "a"}}, {"type": "array", "items": {"enum": ["a"]}}),
        ({"type": "string", "pattern": "^a"}, {"type": "string", "description": 'pattern: "^a"'}),
    ],
)
async def test_answer_schema_has_only_what_gemini_reads(
    server: Loopback, request_for: Requests, recorded: Recorded, schema: dict[str, Any], sent: dict[str, Any]
) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    provider = GoogleGemini("gemini-3-pro", api_key="k", base_url=server.url)
    await asked(provider, request_for(UserMessage("hi"), output_schema=schema))
    found = server.received[0].json["generationConfig"]["responseJsonSchema"]
    assert found == (sent if "$ref" not in schema else {"$ref": "#/$defs/Node", "$defs": {"Node": sent}})
    await provider.aclose()


async def test_options_add_to_ours(server: Loopback, request_for: Requests, recorded: Recorded) -> None:
    server.reply(LoopbackReply([recorded("google")]))
    provider = GoogleGemini("gemini-3-pro", api_key="k", base_url=server.url)
    options = {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}
    await asked(provider, request_for(UserMessage("hi"), output_schema={"type": "object"}, options=options))
    sent = server.received[0].json["generationConfig"]
    assert sent["thinkingConfig"] == {"includeThoughts": True, "thinkingLevel": "low"}
    assert "responseJsonSchema" in sent
    await provider.aclose()


async def test_silent_server_is_given_up(server: Loopback, request_for: Requests) -> None:
    provider = GoogleGemini("gemini-test", api_key="k", base_url=server.url, silence_seconds=0.1)
    server.reply(LoopbackReply([b"data: "], ending="held"))
    with pytest.raises(ProviderError, match="in time") as caught:
        await asked(provider, request_for(UserMessage("hi")))
    assert caught.value.fault == "transient"
    await provider.aclose()


async def test_call_without_name_is_an_error(server: Loopback, gemini: GoogleGemini, request_for: Requests) -> None:
    server.reply(LoopbackReply([_chunk({"functionCall": {"args": {"page": 7}}})]))
    with pytest.raises(ProviderError):
        await asked(gemini, request_for(UserMessage("hi")))


async def test_message_is_made_of_one_candidate(server: Loopback, gemini: GoogleGemini, request_for: Requests) -> None:
    def chunk(index: int, part: Chunk, **ended: str) -> Chunk:
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": index, **ended}]}

    call: Chunk = {"functionCall": {"name": "look", "args": {}}}
    chunks = [chunk(0, {"text": "a"}), chunk(1, call, finishReason="MAX_TOKENS"), chunk(0, {"text": "b"})]
    server.reply(LoopbackReply([sse(*chunks, chunk(0, {"text": ""}, finishReason="STOP"))]))
    message = await asked(gemini, request_for(UserMessage("hi")))
    assert (message.parts, message.stop) == ((Text("ab"),), "end")
