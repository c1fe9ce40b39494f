"""Tool calls as JSON actions, through a server without tool calling."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import jsonschema_rs
import pytest

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Image, Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, History, ToolMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    TextDelta,
)
from callwright.providers.json_actions import AdaptiveTools, SchemaActions, action_schema
from callwright.providers.openai.chat import OpenAIChat
from callwright.testing.loopback import Loopback, LoopbackReply

Requests = Callable[..., ModelRequest]
_PLAIN = {"content-type": "application/json"}


@pytest.fixture
async def chat(server: Loopback) -> AsyncIterator[OpenAIChat]:
    provider = OpenAIChat("small", base_url=server.url)
    yield provider
    await provider.aclose()


def _says(text: str, reason: str = "stop") -> LoopbackReply:
    chunk: dict[str, Any] = {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}
    return LoopbackReply([f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()])


async def _events(provider: Provider, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in provider.stream(request)]


async def _ask(provider: Provider, request: ModelRequest) -> AssistantMessage:
    last = (await _events(provider, request))[-1]
    assert isinstance(last, MessageDone)
    return last.message


async def test_action_becomes_call(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(_says('{"tool": "fs.read", "arguments": {"path": "a"}}'))
    delta, done = await _events(SchemaActions(chat), request_for(UserMessage("hi")))
    assert isinstance(done, MessageDone)
    (call,) = done.message.calls
    assert (call.name, call.arguments, done.message.stop) == ("fs.read", '{"path":"a"}', "calls")
    assert delta == CallDelta(call.id, "fs.read", '{"path":"a"}')


@pytest.mark.parametrize("reason", ["content_filter", "unheard_of"])
async def test_action_beside_a_refusal_is_no_call(
    reason: str, server: Loopback, chat: OpenAIChat, request_for: Requests
) -> None:
    server.reply(_says('{"tool": "fs.read", "arguments": {"path": "a"}}', reason))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert message.calls == ()


@pytest.mark.parametrize(
    ("action", "written"),
    [
        ('{"tool": "fs.read", "arguments": ["a"]}', '["a"]'),
        ('{"tool": "fs.read", "arguments": 5}', "5"),
        ('{"tool": "fs.read", "arguments": {"path": "a"}, "limit": 3}', '{"path":"a","limit":3}'),
        ('{"tool": "fs.read", "path": "a", "type": "py"}', '{"path":"a","type":"py"}'),
        ('{"tool": "fs.read", "arguments": null, "path": "a"}', '{"path":"a"}'),
    ],
)
async def test_no_argument_of_an_action_is_lost(
    action: str, written: str, server: Loopback, chat: OpenAIChat, request_for: Requests
) -> None:
    server.reply(_says(action))
    (call,) = (await _ask(SchemaActions(chat), request_for(UserMessage("hi")))).calls
    assert call.arguments == written


async def test_two_values_for_one_argument_are_no_call(
    server: Loopback, chat: OpenAIChat, request_for: Requests
) -> None:
    server.reply(_says('{"tool": "fs.read", "arguments": {"path": "a"}, "path": "b"}'))
    assert (await _ask(SchemaActions(chat), request_for(UserMessage("hi")))).calls == ()


async def test_answer_becomes_text(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(_says('{"answer": "four"}'))
    delta, done = await _events(SchemaActions(chat), request_for(UserMessage("hi")))
    assert delta == TextDelta("four")
    assert isinstance(done, MessageDone)
    assert (done.message.text, done.message.stop) == ("four", "end")


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "answer", "text": "yes"}',
        '{"tool": "final_answer", "arguments": {"answer": "yes"}}',
        '{"tool": "answer", "arguments": "yes"}',
        '{"tool": "", "answer": "yes"}',
        '{"tool": "none", "arguments": {}, "answer": "yes"}',
        '{"Answer": "yes"}',
    ],
)
async def test_answer_written_like_a_call_is_the_answer(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str
) -> None:
    server.reply(_says(text))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert (message.text, message.calls) == ("yes", ())


@pytest.mark.parametrize(
    "text",
    [
        '{"calls": {"tool": "fs.read", "arguments": {"path": "a"}}}',
        '{"tools": [{"tool": "fs.read", "arguments": {"path": "a"}}]}',
        '{"Tool": "fs.read", "Arguments": {"path": "a"}}',
        '{"tool": {"name": "fs.read", "arguments": {"path": "a"}}}',
        '{"tool": "fs.read", "arguments": {"path": "a"}, "answer": ""}',
        '{"tool": "fs.read", "arguments": {"path": "a"}, "answer": null}',
    ],
)
async def test_other_forms_of_an_action_are_calls(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str
) -> None:
    server.reply(_says(text))
    (call,) = (await _ask(SchemaActions(chat), request_for(UserMessage("hi")))).calls
    assert (call.name, call.arguments) == ("fs.read", '{"path":"a"}')


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": null}',
        '{"calls": []}',
        "{}",
        "[]",
        "null",
        '""',
        '{"thought": "hm"}',
        '{"tool": "", "arguments": {}}',
    ],
)
async def test_action_that_says_nothing_is_an_empty_message(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str
) -> None:
    server.reply(_says(text))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert (message.text, message.calls) == ("", ())


async def test_null_is_an_answer_where_a_schema_allows_it(
    server: Loopback, chat: OpenAIChat, request_for: Requests
) -> None:
    server.reply(_says('{"answer": null}'))
    request = request_for(UserMessage("hi"), output_schema={"type": ["object", "null"]})
    assert (await _ask(SchemaActions(chat), request)).text == "null"


async def test_structured_answer_stays_json(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(_says('{"answer": {"sum": 4}}'))
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi"), output_schema=schema))
    assert message.text == '{"sum":4}'


@pytest.mark.parametrize("text", ["just words", '{"tool": 3}', '{"answer":', '{"answer": {"sum": 4', '{"to', "{", "[]"])
async def test_non_action_stays_text(server: Loopback, chat: OpenAIChat, request_for: Requests, text: str) -> None:
    server.reply(_says(text, "length"))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert (message.text, message.calls, message.stop) == (text, (), "length")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"answer": "The sum is', "The sum is"),
        ('{"answer": "done"', "done"),
        ('```json\n{"answer": "in a fence', "in a fence"),
        ('{"answer": "a \\"quoted\\" word, {and [more', 'a "quoted" word, {and [more'),
        ('{"answer": "a path C:\\\\', "a path C:\\"),
        ('{"answer": "a line\\', "a line"),
        ('{"answer": "caf\\u00e', "caf"),
        ('{"answer": "\\ud83d', ""),
        ('{"answer": "\\ud83d\\ude00', "\N{GRINNING FACE}"),
        ('{"thought": "easy", "answer": "it is 4, and', "it is 4, and"),
    ],
)
async def test_answer_that_was_cut_off_is_text(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str, answer: str
) -> None:
    server.reply(_says(text, "length"))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert (message.text, message.calls, message.stop) == (answer, (), "length")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"tool": "look", "argu', ["look"]),
        ('{"tool": "look", "arguments": {"path": "/tmp/a', ["look"]),
        ('{"tool": "look", "arguments": {"path": "a"}', ["look"]),
        ('{"calls": [{"tool": "look", "arguments": {}}, {"tool": "fs.read", "arguments": {"pa', ["look", "fs.read"]),
        ('{"calls": [{"tool": "look", "arguments": {}},', ["look"]),
    ],
)
async def test_call_that_was_cut_off_cannot_run(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str, names: list[str]
) -> None:
    server.reply(_says(text, "length"))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert ([call.name for call in message.calls], message.text, message.stop) == (names, "", "length")
    *whole, cut = message.calls
    assert [json.loads(str(call.arguments)) for call in whole] == [{}] * len(whole)
    with pytest.raises(json.JSONDecodeError):
        json.loads(str(cut.arguments))


async def test_request_has_prompt_and_schema_but_no_tools(
    server: Loopback, chat: OpenAIChat, request_for: Requests, golden: Callable[[str, Any], None]
) -> None:
    server.reply(_says('{"answer": "done"}'))
    read, look = ToolCall("a", "fs.read", '{"path": "x"}'), ToolCall("b", "look")
    history = (
        UserMessage("hi"),
        AssistantMessage((Text("I look."), read, look), "calls"),
        ToolMessage(
            (
                Failed(read, ToolFailed("no such file")),
                Completed(look, Output((Text("page"), Image(b"GIF89a", "image/gif")))),
            )
        ),
        AssistantMessage((Text("done"),)),
        UserMessage("again"),
    )
    await _ask(SchemaActions(chat), request_for(*history))
    golden("schema_mode", server.received[0].json)


@pytest.mark.parametrize(
    ("text", "tool"),
    [('{"name": "look", "arguments": {"at": "a" b"}}', "look"), ('{"name": "Ada", "arguments": {}}', "Ada")],
)
async def test_call_that_could_not_be_read_does_not_look_like_an_answer(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str, tool: str
) -> None:
    server.reply(_says('{"answer": "done"}'))
    history = (UserMessage("hi"), AssistantMessage((Text(text),)), UserMessage("nothing ran"))
    await _ask(SchemaActions(chat), request_for(*history))
    assert json.loads(server.received[0].json["messages"][2]["content"]) == {"tool": tool, "arguments": {}}


async def test_old_messages_are_encoded_once(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(_says('{"answer": "done"}'))
    history = History([UserMessage("hi")])
    provider = SchemaActions(chat)
    await _ask(provider, request_for(messages=history))
    object.__setattr__(history[0], "content", None)  # encoding it again would fail
    history.append(UserMessage("more"))
    await _ask(provider, request_for(messages=history))
    assert [each["content"] for each in server.received[1].json["messages"][1:]] == ["hi", "more"]


async def test_request_without_tools_is_unchanged(server: Loopback, chat: OpenAIChat) -> None:
    server.reply(_says('{"answer": "x"}'))
    message = await _ask(SchemaActions(chat), ModelRequest([UserMessage("hi")]))
    assert message.text == '{"answer": "x"}'


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "registry.ollama.ai/library/tiny does not support tools"),
        (500, "tools param requires --jinja flag"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ],
)
async def test_missing_tool_support_is_detected_once(
    server: Loopback, chat: OpenAIChat, request_for: Requests, status: int, said: str
) -> None:
    refusal = LoopbackReply([json.dumps({"error": {"message": said}}).encode()], status, _PLAIN)
    server.reply(refusal, _says('{"tool": "look", "arguments": {}}'))
    provider = AdaptiveTools(chat)
    for _ in range(2):
        assert (await _ask(provider, request_for(UserMessage("hi")))).calls[0].name == "look"
    assert ["tools" in each.json for each in server.received] == [True, False, False]


async def test_other_errors_are_passed_on(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(LoopbackReply([b'{"error": {"message": "temperature must be positive"}}'], 400, _PLAIN))
    with pytest.raises(ProviderError, match="temperature"):
        await _ask(AdaptiveTools(chat), request_for(UserMessage("hi")))


@pytest.mark.parametrize(("template", "able"), [("{{ messages }}", False), ("{% if tools %}", True)])
async def test_llama_cpp_template_is_checked_first(
    server: Loopback, chat: OpenAIChat, request_for: Requests, template: str, able: bool
) -> None:
    server.reply(
        LoopbackReply([json.dumps({"chat_template": template}).encode()], 200, _PLAIN), _says('{"answer": "x"}')
    )
    await _ask(AdaptiveTools(chat, chat.calls_tools), request_for(UserMessage("hi")))
    assert [each.path for each in server.received] == ["/props", "/chat/completions"]
    assert ("tools" in server.received[1].json) is able


async def test_unknown_server_keeps_native_tools(server: Loopback, chat: OpenAIChat, request_for: Requests) -> None:
    server.reply(LoopbackReply([b"not found"], 404, {"content-type": "text/plain"}), _says("x"))
    await _ask(AdaptiveTools(chat, chat.calls_tools), request_for(UserMessage("hi")))
    assert "tools" in server.received[1].json


def test_recursive_schema_can_be_embedded() -> None:
    tree = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "self": {"$ref": "#"}},
        "required": ["tree"],
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
                "additionalProperties": False,
            }
        },
    }
    schema = action_schema((ToolSpec("grow", "Grow.", tree), ToolSpec("cut", "Cut.", tree)))
    check = jsonschema_rs.validator_for(thaw(schema))
    nested: dict[str, Any] = {"tree": {"children": [{"children": []}]}, "self": {"tree": {}}}
    assert check.is_valid({"tool": "cut", "arguments": nested})
    assert check.is_valid({"answer": "done"})
    assert not check.is_valid({"tool": "cut", "arguments": {"tree": {"leaf": 1}}})
    assert not check.is_valid({"tool": "saw", "arguments": nested})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"tool": "look", "arguments": "{\\"path\\": \\"x\\"}"}', [("look", {"path": "x"})]),
        ('{"tool": "look", "path": "x"}', [("look", {"path": "x"})]),
        ('{"tool": "functions.look", "arguments": {"path": "x"},}', [("look", {"path": "x"})]),
        ('{"name": "look", "arguments": {"path": "x"}}', [("look", {"path": "x"})]),
        (
            '{"calls": [{"tool": "look", "arguments": {"path": "x"}}, {"tool": "look", "path": "y"}]}',
            [("look", {"path": "x"}), ("look", {"path": "y"})],
        ),
    ],
)
async def test_action_keeps_its_arguments(
    server: Loopback, chat: OpenAIChat, request_for: Requests, text: str, wanted: list[Any]
) -> None:
    server.reply(_says(text))
    message = await _ask(SchemaActions(chat), request_for(UserMessage("hi")))
    assert [(call.name, json.loads(str(call.arguments))) for call in message.calls] == wanted
