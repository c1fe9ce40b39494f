"""Cassettes: recorded through a real SDK, played back without any."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Output, Text
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    TextDelta,
    closing_events,
)
from callwright.testing.cassettes import Recording, Replay
from callwright.testing.loopback import Loopback, LoopbackReply

Requests = Callable[..., ModelRequest]
_SECRET = "sk-" + "a1" * 20


async def _events(provider: Provider, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in provider.stream(request)]


@pytest.fixture
async def recorded_at(
    server: Loopback,
    tmp_path: Path,
    request_for: Requests,
    recorded: Callable[[str], bytes],
    conversation: tuple[Any, ...],
) -> tuple[Path, list[ModelEvent]]:
    """A cassette of two turns: an answer to a long conversation, and a refusal."""
    busy = LoopbackReply(
        [b'{"error": {"message": "busy"}}'], 429, {"content-type": "application/json", "retry-after": "3"}
    )
    server.reply(LoopbackReply([recorded("anthropic")]), busy)
    claude = AnthropicMessages("claude-test", api_key=_SECRET, base_url=server.url)
    recording = Recording(claude, tmp_path / "turns.json")
    events = await _events(recording, request_for(*conversation, UserMessage(f"my key is {_SECRET}")))
    with pytest.raises(ProviderError):
        await _events(recording, request_for(UserMessage("more")))
    await claude.aclose()
    return tmp_path / "turns.json", events


async def test_leaving_a_recorded_stream_ends_its_request(tmp_path: Path, request_for: Requests) -> None:
    class Endless:
        model, ended = "endless", False

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            try:
                while True:
                    yield TextDelta("more")
            finally:
                self.ended = True

    endless = Endless()
    async with closing_events(Recording(endless, tmp_path / "turns.json").stream(request_for())) as events:
        async for _ in events:
            break
    assert endless.ended


async def test_cassette_replays_recording(
    recorded_at: tuple[Path, list[ModelEvent]], request_for: Requests, conversation: tuple[Any, ...]
) -> None:
    path, events = recorded_at
    replay = Replay(path)
    with pytest.raises(AssertionError, match="2 of 2 turns were not requested"):
        replay.check_done()
    assert await _events(replay, request_for(*conversation, UserMessage(f"my key is {_SECRET}"))) == events
    with pytest.raises(ProviderError, match="busy") as caught:
        await _events(replay, request_for(UserMessage("more")))
    assert (caught.value.fault, caught.value.retry_after) == ("transient", 3.0)
    replay.check_done()
    with pytest.raises(AssertionError, match="another one was requested"):
        await _events(replay, request_for(UserMessage("more")))
    with pytest.raises(AssertionError, match="another one was requested"):
        replay.check_done()


async def test_cassette_contains_no_secrets(recorded_at: tuple[Path, list[ModelEvent]]) -> None:
    text = recorded_at[0].read_text(encoding="utf-8")
    assert _SECRET not in text
    assert "my key is [redacted]" in text


class _InPieces:
    """Streams a secret in pieces, as text and as arguments."""

    model = "m"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for piece in ("key: ", _SECRET[:9], _SECRET[9:]):
            yield TextDelta(piece)
        for call_id in ("a", "b"):
            for name, piece in (("env", '{"key": "'), ("", _SECRET[:9]), ("", _SECRET[9:] + '"}')):
                yield CallDelta(call_id, name, piece)
        yield TextDelta("and ")
        yield TextDelta("more")
        yield MessageDone(AssistantMessage((Text("done"),), "end"))


async def test_secret_in_pieces_is_redacted(tmp_path: Path, request_for: Requests) -> None:
    path, request = tmp_path / "turns.json", request_for(UserMessage("hi"))
    await _events(Recording(_InPieces(), path), request)
    assert _SECRET[9:] not in path.read_text(encoding="utf-8")
    assert (await _events(Replay(path), request))[:-1] == [
        TextDelta("key: [redacted]"),
        CallDelta("a", "env", '{"key": "[redacted]"}'),
        CallDelta("b", "env", '{"key": "[redacted]"}'),
        TextDelta("and "),
        TextDelta("more"),
    ]


class _InTurn:
    """Streams the arguments of two calls in turn, as servers do that write them at the same time."""

    model = "m"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield CallDelta("a", "env", f'{{"key": "{_SECRET[:9]}')
        yield CallDelta("b", "look", '{"page":')
        yield CallDelta("a", "", f'{_SECRET[9:]}"}}')
        yield CallDelta("b", "", " 1}")
        yield MessageDone(AssistantMessage((Text("done"),), "end"))


async def test_secret_among_pieces_of_another_call_is_redacted(tmp_path: Path, request_for: Requests) -> None:
    path, request = tmp_path / "turns.json", request_for(UserMessage("hi"))
    await _events(Recording(_InTurn(), path), request)
    assert _SECRET[9:] not in path.read_text(encoding="utf-8")
    assert (await _events(Replay(path), request))[:-1] == [
        CallDelta("a", "env", '{"key": "[redacted]"}'),
        CallDelta("b", "look", '{"page":'),
        CallDelta("b", "", " 1}"),
    ]


async def test_names_tell_which_data_is_secret(tmp_path: Path, request_for: Requests) -> None:
    called = ToolCall("c", "env", {})
    outcome = Completed(called, Output("read", {"password": "correct-horse-7x"}))
    request = request_for(UserMessage("hi"), AssistantMessage((called,), "calls"), ToolMessage((outcome,)))
    path = tmp_path / "turns.json"
    recorded = await _events(Recording(_InPieces(), path), request)
    assert "correct-horse" not in path.read_text(encoding="utf-8")
    assert (await _events(Replay(path), request))[-1] == recorded[-1]


async def test_replay_rejects_other_request(recorded_at: tuple[Path, list[ModelEvent]], request_for: Requests) -> None:
    replay = Replay(recorded_at[0])
    with pytest.raises(AssertionError, match="turn 1: messages differs from the recording"):
        await _events(replay, request_for(UserMessage("something else")))
    with pytest.raises(AssertionError, match="turn 1: messages differs from the recording"):
        replay.check_done()


async def test_replay_rejects_changed_description(tmp_path: Path, request_for: Requests) -> None:
    path, request = tmp_path / "new" / "folder" / "turns.json", request_for(UserMessage("hi"))
    await _events(Recording(_InPieces(), path), request)
    first, *others = request.tools
    changed = replace(request, tools=(replace(first, description="Another text."), *others))
    with pytest.raises(
        AssertionError, match=r'tools\.0\.description differs from the recording: "Another text\." instead of'
    ):
        await _events(Replay(path), changed)


async def test_cassette_with_names_of_tools_is_replayed(tmp_path: Path, request_for: Requests) -> None:
    path, request = tmp_path / "turns.json", request_for(UserMessage("hi"))
    await _events(Recording(_InPieces(), path), request)
    cassette = json.loads(path.read_text(encoding="utf-8"))
    cassette["turns"][0]["request"]["tools"] = [spec.name for spec in request.tools]
    path.write_text(json.dumps(cassette), encoding="utf-8")
    assert request.tools and await _events(Replay(path), request)
    with pytest.raises(AssertionError, match="tools differs from the recording"):
        await _events(Replay(path), replace(request, tools=request.tools[1:]))


async def test_recording_closes_its_provider(server: Loopback, tmp_path: Path) -> None:
    claude = AnthropicMessages("claude-test", api_key="none", base_url=server.url)
    recording = Recording(claude, tmp_path / "turns.json")
    assert recording.vendor == claude.vendor
    await recording.aclose()


async def test_cassette_is_readable_json(recorded_at: tuple[Path, list[ModelEvent]]) -> None:
    cassette = json.loads(recorded_at[0].read_text(encoding="utf-8"))
    assert cassette["model"] == "claude-test"
    assert cassette["turns"][0]["events"][1] == {"text": ["Grüße "]}
