"""Cassettes: what a real model said, kept in a file without secrets and played back in tests that need no network."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from callwright.core.json import compact
from callwright.core.messages import AssistantMessage
from callwright.hooks.builtin import Redact
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    TextDelta,
    ThinkingDelta,
)
from callwright.sessions.records import decode_message, encode_message

Data = dict[str, Any]
_KINDS = {"text": TextDelta, "thinking": ThinkingDelta, "call": CallDelta}


class Recording:
    """Passes everything on to a provider, and writes down what was asked and what came back."""

    def __init__(self, provider: Provider, path: Path, redact: Callable[[str], str] | None = None) -> None:
        """`redact` is shown every text before it is written; by default, well-known kinds of credentials are cut."""
        self._provider = provider
        self._path = path
        self._redact = redact or Redact().clean
        self._turns: list[Data] = []

    @property
    def model(self) -> str:
        """The model's name as the provider knows it."""
        return self._provider.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the provider; what it says, an error too, is on disk before the stream ends."""
        turn: Data = {"request": encode_request(request), "events": []}
        try:
            async for event in self._provider.stream(request):
                turn["events"].append(_encode_event(event))
                if isinstance(event, MessageDone):
                    self._write(turn)
                yield event
        except ProviderError as error:
            turn["error"] = {"message": str(error), "fault": error.fault, "retry_after": error.retry_after}
            self._write(turn)
            raise

    def _write(self, turn: Data) -> None:
        self._turns.append(_redact_value(turn, self._redact))
        text = json.dumps({"model": self.model, "turns": self._turns}, indent=1, ensure_ascii=False)
        self._path.write_text(text + "\n", encoding="utf-8", errors="replace")


class Replay:
    """Plays a cassette back; a request other than the one that was recorded fails the test, with what differs."""

    def __init__(self, path: Path, redact: Callable[[str], str] | None = None) -> None:
        cassette = json.loads(path.read_text(encoding="utf-8"))
        self._path = path
        self._redact = redact or Redact().clean
        self._turns: list[Data] = cassette["turns"]
        self._played = 0
        self.model: str = cassette["model"]

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Give what was recorded for this request."""
        if self._played >= len(self._turns):
            raise AssertionError(f"{self._path.name} has {len(self._turns)} turns, and one more was asked for")
        turn = self._turns[self._played]
        self._played += 1
        asked = json.loads(compact(_redact_value(encode_request(request), self._redact)).encode("utf-8", "replace"))
        differing = [name for name in asked if asked[name] != turn["request"].get(name)]
        if differing:
            raise AssertionError(
                f"{self._path.name}, turn {self._played}: {differing[0]} is not what was recorded: "
                f"{compact(asked[differing[0]])} instead of {compact(turn['request'].get(differing[0]))}"
            )
        for event in turn["events"]:
            yield _decode_event(event)
        if "error" in turn:
            said = turn["error"]
            raise ProviderError(said["message"], fault=said["fault"], retry_after=said["retry_after"])

    def check_done(self) -> None:
        """Fail unless every turn was played."""
        left = len(self._turns) - self._played
        assert left == 0, f"{self._path.name}: {left} of {len(self._turns)} turns were not asked for"


def encode_request(request: ModelRequest) -> Data:
    """Give what identifies a request: all of it, except what takes a different value in every run."""
    return {
        "system": request.system,
        "messages": [_drop_durations(encode_message(message)) for message in request.messages],
        "tools": [spec.name for spec in request.tools],
        "output_schema": request.output_schema,
        "options": dict(request.options),
    }


def _drop_durations(message: Data) -> Data:
    outcomes: list[Data] = message.get("outcomes", [])
    if not outcomes:
        return message
    return {**message, "outcomes": [{key: part for key, part in each.items() if key != "seconds"} for each in outcomes]}


def _encode_event(event: ModelEvent) -> Data:
    match event:
        case TextDelta(text):
            return {"text": [text]}
        case ThinkingDelta(text):
            return {"thinking": [text]}
        case CallDelta(call_id, name, arguments):
            return {"call": [call_id, name, arguments]}
        case MessageDone(message):
            return {"message": encode_message(message)}


def _decode_event(data: Data) -> ModelEvent:
    kind, value = next(iter(data.items()))
    if kind == "message":
        message = decode_message(value)
        assert isinstance(message, AssistantMessage)
        return MessageDone(message)
    return _KINDS[kind](*value)


def _redact_value(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redact_value(part, redact) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, (list, tuple)):
        return [_redact_value(part, redact) for part in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    return value
