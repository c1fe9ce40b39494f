"""Conformance check for providers."""

import json
from collections.abc import AsyncGenerator, Sequence

from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Output
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    TextDelta,
    ThinkingDelta,
)

_TOOL = ToolSpec(
    "check.add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    annotations=Annotations(Effect.READ),
)
_WIRE = {"check.add": "check_add"}
_ASKED = UserMessage("What is 17 + 25? Use the tool.")
_CALLED = ToolCall("call_1", "check.add", '{"a": 17, "b": 25}')


async def check_provider(provider: Provider) -> list[AssistantMessage]:
    """Check that a provider keeps the contract; return the messages it produced.

    The check asks a plain question, offers a tool, shows an outcome, and leaves a stream early. Every stream must end
    with the complete message, its deltas must add up to that message, and calls must have unique ids, known names and
    JSON arguments.

    Args:
        provider: the provider to check; it receives five requests.

    Raises:
        AssertionError: the provider breaks the contract.
    """
    assert provider.model, "a provider must name its model"
    plain: tuple[Message, ...] = (UserMessage("Say hello."),)
    answered: tuple[Message, ...] = (
        _ASKED,
        AssistantMessage((_CALLED,), "calls"),
        ToolMessage((Completed(_CALLED, Output("42")),)),
    )
    requests = [
        ModelRequest(plain, system="Answer in one word."),
        ModelRequest((_ASKED,), tools=(_TOOL,), wire_names=_WIRE),
        ModelRequest(answered, tools=(_TOOL,), wire_names=_WIRE),
    ]
    messages = [_check_stream([event async for event in provider.stream(request)]) for request in requests]
    await _check_leaving(provider, requests[0])
    return messages


def _check_stream(events: Sequence[ModelEvent]) -> AssistantMessage:
    assert events, "a stream must have events"
    last = events[-1]
    assert isinstance(last, MessageDone), f"the last event must be MessageDone, got {last!r}"
    ends = [event for event in events if isinstance(event, MessageDone)]
    assert len(ends) == 1, f"a stream must have one MessageDone, got {len(ends)}"
    message = last.message
    _check_deltas(events, message)
    _check_calls(message)
    usage = message.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    assert min(counts) >= 0, f"usage must not be negative: {usage}"
    return message


def _check_deltas(events: Sequence[ModelEvent], message: AssistantMessage) -> None:
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == message.text, f"the text deltas are {text!r}, the message is {message.text!r}"
    named = {event.call_id for event in events if isinstance(event, CallDelta)}
    known = {call.id for call in message.calls}
    assert named <= known, f"deltas of calls that are not in the message: {sorted(named - known)}"
    assert all(event.text for event in events if isinstance(event, ThinkingDelta)), "a thinking delta must not be empty"


def _check_calls(message: AssistantMessage) -> None:
    calls = message.calls
    assert len({call.id for call in calls}) == len(calls), "calls must have unique ids"
    if calls:
        assert message.stop in ("calls", "length"), (
            f"a message with calls must stop with 'calls' or 'length', got {message.stop!r}"
        )
    for call in calls:
        assert call.id, f"{call.name}: a call must have an id"
        assert call.name in (*_WIRE, *_WIRE.values()), f"{call.name!r} was not offered"
        if isinstance(call.arguments, (str, bytes)) and message.stop != "length":
            json.loads(call.arguments)


async def _check_leaving(provider: Provider, request: ModelRequest) -> None:
    """Check that a request works after an earlier stream was closed early."""
    stream = provider.stream(request)
    async for _ in stream:
        break
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()
    _check_stream([event async for event in provider.stream(request)])
