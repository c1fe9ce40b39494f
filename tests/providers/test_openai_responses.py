"""OpenAI's Responses API through its own SDK, against a server on this machine."""

import json
from collections.abc import AsyncIterator

import pytest
from httpx2 import AsyncClient, MockTransport, Request, Response
from openai import AsyncOpenAI

from callwright.core.calls import ToolCall
from callwright.core.json import compact
from callwright.core.messages import AssistantMessage, UserMessage
from callwright.providers.base import ProviderError
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses
from callwright.testing.loopback import Loopback, LoopbackReply

from .vendors import REASONING, Event, Recorded, Requests, asked, said_by, sse


@pytest.fixture
async def openai(server: Loopback) -> AsyncIterator[OpenAIResponses]:
    provider = OpenAIResponses("gpt-test", api_key="secret", base_url=server.url)
    yield provider
    await provider.aclose()


async def test_reasoning_phases_and_calls_round_trip(
    server: Loopback, openai: OpenAIResponses, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("openai_responses")]))
    await asked(openai, request_for(UserMessage("hi"), said_by("openai_responses", server.url)))
    assert server.received[0].json["input"][1:] == [
        REASONING,
        {"role": "assistant", "content": "Grüße 🌍", "phase": "commentary"},
        {"type": "function_call", "call_id": "call_a", "name": "fs_read", "arguments": '{"path":"ä.txt"}'},
        {"type": "function_call", "call_id": "call_b", "name": "look", "arguments": "{}"},
    ]


@pytest.mark.parametrize("closed", [True, False])
async def test_answer_is_enforced_if_schema_is_strict(
    server: Loopback, openai: OpenAIResponses, request_for: Requests, recorded: Recorded, closed: bool
) -> None:
    schema: Event = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    if closed:
        schema["additionalProperties"] = False
    server.reply(LoopbackReply([recorded("openai_responses")]))
    await asked(openai, request_for(UserMessage("hi"), output_schema=schema))
    sent = server.received[0].json["text"]["format"]
    assert (sent["strict"], sent["schema"]) == (closed, schema)


_LIST: Event = {"type": "array", "items": {"type": "integer"}}
_TREE: Event = {"type": "object", "properties": {"in": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}


@pytest.mark.parametrize("make", [OpenAIResponses, OpenAIChat])
@pytest.mark.parametrize(
    ("schema", "sent_at_openai"),
    [
        (_LIST, None),
        ({"anyOf": [_LIST, {"type": "null"}]}, None),
        ({"$ref": "#/$defs/Tree", "$defs": {"Tree": _TREE}}, {**_TREE, "$defs": {"Tree": _TREE}}),
    ],
)
@pytest.mark.parametrize("own", [True, False])
async def test_openai_gets_only_objects_as_schemas_of_answers(
    server: Loopback,
    request_for: Requests,
    recorded: Recorded,
    make: type[OpenAIResponses] | type[OpenAIChat],
    schema: Event,
    sent_at_openai: Event | None,
    own: bool,
) -> None:
    async def forward(request: Request) -> Response:
        async with AsyncClient() as client:
            return await client.post(server.url + request.url.path, content=request.content)

    server.reply(LoopbackReply([recorded("openai_responses" if make is OpenAIResponses else "openai_chat")]))
    address = "https://api.openai.com" if own else server.url
    http = AsyncClient(transport=MockTransport(forward)) if own else None  # the official address, on this machine
    client = AsyncOpenAI(api_key="k", base_url=address, http_client=http)
    await asked(make("gpt-test", client=client), request_for(UserMessage("hi"), output_schema=schema))
    await client.close()
    body = server.received[0].json
    form: Event = body.get("text", {}).get("format") or body.get("response_format", {}).get("json_schema") or {}
    assert form.get("schema") == (sent_at_openai if own else schema)
    asked_in_text = compact(schema) in (body.get("instructions") or body["messages"][0]["content"])
    assert asked_in_text is (form == {})


async def test_trailing_reasoning_is_not_sent(
    server: Loopback, openai: OpenAIResponses, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("openai_responses")]))
    parts = said_by("openai_responses", server.url).parts[:1]
    await asked(openai, request_for(UserMessage("hi"), AssistantMessage(parts, "length")))
    assert b"rs_1" not in server.received[0].body


