"""Cassettes: record the answers of a real model in a file, without secrets, and replay them without a network."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from callwright.core.json import compact, map_texts, thaw
from callwright.core.messages import AssistantMessage
from callwright.hooks.builtin import Redact
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    ProviderWrapper,
    TextDelta,
    ThinkingDelta,
    closing_events,
)
from callwright.sessions.message_encoding import decode_message, encode_message

Data = dict[str, Any]
_KINDS = {"text": TextDelta, "thinking": ThinkingDelta, "call": CallDelta}


class Recording(ProviderWrapper):
    """A provider that forwards requests to another one and records requests and events.

    Args:
        provider: Answers the requests.
        path: The cassette to write; its folder is created if it is missing.
        redact: Is applied to every text before it is written; by default it removes known kinds of credentials.
    """

    def __init__(self, provider: Provider, path: Path, redact: Callable[[str], str] | None = None) -> None:
        super().__init__(provider)
        self._path = path
        self._redact, self._redact_data = _make_redactors(redact)
        self._turns: list[Data] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Forward a request; its events, or its error, are on disk before the stream ends."""
        turn: Data = {"request": encode_request(request), "events": []}
        try:
            async with closing_events(self._inner.stream(request)) as events:
                async for event in events:
                    turn["events"].append(_encode_event(event))
                    if isinstance(event, MessageDone):  # before the yield: the consumer may stop at the last event
                        self._write(turn)
                    yield event
        except ProviderError as error:
            turn["error"] = {"message": str(error), "fault": error.fault, "retry_after": error.retry_after}
            self._write(turn)
            raise

    def _write(self, turn: Data) -> None:
        turn["events"] = _join_secrets(turn["events"], self._redact)
        self._turns.append(self._redact_data(turn))
        text = json.dumps({"model": self.model, "turns": self._turns}, indent=1, ensure_ascii=False)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(text + "\n", encoding="utf-8", errors="replace")


class Replay:
    """A provider that replays a cassette and fails the test if a request differs from the recorded one.

    An agent reports the difference as `Stopped`, as it does with any error of a provider: `check_done` raises it.
    Tools are compared by name only if the cassette has no more than that, as older ones do.

    Args:
        path: The cassette.
        redact: The function that was used for the recording.
    """

    def __init__(self, path: Path, redact: Callable[[str], str] | None = None) -> None:
        cassette = json.loads(path.read_text(encoding="utf-8"))
        self._path = path
        self._redact_data = _make_redactors(redact)[1]
        self._turns: list[Data] = cassette["turns"]
        self._played = 0
        self._difference = ""
        self.model: str = cassette["model"]

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the recorded events of the next request.

        Raises:
            AssertionError: The request differs from the recorded one, or there is none left.
            ProviderError: The recorded error.
        """
        if self._played >= len(self._turns):
            self._difference = f"{self._path.name} has {len(self._turns)} turns, but another one was requested"
            raise AssertionError(self._difference)
        turn = self._turns[self._played]
        self._played += 1
        actual = json.loads(compact(self._redact_data(encode_request(request))).encode("utf-8", "replace"))
        if any(isinstance(tool, str) for tool in turn["request"]["tools"]):  # older cassettes have only the names
            actual["tools"] = [tool["name"] for tool in actual["tools"]]
        difference = _find_difference(actual, turn["request"])
        if difference:
            self._difference = f"{self._path.name}, turn {self._played}: {difference}"
            raise AssertionError(self._difference)
        for event in turn["events"]:
            yield _decode_event(event)
        if "error" in turn:
            error = turn["error"]
            raise ProviderError(error["message"], fault=error["fault"], retry_after=error["retry_after"])

    async def aclose(self) -> None:
        """Do nothing; there are no connections."""

    def check_done(self) -> None:
        """Fail unless every turn was replayed, each for the request that was recorded."""
        assert not self._difference, self._difference
        left = len(self._turns) - self._played
        assert left == 0, f"{self._path.name}: {left} of {len(self._turns)} turns were not requested"


def _make_redactors(redact: Callable[[str], str] | None) -> tuple[Callable[[str], str], Callable[[Any], Any]]:
    """Return what is applied to a text, and to all texts of plain data; by default the names in the data count too."""
    if redact is None:
        known = Redact()
        return known.clean, known.clean_data
    return redact, lambda data: map_texts(data, redact)


def encode_request(request: ModelRequest) -> Data:
    """Return what identifies a request, without values that differ in every run."""
    return {
        "system": request.system,
        "messages": [_drop_durations(encode_message(message)) for message in request.messages],
        "tools": [
            {"name": spec.name, "description": spec.description, "input_schema": thaw(spec.input_schema)}
            for spec in request.tools
        ],
        "output_schema": request.output_schema,
        "options": dict(request.options),
    }


def _find_difference(actual: Any, recorded: Any, where: str = "") -> str:
    """Return the first place where a request differs, with both values; empty if there is none."""
    if actual == recorded:
        return ""
    for step in _find_steps(actual) if _find_steps(actual) == _find_steps(recorded) else ():
        if found := _find_difference(actual[step], recorded[step], f"{where}.{step}".removeprefix(".")):
            return found
    return f"{where or 'the request'} differs from the recording: {compact(actual)} instead of {compact(recorded)}"


def _find_steps(value: object) -> Sequence[str | int]:
    """Return the keys of an object in a fixed order, or the positions of a list; nothing for other values."""
    if isinstance(value, dict):
        return sorted(cast("Data", value))
    return range(len(cast("list[object]", value))) if isinstance(value, list) else ()


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


def _join_secrets(events: list[Data], redact: Callable[[str], str]) -> list[Data]:
    """Join the pieces of a text that is redacted: a secret that streams in pieces is not found in any of them."""
    streams: dict[tuple[str, str | int], list[Data]] = {}
    for run, (kind, group) in enumerate(groupby(events, _find_kind)):
        for event in group:  # pieces of several calls may come in turn, those of a text come one after the other
            streams.setdefault((kind, event[kind][0] if kind == "call" else run), []).append(event)
    joined = {id(event): [event] for event in events}
    for (kind, _), pieces in streams.items():
        whole = "" if kind == "message" else "".join(piece[kind][-1] for piece in pieces)
        if redact(whole) != whole:
            joined.update({id(piece): [] for piece in pieces})
            joined[id(pieces[0])] = [{kind: [*pieces[0][kind][:-1], whole]}]
    return [kept for event in events for kept in joined[id(event)]]


def _find_kind(event: Data) -> str:
    return next(iter(event))


def _decode_event(data: Data) -> ModelEvent:
    kind, value = next(iter(data.items()))
    if kind == "message":
        message = decode_message(value)
        assert isinstance(message, AssistantMessage)
        return MessageDone(message)
    return _KINDS[kind](*value)
