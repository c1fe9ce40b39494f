"""Streams that deviate from the standard: each becomes the message the model meant, or a `ProviderError`."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from callwright import tool
from callwright.core.messages import AssistantMessage, Thinking, Usage, UserMessage
from callwright.providers.anthropic_messages import AnthropicDraft
from callwright.providers.base import MessageDone, ModelRequest, ProviderError, TextDelta, ThinkingDelta
from callwright.providers.errors import reading_errors
from callwright.providers.openai.chat_stream import ChatDraft
from callwright.providers.openai.client import STREAM_ENDED
from callwright.providers.openai.responses_stream import ResponsesDraft
from callwright.providers.streaming import Draft, read_stream
from callwright.providers.tool_encoding import EncodedTools, ToolEncoder, to_openai_chat
from callwright.sessions.record_encoding import dump_record, load_record
from callwright.sessions.records import Said


@tool
async def read(path: str = ".") -> str:
    """Read a file."""
    return path


@tool
async def read_file(path: str = ".") -> str:
    """Read another file."""
    return path


@tool
async def bash(command: str) -> str:
    """Run a line."""
    return command


@pytest.fixture(scope="module")
def tools() -> EncodedTools:
    request = ModelRequest((UserMessage("x"),), tools=(read.spec, read_file.spec, bash.spec))
    return ToolEncoder("test", to_openai_chat).encode(request)


def _message(draft: Draft, pieces: Sequence[Any]) -> AssistantMessage:
    with reading_errors():
        for piece in pieces:
            draft.take(piece)
        return draft.message()


def _calls(message: AssistantMessage) -> list[tuple[str, str]]:
    return [
        (call.name, str(dict(call.arguments) if not isinstance(call.arguments, (str, bytes)) else call.arguments))
        for call in message.calls
    ]


def _piece(
    index: object = None, call_id: object = None, name: object = None, arguments: object = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in found.items() if value is not None}


def _delta(*pieces: dict[str, Any], end: object = None, **delta: Any) -> dict[str, Any]:
    listed = {"tool_calls": list(pieces)} if pieces else {}
    return {"choices": [{"index": 0, "delta": {**listed, **delta}, "finish_reason": end}]}


END = _delta(end="tool_calls")
X, Y = '{"path":"x"}', '{"path":"y"}'


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        (
            [
                _delta(_piece(0, "a", "read", "")),
                _delta(_piece(0, None, None, X)),
                _delta(_piece(0, "b", "read", "")),
                _delta(_piece(0, None, None, Y)),
                END,
            ],
            [("read", X), ("read", Y)],
        ),
        (
            [
                _delta(_piece(0, "a", "read", X)),
                _delta(_piece(0, "b", "read", "")),
                _delta(_piece(0, "b", None, Y)),
                END,
            ],
            [("read", X), ("read", Y)],
        ),
        (
            [
                _delta(_piece(0, "1", "read", '{"pa')),
                _delta(_piece(0, "2", "read", 'th":"x"}')),
                _delta(_piece(0, "3", "read", "")),
                END,
            ],
            [("read", X)],
        ),
        (
            [
                _delta(_piece(0, "a", "read", '{"pa')),
                _delta(_piece(1, "b", "bash", '{"com')),
                _delta(_piece(0, None, None, 'th":"x"}')),
                _delta(_piece(1, None, None, 'mand":"y"}')),
                END,
            ],
            [("read", X), ("bash", '{"command":"y"}')],
        ),
        ([_delta(_piece(0, "a", "rea")), _delta(_piece(0, "a", "read", X)), END], [("read", X)]),
        ([_delta(_piece(0, "a", "read")), _delta(_piece(0, None, "_file", X)), END], [("read_file", X)]),
        ([_delta(end="function_call", function_call={"name": "read", "arguments": X})], [("read", X)]),
        (
            [
                _delta(function_call={"name": "read", "arguments": ""}),
                _delta(end="function_call", function_call={"arguments": X}),
            ],
            [("read", X)],
        ),
        ([_delta(end="tool_calls", tool_calls=_piece(0, "a", "read", X))], [("read", X)]),
        ([_delta(_piece(0, "a", "read", {"path": "x"})), END], [("read", '{"path": "x"}')]),
        (
            [
                _delta(_piece(0, "a", "read", "")),
                _delta(_piece(1, "b", "bash", '{"command":"y"}')),
                _delta(end="length"),
            ],
            [("read", "{"), ("bash", '{"command":"y"}')],
        ),
        ([_delta(_piece(0, "a", "read")), _delta(end="length")], [("read", "{")]),
    ],
)
def test_chat_calls_are_those_the_model_sent(
    chunks: list[dict[str, Any]], calls: list[tuple[str, str]], tools: EncodedTools
):
    assert _calls(_message(ChatDraft(tools), [*chunks, STREAM_ENDED])) == calls


def test_only_one_choice_is_read(tools: EncodedTools):
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 1, "delta": {"content": "c"}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {"content": "d"}, "finish_reason": "stop"}]},
    ]
    message = _message(ChatDraft(tools), chunks)
    assert (message.text, message.stop) == ("ad", "end")


def test_thinking_that_the_template_opened_is_no_answer(tools: EncodedTools):
    message = _message(ChatDraft(tools), [_delta(content="hm\n</think>\n\nanswer", end="stop")])
    assert message.text == "answer"
    message = _message(ChatDraft(tools), [_delta(content="Close it with `</think>` at the end.", end="stop")])
    assert message.text == "Close it with `</think>` at the end."


def _call(**fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "c1", "name": "read", "arguments": X, **fields}


def _completed(*output: Any, status: str = "completed") -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": status, "output": list(output)}}


ADDED = {"type": "response.output_item.added", "output_index": 0, "item": _call(arguments="")}


def _done(index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": _call(**fields)}


WRITTEN = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": X}
WHOLE = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": X}
SAID = {"type": "response.output_text.delta", "delta": "hi"}
TOLD = {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": "hi"}}
SECOND_CALL = _call(call_id="c2", id="fc2", arguments=Y)
SECOND = (
    {**ADDED, "item": {**SECOND_CALL, "arguments": ""}},
    {**WRITTEN, "item_id": "fc2", "delta": Y},
    {**ADDED, "type": "response.output_item.done", "item": SECOND_CALL},
)


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ([ADDED, WRITTEN, _done(arguments=""), _completed()], [("read", X)]),
        ([ADDED, WHOLE, _done(arguments=""), _completed()], [("read", X)]),
        ([ADDED, WRITTEN, WHOLE, _done(), _completed()], [("read", X)]),
        ([ADDED, WRITTEN, _done(arguments=None), _completed(_call(arguments=""))], [("read", X)]),
        ([ADDED, WRITTEN, _done(arguments='{"path": "x"}'), _completed(_call())], [("read", '{"path":"x"}')]),
        ([_done(), _completed(_call(arguments=""))], [("read", X)]),
        ([_done(), _completed(_call(call_id="c9"))], [("read", X)]),
        ([_completed(None, _call())], [("read", X)]),
        ([_completed(_call(arguments={"path": "x"}))], [("read", X)]),
        ([_completed(_call(arguments=None))], [("read", "{}")]),
        ([_completed(_call(call_id=None, id="fc"))], [("read", X)]),
        ([_completed(_call(), status="cancelled")], []),
        ([_completed(_call(), status="in_progress")], []),
        ([_completed(_call(arguments="", status="incomplete"))], [("read", "{")]),
        (
            [_completed({"type": "reasoning", "summary": [{"type": "x"}], "encrypted_content": "e"}, _call())],
            [("read", X)],
        ),
        ([_completed({"type": "message", "content": "hi"}, _call())], [("read", X)]),
        ([WHOLE, _done(), _completed()], [("read", X)]),
        # a gateway that sends every item under one index
        ([ADDED, WRITTEN, _done(), *SECOND, _completed()], [("read", X), ("read", Y)]),
        ([ADDED, WRITTEN, _done(), *SECOND, _completed(_call(), SECOND_CALL)], [("read", X), ("read", Y)]),
        ([ADDED, SECOND[0], *SECOND[1:], _done(), _completed()], [("read", X), ("read", Y)]),
        ([_done(), SECOND[-1], _completed()], [("read", X), ("read", Y)]),
        ([_done(), _done(), _completed()], [("read", X)]),
        ([ADDED, WRITTEN, _done(), TOLD, _completed()], [("read", X)]),
        ([TOLD, ADDED, WRITTEN, _done(), _completed()], [("read", X)]),
        # a model that gives two calls the same id
        (
            [_done(), _done(1, arguments=Y), _completed(_call(), _call(arguments=Y))],
            [("read", X), ("read", Y)],
        ),
    ],
)
def test_responses_calls_are_those_the_model_sent(
    events: list[dict[str, Any]], calls: list[tuple[str, str]], tools: EncodedTools
):
    assert _calls(_message(ResponsesDraft(tools), events)) == calls


def test_responses_text_that_was_only_streamed_is_kept(tools: EncodedTools):
    message = _message(ResponsesDraft(tools), [SAID, SAID, _completed()])
    assert (message.text, message.stop) == ("hihi", "end")
    refused = {"type": "response.refusal.delta", "delta": "no"}
    message = _message(ResponsesDraft(tools), [refused, _completed()])
    assert (message.text, message.stop) == ("no", "refusal")
    message = _message(ResponsesDraft(tools), [SAID, _completed({"type": "message", "content": "hi"})])
    assert message.text == "hi"
    message = _message(ResponsesDraft(tools), [SAID, _completed(_call())])
    assert (message.text, _calls(message)) == ("hi", [("read", X)])


START = {"type": "message_start", "message": {"model": None, "usage": None}}
STOP = {"type": "message_stop"}


def _block(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _ends(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


def _use(index: int, **fields: Any) -> dict[str, Any]:
    return _block(index, **{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "x"}, **fields})


def test_anthropic_call_without_an_id_gets_one(tools: EncodedTools):
    (call,) = _message(AnthropicDraft(tools), [START, _use(0, id=None), _ends("tool_use"), STOP]).calls
    assert call.id


def test_anthropic_empty_pieces_are_left_out(tools: EncodedTools):
    nothing = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": None}}
    pieces = [START, _block(0, type="text", text=None), nothing, _ends("end_turn"), STOP]
    assert _message(AnthropicDraft(tools), pieces).text == ""


def test_anthropic_counts_and_model_are_what_a_session_stores(tools: EncodedTools):
    usage = {"input_tokens": "12", "output_tokens": 3.0, "cache_read_input_tokens": "many"}
    whole = {"type": "message", "model": None, "stop_reason": "end_turn", "usage": usage}
    message = _message(AnthropicDraft(tools), [{**whole, "content": [{"type": "text", "text": "hi"}]}])
    assert (message.usage, message.model) == (Usage(12, 3), "")
    assert load_record(dump_record(Said(message))) == Said(message)


EMOJI = '{"path":"\ud83d', '\ude00"}'
CUT = ("smile \ud83d", "\ude00 and half \ud83d")


def _grow(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


@pytest.mark.parametrize(
    ("draft", "pieces"),
    [
        (
            AnthropicDraft,
            [
                START,
                _block(0, type="thinking", thinking=""),
                *(_grow(0, type="thinking_delta", thinking=text) for text in CUT),
                _block(1, type="text", text=""),
                *(_grow(1, type="text_delta", text=text) for text in CUT),
                _use(2, input={}),
                *(_grow(2, type="input_json_delta", partial_json=text) for text in EMOJI),
                _ends("tool_use"),
                STOP,
            ],
        ),
        (
            ResponsesDraft,
            [
                *({"type": "response.reasoning_text.delta", "delta": text} for text in CUT),
                *({"type": "response.output_text.delta", "delta": text} for text in CUT),
                ADDED,
                *({**WRITTEN, "delta": text} for text in EMOJI),
                _done(arguments='{"path": "😀"}'),
                _completed(),
            ],
        ),
        (
            ChatDraft,
            [
                *(_delta(reasoning=text) for text in CUT),
                *(_delta(content=text) for text in CUT),
                _delta(_piece(0, "a", "read", EMOJI[0])),
                _delta(_piece(0, "a", None, EMOJI[1])),
                END,
            ],
        ),
    ],
)
async def test_character_cut_in_halves_is_joined(
    draft: Callable[[EncodedTools], Draft], pieces: list[Any], tools: EncodedTools
):
    events = [event async for event in read_stream(draft(tools), _opened(*pieces), key="KEY")]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "smile 😀 and half "
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "smile 😀 and half "
    done = events[-1]
    assert isinstance(done, MessageDone) and done.message.text == "smile 😀 and half "
    assert [part.text for part in done.message.parts if isinstance(part, Thinking)] in ([], ["smile 😀 and half "])
    ((_, written),) = _calls(done.message)
    assert json.loads(written) == {"path": "😀"} and "😀" in written


@asynccontextmanager
async def _opened(*given: Any) -> AsyncGenerator[AsyncIterator[Any]]:
    async def pieces() -> AsyncIterator[Any]:
        for piece in given:
            yield piece

    yield pieces()


@pytest.mark.parametrize(
    ("given", "read"),
    [(-5, 0), ("12", 12), (float("inf"), 0), (float("nan"), 0), ([1], 0), (10**400, 2**53 - 1)],
    ids=str,
)
@pytest.mark.parametrize("model", [None, {"name": "m"}, 7], ids=repr)
def test_counts_and_model_of_any_server_can_be_stored(given: object, read: int, model: object, tools: EncodedTools):
    usage = dict.fromkeys(("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens"), given)
    about = {"model": model, "usage": usage}
    chat = {**about, "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]}
    response = {**about, "object": "response", "output": [{"type": "message", "content": "hi"}]}
    claude = {**about, "type": "message", "stop_reason": "end_turn", "content": [{"type": "text", "text": "hi"}]}
    for draft, whole in ((ChatDraft(tools), chat), (ResponsesDraft(tools), response), (AnthropicDraft(tools), claude)):
        message = _message(draft, [whole])
        assert (message.text, message.usage, message.model) == ("hi", Usage(read, read), str(model or ""))
        assert load_record(dump_record(Said(message))) == Said(message)


@pytest.mark.parametrize(
    ("draft", "piece"),
    [
        (ResponsesDraft, {"type": "response.output_text.delta", "delta": {"text": "hi"}}),
        (ResponsesDraft, {**ADDED, "item": _call(call_id=7)}),
        (ResponsesDraft, {**ADDED, "item": _call(name=None)}),
        (AnthropicDraft, _block(0, type="text", text=5)),
        (AnthropicDraft, _use(0, id=7)),
        (AnthropicDraft, _use(0, name={"a": 1})),
    ],
)
async def test_what_is_shown_while_it_arrives_is_text(
    draft: type[ResponsesDraft] | type[AnthropicDraft], piece: dict[str, Any], tools: EncodedTools
):
    with pytest.raises(ProviderError) as caught:
        async for event in read_stream(draft(tools), _opened(piece), key="KEY"):
            pytest.fail(f"was shown: {event}")
    assert caught.value.fault == "transient"


def test_opaque_part_that_could_not_be_stored_is_refused(tools: EncodedTools):
    block = _block(0, type="server_tool_use", id="s1", name="web_search", input={"most": [1, float("inf")]})
    with pytest.raises(ProviderError, match="not JSON"):
        _message(AnthropicDraft(tools), [START, block, _ends("end_turn"), STOP])


@pytest.mark.parametrize(
    ("draft", "pieces"),
    [
        (ResponsesDraft, [_completed(_call(name=None))]),
        (ResponsesDraft, [ADDED, _completed()]),
        (ResponsesDraft, [ADDED, WRITTEN, _done(arguments=Y)]),
        (ResponsesDraft, [ADDED, WHOLE, _done(arguments=Y)]),
        (ResponsesDraft, [ADDED, WRITTEN, _done(name="bash")]),
        (ResponsesDraft, [ADDED, WRITTEN, _done(), _completed(_call(arguments=Y))]),
        (ResponsesDraft, [_done(), _done(1, call_id="c2"), _completed(_call())]),
        (ResponsesDraft, [_done(), _completed({"type": "message", "content": "hi"})]),
        (ResponsesDraft, [_done(), _done(arguments=Y), _completed()]),
        (ResponsesDraft, [_done(), *SECOND, _completed(SECOND_CALL)]),
        (ResponsesDraft, [{"type": "response.function_call_arguments.delta", "delta": "{}"}]),
        (ResponsesDraft, ["text"]),
        (AnthropicDraft, [START, _use(0, name=None), _ends("tool_use"), STOP]),
        (AnthropicDraft, [START, _use(0), _use(0), _ends("tool_use"), STOP]),
        (AnthropicDraft, [START, {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta"}}]),
        (AnthropicDraft, [{"type": "message_start"}]),
        (AnthropicDraft, ["text"]),
        (ChatDraft, [_delta(_piece(0, "a", None, X)), END]),
        (ChatDraft, [_delta(content="hi")]),
    ],
)
def test_response_of_an_unknown_form_is_an_error_that_may_be_retried(
    draft: type[ChatDraft] | type[ResponsesDraft] | type[AnthropicDraft], pieces: list[Any], tools: EncodedTools
):
    with pytest.raises(ProviderError) as caught:
        _message(draft(tools), pieces)
    assert caught.value.fault == "transient"


def test_chat_content_that_is_one_part_is_read(tools: EncodedTools):
    message = _message(ChatDraft(tools), [_delta(content={"type": "text", "text": "hi"}, end="stop")])
    assert (message.text, message.stop) == ("hi", "end")


@pytest.mark.parametrize("field", ["images", "content"])
def test_chat_image_of_the_model_is_named(field: str, tools: EncodedTools):
    images = [
        {"type": "image_url", "image_url": {"url": url}} for url in ("data:image/webp;base64,AA", "https://a.b/c")
    ]
    message = _message(ChatDraft(tools), [_delta(**{field: images}, end="stop")])
    assert message.text == (
        "[an image: image/webp, which cannot be shown here][an image: of unknown type, which cannot be shown here]"
    )


async def test_values_nested_too_deep_are_an_error(tools: EncodedTools):
    nested: Any = "x"
    for _ in range(2_000):
        nested = [nested]
    chunk = _delta(reasoning_details=[{"type": "reasoning.encrypted", "data": nested}], content="hi", end="stop")
    with pytest.raises(ProviderError, match="RecursionError"):
        _ = [event async for event in read_stream(ChatDraft(tools), _opened(chunk), key="K")]