async def test_reasoning_returns_only_to_its_server(
    server: Loopback, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("openai_responses")]))
    history = request_for(
        UserMessage("hi"), said_by("openai_responses", "http://x.openai.azure.com"), UserMessage("on")
    )
    client = AsyncOpenAI(api_key="k", base_url=server.url)
    for provider in (
        OpenAIResponses("gpt-test", api_key="k", base_url=server.url),
        OpenAIResponses("gpt-test", client=client),
    ):
        message = await asked(provider, history)
        assert b"rs_1" not in server.received[-1].body
        await asked(provider, request_for(UserMessage("hi"), message, UserMessage("on")))
        assert b"rs_1" in server.received[-1].body
        await provider.aclose()


async def test_truncated_call_is_kept_as_text(server: Loopback, openai: OpenAIResponses, request_for: Requests) -> None:
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": ""}
    ended: Event = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    events: list[Event] = [
        {"type": "response.output_item.added", "output_index": 0, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"page": '},
        {"type": "response.incomplete", "response": ended},
    ]
    server.reply(LoopbackReply([sse(*events)]))
    message = await asked(openai, request_for(UserMessage("hi")))
    assert (message.stop, message.calls) == ("length", (ToolCall("a", "look", '{"page": '),))


@pytest.mark.parametrize(
    ("code", "fault"),
    [("server_error", "transient"), ("rate_limit_exceeded", "transient"), ("invalid_prompt", "invalid")],
)
async def test_failed_response_sets_fault(
    server: Loopback, openai: OpenAIResponses, request_for: Requests, code: str, fault: str
) -> None:
    failed = {"status": "failed", "error": {"code": code, "message": "it went wrong"}}
    server.reply(LoopbackReply([sse({"type": "response.failed", "response": failed})]))
    with pytest.raises(ProviderError, match="it went wrong") as caught:
        await asked(openai, request_for(UserMessage("hi")))
    assert caught.value.fault == fault


async def test_non_thinking_model_gets_no_thinking_option(
    server: Loopback, request_for: Requests, recorded: Recorded
) -> None:
    server.reply(LoopbackReply([recorded("openai_responses")]))
    provider = OpenAIResponses("gpt-4.1", base_url=server.url)
    await asked(provider, request_for(UserMessage("hi")))
    assert "include" not in server.received[0].json
    await provider.aclose()


async def test_options_keep_the_answer_schema(server: Loopback, request_for: Requests, recorded: Recorded) -> None:
    server.reply(LoopbackReply([recorded("openai_responses")]))
    provider = OpenAIResponses("gpt-test", api_key="k", base_url=server.url)
    options = {"text": {"verbosity": "low"}, "reasoning": {"effort": "low"}}
    await asked(provider, request_for(UserMessage("hi"), output_schema={"type": "object"}, options=options))
    sent = server.received[0].json
    assert (sent["text"]["verbosity"], sent["text"]["format"]["type"]) == ("low", "json_schema")
    assert sent["reasoning"] == {"effort": "low"}
    await provider.aclose()


async def test_unstreamed_response_is_read(server: Loopback, request_for: Requests) -> None:
    provider = OpenAIResponses("gpt-test", api_key="k", base_url=server.url)
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
    body = {"object": "response", "status": "completed", "model": "m", "output": [call]}
    server.reply(LoopbackReply([json.dumps(body).encode()], headers={"content-type": "application/json"}))
    assert (await asked(provider, request_for(UserMessage("hi")))).calls == (ToolCall("a", "look", "{}"),)
    await provider.aclose()


async def test_call_with_only_the_id_of_its_item_is_read(
    server: Loopback, openai: OpenAIResponses, request_for: Requests
) -> None:
    call: Event = {"type": "function_call", "id": "fc_1", "name": "look", "arguments": '{"page": 1}'}
    events: list[Event] = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"page": 1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": call},
        {"type": "response.completed", "response": {"status": "completed", "output": [call]}},
    ]
    server.reply(LoopbackReply([sse(*events)]))
    message = await asked(openai, request_for(UserMessage("hi")))
    assert message.calls == (ToolCall("fc_1", "look", '{"page": 1}'),)


async def test_item_without_a_type_is_an_error(
    server: Loopback, openai: OpenAIResponses, request_for: Requests
) -> None:
    """Sent back like other unknown items, it would be refused with every later request."""
    response = {"status": "completed", "output": [{"id": "x_1", "text": "hi"}]}
    server.reply(LoopbackReply([sse({"type": "response.completed", "response": response})]))
    with pytest.raises(ProviderError, match="an item has no type"):
        await asked(openai, request_for(UserMessage("hi")))
